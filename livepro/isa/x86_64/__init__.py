"""The x86-64 instruction set."""

from __future__ import annotations

from typing import Any, ClassVar

from livepro.isa.access import Access, MachineState
from livepro.isa.base import Carry, CodeBlock, ExclusiveSequence, Quirk, StoppedThread
from livepro.isa.operands import Operands
from livepro.isa.x86_64 import exclusive, registers, stepping, syscalls
from livepro.isa.x86_64.breakpoint import BREAKPOINT, HARDWARE_BREAKPOINT
from livepro.model import Instruction


class X86_64:
    """See `livepro.isa.base.Isa`."""

    name = "x86_64"
    libraries: ClassVar[dict[str, str]] = {"iced-x86": "iced_x86"}
    max_instruction = 15  # SDM vol. 2, 2.3.11
    registers = registers.LAYOUT
    syscalls = syscalls.TABLE
    breakpoint = BREAKPOINT
    call_trap = stepping.CALL_TRAP
    hardware_breakpoint = HARDWARE_BREAKPOINT
    vector_registers = 0x202  # NT_X86_XSTATE: include/uapi/linux/elf.h

    def decode_block(self, code: bytes, address: int) -> CodeBlock:
        from livepro.isa.x86_64.decoder import decode_block

        return decode_block(code, address)

    def describe(self, code: bytes) -> Instruction:
        from livepro.isa.x86_64.describe import describe

        return describe(code)

    def accesses(self, code: bytes, address: int) -> tuple[Access, ...]:
        from livepro.isa.x86_64.accesses import accesses

        return accesses(code, address)

    def access_words(self, access: Access, machine: MachineState) -> list[int]:
        from livepro.isa.x86_64.accesses import words_before

        return words_before(access, machine)

    def access_words_after(self, access: Access, words: list[int], registers: Any) -> list[int]:
        from livepro.isa.x86_64.accesses import words_after

        return words_after(access, words, registers)

    def operands(self, code: bytes) -> Operands:
        from livepro.isa.x86_64.operands import operands

        return operands(code)

    def disassemble(self, code: bytes, address: int) -> str:
        from livepro.isa.x86_64.describe import disassemble

        return disassemble(code, address)

    def assembly(self, code: bytes, address: int) -> str:
        from livepro.isa.x86_64.describe import assembly

        return assembly(code, address)

    def terminator(self, code: bytes, address: int) -> Carry | None:
        from livepro.isa.x86_64.terminator import terminator

        return terminator(code, address)

    def guards_returns(self, registers: Any) -> bool:
        return syscalls.guards_returns(registers)

    def exclusive_sequence(self, code: bytes, address: int) -> ExclusiveSequence | None:
        return exclusive.exclusive_sequence(code, address)

    def call_entered(self, registers: Any) -> bool:
        return stepping.call_entered(registers)

    def rewind_call(self, registers: Any) -> bool:
        return syscalls.rewind_call(registers)

    def restart_call(self, registers: Any) -> bool:
        return syscalls.restart_call(registers)

    def stop_stepping(self, registers: Any) -> bool:
        return stepping.stop_stepping(registers)

    def rep_count(self, code: bytes, registers: Any) -> int:
        return stepping.rep_count(code, registers)

    def after_step(self, quirk: Quirk, thread: StoppedThread) -> None:
        stepping.after_step(quirk, thread)


ISA = X86_64()
