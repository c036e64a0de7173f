"""AArch64 instructions described: names, categories, memory, instruction types."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa.aarch64_tools import assemble, capstone_with_detail

from livepro.isa import for_machine
from livepro.isa.aarch64 import registers, syscalls
from livepro.isa.aarch64.describe import describe, disassemble
from livepro.isa.aarch64.encoding.memory import memory_access
from livepro.isa.aarch64.vocabulary import vocabulary
from livepro.model import Flow
from livepro.model.itypes import DEFAULT_GROUPS

R, W, RW, NONE = ("mem_read",), ("mem_write",), ("mem_read", "mem_write"), ()

# Text: opcode, category, memory accesses, groups beside those of memory.
DESCRIBED: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "add x0, x1, x2": ("ADD", "BINARY", NONE, ("arithmetic",)),
    "adrp x0, .": ("ADRP", "BINARY", NONE, ("arithmetic",)),
    "cmp x0, #1": ("CMP", "BINARY", NONE, ("arithmetic",)),
    "adcs x0, x1, x2": ("ADCS", "BINARY", NONE, ("arithmetic",)),
    "ccmp x0, x1, #0, eq": ("CCMP", "BINARY", NONE, ("arithmetic",)),
    "madd x0, x1, x2, x3": ("MADD", "BINARY", NONE, ("arithmetic",)),
    "udiv x0, x1, x2": ("UDIV", "BINARY", NONE, ("arithmetic",)),
    "crc32cx w0, w1, x2": ("CRC32CX", "BINARY", NONE, ("arithmetic",)),
    "and x0, x1, #0xff": ("AND", "LOGICAL", NONE, ("arithmetic",)),
    "tst x0, x1": ("TST", "LOGICAL", NONE, ("arithmetic",)),
    "mov x0, x1": ("MOV", "DATAXFER", NONE, ("arithmetic",)),
    "mov x0, sp": ("MOV", "DATAXFER", NONE, ("arithmetic",)),
    "mov x0, #0xff0000": ("MOV", "DATAXFER", NONE, ("arithmetic",)),
    "movk x0, #1, lsl #16": ("MOVK", "DATAXFER", NONE, ("arithmetic",)),
    "sxtw x0, w1": ("SXTW", "DATAXFER", NONE, ("arithmetic",)),
    "ubfx x0, x1, #3, #4": ("UBFX", "BITBYTE", NONE, ("arithmetic",)),
    "clz x0, x1": ("CLZ", "BITBYTE", NONE, ("arithmetic",)),
    "rev x0, x1": ("REV", "BITBYTE", NONE, ("arithmetic",)),
    "rmif x0, #3, #4": ("RMIF", "FLAGOP", NONE, ("arithmetic",)),
    "setf8 w1": ("SETF8", "FLAGOP", NONE, ("arithmetic",)),
    "cfinv": ("CFINV", "FLAGOP", NONE, ("arithmetic",)),
    "lsl x0, x1, #3": ("LSL", "SHIFT", NONE, ("shift",)),
    "lsr x0, x1, x2": ("LSR", "SHIFT", NONE, ("shift",)),
    "extr x0, x1, x2, #3": ("EXTR", "SHIFT", NONE, ("shift",)),
    "ror x0, x1, #3": ("ROR", "ROTATE", NONE, ("system",)),
    "ror x0, x1, x2": ("ROR", "ROTATE", NONE, ("system",)),
    "csel x0, x1, x2, eq": ("CSEL", "CMOV", NONE, ("system",)),
    "b .": ("B", "UNCOND_BR", NONE, ("control",)),
    "b.ne .": ("B.NE", "COND_BR", NONE, ("control",)),
    "cbz x0, .": ("CBZ", "COND_BR", NONE, ("control",)),
    "br x0": ("BR", "UNCOND_BR", NONE, ("control",)),
    "bl .": ("BL", "CALL", NONE, ("control",)),
    "blr x0": ("BLR", "CALL", NONE, ("control",)),
    "ret": ("RET", "RET", NONE, ("control",)),
    "eret": ("ERET", "RET", NONE, ("control",)),
    "svc #0": ("SVC", "SYSCALL", NONE, ("system",)),
    "brk #1": ("BRK", "INTERRUPT", NONE, ("system",)),
    "udf #0": ("UDF", "INTERRUPT", NONE, ("system",)),
    "mrs x0, tpidr_el0": ("MRS", "SYSTEM", NONE, ("system",)),
    "mrs x0, fpcr": ("MRS", "SYSTEM", NONE, ("system",)),
    "yield": ("YIELD", "SYSTEM", NONE, ("system",)),
    "dmb ish": ("DMB", "MISC", NONE, ("system",)),
    "clrex": ("CLREX", "SEMAPHORE", NONE, ("system",)),
    "nop": ("NOP", "NOP", NONE, ("nop",)),
    "hint #100": ("HINT", "NOP", NONE, ("nop",)),
    "bti jc": ("BTI", "BTI", NONE, ("other",)),
    "paciasp": ("PACIASP", "PAC", NONE, ("other",)),
    "xpaclri": ("XPACLRI", "PAC", NONE, ("other",)),
    "autia x0, x1": ("AUTIA", "PAC", NONE, ("other",)),
    "pacga x0, x1, x2": ("PACGA", "PAC", NONE, ("other",)),
    "dc zva, x0": ("DC", "SYSTEM", W, ("system",)),
    "dc cvau, x0": ("DC", "SYSTEM", NONE, ("system",)),
    "ldr x0, [x1]": ("LDR", "DATAXFER", R, ("arithmetic",)),
    "ldr x0, .": ("LDR", "DATAXFER", R, ("arithmetic",)),
    "ldrsw x0, [x1, x2, lsl #2]": ("LDRSW", "DATAXFER", R, ("arithmetic",)),
    "ldrsb w0, [x1]": ("LDRSB", "DATAXFER", R, ("arithmetic",)),
    "ldraa x0, [x1]": ("LDRAA", "DATAXFER", R, ("arithmetic",)),
    "str x0, [x1], #8": ("STR", "DATAXFER", W, ("arithmetic",)),
    "stp x0, x1, [x2]": ("STP", "DATAXFER", W, ("arithmetic",)),
    "stp x0, x1, [sp, #16]": ("STP", "DATAXFER", W, ("arithmetic",)),
    "ldnp x0, x1, [x2]": ("LDNP", "DATAXFER", R, ("arithmetic",)),
    "ldar x0, [x1]": ("LDAR", "DATAXFER", R, ("arithmetic",)),
    "stlr x0, [x1]": ("STLR", "DATAXFER", W, ("arithmetic",)),
    "ldapr x0, [x1]": ("LDAPR", "DATAXFER", R, ("arithmetic",)),
    "ldapur x0, [x1, #8]": ("LDAPUR", "DATAXFER", R, ("arithmetic",)),
    "stp x29, x30, [sp, #-16]!": ("STP", "PUSH", W, ("stack",)),
    "ldp x29, x30, [sp], #16": ("LDP", "POP", R, ("stack",)),
    "str x30, [sp, #-16]!": ("STR", "PUSH", W, ("stack",)),
    "ldr x30, [sp], #16": ("LDR", "POP", R, ("stack",)),
    "ldr x30, [sp, #16]!": ("LDR", "DATAXFER", R, ("arithmetic",)),
    "stp d8, d9, [sp, #-64]!": ("STP", "PUSH", W, ("floating_point", "stack")),
    "ldp q0, q1, [sp], #32": ("LDP", "POP", R, ("stack", "sse")),
    "ldxr x0, [x1]": ("LDXR", "SEMAPHORE", R, ("system",)),
    "stxr w0, x1, [x2]": ("STXR", "SEMAPHORE", W, ("system",)),
    "cas x0, x1, [x2]": ("CAS", "SEMAPHORE", RW, ("system",)),
    "casp x0, x1, x2, x3, [x4]": ("CASP", "SEMAPHORE", RW, ("system",)),
    "ldadd x0, x1, [x2]": ("LDADD", "SEMAPHORE", RW, ("system",)),
    "swpal x0, x1, [x2]": ("SWPAL", "SEMAPHORE", RW, ("system",)),
    "stset w0, [x2]": ("STSET", "SEMAPHORE", RW, ("system",)),
    "prfm pldl1keep, [x0]": ("PRFM", "PREFETCH", NONE, ("system",)),
    "prfm pldl1keep, .": ("PRFM", "PREFETCH", NONE, ("system",)),
    "stg x0, [x1]": ("STG", "MTE", W, ("other",)),
    "ldg x0, [x1]": ("LDG", "MTE", R, ("other",)),
    "fadd d0, d1, d2": ("FADD", "FP", NONE, ("floating_point",)),
    "ldr d0, [x1]": ("LDR", "FP", R, ("floating_point",)),
    "str q0, [x1]": ("STR", "ASIMD", W, ("sse",)),
    "st1 {v0.4s}, [x1], #16": ("ST1", "ASIMD", W, ("sse",)),
    "ld4 {v0.s, v1.s, v2.s, v3.s}[1], [x1]": ("LD4", "ASIMD", R, ("sse",)),
    "add v0.4s, v1.4s, v2.4s": ("ADD", "ASIMD", NONE, ("sse",)),
    "aese v0.16b, v1.16b": ("AESE", "CRYPTO", NONE, ("sse",)),
    "ld1w {z0.s}, p0/z, [x0]": ("LD1W", "SVE", R, ("sse",)),
    "st1d {z0.d}, p0, [x0, z1.d]": ("ST1D", "SVE", W, ("sse",)),
    "prfw pldl1keep, p0, [x0, z1.s, sxtw #2]": ("PRFW", "SVE", NONE, ("sse",)),
    "str p0, [x0]": ("STR", "SVE", W, ("sse",)),
    "ld1b {za0h.b[w12, 0]}, p0/z, [x0]": ("LD1B", "SME", R, ("sse",)),
    "str za[w12, 0], [x0]": ("STR", "SME", W, ("sse",)),
    "fmopa za0.s, p0/m, p1/m, z0.s, z1.s": ("FMOPA", "SME", NONE, ("sse",)),
}
STRINGS = {
    "cpyfp [x0]!, [x1]!, x2!": ("CPYFP", "STRINGOP", RW, ("string",)),
    "cpye [x0]!, [x1]!, x2!": ("CPYE", "STRINGOP", RW, ("string",)),
    "setm [x0]!, x1!, x2": ("SETM", "STRINGOP", W, ("string",)),
}


@pytest.mark.parametrize(
    ("expected", "march"),
    [(DESCRIBED, "armv8.6-a+sve2+sme+memtag+crypto"), (STRINGS, "armv8.8-a+mops")],
    ids=["general", "strings"],
)
def test_descriptions_of_assembled_instructions(
    expected: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]], march: str, tmp_path: Path
) -> None:
    found = {}
    for line, word in zip(expected, assemble(list(expected), tmp_path, march), strict=True):
        facts = describe(word.to_bytes(4, "little"))
        touched = tuple(
            name for name, does in zip(RW, (facts.reads_memory, facts.writes_memory), strict=True) if does
        )
        groups = tuple(group for group in facts.itypes if group not in RW)
        assert facts.itypes == (*touched, *groups), line
        found[line] = (facts.opcode, facts.category, touched, groups)
    assert found == expected


def one(text: str, directory: Path) -> bytes:
    return assemble([text], directory)[0].to_bytes(4, "little")


def test_every_fact_of_one_instruction(tmp_path: Path) -> None:
    facts = describe(one("ldp x19, x20, [sp, #0x20]", tmp_path))
    assert facts.mnemonic == "ldp"
    assert facts.form == "LDP x, x, [sp, #i]"
    assert (facts.flow, facts.rep, facts.simd, facts.length) == (Flow.NEXT, False, None, 4)
    assert facts is describe(facts.code)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("fmla v0.4s, v1.4s, v2.s[3]", "FMLA v.4s, v.4s, v.s[i]"),
        ("ld1w {z3.s}, p2/z, [x4, #1, mul vl]", "LD1W {z.s}, p/z, [x, #i, mul vl]"),
        ("mov w0, wzr", "MOV w, w"),
        ("b.eq .+8", "B.EQ #i"),
        ("fmov d0, #1.5", "FMOV d, #i"),
    ],
)
def test_forms_name_operand_kinds(text: str, form: str, tmp_path: Path) -> None:
    assert describe(one(text, tmp_path)).form == form


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("mov x0, x1", True),
        ("mov w0, wzr", True),
        ("mov sp, x0", True),
        ("mov x0, #1", False),
        ("mov v0.16b, v1.16b", False),
        ("mov x0, v1.d[0]", False),
        ("add x0, x1, x2", False),
    ],
)
def test_register_moves(text: str, moves: bool, tmp_path: Path) -> None:
    assert describe(one(text, tmp_path)).register_move is moves


@pytest.mark.parametrize("code", ["00000002", "01000100", "c003", ""])
def test_no_instruction(code: str) -> None:
    facts = describe(bytes.fromhex(code))
    assert (facts.opcode, facts.category, facts.flow) == ("INVALID", "INVALID", Flow.INVALID)
    assert (facts.code, facts.itypes, facts.simd) == (bytes.fromhex(code), ("other",), None)
    assert disassemble(bytes.fromhex(code), 0) == "(bad)"


def test_what_capstone_does_not_name_is_still_an_instruction() -> None:
    facts = describe((0xF4023F61).to_bytes(4, "little"))  # cbgt x1, x2
    assert (facts.opcode, facts.category, facts.flow) == ("UNKNOWN", "COND_BR", Flow.BRANCH)
    assert facts.itypes == ("control",)
    assert disassemble(facts.code, 0) == ".inst 0xf4023f61"


def test_disassembly_shows_targets_from_its_address(tmp_path: Path) -> None:
    code = one("b.eq .+0x40", tmp_path)
    assert disassemble(code, 0x400000) == "b.eq #0x400040"
    assert for_machine("aarch64").disassemble(code, 0x1000) == "b.eq #0x1040"
    assert for_machine("aarch64").describe(code) is describe(code)


CAPSTONE = capstone_with_detail()
MEMORY_OPERAND = 3  # ARM64_OP_MEM
SPACES = st.sampled_from(((0x0A000000, 0x08000000), (0x1E000000, 0x04000000), (0, 0)))


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**32 - 1), SPACES)
def test_any_word_is_described_in_the_vocabulary(number: int, space: tuple[int, int]) -> None:
    word = number & ~space[0] | space[1]
    facts = describe(word.to_bytes(4, "little"))
    assert facts.opcode in vocabulary().opcodes
    assert facts.category in vocabulary().categories
    assert set(facts.itypes) <= set(DEFAULT_GROUPS)
    assert facts.itypes.count("other") <= 1 <= len(facts.itypes)
    if facts.opcode not in ("INVALID", "UNKNOWN"):
        assert_memory_like_capstone(word)


def assert_memory_like_capstone(word: int) -> None:
    """An instruction has a memory operand if and only if it accesses memory, but for prefetches,
    address computations, and operands that capstone does not call memory: literals, vectors of
    addresses, the memory set instructions and cache maintenance. Its access flags are right
    where it has some, but for single-structure and writeback forms, whose base they mix in."""
    instruction = next(CAPSTONE.disasm(word.to_bytes(4, "little"), 0))
    name = instruction.mnemonic
    access = memory_access(word, name.startswith("prf"))
    memory = [o for o in instruction.operands if o.type == MEMORY_OPERAND]
    if name.startswith("prf"):
        assert access == (False, False)
    elif not memory:
        literal = re.fullmatch(r"ldr(sw)?", name)
        assert (
            not any(access) or literal or "[z" in instruction.op_str or name.startswith(("set", "dc", "sys"))
        )
    elif name != "adr":
        loads = name.startswith(("ld", "swp", "cas", "cpy", "rcw"))
        both = re.match(
            r"ld(add|clr|eor|set|[su]max|[su]min)|swp|cas|cpy|st(add|clr|eor|set|[su]max|[su]min)|rcw", name
        )
        assert access == (loads or bool(both), bool(both) or not loads)


def test_vocabulary_has_no_lower_case() -> None:
    assert all(name == name.upper() for name in vocabulary().opcodes | vocabulary().categories)


def test_registers_are_those_of_the_kernel_header(tmp_path: Path) -> None:
    """Offsets and size of user_pt_regs, as a cross compiler lays it out."""
    layout = registers.Registers
    fields = {f"regs[{n}]": getattr(layout, f"x{n}").offset for n in range(31)}
    fields |= {name: getattr(layout, name).offset for name in ("sp", "pc", "pstate")}
    checks = [
        f"_Static_assert(__builtin_offsetof(struct user_pt_regs, {f}) == {o}, {f!r});"
        for f, o in fields.items()
    ]
    checks.append(f"_Static_assert(sizeof(struct user_pt_regs) == {ctypes.sizeof(layout)}, 'size');")
    source = tmp_path / "check.c"
    source.write_text("#include <asm/ptrace.h>\n" + "\n".join(checks).replace("'", '"') + "\n")
    subprocess.run(["aarch64-linux-gnu-gcc", "-fsyntax-only", source], check=True)
    names = [name for name, *_ in layout._fields_]
    described = registers.LAYOUT
    used = {described.pc, described.sp, described.syscall_number, described.syscall_result}
    assert used | set(described.syscall_arguments) <= set(names)
    assert (described.syscall_number, described.syscall_result, described.pc_user_offset) == (
        "x8",
        "x0",
        None,
    )


def test_system_call_numbers_are_those_of_the_kernel_header() -> None:
    command = ["aarch64-linux-gnu-gcc", "-E", "-dM", "-x", "c", "-include", "asm/unistd.h", "/dev/null"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    header = dict(re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", text))
    assert {name: int(header[name]) for name in syscalls.TABLE.numbers} == syscalls.TABLE.numbers
    assert syscalls.TABLE.named("mmap", "fork") == {222}


def test_the_breakpoint_is_brk_0(tmp_path: Path) -> None:
    breakpoint = for_machine("aarch64").breakpoint
    assert (breakpoint.code, breakpoint.pc_advance) == (one("brk #0", tmp_path), 0)
    assert describe(breakpoint.code).flow is Flow.TRAP
