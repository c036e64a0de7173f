"""The translate engine's AArch64 part: encodings, facts about registers, block copies."""

from __future__ import annotations

from typing import Any

from livepro.engines.translate.translator.aarch64 import encode, machine
from livepro.engines.translate.translator.aarch64.coherence import check_processor, synchronise
from livepro.engines.translate.translator.aarch64.compiler import Compiler
from livepro.engines.translate.translator.aarch64.emitter import Emitter
from livepro.engines.translate.translator.aarch64.rollforward import roll_forward
from livepro.engines.translate.translator.aarch64.source import Reader, Text
from livepro.engines.translate.translator.backend import JumpTable, Words
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.translate.translator.source import SourceBlock


class AArch64:
    """See `livepro.engines.translate.translator.backend.Backend`."""

    system_call = machine.SYSTEM_CALL
    gadget = machine.GADGET
    stop = encode.pack([encode.BRK])
    jump = encode.pack([encode.B])
    nothing = encode.pack([encode.NOP])
    arrival = encode.ARRIVAL
    index_shift = 2
    largest_cache = 128 << 20  # b (C6.2.26)
    guards = False
    filters = False
    enters_handlers = False
    movable = False
    countdown = Countdown.BUDGET
    text = Text
    reader = Reader
    emitter = Emitter
    compiler = Compiler
    link = staticmethod(encode.link)
    check_processor = staticmethod(check_processor)
    synchronise = staticmethod(synchronise)
    jump_far_away = staticmethod(encode.jump_far_away)
    raises_trap = staticmethod(machine.raises_trap)
    obstacle = staticmethod(machine.obstacle)
    forget_call = staticmethod(machine.forget_call)
    stepped = staticmethod(machine.stepped)
    enter_area = staticmethod(machine.enter_area)
    set_own = staticmethod(machine.set_own)
    let_go = staticmethod(machine.let_go)
    branch_target = staticmethod(machine.branch_target)
    missed_target = staticmethod(machine.missed_target)
    area_of = staticmethod(machine.area_of)
    faults_before = staticmethod(machine.faults_before)
    undo_branch = staticmethod(machine.undo_branch)
    restore_spills = staticmethod(machine.restore_spills)
    prepare_return = staticmethod(machine.prepare_return)
    retreat = staticmethod(machine.retreat)
    roll_forward = staticmethod(roll_forward)
    behind_syscall = staticmethod(machine.behind_syscall)
    own_frame = staticmethod(machine.own_frame)

    def jump_table(self, block: SourceBlock) -> JumpTable | None:
        """None: branches by tables are looked up."""
        return None

    def lead(self, tid: int, words: Words, code: bytes) -> None:
        """No copy that records is lent a register."""

    def lend(self, registers: Any, words: Words) -> None:
        """See `lead`."""

    def keep_own(self, registers: Any, words: Words) -> None:
        """See `lead`."""

    def table_stub(self, table: JumpTable, entry: int) -> tuple[bytes, int]:
        """There is none."""
        raise NotImplementedError


BACKEND = AArch64()
