from __future__ import annotations

from pathlib import Path

from livepro.linux.cpu import Cpu, cpu

X86 = """\
processor\t: 0
model name\t: Some Processor
flags\t\t: fpu mmx fxsr sse sse2 pni smep smap avx512_fp16 sha_ni amx_tile hypervisor ssse3

processor\t: 1
model name\t: Another
flags\t\t: fpu
"""

ARM = """\
processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes pmull sha1 crc32 atomics fphp asimdhp sve sve2 sme smei8i32 bf16
"""


def read(tmp_path: Path, text: str) -> Cpu:
    (tmp_path / "cpuinfo").write_text(text)
    return cpu(tmp_path / "cpuinfo")


def test_first_processor(tmp_path: Path) -> None:
    assert read(tmp_path, X86) == Cpu(
        "Some Processor",
        ("mmx", "sse", "sse2", "sse3", "avx512_fp16", "sha_ni", "amx_tile", "ssse3"),
        hypervisor=True,
    )


def test_features_of_the_other_machine(tmp_path: Path) -> None:
    assert read(tmp_path, ARM) == Cpu(
        "",
        ("fp", "asimd", "aes", "pmull", "sha1", "fphp", "asimdhp", "sve", "sve2", "sme", "smei8i32", "bf16"),
        hypervisor=False,
    )


def test_nothing_to_read(tmp_path: Path) -> None:
    assert cpu(tmp_path / "none") == Cpu("", (), False)
