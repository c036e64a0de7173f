"""Calls and returns, the stack, and code that is entered or changed in the middle."""

from __future__ import annotations

from collections.abc import Callable

from iced_x86 import Code, Instruction, Register

from . import asm
from .asm import RAX, RBP, RSP
from .code import Ins, Item, Label, Node, Raw
from .control import (
    Scope,
    call_to,
    cost_of,
    get_pc,
    goto,
    if_else,
    jcc,
    jmp,
    jump_table,
    keeping,
    loop,
    recursion,
    retpoline,
    return_jump,
    transfer,
)
from .operands import REACH, Context, Unsuitable

# -- calls


def call(scope: Scope) -> Node:
    """A call of one of the functions, in one of many ways; counters of loops are saved around it."""
    rng, context = scope.context.rng, scope.context
    if not scope.callees:
        raise Unsuitable
    entry, cost, pops = rng.choice(scope.callees)
    saved = [register for register in sorted(context.reserved) if register not in (RSP, context.anchor)]
    before: list[Item] = [asm.ins(Code.PUSH_R64, asm.r64(register)) for register in saved]
    after: list[Item] = [asm.ins(Code.POP_R64, asm.r64(register)) for register in reversed(saved)]
    if pops:
        before.append(asm.lea(RSP, asm.at_rsp(-pops)))
    kind = rng.choice(("direct", "direct", "indirect", "indirect", "top", "jump", "double", "thunk"))
    register = asm.r64(number := context.free())
    pool: tuple[Item, ...] = ()
    middle: list[Item]
    if kind == "direct":
        middle = [call_to(entry)]
    elif kind == "indirect":
        middle, pool = transfer(scope, entry, scope.labels.new(), Code.CALL_RM64)
    elif kind == "top" and not pops:  # call [rsp]
        middle = [
            asm.lea_label(number, entry),
            asm.ins(Code.PUSH_R64, register),
            asm.ins(Code.CALL_RM64, asm.at_rsp(0)),
            asm.lea(RSP, asm.at_rsp(8)),
        ]
    elif kind in ("jump", "double", "top"):
        back = scope.labels.new()
        go: list[Item] = [jmp(scope, entry)]
        if kind == "double":
            go = [asm.lea_label(number, entry), asm.ins(Code.PUSH_R64, register), asm.RET]
        middle = [asm.lea_label(number, back), asm.ins(Code.PUSH_R64, register), *go, Label(back)]
    else:
        thunk, behind = scope.labels.new(), scope.labels.new()
        middle = [call_to(thunk), jmp(scope, behind), Label(thunk), jmp(scope, entry), Label(behind)]
    items = (*before, *middle, *after)
    return Node((items,), pool, cost=len(items) + cost)


def returns(context: Context, pops: int) -> tuple[Item, ...]:
    """The end of a function that removes `pops` bytes of arguments."""
    rng = context.rng
    if pops:
        return (Raw(b"\xc2" + pops.to_bytes(2, "little")),)
    register = asm.r64(context.free())
    return rng.choice(
        (
            (asm.RET,),
            (asm.RET,),
            (Raw(b"\xf3\xc3"),),
            (Raw(b"\xf2\xc3"),),
            (Raw(b"\xc2\x00\x00"),),
            (asm.ins(Code.POP_R64, register), asm.ins(Code.JMP_RM64, register)),
            (asm.lea(RSP, asm.at_rsp(8)), asm.ins(Code.JMP_RM64, asm.at_rsp(-8))),
        )
    )


# -- the stack


def frame(scope: Scope) -> Node:
    """A stack frame around a body that uses it."""
    rng, context = scope.context.rng, scope.context
    kind = rng.choice(("sub", "lea", "push", "enter", "align"))
    size = 8 * rng.randrange(1, 12)
    if kind in ("enter", "align"):
        keeper = RBP if kind == "enter" else context.free()
        if keeper in context.reserved:
            raise Unsuitable
        body = scope.body(keeping(context, keeper).but(frame=size), rng.randrange(1, 4))
        if kind == "enter":
            opening: list[Item] = [Raw(b"\xc8" + size.to_bytes(2, "little") + b"\x00")]
            closing: list[Item] = [Raw(b"\xc9")]
        else:
            opening = [
                asm.mov(keeper, RSP),
                asm.lea(RSP, asm.at_rsp(-size)),
                asm.ins_imm(Code.AND_RM64_IMM8, Register.RSP, -32),
            ]
            closing = [asm.mov(RSP, keeper)]
        return Node((tuple(opening), body, tuple(closing)), cost=4 + cost_of(body))
    if kind == "push":
        count = rng.randrange(1, 5)
        body = scope.body(context.but(frame=8 * count), rng.randrange(1, 4))
        pushes = tuple(asm.ins(Code.PUSH_R64, asm.r64(rng.randrange(16))) for _ in range(count))
        pops = tuple(asm.ins(Code.POP_R64, asm.r64(context.free())) for _ in range(count))
        return Node((pushes, body, pops), cost=2 * count + cost_of(body))
    body = scope.body(context.but(frame=size), rng.randrange(1, 4))
    if kind == "sub":
        move = (Code.SUB_RM64_IMM8, Code.ADD_RM64_IMM8)
        down, up = (asm.ins_imm(code, Register.RSP, size) for code in move)
    else:
        down, up = asm.lea(RSP, asm.at_rsp(-size)), asm.lea(RSP, asm.at_rsp(size))
    return Node(((down,), body, (up,)), cost=2 + cost_of(body))


def alignment_checked(scope: Scope) -> Node:
    """Code that runs with EFLAGS.AC set: no access of anybody's may be misaligned."""
    context = scope.context.but(aligned=True)
    first, second = scope.body(context, 2), scope.body(context, 2)
    behind = scope.labels.new()
    set_ac = Instruction.create_mem_i32(Code.OR_RM32_IMM32, asm.at_rsp(0), 1 << 18)
    clear_ac = Instruction.create_mem_i32(Code.AND_RM32_IMM32, asm.at_rsp(0), -1 - (1 << 18))
    return Node(
        (
            (asm.PUSHF, Ins(set_ac), asm.POPF),
            first,
            (jcc(scope, behind),),
            second,
            (Label(behind), asm.PUSHF, Ins(clear_ac), asm.POPF),
        ),
        cost=7 + cost_of(first, second),
    )


# -- code that is looked at in more than one way


def into_the_middle(scope: Scope) -> Node:
    """A branch into an instruction: over a lock prefix, or into an immediate."""
    rng, context = scope.context.rng, scope.context
    inside = scope.labels.new()
    if rng.random() < 0.5:
        offset = rng.randrange(-REACH, REACH) & -8
        add = asm.rip_data(Code.ADD_RM64_R64, offset, asm.r64(rng.randrange(16)), store=True)
        return Node(((jcc(scope, inside), Raw(b"\xf0"), Label(inside), add),), cost=2)
    if RAX in context.reserved:
        raise Unsuitable
    hidden = rng.choice((b"\x83\xc0\x05\x90", b"\x48\xff\xc0\x90", b"\xeb\x02\x0f\x0b", b"\xf5\x90\x90\x90"))
    return Node(((jcc(scope, inside), Raw(b"\xb8"), Label(inside), Raw(hidden)),), cost=4)


def rewrite(scope: Scope) -> Node:
    """Change an immediate of an instruction to come (only where code is writable)."""
    context = scope.context
    if not context.writable:
        raise Unsuitable
    behind, ready, register = scope.labels.new(), scope.labels.new(), context.free()
    value = asm.r32(context.rng.randrange(16))
    return Node(
        (
            (
                asm.rip_label(Code.MOV_RM32_R32, behind, value, after=-4),
                jmp(scope, ready),
                Label(ready),
                asm.mov_imm(register, 0),
                Label(behind),
            ),
        ),
        cost=3,
    )


SIMPLE: tuple[tuple[Callable[[Scope], Node], int], ...] = (
    (goto, 3),
    (return_jump, 1),
    (get_pc, 1),
    (retpoline, 1),
    (call, 6),
    (into_the_middle, 2),
    (rewrite, 2),
)
"""Statements without bodies, and how often each is to be chosen."""

ALL = (
    *SIMPLE,
    (if_else, 12),
    (loop, 8),
    (recursion, 1),
    (jump_table, 3),
    (frame, 4),
    (alignment_checked, 1),
)
"""All of them."""
