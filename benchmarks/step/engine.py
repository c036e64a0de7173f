"""Steps one command with livepro's step engine; prints steps, instructions and seconds.

    engine.py RESULT COMMAND [ARGS...]

It writes them to the file RESULT. Timed is `StepEngine.run` alone: the program
from its first instruction to its last, with decoding and counting, but without
livepro's start and its reports, which do not grow with the number of steps.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

from livepro import isa
from livepro.engines.base import EngineOptions
from livepro.engines.step.engine import StepEngine
from livepro.linux.command import resolve_command


def main() -> None:
    result, *command = sys.argv[1:]
    machine = isa.for_machine(platform.machine())
    machine.decode_block(b"", 0)  # loads the decoder
    engine = StepEngine(machine, EngineOptions())
    executable = resolve_command(command[0], os.environb)
    engine.launch(executable, command, os.environb, aslr=False)
    began = time.perf_counter()
    engine.run()
    seconds = time.perf_counter() - began
    Path(result).write_text(f"{engine.stats['stops']} {seconds:.6f} {engine.instructions}\n")


if __name__ == "__main__":
    main()
