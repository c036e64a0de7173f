"""What the translator emits: bytes in, disassembly out, by an independent disassembler."""

from __future__ import annotations

import capstone
import pytest

from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Check, Countdown, Emitted, Field
from livepro.engines.translate.translator.x86_64 import BACKEND, encode, machine
from livepro.engines.translate.translator.x86_64.emitter import Emitter
from livepro.engines.translate.translator.x86_64.source import Reader, Text

DATA = 0x7000_0000
PC = 0x7F00_1000_0000
CACHE = 0x7F00_0000_0000


def disassembled(code: bytes, address: int = CACHE) -> list[str]:
    machine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    listing = [f"{i.mnemonic} {i.op_str}".strip() for i in machine.disasm(code, address)]
    assert sum(i.size for i in machine.disasm(code, address)) == len(code)
    return listing


def copy(
    code: str, *, countdown: Countdown = Countdown.NONE, check: Check = Check.NEVER, at: int = CACHE
) -> Emitted:
    block = Reader().decode(Text(PC, bytes.fromhex(code)), PC)
    emitter = Emitter(DATA, {9: None, 89: 2, 267: 3}, countdown)
    return emitter.emit(block, at, 3, lambda block: 0x3F, check)


@pytest.mark.parametrize(
    ("code", "raises"), [("f1", True), ("66f1", True), ("41f1", True), ("7ff1", False), ("89f1", False)]
)
def test_what_raises_a_trap_of_its_own(code: str, raises: bool) -> None:
    """int1, and not what ends with a byte like it (jg -15, mov ecx, esi)."""
    assert machine.raises_trap(bytes.fromhex(code)) is raises


COUNTED = f"inc qword ptr gs:[{layout.COUNTERS + 3 * 8:#x}]"
COUNTER = f"qword ptr gs:[{layout.COUNTERS + 3 * 8:#x}]"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (encode.store_area(encode.RAX, 0x40), "mov qword ptr gs:[0x40], rax"),
        (encode.store_area(13, 0x48), "mov qword ptr gs:[0x48], r13"),
        (encode.load_area(encode.RCX, 8), "mov rcx, qword ptr gs:[8]"),
        (encode.increment_area(0x1018), "inc qword ptr gs:[0x1018]"),
        (encode.subtract_area(0x48, 5), "sub qword ptr gs:[0x48], 5"),
        (encode.subtract_area(0x48, 300), "sub qword ptr gs:[0x48], 0x12c"),
        (encode.store_area_immediate(0x50, 7), "mov dword ptr gs:[0x50], 7"),
        (encode.lea_increment(9, 1), "lea r9, [r9 + 1]"),
        (encode.move_absolute(encode.RCX, -1), "movabs rcx, 0xffffffffffffffff"),
        (encode.push_immediate(0x401000), "push 0x401000"),
        (encode.jump_indexed(DATA), "jmp qword ptr [rcx*8 + 0x70000000]"),
        (encode.jump_if_rcx_zero(5), "jrcxz 0x7f0000000007"),
        (encode.adjust_rsp(8), "lea rsp, [rsp + 8]"),
        (encode.load_absolute(4, PC), f"movabs eax, dword ptr [{PC:#x}]"),
    ],
)
def test_encodings(code: bytes, text: str) -> None:
    assert disassembled(code) == [text]


def test_an_interval_that_runs_out_stops_in_a_nop() -> None:
    """Nothing is jumped around as long as it does not."""
    code = encode.JUMP_INTO_NOP + encode.STOP_IN_NOP
    assert disassembled(code) == ["js 0x7f0000000005", "nop dword ptr [rax - 0x34]"]
    assert code[5:] == encode.INT3


def test_a_far_jump_reads_its_target_aligned() -> None:
    """EFLAGS.AC may be set where it runs."""
    code = encode.jump_far_away(PC)
    assert disassembled(code[:6]) == ["jmp qword ptr [rip + 2]"]
    assert code[8:] == PC.to_bytes(8, "little")
    assert len(code) == 16


def test_counter_stands_where_the_flags_are_dead() -> None:
    emitted = copy("4889c84883c001e9000000ff")  # mov rax, rcx; add rax, 1; jmp
    assert disassembled(bytes(emitted.code)) == ["mov rax, rcx", f"inc {COUNTER}", "add rax, 1"]
    assert emitted.falls == PC + 12 - 0x0100_0000
    assert emitted.counted == 12


def test_counter_leaves_live_flags_alone() -> None:
    emitted = copy("7405")  # je: reads what came before
    assert disassembled(bytes(emitted.code))[:5] == [
        "mov qword ptr gs:[0], rax",
        f"mov rax, {COUNTER}",
        "lea rax, [rax + 1]",
        f"mov {COUNTER}, rax",
        "mov rax, qword ptr gs:[0]",
    ]
    ((field, target),) = emitted.exits
    assert target == PC + 7
    assert field % 4 == 0


def test_who_has_no_allowance_is_given_one_out_of_the_way() -> None:
    emitted = copy("4885c07403", countdown=Countdown.ALLOWANCES)  # test rax, rax; je
    code, cold = bytes(emitted.code), emitted.cold
    ((enter, begin),), ((_, back),), ask = cold.enters, cold.backs, cold.ask
    assert begin == 0
    assert disassembled(code[:back]) == [f"inc {COUNTER}", f"jg {CACHE + back:#x}"]
    assert (emitted.tallied, emitted.counted, ask.begin) == (ask.begin, back, enter - 2)
    go = cold.code.index(encode.jump_area(layout.REFILL))
    comes_back = go + len(encode.jump_area(layout.REFILL))
    behind_lea = go - len(encode.move_ecx(3) + encode.store_area(encode.RCX, layout.REFILL_RETURN))
    assert disassembled(cold.code) == [
        "mov qword ptr gs:[0], rax",
        "lahf",
        "seto al",
        "mov qword ptr gs:[0x30], rcx",
        f"lea rcx, [rip + {comes_back - behind_lea:#x}]",
        f"mov qword ptr gs:[{layout.REFILL_RETURN:#x}], rcx",
        "mov ecx, 3",
        f"jmp qword ptr gs:[{layout.REFILL:#x}]",
        f"jns {CACHE + ask.stop + 1:#x}",
        "int3",
        "mov rcx, qword ptr gs:[0x30]",
        "add al, 0x7f",
        "sahf",
        "mov rax, qword ptr gs:[0]",
        f"jmp {CACHE + len(cold.code):#x}",
    ]
    assert cold.fields == ((Field.SLOT, go - 4),)
    assert cold.code[ask.stop] == 0xCC


@pytest.mark.parametrize(
    ("code", "saves", "gives_back"),
    [
        # mov rax, [rsp + 8]; je: flags are live, rcx is nobody's to take
        ("488b4424087403", "mov qword ptr gs:[8], rcx", "mov rcx, qword ptr gs:[8]"),
        # mov edx, 1; je: rdx is about to be overwritten
        ("ba010000007403", "mov rdx, rcx", "mov rcx, rdx"),
    ],
)
def test_where_flags_are_live_the_counter_is_looked_at_first(code: str, saves: str, gives_back: str) -> None:
    emitted = copy(code, countdown=Countdown.ALLOWANCES)
    text, cold = bytes(emitted.code), emitted.cold
    far = text.index(b"\xe9\0\0\0\0")
    assert cold.enters == ((far + 1, 0),)
    assert disassembled(text[: emitted.counted]) == [
        saves,
        f"mov rcx, {COUNTER}",
        f"jrcxz {CACHE + far:#x}",
        "lea rcx, [rcx + 1]",
        f"mov {COUNTER}, rcx",
        "movabs rcx, 0xe9",
        gives_back,
    ]
    assert text[cold.ask.begin : cold.ask.begin + 1] == b"\xe3"
    where_flags_are_dead = copy("4885c07403", countdown=Countdown.ALLOWANCES).cold
    assert cold.code == where_flags_are_dead.code


def test_rip_relative_operands_name_the_same_address() -> None:
    emitted = copy("488b0531000000c3")  # mov rax, [rip + 0x31]; ret
    first = disassembled(bytes(emitted.code)[:7])
    assert first == [f"mov rax, qword ptr [rip + {PC + 7 + 0x31 - (CACHE + 7):#x}]"]


@pytest.mark.parametrize(("prefix", "mask"), [("", (1 << 64) - 1), ("67", (1 << 32) - 1)])
def test_what_is_too_far_from_the_cache_is_stepped_or_loaded_by_its_address(prefix: str, mask: int) -> None:
    """With the address-size prefix the operand is relative to eip."""
    away = 0x7FFF_FF00 if CACHE < PC else -0x7FFF_FF00
    field = away.to_bytes(4, "little", signed=True).hex()
    assert copy(f"{prefix}488b05{field}c3").natives[0][1] == 0  # mov rax, [far]; ret
    branch = f"{prefix}ff25{field}"
    target = PC + len(branch) // 2 + away & mask
    jump = copy(branch)
    assert f"movabs rax, qword ptr [{target:#x}]" in disassembled(bytes(jump.code))
    assert jump.natives == ()


def test_calls_push_the_programs_return_address() -> None:
    emitted = copy("e800000000")
    ((field, value),) = emitted.literals
    assert value == PC + 5
    assert disassembled(bytes(emitted.code)[field - 2 :]) == ["push qword ptr [rip]"]
    assert emitted.returns_to == emitted.falls == PC + 5


def test_watched_system_calls_stop() -> None:
    emitted = copy("b8090000000f05c3")  # mov eax, 9; syscall; ret
    ((offset, index, behind),) = emitted.natives
    assert (emitted.code[offset], index, behind) == (0xCC, 1, offset + 1)


@pytest.mark.parametrize(("number", "size"), [(89, "edx"), (267, "r10d")])
def test_calls_that_may_ask_stop_only_with_a_size_that_asks(number: int, size: str) -> None:
    emitted = copy("b8" + number.to_bytes(4, "little").hex() + "0f05c3")  # mov eax, number; syscall; ret
    (asks, index, behind), (defers, _, same) = emitted.natives
    call = bytes(emitted.code).index(encode.SYSCALL)
    assert (index, behind, same) == (1, call + 2, call + 2)
    lines = disassembled(bytes(emitted.code)[5:asks])
    assert lines[:3] == [f"mov ecx, {size}", "movzx ecx, ch", "lea ecx, [rcx - 0x10]"]
    assert lines[3:] == [f"jrcxz {CACHE + asks - 5:#x}", f"jmp {CACHE + asks + 1 - 5:#x}"]
    assert emitted.code[asks] == emitted.code[defers] == 0xCC


def test_source_is_compared_aligned() -> None:
    aside = copy("ffc0ffc0ffc0ffc0ffc0ffc0c3", check=Check.ENTRY).aside  # 13 bytes: 8 + 4 + 1
    assert aside is not None
    lines = disassembled(bytes(aside.code))
    assert lines[-1].startswith("jmp ")
    loads = [line for line in lines if line.startswith("movabs") and "ptr" in line]
    assert loads == [
        f"movabs rax, qword ptr [{PC:#x}]",
        f"movabs eax, dword ptr [{PC + 8:#x}]",
        f"movabs al, byte ptr [{PC + 12:#x}]",
    ]


@pytest.mark.parametrize("before", range(9))
def test_a_copy_that_compares_begins_with_one_instruction(before: int) -> None:
    """Which leads to the comparison; what follows its prefixes lies in an aligned word, in which there
    can be one of the same size that does nothing."""
    at = CACHE + before
    emitted = copy("ffc0c3", check=Check.ENTRY, at=at)
    assert emitted.skip is not None
    branch = emitted.skip - 1
    assert (at + branch) % 8 == 0
    assert emitted.runs[0] == (0, branch + 5)
    code = bytes(emitted.code)
    first, second = disassembled(code, at)[:2]
    assert (first.split()[-1], second) == (f"{at + branch + 5:#x}", COUNTED)
    nothing = BACKEND.nothing
    first, second = disassembled(code[:branch] + nothing + code[branch + len(nothing) :], at)[:2]
    assert first.startswith("nop")
    assert second == COUNTED
