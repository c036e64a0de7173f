"""Random code gives the same results under every engine as natively; and the harness would notice if not."""

from __future__ import annotations

import datetime
import random
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from iced_x86 import Code, Decoder, Encoder, FlowControl, Instruction, Register

from .build import PLACEMENTS, Bend, Placement, Program, build
from .campaign import Campaign, make
from .code import Assembled, Node, Sequence, assemble, words
from .deadflags import dead_flags
from .generator import STACK_SIZE, Options, sequence
from .operands import Context, Unsuitable, fill
from .runner import Comparison, Executor, Outcome, UnderEngine, available_engines, native
from .shrink import size
from .state import RECORD_SIZE, differences, signal_of
from .table import coverage, cpu_flags, forms

ROOT = Path(__file__).resolve().parent.parent.parent
FAST = tuple(engine for engine in available_engines() if engine != "step")
CODE_NAMES = {value: name for name in dir(Code) if isinstance(value := getattr(Code, name), int)}


def decode(code: bytes, address: int) -> Instruction:
    """The first instruction of `code`."""
    return Decoder(64, code, ip=address).decode()


def instructions(made: Assembled) -> list[Instruction]:
    """The instructions that were laid out (junk between them left out by the decoder's judgement)."""
    return [decode(made.code[at - made.address :], at) for at, _ in made.instructions]


# -- the engines


@pytest.mark.some(11)
@pytest.mark.parametrize("place", PLACEMENTS, ids=lambda place: f"{place.kind}-{place.base:x}")
@pytest.mark.parametrize("engine", available_engines())
def test_engine_agrees_with_native_run_and_with_stepping(
    engine: str, place: Placement, tmp_path: Path
) -> None:
    engines = {name: UnderEngine(name) for name in ("step", engine)}
    campaign = Campaign(engines, tmp_path, shrink_seconds=15)
    reports = campaign.program(f"stepped {place.base:x}", 40, place)
    assert not reports, "\n\n".join(reports)
    assert campaign.instructions["step"] == campaign.instructions[engine] > 40 * 100


@pytest.mark.some(2)
@pytest.mark.parametrize("place", PLACEMENTS, ids=lambda place: f"{place.kind}-{place.base:x}")
def test_fast_engines_agree_on_many_sequences(place: Placement, tmp_path: Path) -> None:
    campaign = Campaign({name: UnderEngine(name) for name in FAST}, tmp_path, shrink_seconds=15)
    reports = campaign.program(f"fast {place.base:x}", 300, place)
    assert not reports, "\n\n".join(reports)
    assert campaign.sequences_run == 300
    covered = coverage(campaign.codes)
    assert covered["integer"][0] > 300
    assert sum(met for met, _ in covered.values()) == len(campaign.codes)


def test_coverage_counts_encodings_by_family() -> None:
    known = {family: members[0].code for family, members in forms().items()}
    covered = coverage({*known.values(), Code.RETNQ, Code.CALL_REL32_64})
    assert covered["control"] == (2, 2)
    assert {family: met for family, (met, _) in covered.items() if family != "control"} == dict.fromkeys(
        known, 1
    )
    assert {family: of for family, (_, of) in covered.items() if family in known} == {
        family: len(members) for family, members in forms().items()
    }


# -- what is generated


def test_a_seed_gives_the_same_sequence_each_time() -> None:
    texts = [assemble(sequence(seed, Options()).items(), 0x1000_0000, 0x1100_0000).code for seed in "aab"]
    assert texts[0] == texts[1] != texts[2]
    assert sequence("a", Options()).state == sequence("a", Options()).state


@pytest.mark.parametrize("family", sorted(forms()))
def test_every_form_in_the_table_can_be_generated_and_is_decoded_as_itself(family: str) -> None:
    rng = random.Random(1)
    for form in forms()[family]:
        for attempt in range(500):
            anchor = (None, 8, 15)[attempt % 3]
            reserved = frozenset({4} if anchor is None else {4, anchor})
            context = Context(rng, True, False, anchor, reserved)
            try:
                items = fill(form, context)
            except Unsuitable:
                continue
            made = assemble(items, 0x1000_0000, 0x1100_0000)
            assert instructions(made)[-1].code == form.code, form.name
            break
        else:
            pytest.fail(f"{form.name} cannot be generated")


def test_sequences_have_everything_that_engines_must_get_right() -> None:
    made = [
        assemble(sequence(f"variety {i}", Options(writable=bool(i % 2))).items(), 0x1000_0000, 0x1100_0000)
        for i in range(600)
    ]
    found = [instruction for code in made for instruction in instructions(code)]
    flows = {instruction.flow_control for instruction in found}
    assert flows >= {
        FlowControl.NEXT,
        FlowControl.UNCONDITIONAL_BRANCH,
        FlowControl.INDIRECT_BRANCH,
        FlowControl.CONDITIONAL_BRANCH,
        FlowControl.RETURN,
        FlowControl.CALL,
        FlowControl.INDIRECT_CALL,
        FlowControl.INTERRUPT,
        FlowControl.EXCEPTION,
    }
    codes = {CODE_NAMES[instruction.code] for instruction in found}
    assert len(codes) > 1000
    conditions = words("JO JNO JB JAE JE JNE JBE JA JS JNS JP JNP JL JGE JLE JG")
    assert codes >= {f"{name}_REL{bits}_64" for name in conditions for bits in (8, 32)}
    assert codes >= {"LOOP_REL8_64_RCX", "LOOPE_REL8_64_RCX", "LOOPNE_REL8_64_RCX", "JRCXZ_REL8_64"}
    assert codes >= {
        "LAHF",
        "SAHF",
        "PUSHFQ",
        "POPFQ",
        "CPUID",
        "XLAT_M8",
        "RETNQ_IMM16",
        "ENTERQ_IMM16_IMM8",
    }
    assert codes >= {"FXSAVE_M512BYTE", "LDMXCSR_M32", "FLDCW_M2BYTE", "SYSCALL", "DIV_RM64", "IDIV_RM8"}
    repeated = {
        i.mnemonic for i in found if i.is_string_instruction and (i.has_rep_prefix or i.has_repne_prefix)
    }
    assert len(repeated) > 12
    memory = [i for i in found if i.memory_base != Register.NONE]
    assert {Register.RIP, Register.EIP, Register.RSP} <= {i.memory_base for i in memory}
    red = [i.memory_displacement - (1 << 64) for i in memory if i.memory_base == Register.RSP]
    assert any(-128 <= displacement < 0 for displacement in red)
    if "avx512f" in cpu_flags():
        assert any(i.has_op_mask and i.zeroing_masking for i in found)
        assert any(i.is_broadcast for i in found)
        assert any(i.is_vsib for i in found)


def test_most_sequences_come_to_their_end_and_some_fault_in_every_way(tmp_path: Path) -> None:
    program = build(make("ends", 400, PLACEMENTS[0]), PLACEMENTS[0], tmp_path, "ends")
    comparison = Comparison.of(program)
    assert not comparison.unstable
    signals = [signal_of(record) for record in comparison.truth.records]
    assert {4, 5, 7, 8, 11} < set(signals)
    assert 0.75 * len(signals) < signals.count(0) < 0.98 * len(signals)


# -- the harness itself, tried on engines that are wrong on purpose


@dataclass(frozen=True)
class Bent:
    """An "engine" that runs the program natively, but with other code."""

    bend: Bend

    def __call__(self, program: Program) -> Outcome:
        bent = build(
            program.sequences, program.placement, program.path.parent, f"{program.path.name}.bent", self.bend
        )
        return native(bent)


def forget_carry(made: Assembled) -> bytes:
    """adc becomes add."""
    out = bytearray(made.code)
    encoder = Encoder(64)
    for (at, length), instruction in zip(made.instructions, instructions(made), strict=True):
        name = CODE_NAMES[instruction.code]
        if name.startswith("ADC_"):
            instruction.code = getattr(Code, name.replace("ADC_", "ADD_"))
            encoder.encode(instruction, at)
            code = encoder.take_buffer()
            if len(code) == length:  # else these bytes are an instruction only with those that follow
                out[at - made.address : at - made.address + length] = code
    return bytes(out)


def counting(error_at: str = "") -> Executor:
    """An "engine" that counts each instruction once, and those called `error_at` twice."""

    def execute(program: Program) -> Outcome:
        counts = {
            instruction.ip: 1 + (bool(error_at) and CODE_NAMES[instruction.code].startswith(error_at))
            for code in program.codes
            for instruction in instructions(code)
        }
        return replace(native(program), counts=counts, total=sum(counts.values()))

    return execute


def dies_of_cpuid(program: Program) -> Outcome:
    """An "engine" that dies in the first sequence with cpuid in it."""
    outcome = native(program)
    for index, code in enumerate(program.codes):
        if any(instruction.code == Code.CPUID for instruction in instructions(code)):
            return replace(outcome, records=outcome.records[:index], trouble="status -11")
    return outcome


def reports_on(engines: dict[str, Executor], tmp_path: Path) -> str:
    """The report on the last engine, the only one that is wrong."""
    reports = Campaign(engines, tmp_path).program("broken", 200, PLACEMENTS[0])
    assert len(reports) == 1
    return reports[0]


def shrunk(report: str) -> list[str]:
    """The disassembled lines of the failure in a report that was shrunk most. (A jump table has so many: what
    is drawn depends on the processor's instruction sets, and so does where no part can be left out.)"""
    found = []
    for before, after, text in re.findall(
        r"shrunk from (\d+) to (\d+) (.*?)registers at the start", report, re.S
    ):
        listing = [line for line in text.splitlines() if line.startswith("  0x")]
        assert len(listing) == int(after) <= int(before)
        found.append(listing)
    return min(found, key=len)


@pytest.mark.long(seconds=60)
def test_sequences_of_the_day(tmp_path: Path) -> None:
    """Others than the day before; a failure names the seed that makes it again."""
    seed = f"{datetime.date.today():%Y%m%d}"
    options = ("--seconds", "45", "--seed", seed, "--directory", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *options], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* programs, [1-9]\d* sequences, 0 failures", done.stdout, re.MULTILINE)


@pytest.mark.long
def test_a_wrong_result_is_found_named_and_shrunk(tmp_path: Path) -> None:
    report = reports_on({"right": native, "bent": Bent(forget_carry)}, tmp_path)
    assert "engine bent" in report
    assert "again: python -m tests.fuzz --engine bent --sequence broken:" in report
    listing = shrunk(report)
    assert any(" adc " in line for line in listing)
    assert len(listing) <= 8
    assert ": native 0x" in report


def test_a_wrong_count_is_found_named_and_shrunk(tmp_path: Path) -> None:
    report = reports_on({"right": counting(), "wrong": counting("CMOV")}, tmp_path)
    listing = shrunk(report)
    assert [line.endswith("; 1 times, here 2") for line in listing if " cmov" in line] == [True]
    assert len(listing) <= 8
    assert "reference 1, here 2" in report


def test_a_wrong_total_alone_is_found(tmp_path: Path) -> None:
    def wrong(program: Program) -> Outcome:
        outcome = counting()(program)
        return replace(outcome, total=outcome.total + 1)

    report = reports_on({"right": counting(), "wrong": wrong}, tmp_path)
    assert "in the driver" in report


def test_a_death_is_found_and_shrunk(tmp_path: Path) -> None:
    report = reports_on({"mortal": dies_of_cpuid}, tmp_path)
    assert "status -11" in report
    listing = shrunk(report)
    assert any("cpuid" in line for line in listing)
    assert len(listing) <= 4


def test_an_engine_that_cannot_run_or_hangs_is_reported(tmp_path: Path) -> None:
    program = build(make("hangs", 2, PLACEMENTS[0]), PLACEMENTS[0], tmp_path, "hangs")
    comparison = Comparison.of(program)
    (failure,) = comparison.failures(UnderEngine("imaginary")(program))
    assert "There is no engine 'imaginary'" in failure.trouble
    (failure,) = comparison.failures(UnderEngine("step", timeout=0.01)(program))
    assert "not finished after 0.01 s" in failure.trouble


@pytest.mark.parametrize(
    "at", [0, 2048 + 8 * 3, 2240, 2248, 2256, 2576 + 100, RECORD_SIZE - STACK_SIZE + 1500]
)
def test_one_changed_bit_anywhere_is_one_difference(at: int, tmp_path: Path) -> None:
    program = build(make("bits", 1, PLACEMENTS[0]), PLACEMENTS[0], tmp_path, "bits")
    (record,) = native(program).records
    changed = bytearray(record)
    changed[at] ^= 1
    assert len(differences(record, bytes(changed))) == 1
    assert not differences(record, record)


def test_flags_that_nothing_reads_are_dead() -> None:
    def dead(code: str) -> int:
        made = bytes.fromhex(code)
        return dead_flags(Assembled(0x1000, made, ()), 0x1000)

    everything = 0x8D5
    assert dead("01c8 c3") == everything  # add, ret
    assert dead("8b06 01c8 c3") == everything  # mov, add, ret
    assert dead("11c8 c3") == everything & ~1  # adc reads the carry
    assert dead("ffc0 c3") == everything & ~1  # inc keeps it
    assert dead("740001c8c3") == everything & ~0x40  # jz reads the zero flag; add on both ways
    assert dead("e30001c8c3") == everything  # jrcxz reads none
    assert dead("e30201c8c3") == 0  # one way leads to ret at once
    assert dead("e80000000001c8c3") == everything  # a call continues it, too
    assert dead("eb00 01c8 c3") == everything  # a jump continues it
    assert dead_flags(Assembled(0x1000, b"\xc3", ()), 0) == 0


def test_taking_a_function_away_takes_its_calls_along() -> None:
    whole = next(
        made
        for i in range(100)
        if len((made := sequence(f"calls {i}", Options())).functions) > 2 and size(made) > 60
    )
    main = whole.functions[0]
    empty = Node((main.parts[0], [], main.parts[2]))
    bare: Sequence = whole.with_functions((empty, *whole.functions[1:]))
    assert size(bare) == sum(len(part) for part in (main.parts[0], main.parts[2])) - 1


def test_command_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.fuzz", "--seconds", "0.1", "--seed", "command line"),
            *("--engine", "step", "--count", "3", "--directory", str(tmp_path / "files")),
            *("--ledger", str(tmp_path / "ledger.md")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("seed command line, engines step, files in ")
    _, told, *families = done.stdout.splitlines()
    assert told == "1 programs, 3 sequences, 0 failures. Encodings executed, of those there are:"
    covered = [re.fullmatch(r"  (\w+) +([\d,]+) of +([\d,]+)", line).groups() for line in families]  # type: ignore[union-attr]
    assert [family for family, _, _ in covered] == [*forms(), "control"]
    assert list((tmp_path / "files").iterdir()) == []
    *_, seed, engines, sequences, _, encodings, failures, _ = (
        (tmp_path / "ledger.md").read_text().splitlines()[-1].split("|")
    )
    assert [each.strip() for each in (seed, engines, sequences, failures)] == [
        "`command line`",
        "step",
        "3",
        "0",
    ]
    assert int(encodings.split()[0].replace(",", "")) == sum(
        int(met.replace(",", "")) for _, met, _ in covered
    )
