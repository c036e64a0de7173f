"""`livepro report`: a page for the browser from one or two JSON reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from livepro.cli.loading import load_numpy
from livepro.cli.parser import Parser
from livepro.errors import LiveproError

DESCRIPTION = """\
Make one HTML file of a JSON report: threads, the run over time, the instruction mix, functions down
to single instructions with their counts, Java by compiler tier. It needs nothing but a browser, no network
either. Of two reports it shows what changed from the first to the second, too."""

EPILOG = """\
examples:
  livepro run --json run.json --interval-size 10M -- ./prog
  livepro report run.json
  livepro report before.json after.json -o changes.html
  livepro run --html run.html -- ./prog"""


def parser() -> Parser:
    """The options of `livepro report`."""
    out = Parser("livepro report", DESCRIPTION, EPILOG)
    out.usage = "livepro report [-o FILE] RUN.json [OTHER.json]"
    out.add_argument("run", metavar="RUN.json", help="what `livepro run --json` wrote")
    out.add_argument("other", metavar="OTHER.json", nargs="?", help="another one, to compare with the first")
    out.add_argument("-o", "--output", metavar="FILE", help="the page (default: RUN.html, beside RUN.json)")
    return out


def main(argv: Sequence[str]) -> int:
    """Write the page and say where it is; 0."""
    args = parser().parse_args(argv)
    load_numpy()
    from livepro.formats import files, json_report
    from livepro.reports.page import page

    given = [name for name in (args.run, args.other) if name is not None]
    output = args.output or _beside(given[-1])
    files.check_writable(output, "-o")
    documents = [json_report.read(name) for name in given]
    names = [Path(name).name for name in given]
    try:
        text = page(documents, names)
    except ValueError as error:
        raise LiveproError(
            f"{' or '.join(given)} cannot be shown: {error}.", "Give files that livepro wrote."
        ) from error
    with files.open_text(output) as stream:
        stream.write(text)
    print(f"{output}: {len(text) / 1e6:.1f} MB, to be opened in a browser")
    return 0


def _beside(name: str) -> str:
    """The page's name for a report's: run.json.gz gives run.html."""
    path = Path(name)
    for suffix in (".gz", ".json"):
        if path.suffix == suffix:
            path = path.with_suffix("")
    return f"{path}.html"
