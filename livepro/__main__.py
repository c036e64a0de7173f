"""`python -m livepro` and the console script: nothing is imported before it is needed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own); return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):  # answered without building a parser
        from livepro import __version__

        print(f"livepro {__version__}")
        return 0
    try:
        from livepro import bytecode
        from livepro.cli.loading import ended_at_once

        with ended_at_once():
            bytecode.keep()
            from livepro.cli.main import main as cli_main
    except KeyboardInterrupt:  # in the middle of an import
        return 128 + signal.SIGINT

    return cli_main(arguments)


def script() -> None:
    """The console script: ends with the status of the command line, and leaves the rest to the kernel."""
    status = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = status or 128 + signal.SIGPIPE
    os._exit(status)


if __name__ == "__main__":
    script()
