"""What is in a trace file, checked against what its format demands."""

# mypy: ignore-errors

from __future__ import annotations

import bz2
import gzip
import lzma
from collections import Counter
from pathlib import Path

import numpy as np

from livepro.errors import LiveproError
from livepro.traces.champsim import FLAGS, IP, SP
from livepro.traces.columns import read_npz
from livepro.traces.flattening import GOES_ON, INSTRUCTION, LOAD

RECORD = np.dtype(
    [
        *(("ip", "<u8"), ("is_branch", "u1"), ("taken", "u1"), ("writes", "u1", 2), ("reads", "u1", 4)),
        *(("stores", "<u8", 2), ("loads", "<u8", 4)),
    ]
)
"""ChampSim's `input_instr` (inc/trace_instruction.h)."""

TYPES = (
    *("none", "direct jump", "indirect jump", "conditional", "direct call", "indirect call", "return"),
    "other",
)
"""What `branch_types` counts by."""

_BLOCK = 1 << 16  # records


def opened(path: Path):
    """The file as a binary stream, uncompressed. Raises LiveproError."""
    how = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix, open)
    try:
        return how(path, "rb")
    except OSError as error:
        raise LiveproError(f"{path} cannot be read: {error.strerror}.") from error


def champsim_blocks(path: Path):
    """The records of a ChampSim trace as arrays of `RECORD`. Raises LiveproError if one is cut off."""
    at = 0
    with opened(path) as stream:
        while True:
            try:
                data = stream.read(_BLOCK * RECORD.itemsize)
            except (EOFError, OSError, lzma.LZMAError) as error:
                raise LiveproError(f"{path} is damaged behind record {at:,}: {error}.") from error
            if not data:
                return
            if len(data) % RECORD.itemsize:
                raise LiveproError(
                    f"{path}: record {at + len(data) // RECORD.itemsize:,} has "
                    f"{len(data) % RECORD.itemsize} bytes, not {RECORD.itemsize}.",
                    "Check that it is a ChampSim trace, and whole.",
                )
            yield np.frombuffer(data, RECORD)
            at += len(data) // RECORD.itemsize


def branch_types(records):
    """The type of each record's branch (index in `TYPES`) as ChampSim deduces it (inc/instruction.h)."""
    reads, writes = records["reads"], records["writes"]
    reads_sp, writes_sp = (reads == SP).any(1), (writes == SP).any(1)
    reads_ip, writes_ip = (reads == IP).any(1), (writes == IP).any(1)
    reads_flags = (reads == FLAGS).any(1)
    others = ((reads != 0) & (reads != SP) & (reads != IP) & (reads != FLAGS)).any(1)
    call = reads_sp & reads_ip & writes_sp & writes_ip & ~reads_flags
    conditions = [
        ~writes_ip,
        ~reads_sp & ~reads_flags & ~others,
        ~reads_sp & ~reads_ip & ~reads_flags & others,
        ~reads_sp & reads_ip & ~writes_sp & (reads_flags | others),
        call & ~others,
        call & others,
        reads_sp & ~reads_ip & writes_sp,
    ]
    return np.select(conditions, range(7), 7).astype(np.uint8)


class _Successors:
    """Which addresses follow which, each pair once."""

    def __init__(self) -> None:
        self._pairs = np.zeros((0, 2), np.uint64)

    def add(self, pairs) -> None:
        self._pairs = np.unique(np.concatenate([self._pairs, pairs]), axis=0)

    def several(self) -> int:
        """Instructions with more than one."""
        return int((np.unique(self._pairs[:, 0], return_counts=True)[1] > 1).sum())


def _lines(known, addresses):
    return np.union1d(known, addresses >> np.uint64(6))


def champsim(path: Path):
    """What is in a ChampSim trace: a dictionary of numbers, `faults` (list of str) among them.

    The next record's ip must follow from each: it is up to 15 bytes behind an instruction that does not
    branch, always the same for a direct branch that is taken, behind a call for a return. Where it is
    not, control went elsewhere (a signal's handler, what comes after the end of a part): `elsewhere`.
    """
    types = np.zeros(len(TYPES), np.int64)
    taken = np.zeros(len(TYPES), np.int64)
    records = instructions = loads = stores = elsewhere = 0
    data, code = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    direct, falls, calls, returns = _Successors(), _Successors(), np.zeros(0, np.uint64), Counter()
    faults, first, before, last_ip = [], None, None, None
    for block in champsim_blocks(path):
        records += len(block)
        if first is None:
            first = int(block["ip"][0])
        last_ip = int(block["ip"][-1])
        if (block["is_branch"] > 1).any() or (block["taken"] > block["is_branch"]).any():
            raise LiveproError(
                f"{path}: a record's is_branch and branch_taken are no flags that go together."
            )
        loads += int((block["loads"] != 0).sum())
        stores += int((block["stores"] != 0).sum())
        for name in ("loads", "stores"):
            found = block[name][block[name] != 0]
            data = _lines(data, found)
        code = _lines(code, np.unique(block["ip"]))
        joined = block if before is None else np.concatenate([before, block])
        before = block[-1:]
        one, ip, after = joined[:-1], joined["ip"][:-1], joined["ip"][1:]
        kind = branch_types(joined)
        new = kind[len(joined) - len(block) :]
        further = (ip == after) & (one["is_branch"] == 0)
        instructions += len(block) - int(further.sum())
        counted = ~further
        types += np.bincount(kind[:-1][counted], minlength=len(TYPES))
        taken += np.bincount(kind[:-1][counted & (one["taken"] == 1)], minlength=len(TYPES))
        if ((new != 0) != (block["is_branch"] == 1)).any():
            faults.append(
                "a record says that it is a branch, and its registers that it is not, or vice versa"
            )
        distance = after - ip
        straight = (one["taken"] == 0) & ~further
        near = straight & (distance > 0) & (distance <= 15)
        elsewhere += int((straight & ~near).sum())
        falls.add(np.stack([ip[near], after[near]], 1))
        straightly = (one["taken"] == 1) & np.isin(kind[:-1], (1, 3, 4))
        direct.add(np.stack([ip[straightly], after[straightly]], 1))
        calls = np.union1d(calls, ip[np.isin(kind[:-1], (4, 5))])
        targets, counts = np.unique(after[kind[:-1] == 6], return_counts=True)
        returns.update(dict(zip(targets.tolist(), counts.tolist(), strict=True)))
    if first is None:
        raise LiveproError(f"{path} is empty.")
    types += np.bincount(branch_types(before), minlength=len(TYPES))
    taken += np.bincount(branch_types(before)[before["taken"] == 1], minlength=len(TYPES))
    if types[7]:
        faults.append(f"{types[7]:,} branches are of no type that ChampSim knows")
    return {
        "format": "champsim",
        "instructions": instructions,
        "records": records,
        "loads": loads,
        "stores": stores,
        "data lines": len(data),
        "code lines": len(code),
        "first pc": first,
        "last pc": last_ip,
        "branches": {name: int(n) for name, n in zip(TYPES[1:], types[1:], strict=True)},
        "taken": {name: int(n) for name, n in zip(TYPES[1:], taken[1:], strict=True)},
        "elsewhere": elsewhere,
        "several targets": direct.several() + falls.several(),
        "returns not behind a call": sum(n for target, n in returns.items() if not _behind(calls, target)),
        "faults": list(dict.fromkeys(faults)),
    }


def _behind(calls, target) -> bool:
    """Whether one of the `calls` (sorted) is up to 15 bytes before an address."""
    at = int(np.searchsorted(calls, np.uint64(target))) - 1
    return at >= 0 and target - int(calls[at]) <= 15


def _text(path: Path, form: str):
    """(kind, address, size) of each line: kinds I, L, S, M."""
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                if form == "din":
                    label, where = line.split()
                    yield {b"0": "L", b"1": "S", b"2": "I"}[label], int(where, 16), 0
                elif form == "ramulator2":
                    label, where = line.split()
                    if where[:2] != b"0x":
                        raise ValueError
                    yield {b"LD": "L", b"ST": "S"}[label], int(where, 16), 0
                else:
                    if line[:2] == b"==":
                        continue
                    label, where = line.split()
                    if (line[:1] == b"I") != (label == b"I") or label not in (b"I", b"L", b"S", b"M"):
                        raise ValueError
                    address, size = where.split(b",")
                    yield label.decode(), int(address, 16), int(size)
            except (ValueError, KeyError):
                raise LiveproError(
                    f"{path}:{number}: {line[:60].decode(errors='replace').strip()!r} is no line of {form}.",
                    "Check the file, or say what it is: --format.",
                ) from None


def text(path: Path, form: str):
    """What is in a trace of lines: a dictionary of numbers."""
    counts, data, code = Counter(), set(), set()
    first = last = None
    for kind, where, _ in _text(path, form):
        counts[kind] += 1
        if kind == "I":
            first = where if first is None else first
            last = where
            code.add(where >> 6)
        else:
            data.add(where >> 6)
    if not counts:
        raise LiveproError(f"{path} is empty.")
    out = {"format": form}
    if form != "ramulator2":
        out["instructions"] = counts["I"]
    out.update({"loads": counts["L"] + counts["M"], "stores": counts["S"] + counts["M"]})
    out["data lines"] = len(data)
    if first is not None:
        out.update({"code lines": len(code), "first pc": first, "last pc": last})
    return {**out, "faults": []}


def npz(path: Path):
    """What is in a .npz trace: a dictionary of numbers."""
    counts, first, last = np.zeros(6, np.int64), None, None
    data, code = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    try:
        for rows in read_npz(path):
            counts += np.bincount(rows["what"], minlength=6)
            executed = rows["address"][rows["what"] == INSTRUCTION]
            code = _lines(code, executed)
            memory = (rows["what"] >= LOAD) & (rows["what"] < GOES_ON)
            data = _lines(data, rows["address"][memory])
            if len(executed):
                first = int(executed[0]) if first is None else first
                last = int(executed[-1])
    except (ValueError, OSError, KeyError, IndexError) as error:
        raise LiveproError(f"{path} is no trace in .npz: {error}.") from error
    out = {"format": "npz", "instructions": int(counts[0]), "loads": int(counts[1])}
    out.update({"stores": int(counts[2] + counts[3]), "data lines": len(data), "code lines": len(code)})
    return {**out, "first pc": first, "last pc": last, "elsewhere": int(counts[4]), "faults": []}


def look(path: Path, form: str):
    """What is in a trace file of that format. Raises LiveproError where it is none."""
    if not path.exists():
        raise LiveproError(f"There is no file {path}.", "Name a trace: livepro trace info FILE.")
    if form == "champsim":
        return champsim(path)
    if form == "npz":
        return npz(path)
    if form == "parquet":
        raise LiveproError(
            f"{path}: Parquet files tell what is in them by other tools.",
            "Look at it with pandas or pyarrow.",
        )
    return text(path, form)
