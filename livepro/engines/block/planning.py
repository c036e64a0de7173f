"""Where threads may run: blocks decoded, and plans of how a thread runs on from one."""

from __future__ import annotations

from livepro.engines.block.barring import Barrier
from livepro.engines.block.plan import LONGEST, Node, Plan, apart
from livepro.engines.block.text import Original, Site, Text
from livepro.engines.block.thread import BlockThread
from livepro.engines.step.decoding import Decoder
from livepro.engines.step.exclusive import SEQUENCE_BYTES
from livepro.engines.step.regional import RegionKeeper
from livepro.isa.base import CodeBlock, Isa, Quirk
from livepro.linux.proc import Mapping


class Planner:
    """Decodes blocks, and finds out how far a thread may run from each."""

    def __init__(self, isa: Isa, keeper: RegionKeeper, decoder: Decoder, barrier: Barrier) -> None:
        self._isa = isa
        self._keeper = keeper
        self._decoder = decoder
        self._barrier = barrier

    def node(self, state: BlockThread, pc: int) -> Node:
        """Decode the block that starts at `pc`."""
        process, text = state.thread.process, state.text
        code = self._keeper.read_block(process, Original(text, process.memory), pc)
        end = code.addresses[-1]
        stable = _is_stable(process.space.find(pc)) and _is_stable(process.space.find(end - 1))
        node = Node(code, stable, self._site(text, code) if stable else None)
        state.known[pc] = node
        if stable:
            sites = [*text.occupy(code.addresses), *self._keep_whole(state, code)]
            self._barrier.bar(text, sites, state)
        return node

    def row(self, state: BlockThread, node: Node) -> int:
        """The block's row in the table, from its first execution on."""
        if node.row < 0:
            node.row = self._decoder.row(state.thread.process, state.record, node.code)
        return node.row

    def plan(self, state: BlockThread, node: Node) -> Plan:
        """How a thread may run from `node`, whose terminator can carry a breakpoint."""
        plan = node.rest
        if plan is not None and not plan.stop.barred:
            return plan
        advance = self._isa.breakpoint.pc_advance
        nodes = [node]
        while len(nodes) < LONGEST and (target := nodes[-1].follower) is not None:
            follower = state.known.get(target) or self.node(state, target)
            if not follower.stable or follower.tail or not follower.runnable or not apart(follower, nodes):
                break
            assert follower.site is not None
            hit = follower.site.address + advance
            if any(hit == other.code.address for other in nodes):
                break  # a pc there would mean two things
            if self._keeper.touches(state, target):
                break
            nodes.append(follower)
        plan = node.rest = Plan(nodes, advance)
        node.plan = None if node.tail or self._keeper.touches(state, node.code.address) else plan
        return plan

    @staticmethod
    def text_at(state: BlockThread, address: int, size: int) -> bytes:
        """The program's own code, without breakpoints."""
        return state.text.read(state.thread.process.memory, address, size)

    def _keep_whole(self, state: BlockThread, code: CodeBlock) -> list[Site]:
        """Let no breakpoint stand in the exclusive sequences that begin in a block: the sites there."""
        branches: list[int] = []
        for address, quirk in zip(code.addresses, code.quirks, strict=False):
            if quirk is Quirk.EXCLUSIVE:
                following = self.text_at(state, address, SEQUENCE_BYTES)
                sequence = self._isa.exclusive_sequence(following, address)
                branches += [branch for branch, _ in sequence.branches] if sequence is not None else []
        return state.text.keep_free(branches)

    def _site(self, text: Text, code: CodeBlock) -> Site | None:
        """The place of a block's terminator, None if only the processor can execute that."""
        start = code.addresses[-2]
        site = text.sites.get(start)
        if site is None and code.flows[-1].ends_block:
            last = code.code[start - code.address :]
            carry = self._isa.terminator(last, start)
            if carry is not None:
                site = text.site(start, last, carry)
                self._barrier.barred += site.barred
        return site


def _is_stable(mapping: Mapping | None) -> bool:
    return mapping is not None and mapping.stable_code
