"""`livepro blocks verify`: a data set made again, and what differs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from livepro.cli.blocks import suite
from livepro.cli.parser import Parser
from livepro.errors import LiveproError
from livepro.ui.text import plural

DESCRIPTION = """\
Make the data set DIR again from its manifest, elsewhere, and say what differs: blocks
that only one of the two has, and, in exact ones, counts that are not equal."""

EPILOG = """\
example:
  livepro blocks verify dataset

exit status: 0 when nothing differs, 1 when something does."""

SHOWN = 10


def parser() -> Parser:
    """The options of `livepro blocks verify`."""
    out = Parser("livepro blocks verify", DESCRIPTION, EPILOG)
    out.usage = "livepro blocks verify DIR [options]"
    out.add_argument("dataset", metavar="DIR")
    suite.add_jobs(out)
    return out


def main(argv: Sequence[str]) -> int:
    """Make it again and compare."""
    args = parser().parse_args(argv)
    from livepro.blocks import files
    from livepro.blocks.suite.dataset import describe, differences
    from livepro.blocks.suite.manifest import load

    into = Path(args.dataset)
    document = describe(into)
    before = files.read(into)
    manifest = load(document["manifest"], os.environ)
    if manifest.digest != document["manifest_sha256"]:
        raise LiveproError(
            f"The manifest {manifest.path} has changed since the data set was made.",
            "dataset.json has its text as it was (manifest_text): put that back, or make the data set anew.",
        )
    weights = {isa: document.get("weights", {}).get(isa, "run") for isa in document["isas"]}
    with tempfile.TemporaryDirectory() as folder:
        again, failures = suite.make(manifest, Path(folder), document["method"], weights, args)
    found = differences(before, again)
    for title, rows in (("gone", found.only_first), ("new", found.only_second)):
        for row in rows[:SHOWN]:
            print(f"{title}: {row.benchmark} {row.isa} {row.name} {row.code}")
    for old, new in found.changed[:SHOWN]:
        print(
            f"counted otherwise: {old.benchmark} {old.isa} {old.name} {old.occurrences} -> {new.occurrences}"
        )
    print(
        f"{plural(len(before), 'block')}: {len(found.only_first):,} gone, {len(found.only_second):,} new, "
        f"{len(found.changed):,} counted otherwise"
    )
    return 0 if found.none and not failures else 1
