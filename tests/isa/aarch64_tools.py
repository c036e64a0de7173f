"""Referees for AArch64: the GNU cross tools and a real vectorised library."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from functools import cache as once
from pathlib import Path
from typing import Any

import capstone
import numpy as np
import numpy.typing as npt
from elftools.elf.elffile import ELFFile

from livepro.isa.aarch64.form import Form, form_of

EVERYTHING = "+".join(
    (
        *("armv8.6-a", "fp16", "fp16fml", "crypto", "sha3", "sm4", "memtag", "sve2", "sve2-aes", "sve2-sm4"),
        *("sve2-sha3", "sve2-bitperm", "f32mm", "f64mm", "sme", "sme-f64", "sme-i64"),
    )
)
"""All that binutils 2.40 knows."""

_WHEELS = ("numpy==2.5.5", "cryptography==50.0.2")
"""NumPy brings OpenBLAS, cryptography OpenSSL: NEON, SVE and the cryptographic extensions."""

_EXECUTABLE = 0x4  # SHF_EXECINSTR


def assemble(lines: Sequence[str], directory: Path, march: str = EVERYTHING) -> list[int]:
    """The words that `lines` assemble to, one each. Raises AssertionError with the assembler's words."""
    rejected, code, message = _run_assembler(lines, directory, march)
    assert not rejected, message
    words: list[int] = np.frombuffer(code, "<u4").tolist()
    return words


def accepted(lines: Sequence[str], directory: Path, march: str) -> list[bool]:
    """Which of `lines` an assembler for `march` takes."""
    rejected = _run_assembler(lines, directory, march)[0]
    return [number not in rejected for number in range(1, len(lines) + 1)]


def _run_assembler(lines: Sequence[str], directory: Path, march: str) -> tuple[set[int], bytes, str]:
    source, target = directory / "lines.s", directory / "lines.o"
    source.write_text("\n".join(lines) + "\n")
    command = ["aarch64-linux-gnu-as", f"-march={march}", "-o", str(target), str(source)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    rejected = {int(match[1]) for match in re.finditer(r":(\d+): Error", run.stderr)}
    assert rejected or run.returncode == 0, run.stderr
    return rejected, b"" if rejected else text_section(target), run.stderr


def text_section(path: Path) -> bytes:
    """The code of an ELF file: its executable sections, one after the other."""
    with path.open("rb") as file:
        sections = [s for s in ELFFile(file).iter_sections() if s["sh_flags"] & _EXECUTABLE]
        code = b"".join(s.data() for s in sections if s["sh_type"] == "SHT_PROGBITS")
    return code[: len(code) // 4 * 4]


@once  # three files of tests ask, and unpacking takes seconds
def library_words(cache: Path) -> npt.NDArray[np.uint32]:
    """Every distinct word (uint32, ascending) of the code of NumPy, OpenBLAS and OpenSSL for AArch64.

    Their wheels are kept in `cache`.
    """
    for requirement in _WHEELS:
        if not any(cache.glob(requirement.replace("==", "-") + "-*.whl")):
            command = [sys.executable, "-m", "pip", "download", "-q", "-d", str(cache), "--no-deps"]
            command += ["--only-binary=:all:", "--implementation=cp", "--python-version=3.12"]
            command += [f"--platform=manylinux_2_{minor}_aarch64" for minor in (34, 28, 27, 17)]
            subprocess.run([*command, requirement], check=True)
    codes = []
    for wheel in cache.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            libraries = [name for name in archive.namelist() if ".so" in Path(name).name]
            codes += [text_section(Path(archive.extract(name, cache))) for name in libraries]
    return np.unique(np.frombuffer(b"".join(codes), "<u4"))


def shapes(words: Iterable[int]) -> list[Form]:
    """One form for each shape among `words` that capstone names: the same signature in the same
    encoding space differs in registers and immediates only."""
    seen: dict[tuple[str, str, int], int] = {}
    decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    decoder.skipdata = True
    array = np.fromiter(words, "<u4")
    for at, _, mnemonic, operands in decoder.disasm_lite(array.tobytes(), 0):
        if mnemonic != ".byte":
            word = int(array[at // 4])
            seen.setdefault((mnemonic, re.sub(r"(?<=[bhsdqvzpwxa])\d+|#\S+", "", operands), word >> 24), word)
    forms = {(form.signature, form.word >> 24): form for form in map(form_of, seen.values())}
    return list(forms.values())


def capstone_with_detail() -> Any:
    """A capstone decoder that gives groups and operands."""
    decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    decoder.detail = True
    return decoder


def mnemonics(words: npt.NDArray[np.uint32]) -> set[str]:
    """The names that capstone has for `words`."""
    decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    decoder.skipdata = True
    return {name for _, _, name, _ in decoder.disasm_lite(words.astype("<u4").tobytes(), 0)} - {".byte"}
