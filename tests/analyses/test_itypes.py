"""Instruction types against counts worked out by hand, and the default groups against MICA's own file."""

from __future__ import annotations

import model_builders as mb

from livepro import analyses
from livepro.analyses.itypes import itypes, other_items
from livepro.formats import itypes_spec
from livepro.isa.x86_64.describe import describe
from livepro.isa.x86_64.vocabulary import vocabulary
from livepro.model.itypes import DEFAULT_GROUPS, ItypesSpec

LOAD_ADD = mb.instruction("ADDM", 3, reads_memory=True, itypes=("mem_read", "arithmetic"))
SETZ = mb.instruction("SETZ", 3, category="SETCC", itypes=("other",))
VADD = mb.instruction("VADDPS", 4, category="AVX", reads_memory=True, itypes=("mem_read", "other"))
MOV = mb.instruction("MOV", 2, category="DATAXFER", register_move=True)

BLOCKS = mb.table(
    (0x1000, [LOAD_ADD, SETZ, MOV, mb.JNZ]),
    (0x2000, [VADD, SETZ, mb.NOP, mb.RET]),
)

# Block 0 ten times; block 1 twice, and three times left behind VADD.
THREAD = mb.thread([10, 2], partial=[(1, 1, 3)])


def spec(*lines: str) -> ItypesSpec:
    return itypes_spec.parse(lines, "spec")


def test_default_groups_in_order_zeros_included() -> None:
    assert list(itypes(BLOCKS, THREAD).items()) == [
        ("mem_read", 15),  # 10 ADDM, 5 VADDPS
        ("mem_write", 0),
        ("control", 12),  # 10 JNZ, 2 RET
        ("arithmetic", 20),  # 10 ADDM, 10 MOV
        ("floating_point", 0),
        ("stack", 0),
        ("shift", 0),
        ("string", 0),
        ("sse", 0),
        ("system", 0),
        ("nop", 2),
        ("other", 17),  # 12 SETZ, 5 VADDPS
    ]


def test_other_itemised() -> None:
    assert other_items(BLOCKS, THREAD) == [("SETCC", 12), ("AVX", 5)]


def test_equal_counts_are_in_order_of_name() -> None:
    thread = mb.thread([0, 4])
    assert other_items(BLOCKS, thread) == [("AVX", 4), ("SETCC", 4)]


def test_a_thread_that_ran_nothing() -> None:
    idle = mb.thread([0, 0])
    assert itypes(BLOCKS, idle) == dict.fromkeys(DEFAULT_GROUPS, 0)
    assert other_items(BLOCKS, idle) == []


def test_own_groups() -> None:
    own = spec(
        "0, 0, SPECIAL, mem_read",
        "1, 0, CATEGORY, COND_BR",
        "1, 1, OPCODE, RET",
        "2, 0, CATEGORY, SETCC",
        "2, 1, OPCODE, SETZ",  # picks the same instruction again: counted once
        "3, 0, SPECIAL, reg_transfer",
        "4, 0, SPECIAL, mem_write",
    )
    assert list(itypes(BLOCKS, THREAD, own).items()) == [
        ("0:mem_read", 15),
        ("1:COND_BR+RET", 12),
        ("2:SETCC+SETZ", 12),
        ("3:reg_transfer", 10),
        ("4:mem_write", 0),
        ("other", 27),  # ADDM, MOV, VADDPS, NOP: specials do not say what an instruction is
    ]
    assert other_items(BLOCKS, THREAD, own) == [("BINARY", 10), ("DATAXFER", 10), ("AVX", 5), ("NOP", 2)]


def test_an_instruction_in_two_groups_of_its_own() -> None:
    own = spec("0, 0, CATEGORY, SETCC", "1, 0, OPCODE, SETZ")
    assert itypes(BLOCKS, THREAD, own) == {"0:SETCC": 12, "1:SETZ": 12, "other": 39}


# itypes_default_available of MICA: the specification equal to its default groups.
MICA_DEFAULT = """\
0, 0, SPECIAL, mem_read
1, 0, SPECIAL, mem_write
2, 0, CATEGORY, COND_BR
2, 1, CATEGORY, UNCOND_BR
2, 2, OPCODE, LEAVE
2, 3, OPCODE, RET_NEAR
2, 4, OPCODE, CALL_NEAR
3, 0, CATEGORY, LOGICAL
3, 1, CATEGORY, DATAXFER
3, 2, CATEGORY, BINARY
3, 3, CATEGORY, FLAGOP
3, 4, CATEGORY, BITBYTE
4, 0, CATEGORY, X87_ALU
4, 1, CATEGORY, FCMOV
5, 0, CATEGORY, POP
5, 1, CATEGORY, PUSH
6, 0, CATEGORY, SHIFT
7, 0, CATEGORY, STRINGOP
8, 0, CATEGORY, MMX
8, 1, CATEGORY, SSE
9, 0, CATEGORY, INTERRUPT
9, 1, CATEGORY, ROTATE
9, 2, CATEGORY, SEMAPHORE
9, 3, CATEGORY, CMOV
9, 4, CATEGORY, SYSTEM
9, 5, CATEGORY, MISC
9, 6, CATEGORY, PREFETCH
9, 7, CATEGORY, SYSCALL
10, 0, CATEGORY, WIDENOP
10, 1, CATEGORY, NOP
11, 0, SPECIAL, reg_transfer
"""

# One encoding of each kind that the groups tell apart, and some of none.
CODE = """
    01d8 488b00 488900 4889d8 b801000000 488d4310 7405 eb05 e800000000 c3 cb c9 50 58 c1e003 c1c003 0f44c3
    0f95c0 0fbcc3 fc a4 f3aa d8c1 dac1 0ffcc1 0f58c1 660fefc0 c5f458c2 90 0f1f00 cc 0f05 f00fb113 0f1808
    0f31 0fa2 f30f1efa f2480f2ac0 62f1744858c2 0f57c0
"""


def test_the_default_groups_are_those_of_micas_file() -> None:
    codes = [bytes.fromhex(code) for code in CODE.split()]
    blocks = mb.table((0x1000, [describe(code) for code in codes]))
    # A different number of executions for each instruction: it ends up in sums that no other one makes.
    thread = mb.thread([0], partial=[(0, k, 2**k) for k in range(1, len(codes))])
    given = itypes_spec.parse(MICA_DEFAULT.splitlines(), "itypes_default_available", vocabulary())
    own = itypes(blocks, thread, given)
    groups = list(own)
    transfers = own.pop("11:reg_transfer")
    assert groups.index("11:reg_transfer") == 11
    assert list(own.values()) == list(itypes(blocks, thread).values())
    row = codes.index(bytes.fromhex("4889d8"))  # mov rax, rbx, executed by every prefix longer than `row`
    assert transfers == sum(2**k for k in range(row + 1, len(codes)))
    assert other_items(blocks, thread, given) == other_items(blocks, thread)


def test_the_registry_knows_it() -> None:
    assert analyses.get("itypes").function is itypes
