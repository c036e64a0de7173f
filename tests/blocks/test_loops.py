"""Which blocks are in innermost loops."""

from __future__ import annotations

from livepro.blocks.loops import innermost
from livepro.blocks.split import StaticBlock
from livepro.blocks.static import loop_kind
from livepro.model import Flow


def graph(*blocks: tuple[Flow, int | None]) -> list[StaticBlock]:
    """Blocks of one byte, one behind the other."""
    return [StaticBlock(i, i + 1, 1, flow, target) for i, (flow, target) in enumerate(blocks)]


def test_only_the_inner_of_two_nested_loops() -> None:
    blocks = graph(
        (Flow.NEXT, None),
        (Flow.BRANCH, 5),  # head of the outer loop
        (Flow.BRANCH, 4),  # head of the inner
        (Flow.JUMP, 2),
        (Flow.JUMP, 1),
        (Flow.RETURN, None),
    )
    assert innermost(blocks) == {2, 3}
    assert loop_kind(blocks[2], innermost(blocks)) == "inner"
    assert loop_kind(blocks[4], innermost(blocks)) == ""


def test_a_block_that_is_its_own_successor() -> None:
    blocks = graph((Flow.NEXT, None), (Flow.BRANCH, 1), (Flow.RETURN, None))
    assert innermost(blocks) == {1}
    assert loop_kind(blocks[1], innermost(blocks)) == "self"


def test_two_entries_and_calls_within() -> None:
    # Control comes into the loop 1-2-3 at 1 and at 3 (irreducible); 2 calls, and goes on.
    blocks = graph(
        (Flow.BRANCH, 3), (Flow.NEXT, None), (Flow.CALL, 100), (Flow.BRANCH, 1), (Flow.RETURN, None)
    )
    assert innermost(blocks) == {1, 2, 3}


def test_no_loop() -> None:
    assert innermost(graph((Flow.BRANCH, 2), (Flow.JUMP, 2), (Flow.TRAP, None))) == frozenset()
    assert innermost([]) == frozenset()
