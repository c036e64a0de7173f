"""An independent split of a file's symbols into basic blocks, from the text of objdump and readelf."""

from __future__ import annotations

import itertools
import re
import subprocess
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PREFIXES = re.compile(
    r"^(?:(?:rex(?:\.[WRXB]+)?|bnd|notrack|lock|repz|repnz|rep|data16|addr32|[cdefgs]s)\s+)+"
)
TARGET = re.compile(r"\b([0-9a-f]+) <")
BARE = re.compile(r"^(?:.*,\s*)?(?:0x)?([0-9a-f]+)$")

# Mnemonics as objdump writes them; nothing here is shared with livepro.
# (xabort outside a transaction goes on.)
X86_JUMP = re.compile(r"^(jmp|j[a-z]+|loop[a-z]*)(,p[nt])?$")
X86_ENDS = re.compile(
    r"^(jmp|ljmp|j[a-z]+|loop[a-z]*|xbegin|call|lcall|ret|lret|iret|ud[012]|hlt|int3?|int1|into|icebp)"
    r"(?:[lqw]|f|,p[nt])?$"
)
ARM_JUMP = re.compile(r"^(b|b\.[a-z]+|bc\.[a-z]+|cbn?z|tbn?z)$")
ARM_ENDS = re.compile(
    r"^(b|b\.[a-z]+|bc\.[a-z]+|cbn?z|tbn?z|bl|blr|br|ret|bra[ab]z?|blra[ab]z?|reta[ab]"
    r"|brk|hlt|udf|hvc|smc|eret)$"
)


class Line(NamedTuple):
    address: int
    size: int
    mnemonic: str
    operands: str


def lines(path: Path, objdump: str) -> list[Line]:
    """Every instruction of the file's code, as objdump shows it."""
    text = subprocess.run(
        [objdump, "-d", "-w", "--no-show-raw-insn", path], capture_output=True, text=True, check=True
    ).stdout
    found = []
    for line in text.splitlines():
        head, colon, rest = line.partition(":\t")
        if not colon or not head.strip() or " " in head.strip():
            continue
        rest = PREFIXES.sub("", rest.strip().split(" # ")[0].split("\t//")[0].strip())
        mnemonic, _, operands = rest.replace("\t", " ").partition(" ")
        found.append((int(head, 16), mnemonic, operands.strip()))
    ends = [at for at, _, _ in found[1:]] + [0]
    return [Line(at, end - at, m, o) for (at, m, o), end in zip(found, ends, strict=True)]


def symbols(path: Path, readelf: str) -> dict[tuple[int, int], str]:
    """(address, size) of every function symbol with a size, and one of its names."""
    found = {}
    text = subprocess.run(
        [readelf, "-W", "-s", "--dyn-syms", path], capture_output=True, text=True, check=True
    ).stdout
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] in ("FUNC", "IFUNC") and fields[6] not in ("UND", "ABS"):
            size = int(fields[2], 0)
            if size:
                found[int(fields[1], 16), size] = fields[7]
    return found


class Referee:
    """The blocks of a file's symbols by objdump's text."""

    def __init__(self, path: Path, prefix: str = "", arm: bool = False) -> None:
        self.lines = lines(path, f"{prefix}objdump")
        self.starts = [line.address for line in self.lines]
        self.jump, self.ends = (ARM_JUMP, ARM_ENDS) if arm else (X86_JUMP, X86_ENDS)

    def split(self, start: int, end: int) -> list[tuple[int, int]]:
        """[start, end) of each basic block of the code there."""
        code = self.lines[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
        sites = set()
        for i, line in enumerate(code):
            behind = code[i + 1].address if i + 1 < len(code) else end
            if self.ends.match(line.mnemonic) and not (line.mnemonic == "int" and "0x80" in line.operands):
                sites.add(behind)
            if self.jump.match(line.mnemonic):
                sites |= {t for t in self._targets(line.operands) if start <= t < end}
        cuts = sorted({start, end} | {s for s in sites if start < s < end})
        known = {line.address for line in code} | {end}
        cuts = [c for c in cuts if c in known]
        return list(itertools.pairwise(cuts))

    @staticmethod
    def _targets(operands: str) -> Iterable[int]:
        if operands.startswith("*"):
            return
        found = TARGET.search(operands) or BARE.match(operands)
        if found:
            yield int(found[1], 16)
