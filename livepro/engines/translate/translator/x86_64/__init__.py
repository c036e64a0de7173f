"""The translate engine's x86-64 part: encodings, facts about flags, block copies."""

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.translate.translator.x86_64 import encode, machine
from livepro.engines.translate.translator.x86_64.compiler import Compiler
from livepro.engines.translate.translator.x86_64.emitter import Emitter
from livepro.engines.translate.translator.x86_64.events import lending
from livepro.engines.translate.translator.x86_64.rollforward import roll_forward
from livepro.engines.translate.translator.x86_64.source import Reader, Text
from livepro.engines.translate.translator.x86_64.tables import jump_table, table_stub


class X86_64:
    """See `livepro.engines.translate.translator.backend.Backend`."""

    system_call = machine.SYSTEM_CALL
    gadget = machine.GADGET
    stop = encode.INT3
    jump = encode.jump(0)
    nothing = encode.NOTHING
    arrival = b""
    index_shift = 0
    largest_cache = layout.LARGEST_CACHE
    synchronise = None
    movable = True
    countdown = Countdown.ALLOWANCES
    guards = True
    filters = True
    enters_handlers = True
    text = Text
    reader = Reader
    emitter = Emitter
    compiler = Compiler
    link = staticmethod(encode.link)
    jump_far_away = staticmethod(encode.jump_far_away)
    raises_trap = staticmethod(machine.raises_trap)
    obstacle = staticmethod(machine.obstacle)
    forget_call = staticmethod(machine.forget_call)
    stepped = staticmethod(machine.stepped)
    enter_area = staticmethod(machine.enter_area)
    set_own = staticmethod(machine.set_own)
    let_go = staticmethod(machine.let_go)
    lead = staticmethod(lending.lead)
    lend = staticmethod(lending.lend)
    keep_own = staticmethod(lending.keep)
    branch_target = staticmethod(machine.branch_target)
    missed_target = staticmethod(machine.missed_target)
    area_of = staticmethod(machine.area_of)
    faults_before = staticmethod(machine.faults_before)
    undo_branch = staticmethod(machine.undo_branch)
    restore_spills = staticmethod(machine.restore_spills)
    retreat = staticmethod(machine.retreat)
    prepare_return = staticmethod(machine.prepare_return)
    jump_table = staticmethod(jump_table)
    table_stub = staticmethod(table_stub)
    roll_forward = staticmethod(roll_forward)
    behind_syscall = staticmethod(machine.behind_syscall)
    own_frame = None

    def check_processor(self) -> None:
        """Any will do."""


BACKEND = X86_64()
