"""Statements that change where control goes: branches, loops, indirect jumps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iced_x86 import Code, Instruction, MemoryOperand, Register

from . import asm
from .asm import RCX
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


def jcc(scope: Scope, target: int, near: bool | None = None) -> Branch:
    """A conditional branch on anything; short, near, or as it comes out."""
    rng = scope.context.rng
    name = rng.choice(_CONDITIONS)
    return Branch(
        getattr(Code, f"{name}_REL8_64"),
        getattr(Code, f"{name}_REL32_64"),
        target,
        want_short=rng.random() < 0.6 if near is None else not near,
        prefix=rng.choice((b"\x2e", b"\x3e", b"\xf2")) if rng.random() < 0.08 else b"",
    )


def jmp(scope: Scope, target: int) -> Branch:
    """A direct jump, short or near."""
    return Branch(Code.JMP_REL8_64, Code.JMP_REL32_64, target, want_short=scope.context.rng.random() < 0.6)


def call_to(target: int) -> Branch:
    """A direct call."""
    return Branch(None, Code.CALL_REL32_64, target)


def cost_of(*bodies: list[Node]) -> int:
    """The bound of the instructions executed by all of these."""
    return sum(node.cost for body in bodies for node in body)


def keeping(context: Context, register: int) -> Context:
    """The same context with one more register reserved."""
    return context.but(reserved=context.reserved | {register})


# -- branches and loops


def if_else(scope: Scope) -> Node:
    """A conditional branch over a body, or to one of two; sometimes on rcx."""
    rng = scope.context.rng
    then = scope.body(scope.context, rng.randrange(1, 4))
    behind, other = scope.labels.new(), scope.labels.new()
    if rng.random() < 0.15 and upper_size(then) <= _SHORT_REACH:
        code = rng.choice((Code.JRCXZ_REL8_64, Code.JECXZ_REL8_64))
        return Node(((Branch(code, None, behind),), then, (Label(behind),)), cost=1 + cost_of(then))
    if rng.random() < 0.5:
        return Node(((jcc(scope, behind),), then, (Label(behind),)), cost=1 + cost_of(then))
    orelse = scope.body(scope.context, rng.randrange(1, 3))
    return Node(
        (
            (jcc(scope, other),),
            then,
            (jmp(scope, behind), Label(other)),
            orelse,
            (Label(behind),),
        ),
        cost=2 + cost_of(then, orelse),
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
    body = scope.body(keeping(scope.context, counter), rng.randrange(1, 4))
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
        first = (asm.mov_imm(counter, times), jmp(scope, check), Label(top))
        again = Branch(Code.JNS_REL8_64, Code.JNS_REL32_64, top, want_short=rng.random() < 0.7)
        last = (Label(check), asm.ins(Code.DEC_RM64, register), again)
    elif kind == "jrcxz":
        last = (
            asm.lea(RCX, asm.at(register, -1)),
            Branch(Code.JRCXZ_REL8_64, None, out),
            jmp(scope, top),
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
                jmp(scope, top),
                Label(out),
            )
    return Node((first, body, last), cost=2 + times * (cost_of(body) + 4))


def recursion(scope: Scope) -> Node:
    """A function that calls itself a few times."""
    rng = scope.context.rng
    counter = scope.context.free()
    body = scope.body(keeping(scope.context, counter).but(frame=0), rng.randrange(1, 3))
    entry, out, behind = (scope.labels.new() for _ in range(3))
    times = rng.randrange(1, 5)
    return Node(
        (
            (asm.mov_imm(counter, times), call_to(entry), jmp(scope, behind), Label(entry)),
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
        cost=4 + times * (cost_of(body) + 4),
    )


# -- indirect jumps


def jump_table(scope: Scope) -> Node:
    """A switch over two or four cases, by a table of addresses or of distances."""
    rng, context = scope.context.rng, scope.context
    cases = rng.choice((2, 4))
    labels = [scope.labels.new() for _ in range(cases)]
    behind, table = scope.labels.new(), scope.labels.new()
    index = context.free()
    base = keeping(context, index).free()
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
        costs.append(cost_of(body))
        parts += [(Label(label),), body, (jmp(scope, behind),)]
    parts.append((Label(behind),))
    return Node(tuple(parts), pool, cost=7 + max(costs))


def _prefixed(prefix: bytes) -> list[Item]:
    return [Raw(prefix)] if prefix else []


def goto(scope: Scope) -> Node:
    """An indirect jump over bytes that are no code."""
    rng = scope.context.rng
    target, pool_label = scope.labels.new(), scope.labels.new()
    items, pool = transfer(scope, target, pool_label, Code.JMP_RM64)
    junk = (Raw(rng.randbytes(rng.randrange(1, 12))),) if rng.random() < 0.5 else ()
    return Node(((*items, *junk, Label(target)),), pool, cost=4)


def transfer(scope: Scope, target: int, table: int, code: int) -> tuple[list[Item], tuple[Item, ...]]:
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
