"""Branches by jump tables, which need not be looked up."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from engines.contract import Runner
from engines.observed import TIMEOUT
from engines.test_translate_emission import disassembled

from fixtures import Builder, assembly
from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import JumpTable
from livepro.engines.translate.translator.emitted import Check, Countdown, Field
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.x86_64.emitter import Emitter
from livepro.engines.translate.translator.x86_64.source import Reader, Text
from livepro.engines.translate.translator.x86_64.tables import jump_table, table_stub

PC, STUBS = 0x40_1000, 0x1234_5676
COUNTER = f"qword ptr gs:[{layout.COUNTERS + 3 * 8:#x}]"


def block(code: str) -> SourceBlock:
    return Reader().decode(Text(PC, bytes.fromhex(code)), PC)


@pytest.mark.parametrize(
    ("code", "table"),
    [
        ("0fb6c0 488b04c500af7300 ffe0", JumpTable(0x73AF00, 0)),  # movzx eax, al; mov rax, [..]; jmp rax
        ("400fb6c6 488b04c500af7300 ffe0", JumpTable(0x73AF00, 0)),  # movzx eax, sil
        ("440fb62a 4e8b2ced00af7300 41ffe5", JumpTable(0x73AF00, 13)),  # movzx r13d, byte ptr [rdx]
        ("0fb7c0 488b04c500af7300 ffe0", None),  # of 16 bits
        ("660fb6c0 488b04c500af7300 ffe0", None),  # which leaves the upper bits
        ("0fb6c8 488b04c500af7300 ffe0", None),  # movzx ecx, al
        ("440fb6c0 488b04c500af7300 ffe0", None),  # movzx r8d, al
        ("0fb6c0 488b04cd00af7300 ffe0", None),  # mov rax, [rcx * 8 + ..]
        ("0fb6c0 488b0c c500af7300 ffe0", None),  # mov rcx, [rax * 8 + ..]
        ("0fb6c0 488b048500af7300 ffe0", None),  # rax * 4
        ("0fb6c0 488b04c500af73f0 ffe0", None),  # above 2 GiB
        ("0fb6c0 64488b04c500af7300 ffe0", None),  # of fs
        ("0fb6c0 488b04c500af7300 ffe1", None),  # jmp rcx
        ("0fb6c0 488b04c500af7300 ffd0", None),  # call rax
        ("0fb6c0 488b04c500af7300 ff20", None),  # jmp [rax]
        ("488b04c500af7300 ffe0", None),  # any index
    ],
)
def test_which_branches_are_by_a_table(code: str, table: JumpTable | None) -> None:
    assert jump_table(block(code)) == table


@pytest.mark.parametrize(
    ("code", "counts", "branches"),
    [
        (  # test ecx, ecx: flags are dead
            "85c9 0fb6c0 488b04c500af7300 ffe0",
            [f"inc {COUNTER}", "test ecx, ecx", "movzx eax, al"],
            ["lea rax, [rax + rax]", f"lea rax, [rax*8 + {STUBS:#x}]", "jmp rax"],
        ),
        (
            "440fb6e0 4e8b24e500af7300 41ffe4",
            [
                "movzx r12d, al",
                "mov qword ptr gs:[0], rax",
                f"mov rax, {COUNTER}",
                "lea rax, [rax + 1]",
                f"mov {COUNTER}, rax",
                "mov rax, qword ptr gs:[0]",
            ],
            ["lea r12, [r12 + r12]", f"lea r12, [r12*8 + {STUBS:#x}]", "jmp r12"],
        ),
    ],
)
def test_such_a_branch_goes_to_the_stubs(code: str, counts: list[str], branches: list[str]) -> None:
    source = block(code)
    emitted = Emitter(0x7000_0000, {}, Countdown.NONE).emit(
        source, 0x1000_0000, 3, lambda block: 0x3F, Check.NEVER, None, STUBS
    )
    text = bytes(emitted.code)
    assert disassembled(text) == counts + branches
    ((_, at),) = [field for field in emitted.fields if field[0] is Field.INSIDE]
    assert int.from_bytes(text[at : at + 4], "little") == STUBS
    marks = emitted.marks(source)
    assert marks[-1] == len(text)
    assert disassembled(text[marks[-3] :]) == branches  # a thread is before both instructions, or behind


@pytest.mark.parametrize(("register", "name"), [(0, "eax"), (5, "ebp"), (12, "r12d"), (13, "r13d")])
def test_a_stub_leaves_the_entry_in_the_register(register: int, name: str) -> None:
    text, begin = table_stub(JumpTable(0x73AF00, register), 0x45_6789)
    assert len(text) == 16  # by which the branch goes
    assert disassembled(text[begin:], 16)[0] == f"mov {name}, 0x456789"
    assert disassembled(text[begin:], 16)[1].startswith("jmp ")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64's tables")
def test_what_a_table_leads_to_is_not_looked_up(builder: Builder, tmp_path: Path) -> None:
    """The 7 places that the fixture's cases go back to are looked up; of the table's targets only those that
    are branched to once it has changed: the new one, and one of the former two."""
    (fixture,) = [f for f in assembly() if f.name == "jump_table"]
    seen = Runner("translate", tmp_path, cache=False)(builder.assembly(fixture))
    assert seen.result["stats"]["lookups missed"] == 7 + 2


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64's tables")
def test_tables_are_kept_and_given_up_when_they_change(builder: Builder, tmp_path: Path) -> None:
    """The last runs change a table that their copies, kept by the first, branch by."""
    program = builder.hosted("signal_table", "-no-pie", "-fno-pie")
    run = Runner("translate", tmp_path, cache=str(tmp_path / "kept"), aslr=False)
    counts = []
    for more in ([], [], ["changed"], ["changed"]):
        command = [str(program), "4000", "100000000", *more]  # no tick
        native = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=True)
        seen = run(*command)
        assert seen.stdout == native.stdout
        counts.append(seen.result["instructions"])
        assert (seen.result["stats"]["blocks kept from before"] > 0) == (len(counts) > 1)
    assert counts[0] == counts[1] != counts[2] == counts[3]
