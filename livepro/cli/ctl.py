"""`livepro ctl`: commands to a run in progress, from another terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence

from livepro.cli.parser import Parser
from livepro.errors import LiveproError

COMMANDS = {
    "status": "say how far the run is",
    "reset": "count from here: forget what has been counted",
    "snapshot": "keep the counts of this moment for the report; a label may follow",
    "pause": "count nothing until `resume`",
    "resume": "count again",
    "detach": "let the program go on unmeasured; livepro reports what it has counted",
}

DESCRIPTION = """\
Give a command to a run of yours that is in progress. PID is livepro's, or that of
a process which it measures. The answer, as JSON: how far the run is."""

EPILOG = (
    "commands:\n"
    + "\n".join(f"  {name:<10}{text}" for name, text in COMMANDS.items())
    + """

examples:
  livepro ctl $(pgrep -n java) status
  livepro ctl 4711 reset
  livepro ctl 4711 snapshot "after warm-up\""""
)


def parser() -> Parser:
    """The arguments of `livepro ctl`."""
    out = Parser("livepro ctl", DESCRIPTION, EPILOG)
    out.usage = "livepro ctl PID COMMAND [LABEL]"
    out.add_argument("pid", metavar="PID", type=int, help="livepro's pid, or a measured process's")
    out.add_argument("command", metavar="COMMAND", choices=tuple(COMMANDS), help="one of those below")
    out.add_argument("label", metavar="LABEL", nargs="?", default="", help="a snapshot's name in the report")
    return out


def main(argv: Sequence[str]) -> int:
    """Give the command, print the answer."""
    args = parser().parse_args(argv)
    if args.label and args.command != "snapshot":
        raise LiveproError(f"'{args.command}' takes no label.", "Only `snapshot` does.")
    from livepro.serving.client import ask

    print(json.dumps(ask(args.pid, args.command, args.label)))
    return 0
