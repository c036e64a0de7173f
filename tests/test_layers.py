"""The import directions of the design, and file sizes: read from the sources themselves."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "livepro"
LONGEST = 420  # lines; "about 400"

EVERYWHERE = {"errors", "model", ""}  # "" is livepro itself: its version

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "model": set(),
    "isa": set(),
    "linux": set(),
    "analyses": set(),
    "formats": set(),
    "jvm": {"linux"},
    "names": {"linux"},  # as people and other tools know functions
    "tracee": {"linux", "isa"},
    "engines": {"tracee", "linux", "isa", "jvm", "names"},
    "described": {"isa", "linux"},  # what instructions are, from run to run
    "results": {
        "described",
        "engines",
        "linux",
        "isa",
        "jvm",
        "names",
    },  # from an engine's records to the model
    "events": {"cachesim", "engines", "linux", "isa"},  # analyses of the event stream
    "cachesim": {"events", "linux"},  # the simulator is one of them
    "mica": {"events", "engines", "isa", "analyses", "formats"},  # another one
    "traces": {"events", "engines", "isa", "cachesim", "formats"},  # files for simulators
    "inprocess": set(),  # for the programs measured: nothing but the standard library
    "live": {
        "results",
        "engines",
        "tracee",
        "linux",
        "isa",
        "analyses",
        "names",
    },  # from counts to pictures, while it runs
    "serving": {"live", "engines", "isa"},
    "session": {"live", "results", "engines", "tracee", "linux", "isa"},
    "front": {"linux"},
    "attachment": {"session", "live", "engines", "tracee", "linux", "isa"},
    "sampling": {"attachment", "analyses"},  # windows of attachments, their results added up
    "api": {
        "events",
        "sampling",
        "serving",
        "session",
        "attachment",
        "live",
        "engines",
        "linux",
        "isa",
        "analyses",
        "formats",
    },
    "comparing": set(),  # reports as they were written
    "exports": {"analyses"},  # reports in the formats of other tools
    "reports": {"comparing", "analyses", "isa"},  # pages for the browser, of reports as they were written
    "flow": {"isa"},  # from executed blocks to loops
    "simpoint": {"analyses", "formats"},  # from vectors to points
    "ui": {"analyses", "formats", "comparing", "simpoint", "flow"},
    "cli": {
        "blocks",
        "comparing",
        "exports",
        "reports",
        "simpoint",
        "flow",
        "cachesim",
        "traces",
        "events",
        "inprocess",
        "serving",
        "api",
        "front",
        "session",
        "analyses",
        "formats",
        "ui",
    },
    "blocks": {
        "api",
        "jvm",
        "linux",
        "isa",
        "names",
        "analyses",
    },  # data sets of blocks, made from files and runs
    "pytest_plugin": {"inprocess", "cli"},
    "bytecode": {"linux"},
    "__main__": {"cli", "bytecode"},
    "": {"api", "session"},  # livepro/__init__.py: the Python API, imported late
}
"""Layer -> layers it may import besides itself and `EVERYWHERE` (model: nothing at all)."""

EXCEPTIONS = {
    "cli/outputs.py": {"isa", "linux", "names"},  # the names that a specification may use; source lines
    "cli/run.py": {"engines"},  # their names
    "cli/blocks/shared.py": {"isa"},  # disassembly
    "cli/blocks/suite.py": {"isa"},  # their names
    "cli/blocks/run.py": {"engines"},  # their names
    "cli/blocks/predict.py": {"linux"},  # where answers are remembered
    "cli/cache.py": {"linux"},  # what is kept there
    "cli/attach.py": {"engines"},
    "cli/simpoint.py": {"engines"},
    # The doctor asks the system itself: it reports on the layers, it is not built on them.
    "cli/examination.py": {"linux", "isa", "engines"},
}


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def layer(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "" if parts[0] == "__init__" else parts[0]


def imported_layers(path: Path, text: str) -> set[str]:
    """Layers that `text` imports, at the top or inside functions, absolutely or relatively."""
    package = ("livepro", *path.relative_to(ROOT).parent.parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            modules = [module] if module != "livepro" else [f"livepro.{a.name}" for a in node.names]
        else:
            continue
        for module in modules:
            first, _, rest = module.partition(".")
            if first == "livepro":
                name = rest.partition(".")[0]
                found.add(name if name in MAY_IMPORT else "")
    return found


def violations(path: Path, text: str) -> set[str]:
    own = layer(path)
    allowed = MAY_IMPORT[own] | {own}
    if own not in ("model", "errors"):
        allowed |= EVERYWHERE
    allowed |= EXCEPTIONS.get(str(path.relative_to(ROOT)), set())
    return imported_layers(path, text) - allowed


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_layers(path: Path) -> None:
    assert layer(path) in MAY_IMPORT, "a new layer needs a line in the table"
    assert violations(path, path.read_text()) == set()


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize(
    ("where", "text", "wrong"),
    [
        ("model/blocks.py", "import livepro.errors", {"errors"}),
        ("model/blocks.py", "from livepro import errors", {"errors"}),
        ("analyses/simd.py", "from livepro.isa.base import Isa", {"isa"}),
        ("analyses/simd.py", "def f():\n    from ..engines import step", {"engines"}),
        ("isa/base.py", "from livepro.linux import ptrace", {"linux"}),
        ("ui/summary.py", "from livepro.linux import ptrace", {"linux"}),
        ("cli/run.py", "from livepro.linux import ptrace", {"linux"}),
        ("cli/examination.py", "from livepro.linux import ptrace", set()),
        ("engines/step.py", "from livepro.tracee import process", set()),
        ("isa/x86_64/decode.py", "from ...model import Flow\nfrom ..base import Isa", set()),
    ],
)
def test_the_check_itself_sees_a_wrong_import(where: str, text: str, wrong: set[str]) -> None:
    assert violations(ROOT / where, text) == wrong


def test_instruction_sets_have_mirrored_file_names() -> None:
    names = [sorted(p.name for p in (ROOT / "isa" / isa).glob("*.py")) for isa in ("x86_64", "aarch64")]
    assert names[0] == names[1]


def test_no_instruction_set_is_tested_for_outside_isa() -> None:
    """Comparing with a machine name belongs into `livepro/isa`."""
    guilty = []
    for path in sources():
        if layer(path) == "isa":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                words = {c.value for c in ast.walk(node) if isinstance(c, ast.Constant)}
                if words & {"x86_64", "aarch64"}:
                    guilty.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert guilty == []
