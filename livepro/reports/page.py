"""One HTML file with everything in it: data, style, scripts, the library that draws.

Nothing in it can reach the network: its content security policy (W3C, CSP Level 3) allows just the
scripts that it came with, by their hashes, and no request. Names from the program measured are data,
compressed in an element that is never executed, and shown as text only.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from html import escape
from pathlib import Path
from typing import Any

from livepro import __version__
from livepro.comparing.changes import changes, to_document
from livepro.reports.content import ROOM, content

Document = dict[str, Any]

_ASSETS = Path(__file__).with_name("assets")
_SCRIPTS = (
    "dom.js",
    "table.js",
    "code.js",
    "charts.js",
    "overview.js",
    "functions.js",
    "extras.js",
    "main.js",
)


def page(documents: list[Document], names: list[str]) -> str:
    """The page for one run, or for two to compare; `names` are what the runs are called there.
    Raises ValueError where a report is damaged."""
    runs = [content(document, ROOM // len(documents)) for document in documents]
    data: Document = {"livepro": __version__, "names": names, "runs": runs, "diff": None}
    if len(documents) == 2:
        data["diff"] = to_document(changes(*documents), *documents)["changes"]
    scripts = [_asset("echarts.min.js"), "\n".join(_asset(name) for name in _SCRIPTS)]
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"
    title = " and ".join(dict.fromkeys(" ".join(d["command"]) for d in documents))
    return _fill(
        _asset("page.html"),
        policy=policy,
        title=escape(_text(f"livepro: {title}")),
        style=_asset("page.css"),
        data=_packed(data),
        library=scripts[0],
        script=scripts[1],
    )


def _fill(template: str, **parts: str) -> str:
    """`template` with ``{{name}}`` replaced, each once, what is filled in left as it is."""
    out = []
    while "{{" in template:
        before, _, rest = template.partition("{{")
        name, _, template = rest.partition("}}")
        out += [before, parts[name]]
    return "".join([*out, template])


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _packed(data: Document) -> str:
    """JSON, compressed (zlib), in base64: no character of it can mean anything to HTML."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode()


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
