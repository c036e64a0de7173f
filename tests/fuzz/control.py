"""Statements that change where control goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iced_x86 import Code, Instruction, MemoryOperand, Register

from . import asm
from .asm import RAX, RBP, RCX, RSP
from .code import Branch, Ins, Item, Label, Node, Raw, Word, upper_size, words
from .operands import REACH, Context, Unsuitable

_CONDITIONS = words("JO JNO JB JAE JE JNE JBE JA JS JNS JP JNP JL JGE JLE JG")
_SHORT_REACH = 100  # a body of at most so many bytes can be jumped over by a short branch


class Labels:
    """Gives out labels."""

    def __init__(self) -> None:
        self._next = 0

    def new(self) -> int:
        """A label that nothing has yet."""
        self._next += 1
        return self._next


@dataclass(frozen=True)
class Scope:
    """What a structured statement is made of: `body` gives so many random
    statements for inside, `callees` are (entry label, cost, argument bytes
    that it pops) of the functions that may be called."""

    context: Context
    labels: Labels
    body: Callable[[Context, int], list[Node]]
    callees: list[tuple[int, int, int]]


def _jcc(scope: Scope, target: int, near: bool | None = None) -> Branch:
    rng = scope.context.rng
    name = rng.choice(_CONDITIONS)
    return Branch(
        getattr(Code, f"{name}_REL8_64"),
        getattr(Code, f"{name}_REL32_64"),
        target,
        want_short=rng.random() < 0.6 if near is None else not near,
        prefix=rng.choice((b"\x2e", b"\x3e", b"\xf2")) if rng.random() < 0.08 else b"",
    )


def _jmp(scope: Scope, target: int) -> Branch:
    return Branch(Code.JMP_REL8_64, Code.JMP_REL32_64, target, want_short=scope.context.rng.random() < 0.6)


def call_to(target: int) -> Branch:
    """A direct call."""
    return Branch(None, Code.CALL_REL32_64, target)


def _cost(*bodies: list[Node]) -> int:
    return sum(node.cost for body in bodies for node in body)


def _with(context: Context, register: int) -> Context:
    return context.but(reserved=context.reserved | {register})


# -- branches and loops


def if_else(scope: Scope) -> Node:
    """A conditional branch over a body, or to one of two; sometimes on rcx."""
    rng = scope.context.rng
    then = scope.body(scope.context, rng.randrange(1, 4))
    behind, other = scope.labels.new(), scope.labels.new()
    if rng.random() < 0.15 and upper_size(then) <= _SHORT_REACH:
        code = rng.choice((Code.JRCXZ_REL8_64, Code.JECXZ_REL8_64))
        return Node(((Branch(code, None, behind),), then, (Label(behind),)), cost=1 + _cost(then))
    if rng.random() < 0.5:
        return Node(((_jcc(scope, behind),), then, (Label(behind),)), cost=1 + _cost(then))
    orelse = scope.body(scope.context, rng.randrange(1, 3))
    return Node(
        (
            (_jcc(scope, other),),
            then,
            (_jmp(scope, behind), Label(other)),
            orelse,
            (Label(behind),),
        ),
        cost=2 + _cost(then, orelse),
    )


def loop(scope: Scope) -> Node:
    """A body that runs one to five times, counted in one of many ways."""
    rng = scope.context.rng
    kind = rng.choice(("dec", "sub", "lea", "while", "loop", "loop", "loope", "loopne", "jrcxz", "ecx"))
    on_rcx = kind in ("loop", "loope", "loopne", "jrcxz", "ecx")
    counter = RCX if on_rcx else scope.context.free()
    if counter in scope.context.reserved:
        raise Unsuitable
    times = rng.randrange(1, 6)
    body = scope.body(_with(scope.context, counter), rng.randrange(1, 4))
    top, out, check = scope.labels.new(), scope.labels.new(), scope.labels.new()
    register = asm.r64(counter)
    back = Branch(Code.JNE_REL8_64, Code.JNE_REL32_64, top, want_short=rng.random() < 0.7)
    first: tuple[Item, ...] = (asm.mov_imm(counter, times), Label(top))
    last: tuple[Item, ...]
    if kind == "dec":
        last = (asm.ins(Code.DEC_RM64, register), back)
    elif kind == "sub":
        last = (asm.ins_imm(Code.SUB_RM64_IMM8, register, 1), back)
    elif kind == "lea":
        last = (
            asm.lea(counter, asm.at(register, -1)),
            asm.ins(Code.TEST_RM64_R64, register, register),
            back,
        )
    elif kind == "while":
        first = (asm.mov_imm(counter, times), _jmp(scope, check), Label(top))
        again = Branch(Code.JNS_REL8_64, Code.JNS_REL32_64, top, want_short=rng.random() < 0.7)
        last = (Label(check), asm.ins(Code.DEC_RM64, register), again)
    elif kind == "jrcxz":
        last = (
            asm.lea(RCX, asm.at(register, -1)),
            Branch(Code.JRCXZ_REL8_64, None, out),
            _jmp(scope, top),
            Label(out),
        )
    else:
        code = {
            "loop": Code.LOOP_REL8_64_RCX,
            "loope": Code.LOOPE_REL8_64_RCX,
            "loopne": Code.LOOPNE_REL8_64_RCX,
            "ecx": rng.choice((Code.LOOP_REL8_64_ECX, Code.LOOPE_REL8_64_ECX, Code.LOOPNE_REL8_64_ECX)),
        }[kind]
        if upper_size(body) <= _SHORT_REACH:
            last = (Branch(code, None, top),)
        else:
            last = (
                Branch(code, None, check),
                Branch(Code.JMP_REL8_64, Code.JMP_REL32_64, out, want_short=True),
                Label(check),
                _jmp(scope, top),
                Label(out),
            )
    return Node((first, body, last), cost=2 + times * (_cost(body) + 4))


def recursion(scope: Scope) -> Node:
    """A function that calls itself a few times."""
    rng = scope.context.rng
    counter = scope.context.free()
    body = scope.body(_with(scope.context, counter).but(frame=0), rng.randrange(1, 3))
    entry, out, behind = (scope.labels.new() for _ in range(3))
    times = rng.randrange(1, 5)
    return Node(
        (
            (asm.mov_imm(counter, times), call_to(entry), _jmp(scope, behind), Label(entry)),
            body,
            (
                asm.ins(Code.DEC_RM32, asm.r32(counter)),
                Branch(Code.JE_REL8_64, Code.JE_REL32_64, out, want_short=True),
                call_to(entry),
                Label(out),
                asm.RET,
                Label(behind),
            ),
        ),
        cost=4 + times * (_cost(body) + 4),
    )


# -- indirect jumps


def jump_table(scope: Scope) -> Node:
    """A switch over two or four cases, by a table of addresses or of distances."""
    rng, context = scope.context.rng, scope.context
    cases = rng.choice((2, 4))
    labels = [scope.labels.new() for _ in range(cases)]
    behind, table = scope.labels.new(), scope.labels.new()
    index = context.free()
    base = _with(context, index).free()
    choose: list[Item] = [asm.movzx8(index, rng.randrange(16)), asm.and_imm(index, cases - 1)]
    notrack = b"\x3e" if rng.random() < 0.1 else b""
    kind = rng.choice(("addresses", "distances", "load") + (("absolute",) if context.low else ()))
    pool: tuple[Item, ...] = (Label(table), *(Word(label) for label in labels))
    if kind == "addresses":
        memory = asm.at(asm.r64(base), 0, asm.r64(index), 8)
        choose += [asm.lea_label(base, table), *_prefixed(notrack), asm.ins(Code.JMP_RM64, memory)]
    elif kind == "load":
        memory = asm.at(asm.r64(base), 0, asm.r64(index), 8)
        choose += [
            asm.mov_label(base, table),
            asm.ins(Code.MOV_R64_RM64, asm.r64(base), memory),
            asm.ins(Code.JMP_RM64, asm.r64(base)),
        ]
    elif kind == "absolute":
        where = MemoryOperand(Register.NONE, asm.r64(index), 8, 0, 8)
        choose.append(Ins(Instruction.create_mem(Code.JMP_RM64, where), label=table))
    else:
        pool = (Label(table), *(Word(label, table) for label in labels))
        memory = asm.at(asm.r64(base), 0, asm.r64(index), 4)
        choose += [
            asm.lea_label(base, table),
            asm.ins(Code.MOVSXD_R64_RM32, asm.r64(index), memory),
            asm.ins(Code.ADD_R64_RM64, asm.r64(index), asm.r64(base)),
            asm.ins(Code.JMP_RM64, asm.r64(index)),
        ]
    parts: list[tuple[Item, ...] | list[Node]] = [tuple(choose)]
    costs = []
    for label in labels:
        body = scope.body(context, rng.randrange(1, 3))
        costs.append(_cost(body))
        parts += [(Label(label),), body, (_jmp(scope, behind),)]
    parts.append((Label(behind),))
    return Node(tuple(parts), pool, cost=7 + max(costs))


def _prefixed(prefix: bytes) -> list[Item]:
    return [Raw(prefix)] if prefix else []


def goto(scope: Scope) -> Node:
    """An indirect jump over bytes that are no code."""
    rng = scope.context.rng
    target, pool_label = scope.labels.new(), scope.labels.new()
    items, pool = _transfer(scope, target, pool_label, Code.JMP_RM64)
    junk = (Raw(rng.randbytes(rng.randrange(1, 12))),) if rng.random() < 0.5 else ()
    return Node(((*items, *junk, Label(target)),), pool, cost=4)


def _transfer(scope: Scope, target: int, table: int, code: int) -> tuple[list[Item], tuple[Item, ...]]:
    """An indirect jump or call (`code`) to `target`, and the pool that it needs."""
    rng, context = scope.context.rng, scope.context
    register = context.free()
    wide = asm.r64(register)
    address = asm.mov_label(register, target) if rng.random() < 0.3 else asm.lea_label(register, target)
    kinds = ["register", "register", "pool", "base", "red", "data"]
    if context.anchor is not None:
        kinds.append("anchor")
    kind = rng.choice(kinds)
    if kind == "register":
        return [address, asm.ins(code, wide)], ()
    if kind == "pool":
        return [asm.rip_label(code, table)], (Label(table), Word(target))
    if kind == "base":
        return (
            [asm.lea_label(register, table), asm.ins(code, asm.at(wide))],
            (Label(table), Word(target)),
        )
    if kind == "data":
        offset = rng.randrange(-REACH, REACH)
        store = asm.rip_data(Code.MOV_RM64_R64, offset, wide, store=True)
        return [address, store, asm.rip_data(code, offset)], ()
    if kind == "anchor":
        assert context.anchor is not None
        where = asm.at(asm.r64(context.anchor), rng.randrange(-REACH, REACH))
    else:
        where = asm.at_rsp(-8 * rng.randrange(1, 17))
    return [address, asm.ins(Code.MOV_RM64_R64, where, wide), asm.ins(code, where)], ()


def return_jump(scope: Scope) -> Node:
    """Jump by pushing an address and returning to it."""
    target, register = scope.labels.new(), scope.context.free()
    junk = Raw(scope.context.rng.randbytes(3))
    return Node(
        (
            (
                asm.lea_label(register, target),
                asm.ins(Code.PUSH_R64, asm.r64(register)),
                asm.RET,
                junk,
                Label(target),
            ),
        ),
        cost=3,
    )


def get_pc(scope: Scope) -> Node:
    """A call to what follows it, whose return address is popped."""
    here, register = scope.labels.new(), scope.context.free()
    return Node(((call_to(here), Label(here), asm.ins(Code.POP_R64, asm.r64(register))),), cost=2)


def retpoline(scope: Scope) -> Node:
    """An indirect jump by a replaced return address, with a trap for speculation behind the call."""
    target, thunk, trap = (scope.labels.new() for _ in range(3))
    register = scope.context.free()
    items: tuple[Item, ...] = (
        asm.lea_label(register, target),
        call_to(thunk),
        Label(trap),
        Raw(b"\xf3\x90"),
        Branch(Code.JMP_REL8_64, Code.JMP_REL32_64, trap, want_short=True),
        Label(thunk),
        asm.ins(Code.MOV_RM64_R64, asm.at_rsp(0), asm.r64(register)),
        asm.RET,
        Label(target),
    )
    return Node((items,), cost=4)


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
        middle, pool = _transfer(scope, entry, scope.labels.new(), Code.CALL_RM64)
    elif kind == "top" and not pops:  # call [rsp]
        middle = [
            asm.lea_label(number, entry),
            asm.ins(Code.PUSH_R64, register),
            asm.ins(Code.CALL_RM64, asm.at_rsp(0)),
            asm.lea(RSP, asm.at_rsp(8)),
        ]
    elif kind in ("jump", "double", "top"):
        back = scope.labels.new()
        go: list[Item] = [_jmp(scope, entry)]
        if kind == "double":
            go = [asm.lea_label(number, entry), asm.ins(Code.PUSH_R64, register), asm.RET]
        middle = [asm.lea_label(number, back), asm.ins(Code.PUSH_R64, register), *go, Label(back)]
    else:
        thunk, behind = scope.labels.new(), scope.labels.new()
        middle = [call_to(thunk), _jmp(scope, behind), Label(thunk), _jmp(scope, entry), Label(behind)]
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
        body = scope.body(_with(context, keeper).but(frame=size), rng.randrange(1, 4))
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
        return Node((tuple(opening), body, tuple(closing)), cost=4 + _cost(body))
    if kind == "push":
        count = rng.randrange(1, 5)
        body = scope.body(context.but(frame=8 * count), rng.randrange(1, 4))
        pushes = tuple(asm.ins(Code.PUSH_R64, asm.r64(rng.randrange(16))) for _ in range(count))
        pops = tuple(asm.ins(Code.POP_R64, asm.r64(context.free())) for _ in range(count))
        return Node((pushes, body, pops), cost=2 * count + _cost(body))
    body = scope.body(context.but(frame=size), rng.randrange(1, 4))
    if kind == "sub":
        move = (Code.SUB_RM64_IMM8, Code.ADD_RM64_IMM8)
        down, up = (asm.ins_imm(code, Register.RSP, size) for code in move)
    else:
        down, up = asm.lea(RSP, asm.at_rsp(-size)), asm.lea(RSP, asm.at_rsp(size))
    return Node(((down,), body, (up,)), cost=2 + _cost(body))


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
            (_jcc(scope, behind),),
            second,
            (Label(behind), asm.PUSHF, Ins(clear_ac), asm.POPF),
        ),
        cost=7 + _cost(first, second),
    )


# -- code that is looked at in more than one way


def into_the_middle(scope: Scope) -> Node:
    """A branch into an instruction: over a lock prefix, or into an immediate."""
    rng, context = scope.context.rng, scope.context
    inside = scope.labels.new()
    if rng.random() < 0.5:
        offset = rng.randrange(-REACH, REACH) & -8
        add = asm.rip_data(Code.ADD_RM64_R64, offset, asm.r64(rng.randrange(16)), store=True)
        return Node(((_jcc(scope, inside), Raw(b"\xf0"), Label(inside), add),), cost=2)
    if RAX in context.reserved:
        raise Unsuitable
    hidden = rng.choice((b"\x83\xc0\x05\x90", b"\x48\xff\xc0\x90", b"\xeb\x02\x0f\x0b", b"\xf5\x90\x90\x90"))
    return Node(((_jcc(scope, inside), Raw(b"\xb8"), Label(inside), Raw(hidden)),), cost=4)


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
                _jmp(scope, ready),
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
