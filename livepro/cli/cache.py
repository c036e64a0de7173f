"""`livepro cache`: where translations and symbols are kept, how much there is, and away with it."""

from __future__ import annotations

from collections.abc import Sequence

from livepro.cli.parser import Parser
from livepro.errors import LiveproError

DESCRIPTION = """\
Say where livepro keeps the code that it translated and the symbols that it
read, so that the next run of the same programs starts at once, and how much
there is. Nothing that is kept changes a count: what another version of livepro
or of a file left there is not used. The longest unused goes when there is too
much. livepro itself is kept there compiled, if Python was told not to do that
elsewhere (PYTHONDONTWRITEBYTECODE)."""

EPILOG = """\
examples:
  livepro cache
  livepro cache --clear

LIVEPRO_CACHE_DIR names another directory. `livepro run --no-cache` neither uses
nor keeps anything of the program."""


def parser() -> Parser:
    """The options of `livepro cache`."""
    out = Parser("livepro cache", DESCRIPTION, EPILOG)
    out.add_argument("--clear", action="store_true", help="remove all that is kept")
    return out


def main(argv: Sequence[str]) -> int:
    """Print the findings on standard output, or clear; 0."""
    args = parser().parse_args(argv)
    from livepro.kept.artifacts import SIZE_LIMIT, clear, contents
    from livepro.kept.place import default_directory

    directory = default_directory()
    if args.clear:
        try:
            files, size = clear(directory)
        except OSError as error:
            raise LiveproError(f"{error.filename} cannot be removed: {error.strerror}.") from None
        print(f"removed {files} files, {_megabytes(size)}, from {directory}")
        return 0
    found = contents(directory)
    print(f"{directory}: {len(found)} files, {_megabytes(sum(s for _, s, _ in found))}", end=" ")
    print(f"of at most {_megabytes(SIZE_LIMIT)}")
    return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
