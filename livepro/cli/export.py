"""`livepro export`: a JSON report in another tool's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from livepro.cli.loading import load_numpy
from livepro.cli.parser import Parser
from livepro.errors import LiveproError
from livepro.exports import FORMATS

DESCRIPTION = """\
Write a JSON report in a format that another tool opens."""

EPILOG = (
    "formats:\n"
    + "\n".join(f"  {f.name:<11}{f.help}" for f in FORMATS)
    + """

examples:
  livepro run --json run.json -- ./prog
  livepro export run.json --to speedscope
  livepro export run.json --to callgrind -o callgrind.out.run
  livepro export run.json --to perfetto      (of a run with --timeline, or with intervals)"""
)


def parser() -> Parser:
    """The options of `livepro export`."""
    out = Parser("livepro export", DESCRIPTION, EPILOG)
    out.usage = "livepro export RUN.json --to FORMAT [-o FILE]"
    out.add_argument("run", metavar="RUN.json", help="what `livepro run --json` wrote")
    out.add_argument("--to", choices=[f.name for f in FORMATS], required=True, help="the format")
    out.add_argument(
        "-o", "--output", metavar="FILE", help="the file (default: RUN with the format's suffix)"
    )
    return out


def main(argv: Sequence[str]) -> int:
    """Write the file and say where it is; 0."""
    args = parser().parse_args(argv)
    load_numpy()
    from livepro.formats import files, json_report

    form = next(f for f in FORMATS if f.name == args.to)
    base = args.run.removesuffix(".gz").removesuffix(".json")
    output = args.output or base + form.suffix
    files.check_writable(output, "-o")
    document = json_report.read(args.run)
    timed = document.get("timeline") or any(
        t.get("moments") for p in document["processes"] for t in p["threads"]
    )
    if form.name == "perfetto" and not timed:
        raise LiveproError(
            f"{args.run} has nothing over time.", "Measure with --timeline, or with --interval-size."
        )
    try:
        content = form.function(document)
    except ValueError as error:
        raise LiveproError(
            f"{args.run} cannot be exported: {error}.", "Give a file that livepro wrote."
        ) from error
    Path(output).write_bytes(content)
    print(f"{output}: {len(content):,} bytes")
    return 0
