"""Where threads may run: decoding, planning, planting breakpoints and barring their sites.

To bar a site (only the processor may execute what stands there) that is
planted, all threads that may be running towards it are interrupted first and
become stepped ones where they stand. Such threads are never inside a system
call, so the program notices nothing of the interruption. The same is done
where one instruction turns out to lie inside another (jumps into the middle of
instructions), and before code becomes writable (`block.spaces`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from livepro.engines.base import EngineOptions
from livepro.engines.block.plan import LONGEST, Node, Plan, apart
from livepro.engines.block.text import Original, Site, Text
from livepro.engines.block.thread import BlockThread
from livepro.engines.exclusive import SEQUENCE_BYTES
from livepro.engines.recording import ImageRecord
from livepro.engines.step import StepEngine
from livepro.engines.stepping import NEVER, StepThread, unchanged
from livepro.isa.base import CodeBlock, Isa, Quirk
from livepro.linux import ptrace
from livepro.linux.proc import Mapping
from livepro.tracee import TracedProcess
from livepro.tracee.stops import failed

ADDRESS_MASK = (1 << 64) - 1
"""Program counters are read as signed; those of the vsyscall page are negative."""

_FEW_ITERATIONS = 8  # of a rep: a step for each costs less than to set and clear a debug register


class Patching(StepEngine):
    """The part of the block engine that decides where threads may run and plants breakpoints."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._running: dict[int, BlockThread] = {}
        self._texts: dict[TracedProcess, Text] = {}
        self._nodes: dict[ImageRecord, dict[int, Node]] = {}
        self._hardware = isa.hardware_breakpoint
        self._lost = 0
        self._strays = 0
        self._barred = 0

    def summarise(self) -> None:
        """Say what the user must know to read the counts."""
        self.stats["barred"] = self._barred
        self._exclusives.tell(self.warnings)
        if self._lost:
            self.warnings.append(
                f"{self._lost} threads were killed without a word on how far they had come; up to "
                f"{LONGEST} blocks of each are not counted."
            )
        if self._strays or self._unexplained:
            self.warnings.append(
                f"{self._strays + self._unexplained} times a thread was led elsewhere by something else than "
                "the instruction it executed; counts may be off by as many blocks."
            )

    # -- where a thread is

    def _enter(self, state: StepThread, pc: int) -> None:
        assert isinstance(state, BlockThread)
        node = state.known.get(pc)
        if node is None or not (node.stable or unchanged(state, node, 0)):
            node = self._node(state, pc)
        self._stand_at(state, node, 0)
        self._place(state)

    def _arrive(self, state: StepThread) -> None:
        assert isinstance(state, BlockThread)
        node, index = state.block, state.index
        if not node.stable and not unchanged(state, node, index):
            self._leave(state, index)
            self._enter(state, node.code.addresses[index])
        else:
            self._place(state)

    def _place(self, state: BlockThread) -> None:
        """The thread is about to execute instruction `index`: by a step, or running on to the terminator."""
        node, index = state.block, state.index
        state.expected = NEVER
        if self.region is not None:
            self._at_region(state)
        may_run = self._may_run(state, len(node.code))
        if index >= node.tail and node.runnable and may_run:
            plan = self._plan(state, node)
            if len(plan.nodes) == 1 or self._may_run(state, plan.length):
                state.plan = plan
                return
        state.plan = None
        if node.look[index]:
            state.before = state.thread.registers()
        state.expected = node.expect[index] if may_run else NEVER

    def _ahead(self, state: StepThread) -> int:
        assert isinstance(state, BlockThread)
        return len(state.block.code) if state.plan is None else state.plan.length

    def _stand_at(self, state: BlockThread, node: Node, index: int) -> None:
        """The thread stands at an instruction, and is not running."""
        if node.row < 0:
            self._row(state, node)
        state.plan = None
        state.block = node
        state.index = index
        state.expect = node.expect
        state.expected = NEVER

    def _stand(self, state: BlockThread, pc: int) -> None:
        """A running thread has stopped at `pc`: count what it has left behind."""
        assert state.plan is not None
        place = state.plan.locate(pc)
        if place is None:
            self._astray(state, pc)
            return
        number, index = place
        self._walked(state, state.plan.nodes[:number])
        self._stand_at(state, state.plan.nodes[number], index)

    def _astray(self, state: BlockThread, pc: int) -> None:
        """A running thread is where its plan does not lead: how it came there is not known."""
        self._strays += 1
        self._leave(state, state.index)
        self._enter(state, pc)

    def _walked(self, state: BlockThread, nodes: Iterable[Node]) -> None:
        """Count complete executions."""
        for node in nodes:
            state.tally.complete(node.row if node.row >= 0 else self._row(state, node))

    def _row(self, state: BlockThread, node: Node) -> int:
        """The block's row in the table, from its first execution on."""
        if node.row < 0:
            key = node.code.address, node.code.code
            versions = self._versions[state.record]
            row = versions.get(key)
            if row is None:
                mapping = state.thread.process.space.find(node.code.address)
                row = versions[key] = state.record.store.add(node.code, mapping)
            node.row = row
        return node.row

    # -- decoding and planning

    def _node(self, state: BlockThread, pc: int) -> Node:
        """Decode the block that starts at `pc`."""
        process, text = state.thread.process, state.text
        code = self._read_block(process, Original(text, process.memory), pc)
        end = code.addresses[-1]
        stable = _is_stable(process.space.find(pc)) and _is_stable(process.space.find(end - 1))
        node = Node(code, stable, self._site(text, code) if stable else None)
        state.known[pc] = node
        if stable:
            self._bar(text, [*text.occupy(code.addresses), *self._keep_whole(state, code)], state)
        return node

    def _keep_whole(self, state: BlockThread, code: CodeBlock) -> list[Site]:
        """Let no breakpoint stand in the exclusive sequences that begin in a block: the sites there."""
        branches: list[int] = []
        for address, quirk in zip(code.addresses, code.quirks, strict=False):
            if quirk is Quirk.EXCLUSIVE:
                following = self._text_at(state, address, SEQUENCE_BYTES)
                sequence = self.isa.exclusive_sequence(following, address)
                branches += [branch for branch, _ in sequence.branches] if sequence is not None else []
        return state.text.keep_free(branches)

    def _text_at(self, state: StepThread, address: int, size: int) -> bytes:
        assert isinstance(state, BlockThread)
        return state.text.read(state.thread.process.memory, address, size)

    def _site(self, text: Text, code: CodeBlock) -> Site | None:
        """The place of a block's terminator, None if only the processor can execute that."""
        start = code.addresses[-2]
        site = text.sites.get(start)
        if site is None and code.flows[-1].ends_block:
            last = code.code[start - code.address :]
            carry = self.isa.terminator(last, start)
            if carry is not None:
                site = text.site(start, last, carry)
                self._barred += site.barred
        return site

    def _plan(self, state: BlockThread, node: Node) -> Plan:
        """How a thread may run from `node`, whose terminator can carry a breakpoint."""
        plan = node.rest
        if plan is not None and not plan.stop.barred:
            return plan
        advance = self.isa.breakpoint.pc_advance
        nodes = [node]
        while len(nodes) < LONGEST and (target := nodes[-1].follower) is not None:
            follower = state.known.get(target) or self._node(state, target)
            if not follower.stable or follower.tail or not follower.runnable or not apart(follower, nodes):
                break
            assert follower.site is not None
            hit = follower.site.address + advance
            if any(hit == other.code.address for other in nodes):
                break  # a pc there would mean two things
            if self._region_at(state, target):
                break
            nodes.append(follower)
        plan = node.rest = Plan(nodes, advance)
        node.plan = None if node.tail or self._region_at(state, node.code.address) else plan
        return plan

    def _go(self, state: BlockThread) -> None:
        """Let a thread run on, or wait if sites that threads run to are being given back."""
        text, tid = state.text, state.thread.tid
        if state.owed:
            self._no_longer_running(state)
            self._resume(state, ptrace.PTRACE_CONT)
            return
        if text.version < 0:
            text.waiting.append(tid)
            self._no_longer_running(state)
            return
        while state.plan is not None:
            plan = state.plan
            if plan.version == text.version or self._prepare(state, plan):
                state.muddled = False
                self._resume(state, ptrace.PTRACE_CONT)
                return
            if text.version < 0:  # making another plan has barred a site
                text.waiting.append(tid)
                return
        if state.muddled:
            # It stops again before it executes anything, and is then resumed from there.
            state.muddled = False
            _request(ptrace.PTRACE_INTERRUPT, tid)
            self._resume(state, ptrace.PTRACE_CONT)
        elif state.block.code.reps[state.index] and self._watch(state):
            self._resume(state, ptrace.PTRACE_CONT)
        else:
            exclusive = state.block.code.quirks[state.index] is Quirk.EXCLUSIVE
            whole = self._whole(state) if exclusive else None
            if whole is None:
                self._resume(state, ptrace.PTRACE_SINGLESTEP)
            elif whole:
                self._go(state)

    @staticmethod
    def _resume(state: BlockThread, request: int) -> None:
        carried, state.carried = state.carried, False
        tid = state.thread.tid
        if ptrace.raw(request, tid, None, None) == -1:
            state.carried = carried
            failed(tid)

    # -- rep

    def _watch(self, state: BlockThread) -> bool:
        """Let a rep with many iterations run on to its end instead of stepping each: whether
        a hardware breakpoint of the thread's own shows it there. Its iterations are what
        the count register has lost."""
        hardware, code, index = self._hardware, state.block.code, state.index
        if hardware is None:
            return False
        at, behind = code.addresses[index : index + 2]
        text = code.code[at - code.address : behind - code.address]
        if self.isa.rep_count(text, state.before) < _FEW_ITERATIONS:
            return False
        tid = state.thread.tid
        if ptrace.raw(ptrace.PTRACE_POKEUSER, tid, hardware.address_offset, behind) == -1 or (
            ptrace.raw(ptrace.PTRACE_POKEUSER, tid, hardware.control_offset, hardware.enable) == -1
        ):
            self._hardware = None  # not to be had on this machine, or not by us
            return False
        state.watched = True
        return True

    def _unwatch(self, state: BlockThread) -> bool:
        """A thread that executed a watched rep has stopped: whether at the rep's end."""
        assert self._hardware is not None
        state.watched = False
        tid = state.thread.tid
        ptrace.call(ptrace.PTRACE_POKEUSER, tid, self._hardware.control_offset, 0)
        info = ptrace.signal_info(tid)
        return info is not None and info.code == self._hardware.si_code

    def _prepare(self, state: BlockThread, plan: Plan) -> bool:
        """Plant the breakpoint that a plan ends at; if that may not be, find another plan."""
        stop, memory = plan.stop, state.thread.process.memory
        if not stop.barred and not stop.planted:
            try:
                state.text.plant(stop, memory)
            except OSError:
                stop.barred = True
                self._barred += 1
        if not stop.barred:
            plan.version = state.text.version
            return True
        try:
            self._stand(state, self._pc(state.thread.tid))
            self._place(state)
        except OSError:
            state.plan = None
        return False

    # -- barring

    def _bar(self, text: Text, sites: Sequence[Site], state: BlockThread, forget: bool = False) -> None:
        """Let only the processor execute what stands at `sites` from now on (`forget`: as long
        as it stands there). `state` is the thread at hand; it must be let run by `_go`."""
        leaving = []
        for site in sites:
            self._barred += not site.barred
            site.barred = True
            if site.planted and (forget or site not in text.leaving):
                leaving.append(site)
                text.leaving[site] = forget
            elif forget:
                text.forget(site)
        if not leaving:
            return
        advance = self.isa.breakpoint.pc_advance
        ends = [site.address + advance for site in leaving]
        for tid, other in self._running.items():
            plan = other.plan
            if other is state or plan is None or other.text is not text or other.owed or tid in text.waiting:
                continue
            if any(end in plan.ends for end in ends):
                text.pending.add(tid)
                _request(ptrace.PTRACE_INTERRUPT, tid)
        text.suspend()
        if not text.pending:
            self._give_back(text)

    def _no_longer_running(self, state: BlockThread) -> None:
        """A thread that others may have waited for has stopped."""
        pending = state.text.pending
        if state.thread.tid in pending:
            pending.discard(state.thread.tid)
            if not pending:
                self._give_back(state.text)

    def _give_back(self, text: Text) -> None:
        """No thread is running towards the sites in `text.leaving`: lift them, and go on."""
        memory = next((p.memory for p, t in self._texts.items() if t is text), None)
        for site, forget in text.leaving.items():
            if memory is not None:
                with contextlib.suppress(OSError):
                    text.lift(site, memory)
            if forget:
                text.forget(site)
        text.leaving.clear()
        text.renew()
        waiting, text.waiting = text.waiting, []
        for tid in waiting:
            state = self._running.get(tid)
            if state is not None:
                self._go(state)


def _request(request: int, tid: int) -> None:
    if ptrace.raw(request, tid, None, None) == -1:
        failed(tid)


def _is_stable(mapping: Mapping | None) -> bool:
    return mapping is not None and mapping.stable_code
