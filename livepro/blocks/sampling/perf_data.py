"""Samples of a file that `perf record` wrote, through `perf script`, which knows its format."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable

from livepro.blocks.sampling.collect import Samples
from livepro.errors import LiveproError
from livepro.linux.sampling.records import Executed, Forked, Mapped
from livepro.linux.sampling.spaces import Spaces

_MMAP = re.compile(
    r"PERF_RECORD_MMAP2? (?P<pid>-?\d+)/\d+: "
    r"\[(?P<start>0x[0-9a-f]+)\((?P<size>0x[0-9a-f]+|0)\) @ (?P<offset>0x[0-9a-f]+|0)[^\]]*\]: "
    r"(?P<flags>\S+) (?P<path>.*)$"
)
_FORK = re.compile(r"PERF_RECORD_FORK\((?P<pid>\d+):\d+\):\((?P<parent>\d+):\d+\)")
_EXEC = re.compile(r"PERF_RECORD_COMM exec: .*:(?P<pid>\d+)/\d+$")
_LOST = re.compile(r"PERF_RECORD_LOST(?:_SAMPLES)? lost (?P<number>\d+)")
_SAMPLE = re.compile(r"\s(?P<pid>\d+)/\d+\s+[\d.]+:\s+(?P<event>\S+):\s+(?P<ip>[0-9a-f]+) \((?P<dso>.*)\)$")
_KERNEL = 1 << 63  # addresses from here on are the kernel's


def perf_samples(path: str) -> Samples:
    """The samples of the file at `path`; those in the kernel are left out. Raises LiveproError when there
    is no perf, or it cannot read the file."""
    if not os.path.exists(path):
        raise LiveproError(
            f"There is no file {path}.", "`perf record -o FILE PROGRAM` writes one, perf.data by default."
        )
    perf = shutil.which("perf")
    if perf is None:
        raise LiveproError(
            "Reading perf's files takes perf.",
            "Install it (Debian: `apt-get install linux-perf`), or sample with `livepro blocks sample`.",
        )
    fields = "comm,pid,tid,time,event,ip,dso"
    events = ["--show-mmap-events", "--show-task-events", "--show-lost-events"]
    done = subprocess.run(
        [perf, "script", "-i", path, "-G", *events, "-F", fields],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        words = " ".join(done.stderr.split()) or f"perf script ended with status {done.returncode}"
        raise LiveproError(f"perf cannot read {path}: {words}", "See `perf report -i` with that file.")
    return read_script(done.stdout.splitlines())


def read_script(lines: Iterable[str]) -> Samples:
    """What `perf script` printed, as samples. Raises LiveproError for samples of no program counter."""
    samples = Samples(source="perf")
    spaces = Spaces()
    for line in lines:
        if "PERF_RECORD_" in line:
            _follow(line, spaces, samples)
            continue
        match = _SAMPLE.search(line)
        if match is None:
            continue
        samples.source = f"perf, {match['event']}"
        address = int(match["ip"], 16)
        if address < _KERNEL:
            samples.total += 1
            samples.places[spaces.locate(int(match["pid"]), address)] += 1
    if not samples.total:
        raise LiveproError(
            "The file holds no samples of user code.",
            "Record some: `perf record -e cycles:u PROGRAM`, in a virtual machine `-e cpu-clock:u`.",
        )
    return samples


def _follow(line: str, spaces: Spaces, samples: Samples) -> None:
    if match := _MMAP.search(line):
        if "x" in match["flags"]:
            start = int(match["start"], 16)
            end = start + int(match["size"], 16)
            spaces.follow(Mapped(0, int(match["pid"]), start, end, int(match["offset"], 16), match["path"]))
    elif match := _FORK.search(line):
        if match["pid"] != match["parent"]:
            spaces.follow(Forked(0, int(match["pid"]), int(match["parent"])))
    elif match := _EXEC.search(line):
        spaces.follow(Executed(0, int(match["pid"])))
    elif match := _LOST.search(line):
        samples.lost += int(match["number"])
