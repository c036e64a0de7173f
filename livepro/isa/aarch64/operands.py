"""Register operands of AArch64 instructions: capstone names them, in their order; which are read and which
written follows from the encoding and the name. (capstone's own lists are wrong for many: `cbz` reads the
flags there, `ret` reads nothing, SVE has none.)
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, NamedTuple

from livepro.isa.aarch64.decoder import decode_word
from livepro.isa.aarch64.encoding.memory import BOTH, NONE, READ, is_load_store, memory_access
from livepro.isa.aarch64.exclusive import stores_exclusive
from livepro.isa.operands import Operands, Register, RegisterKind
from livepro.model import Flow

_COMPARING: Final = re.compile(r"cm[pn]|tst|f?ccmpe?|ccmn|fcmpe?|cmpp|ctermeq|ctermne|ptest|rmif|setf(8|16)")
"""No register but the flags is written."""

_SETS_FLAGS: Final = re.compile(
    r"(add|sub|and|bic|adc|sbc|neg|ngc)s|subps|cfinv|axflag|xaflag|fjcvtzs|while(lt|le|gt|ge|lo|ls|hi|hs|rw|wr)|"
    r"(orr|orn|eor|nor|nand|not|mov)s|brk(a|b|n|pa|pb)s|ptrues|pfirst|pnext|rdffrs|n?match"
)
_SETS_FLAGS_IN_SVE: Final = re.compile(r"cmp(eq|ne|g[et]|h[is]|l[eost])")
_READS_FLAGS: Final = re.compile(
    r"(adc|sbc|ngc)s?|cs(el|inc|inv|neg|et|etm)|c(inc|inv|neg)|f?ccmpe?|ccmn|fcsel|cfinv|axflag|xaflag|rmif|"
    r"setf(8|16)"
)

_ACCUMULATES: Final = re.compile(
    r"movk|bf(i|c|xil|m)|(pac|aut)[id]z?[ab]|xpac[id]|"
    r"(f|bf|fn)?ml[as](l[bt2]?)?|[su]ml[as]l[bt2]?|sqdml[as]l(b|t|2|bt)?|sqrdml[as]h|f?n?(mad|msb)|"
    r"[su]aba(l[bt2]?)?|[su]adalp|[su]r?sra|s[lr]i|(su|us)qadd|bsl|bit|bif|tbx|"
    r"(s|u|us|su|bf|f)dot|(s|u|us|bf|f)mmla|f?cmla|sqrdcmlah|cdot|"
    r"aes[ed]|sha1([cmp]|su[01])|sha256(h2?|su[01])|sha512(h2?|su[01])|sm3(partw[12]|tt[12][ab])|sm4e|"
    r"[su]?q?r?(xtu?n|shru?n|addhn|subhn)2|bf?cvtn2|fcvtx?n2|bfcvtnt|"
    r"(sq|uq)?(inc|dec)[bhwdp]|eor(bt|tb)|fcvtnt|fcvtxnt|[su]?q?r?(xtu?n|shru?n|addhn|subhn)t"
)
"""What is written is read before: parts of it stay, or are added to."""

_LINK: Final = "X30"
_SIGNING_LINK: Final = re.compile(r"(pac|aut)i[ab](sp|z)|xpaclri|reta[ab]")
_SIGNING_17: Final = re.compile(r"(pac|aut)i[ab]1716")


class _Named(NamedTuple):
    """The registers that stand in an instruction: those outside of addresses, in order, which of them are one
    lane of a vector, those of addresses, whether the first of those is written back."""

    explicit: tuple[Register, ...]
    lanes: tuple[bool, ...]
    addressing: tuple[Register, ...]
    written_back: bool


@cache
def _capstone() -> Any:
    import capstone

    made = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    made.detail = True
    return made


@cache
def register(name: str) -> Register:
    """A register by capstone's name of it."""
    upper = name.upper()
    aliases = {"LR": "X30", "FP": "X29", "WSP": "SP", "IP0": "X16", "IP1": "X17"}
    whole = aliases.get(upper, upper)
    letter, number = whole[:1], whole[1:]
    if whole == "SP" or (letter in "WX" and number.isdigit()):
        return Register(upper, whole if letter == "S" else f"X{number}", RegisterKind.GENERAL)
    if letter in "BHSDQV" and number.isdigit():
        return Register(upper, f"Z{number}", RegisterKind.VECTOR)
    if letter == "Z" and number.isdigit():
        return Register(upper, whole, RegisterKind.WIDE)
    if letter == "P" and number.isdigit():
        return Register(upper, whole, RegisterKind.MASK)
    return Register(upper, whole, RegisterKind.OTHER)


_FLAGS: Final = register("nzcv")


def _named(decoded: Any) -> _Named:
    from capstone import CS_OP_MEM, CS_OP_REG

    explicit: list[Register] = []
    addressing: list[Register] = []
    name, lanes = decoded.reg_name, []
    for operand in decoded.operands:
        if operand.type == CS_OP_REG:
            lanes.append(operand.vector_index >= 0)
            explicit.append(register(name(operand.reg)))
        elif operand.type == CS_OP_MEM:
            numbers = (operand.mem.base, operand.mem.index)
            addressing += [register(name(number)) for number in numbers if number]
    return _Named(tuple(explicit), tuple(lanes), tuple(addressing), bool(decoded.writeback))


def operands(code: bytes) -> Operands:
    """See `livepro.isa.base.Isa`. The zero register is none; NZCV counts as one operand."""
    decoded = next(_capstone().disasm(code, 0), None)
    if decoded is None:
        return Operands((), (), 0)
    word, mnemonic = int.from_bytes(code[:4], "little"), decoded.mnemonic
    named = _named(decoded)
    flow = decode_word(word)[0]
    if flow not in (Flow.NEXT, Flow.SYSCALL):
        reads, writes = _of_branch(named, mnemonic, flow)
    elif memory_access(word, prefetch=mnemonic.startswith("prf")) != NONE or mnemonic.startswith("prf"):
        reads, writes = _of_memory(named, word, mnemonic)
    else:
        reads, writes = _of_processing(named, mnemonic, decoded.op_str)
    reads, writes = (
        tuple(dict.fromkeys(r for r in each if r.whole not in ("XZR", "WZR"))) for each in (reads, writes)
    )
    explicit = sum(one.whole not in ("XZR", "WZR") for one in named.explicit)
    known = {one.whole for one in (*named.explicit, *named.addressing)}
    implicit = {one.whole for one in (*reads, *writes)} - known
    return Operands(reads, writes, explicit + len(implicit))


_Sets = tuple[tuple[Register, ...], tuple[Register, ...]]


def _of_branch(named: _Named, mnemonic: str, flow: Flow) -> _Sets:
    link = register(_LINK)
    reads = named.explicit
    if flow is Flow.RETURN and not named.explicit:
        reads = (link, register("sp")) if _SIGNING_LINK.fullmatch(mnemonic) else (link,)
    if mnemonic.startswith(("b.", "bc.")):
        reads = (_FLAGS,)
    return reads, (link,) if flow in (Flow.CALL, Flow.INDIRECT_CALL) else ()


def _of_memory(named: _Named, word: int, mnemonic: str) -> _Sets:
    explicit = named.explicit
    way = memory_access(word, prefetch=mnemonic.startswith("prf"))
    predicates = tuple(one for one in explicit[1:] if one.kind is RegisterKind.MASK)
    values = tuple(one for one in explicit if one not in predicates)
    reads, base = (*named.addressing, *predicates), named.addressing[:1] if named.written_back else ()
    post = explicit[-1:] if named.written_back and _has_post_register(word) else ()
    values = values[: len(values) - len(post)]
    reads += post
    if is_load_store(word) and stores_exclusive(word):
        return (*reads, *values[1:]), (*values[:1], *base)
    if way == BOTH and mnemonic.startswith("cas"):
        return (*reads, *values), values[: len(values) // 2]
    if way == BOTH:
        return (*reads, *values[:1]), values[1:]
    if way == READ:
        merged = values if any(named.lanes) or mnemonic == "ldg" else ()
        return (*reads, *merged), (*values, *base)
    return (*reads, *values), base


def _has_post_register(word: int) -> bool:
    """Whether a structure is post-indexed by a register."""
    return word & 0xBE800000 == 0x0C800000 and word >> 16 & 31 != 31


def _of_processing(named: _Named, mnemonic: str, text: str) -> _Sets:
    explicit = named.explicit
    reads: tuple[Register, ...] = ()
    writes: tuple[Register, ...] = ()
    if mnemonic in ("msr", "dc", "ic", "at", "tlbi", "sys", "cfp", "dvp", "cpp"):
        reads = explicit
        writes = (_FLAGS,) if mnemonic == "msr" and "nzcv" in text else ()
    elif _COMPARING.fullmatch(mnemonic):
        reads, writes = explicit, (_FLAGS,)
    elif explicit:
        reads, writes = explicit[1:], explicit[:1]
        alone = mnemonic in ("orr", "bic") and len(explicit) == 1  # of vectors, with an immediate
        merges = "/m" in text and explicit[0].kind is not RegisterKind.OTHER
        if _ACCUMULATES.fullmatch(mnemonic) or named.lanes[0] or alone or merges:
            reads += explicit[:1]
    if _SETS_FLAGS.fullmatch(mnemonic):
        writes += (_FLAGS,)
    if _SETS_FLAGS_IN_SVE.fullmatch(mnemonic) and explicit and explicit[0].kind is RegisterKind.MASK:
        writes += (_FLAGS,)
    if _READS_FLAGS.fullmatch(mnemonic) or (mnemonic == "mrs" and "nzcv" in text):
        reads += (_FLAGS,)
    if _SIGNING_LINK.fullmatch(mnemonic):
        link = register(_LINK)
        reads, writes = (link, *([register("sp")] if mnemonic.endswith("sp") else [])), (link,)
    elif _SIGNING_17.fullmatch(mnemonic):
        reads, writes = (register("x17"), register("x16")), (register("x17"),)
    return reads, writes
