"""What an instruction set gives to the rest of livepro."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from livepro.isa.access import Access, MachineState
from livepro.isa.operands import Operands
from livepro.model import Flow, Instruction

RESTARTS = frozenset((1 << 64) - code for code in (512, 513, 514, 516))
"""Results of a system call that will be restarted unless a handler says otherwise (include/linux/errno.h)."""


class Quirk(IntEnum):
    """Why single-stepping over an instruction needs a second look."""

    NONE = 0
    SYSCALL = 1  # may go elsewhere (sigreturn, exec), may leave traces of the trap flag
    PUSH_FLAGS = 2  # stores the flags, the tracer's trap flag among them
    SHADOW = 3  # the trap behind it is held back until one more instruction has run
    EXCLUSIVE = 4  # begins a load/store-exclusive sequence, which a trap would break
    POP_FLAGS = 5  # loads the flags: the kernel then takes the tracer's trap flag for the program's own


class RegisterLayout(NamedTuple):
    """Where the registers are that every engine needs.

    `structure` is laid out as the kernel's NT_PRSTATUS register set; the other
    names are its fields; those of a system call hold at its instruction, before
    it is executed. `pc_user_offset` is the program counter's place in
    `struct user` for machines with PTRACE_PEEKUSER, else None. `shadow_stack` is the
    NT_* note type of what only threads with a shadow stack have.
    """

    structure: type[ctypes.Structure]
    pc: str
    sp: str
    syscall_number: str
    syscall_arguments: tuple[str, ...]
    syscall_result: str
    pc_user_offset: int | None
    shadow_stack: int


class SyscallTable(NamedTuple):
    """System call numbers that livepro reacts to, by name."""

    numbers: Mapping[str, int]

    def named(self, *names: str) -> frozenset[int]:
        """The numbers of those of `names` that the machine has."""
        return frozenset(self.numbers[n] for n in names if n in self.numbers)


class Breakpoint(NamedTuple):
    """The software breakpoint: its bytes, how far the pc is behind its address when its
    SIGTRAP is seen, and the si_code of that signal."""

    code: bytes
    pc_advance: int
    si_code: int


class HardwareBreakpoint(NamedTuple):
    """A debug register that stops a thread before the instruction at an address, as
    PTRACE_POKEUSER takes it: offsets in `struct user` of the register that holds the
    address and of the one that switches it on, with the value that does; and the
    si_code of its SIGTRAP."""

    address_offset: int
    control_offset: int
    enable: int
    si_code: int


class Words(Protocol):
    """A process's memory, 64 bits at a time, as its own page protections allow."""

    def read(self, address: int) -> int:
        """The unsigned word at `address`, -1 where the process may not read."""

    def write(self, address: int, value: int) -> bool:
        """Set the word at `address`; False where the process may not write."""


class ExclusiveSequence(NamedTuple):
    """A load-exclusive and what follows it up to its store-exclusive: any trap in between,
    and every attempt to store fails.

    `addresses` are those of its instructions, the first being the load and the last the
    store; `end` is the address behind. `branches` are the conditional branches among them:
    their addresses and targets, in order.
    """

    addresses: tuple[int, ...]
    end: int
    branches: tuple[tuple[int, int], ...]

    @property
    def exits(self) -> frozenset[int]:
        """Where control can be when it has left the sequence."""
        targets = {target for _, target in self.branches if target not in self.addresses}
        return frozenset(targets | {self.end})

    @property
    def plain(self) -> bool:
        """Whether the place where control has left it tells what has been executed."""
        return len(self.exits) == len(self.branches) + 1


Carry = Callable[["memoryview[int]", Words], bool]
"""Carries out one control-flow instruction in the tracer.

Given the general registers (one unsigned word for each field of
`RegisterLayout.structure`, the pc of any value) and the memory, it sets the
registers and writes what the instruction would. False says that it did
neither, since the instruction would fault or trap: the processor must be asked.
"""


class StoppedThread(Protocol):
    """What an ISA needs of a stopped thread to put right what a step left behind."""

    def registers(self) -> Any:
        """The general registers, as `RegisterLayout.structure`."""

    def set_registers(self, registers: Any) -> None:
        """Set the general registers."""

    def read(self, address: int, size: int) -> bytes:
        """Read memory."""

    def write(self, address: int, data: bytes) -> None:
        """Write memory."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """The straight line from `address` to the next control-flow instruction.

    `addresses` has one entry per instruction and, last, the address behind the
    block. `flows`, `reps` and `quirks` have one entry per instruction. `target`
    is where a direct terminator leads (None otherwise). `truncated` says that the bytes
    given ended before a terminator: what was decoded is whole, and the rest
    must be read and decoded as part of the same block.
    """

    address: int
    code: bytes
    addresses: tuple[int, ...]
    flows: tuple[Flow, ...]
    reps: tuple[bool, ...]
    quirks: tuple[Quirk, ...]
    target: int | None
    truncated: bool

    def __len__(self) -> int:
        return len(self.flows)


class Isa(Protocol):
    """One instruction set. Implementations are stateless but for memo tables."""

    name: str
    """As `uname -m` names it."""

    libraries: Mapping[str, str]
    """Python packages that only this instruction set needs: distribution to module name."""

    max_instruction: int
    """Longest encoding in bytes."""

    registers: RegisterLayout
    syscalls: SyscallTable
    breakpoint: Breakpoint
    call_trap: int
    """si_code of the SIGTRAP by which the kernel reports a step on the way out of a system
    call; nothing has been executed since."""

    hardware_breakpoint: HardwareBreakpoint | None
    vector_registers: int
    """NT_* note type of the register set that `MachineState.vectors` gives."""

    def decode_block(self, code: bytes, address: int) -> CodeBlock:
        """Decode from `address` to the first terminator or the end of `code`.

        Undecodable bytes end the block before them; when they come first they
        are a block of one INVALID instruction (length 1 on x86-64, 4 on AArch64).
        """

    def describe(self, code: bytes) -> Instruction:
        """Facts about the one instruction encoded in `code` (memoised)."""

    def accesses(self, code: bytes, address: int) -> tuple[Access, ...]:
        """What the instruction `code`, at `address`, reads and writes in memory, in order (memoised).
        Raises LiveproError where livepro cannot tell."""

    def access_words(self, access: Access, machine: MachineState) -> list[int]:
        """The words of an access (see `isa.access.Pattern`) of the instruction that a stopped thread is
        about to execute. Of a repeated string operand the second is the first."""

    def access_words_after(self, access: Access, words: list[int], registers: Any) -> list[int]:
        """The words once the instruction is over, or interrupted, given the registers then."""

    def operands(self, code: bytes) -> Operands:
        """The registers that the instruction `code` reads and writes."""

    def disassemble(self, code: bytes, address: int) -> str:
        """`code`'s one instruction as text, its targets as seen from `address`."""

    def assembly(self, code: bytes, address: int) -> str:
        """`code`'s one instruction as the text that GNU as and LLVM's assembler take (AT&T syntax on
        x86-64); empty where none is known. A direct branch's target is a symbol,
        ``L`` and its address in hexadecimal: ``jne L401000``."""

    def terminator(self, code: bytes, address: int) -> Carry | None:
        """What carries out the control-flow instruction `code` that stands at `address`;
        None for one that only the processor can execute."""

    def guards_returns(self, registers: Any) -> bool:
        """Whether the system call that `registers` ask for has the processor keep a stack of
        return addresses of its own, so that calls and returns cannot be carried out for it."""

    def exclusive_sequence(self, code: bytes, address: int) -> ExclusiveSequence | None:
        """The sequence that begins with the load-exclusive at `address`, where `code` stands;
        None if there is no store-exclusive that straight code leads to."""

    def call_entered(self, registers: Any) -> bool:
        """Whether a thread that was stepped, and stands at a system call's instruction, has
        executed it: the kernel has put it back there to restart the call."""

    def rewind_call(self, registers: Any) -> bool:
        """Whether a thread that stopped with these registers does so inside a system call that the
        kernel will begin again, unless a signal handler says otherwise; `registers` are then
        changed to what they will be at the call's instruction."""

    def restart_call(self, registers: Any) -> bool:
        """Have the kernel begin a system call again that failed with EINTR because its thread was made
        to stop, as if it had not been: whether `registers` were changed to that end."""

    def stop_stepping(self, registers: Any) -> bool:
        """Take out of `registers` what single-stepping may have left there: whether there was anything."""

    def rep_count(self, code: bytes, registers: Any) -> int:
        """How many iterations the rep-prefixed instruction `code` has before it,
        as its count register says."""

    def after_step(self, quirk: Quirk, thread: StoppedThread) -> None:
        """Put right what single-stepping left visible to the program (a trap flag
        in the flags it stored). Called once `quirk`'s instruction has retired."""
