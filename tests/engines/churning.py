"""Runs a command that generates code, and writes down what each thread executed of it.

churning.py OUTPUT CACHE_SIZE COMMAND [ARGS...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import livepro


def main() -> None:
    output, size, *command = sys.argv[1:]
    result = livepro.run(command, engine="translate", cache=False, cache_size=int(size))
    (process,) = result.processes
    generated = [module == "[anon]" for module in process.table.module]
    document = {
        "exit": result.exit,
        "warnings": list(result.warnings),
        "flushes": result.stats["flushes"],
        "blocks": len(process.table),
        "generated": [
            int(thread.block_instructions(process.table)[generated].sum()) for thread in process.threads
        ],
    }
    Path(output).write_text(json.dumps(document))


if __name__ == "__main__":
    main()
