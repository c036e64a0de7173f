"""python -m tests.servers: servers under load, attached to again and again; no request may fail."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..ledgers import append, row
from .loads import LOADS, Load, Missing

HEAD = (
    "| date | commit | processor | server | seconds | attached | done | failed |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


def attach(load: Load, directory: Path) -> str:
    """Attach once, with what translations are kept in `directory`; what livepro said if it failed."""
    command = [sys.executable, "-m", "livepro", "attach", "--quiet", "--no-live", "--name", load.name]
    command += ["--children", "--duration", "500ms", "--json", str(directory / "counts.json")]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"LIVEPRO_CACHE_DIR": str(directory / "kept")}
    )
    return "" if done.returncode == 0 else f"status {done.returncode}: {done.stderr.strip()}"


def measured(name: str, seconds: int, directory: Path) -> tuple[int, str, int, list[str]]:
    """Load a server for so long, attaching meanwhile: failed requests, what was done, attachments, errors."""
    log, place = directory / "log", directory / "place"
    place.mkdir()
    with LOADS[name](place, seconds) as load:
        running = load.run(log)
        times, errors = 0, []
        time.sleep(1)  # the load alone, at first
        while running.poll() is None:
            error = attach(load, directory)
            times += 1
            if error and running.poll() is None:
                errors.append(error)
            time.sleep(0.5)  # the server alone, as long as it was attached to
        running.wait()
        failed, asked = load.told(log)
    return failed, asked, times, errors


def main() -> int:
    """Run; return 1 when a request or an attachment failed."""
    parser = argparse.ArgumentParser("python -m tests.servers", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each server (default: 60)")
    parser.add_argument("--only", choices=sorted(LOADS), action="append", help="these servers (default: all)")
    parser.add_argument("--ledger", type=Path, help="add lines to the table that this document ends with")
    args = parser.parse_args()
    wrong = 0
    for name in args.only or LOADS:
        with tempfile.TemporaryDirectory(prefix="livepro-servers.") as directory:
            Path(directory).chmod(0o755)
            try:
                failed, asked, times, errors = measured(name, args.seconds, Path(directory))
            except Missing as missing:
                print(f"{name}: left out, {missing}", flush=True)
                continue
        print(f"{name}: {asked}, {failed} failed; {times} attachments, {len(errors)} failed", flush=True)
        print("\n".join(errors), end="\n" if errors else "", flush=True)
        wrong += failed + len(errors)
        if args.ledger:
            append(args.ledger, HEAD, row(name, args.seconds, times, asked, failed + len(errors)))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
