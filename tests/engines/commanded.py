"""Runs a command under an engine and gives commands meanwhile; writes the result down as observe.py does.

    commanded.py OUTPUT OPTIONS STEPS COMMAND [ARGS...]

STEPS is JSON: a list of pairs. `["await", TEXT]` reads the program's standard output up
to TEXT, `["send", TEXT]` writes to its standard input, `["sleep", SECONDS]` waits,
`["rest", ""]` waits until the program's first thread waits for something, too; anything
else is a command of `engines.control`, with its label. Answers are in the result's `answers`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from engines.allowing import heeded
from engines.observe import describe_run

import livepro
from livepro.engines.control import Control


class Conversation(threading.Thread):
    """Takes the steps one after the other."""

    def __init__(self, steps: list[tuple[str, Any]]) -> None:
        super().__init__(daemon=True)
        self.steps = steps
        self.answers: list[dict[str, Any]] = []
        self.control: Control | None = None
        program_in, self.to_program = os.pipe()
        self.from_program, program_out = os.pipe()
        os.dup2(program_in, 0)
        os.dup2(program_out, 1)
        os.close(program_in)
        os.close(program_out)

    def begin(self, control: Control) -> None:
        self.control = control
        self.start()

    def run(self) -> None:
        heard = b""
        for verb, argument in self.steps:
            if verb == "await":
                while argument.encode() not in heard:
                    more = os.read(self.from_program, 4096)
                    assert more, f"the program ended before it wrote {argument!r}"
                    heard += more
                heard = heard.partition(argument.encode())[2]
            elif verb == "send":
                os.write(self.to_program, argument.encode())
            elif verb == "sleep":
                time.sleep(argument)
            elif verb == "rest":
                assert self.control is not None
                (pid,) = self.control.perform("status")["pids"]
                while Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "S":
                    time.sleep(0.005)
            else:
                assert self.control is not None
                self.answers.append(self.control.perform(verb, argument))
        os.close(self.to_program)


def main(output: str, options: str, steps: str, *command: str) -> None:
    conversation = Conversation(json.loads(steps))
    result = livepro.run(command, control=conversation.begin, **heeded(json.loads(options)))
    conversation.join(10)
    text = describe_run(result) | {"answers": conversation.answers}
    Path(output).write_text(json.dumps(text))


if __name__ == "__main__":
    main(*sys.argv[1:])
