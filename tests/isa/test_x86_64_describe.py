"""Names, categories, groups and memory accesses of x86-64 instructions."""

from __future__ import annotations

import subprocess
import sys

import pytest
from x86_64_encodings import encodings

from livepro.isa.x86_64.describe import describe, disassemble
from livepro.isa.x86_64.vocabulary import vocabulary
from livepro.model import Flow, Instruction


def d(code: str) -> Instruction:
    return describe(bytes.fromhex(code))


# Names and categories as XED's tables (datafiles/xed-isa.txt and the like) have them.
@pytest.mark.parametrize(
    ("code", "mnemonic", "opcode", "category", "groups"),
    [
        ("01d8", "add", "ADD", "BINARY", "arithmetic"),
        ("f00118", "add", "ADD", "BINARY", "mem_read mem_write arithmetic"),  # lock add [rax], ebx
        ("480fafc3", "imul", "IMUL", "BINARY", "arithmetic"),
        ("31c0", "xor", "XOR", "LOGICAL", "arithmetic"),
        ("85c0", "test", "TEST", "LOGICAL", "arithmetic"),
        ("4889d8", "mov", "MOV", "DATAXFER", "arithmetic"),
        ("488b00", "mov", "MOV", "DATAXFER", "mem_read arithmetic"),
        ("488900", "mov", "MOV", "DATAXFER", "mem_write arithmetic"),
        ("0f20c0", "mov", "MOV_CR", "DATAXFER", "arithmetic"),
        ("0fb6c3", "movzx", "MOVZX", "DATAXFER", "arithmetic"),
        ("4863c3", "movsxd", "MOVSXD", "DATAXFER", "arithmetic"),
        ("488d4310", "lea", "LEA", "MISC", "system"),
        ("7405", "je", "JZ", "COND_BR", "control"),
        ("0f8700000000", "ja", "JNBE", "COND_BR", "control"),
        ("7d05", "jge", "JNL", "COND_BR", "control"),
        ("e3fe", "jrcxz", "JRCXZ", "COND_BR", "control"),
        ("e2fe", "loop", "LOOP", "COND_BR", "control"),
        ("eb05", "jmp", "JMP", "UNCOND_BR", "control"),
        ("ff20", "jmp", "JMP", "UNCOND_BR", "mem_read control"),
        ("e800000000", "call", "CALL_NEAR", "CALL", "mem_write control"),
        ("ff10", "call", "CALL_NEAR", "CALL", "mem_read mem_write control"),
        ("c3", "ret", "RET_NEAR", "RET", "mem_read control"),
        ("cb", "retf", "RET_FAR", "RET", "mem_read other"),
        ("c9", "leave", "LEAVE", "MISC", "mem_read control system"),
        ("50", "push", "PUSH", "PUSH", "mem_write stack"),
        ("9c", "pushfq", "PUSHFQ", "PUSH", "mem_write stack"),
        ("58", "pop", "POP", "POP", "mem_read stack"),
        ("c1e003", "shl", "SHL", "SHIFT", "shift"),
        ("c1f003", "sal", "SHL", "SHIFT", "shift"),
        ("c1c003", "rol", "ROL", "ROTATE", "system"),
        ("0f44c3", "cmove", "CMOVZ", "CMOV", "system"),
        ("0f95c0", "setne", "SETNZ", "SETCC", "other"),
        ("0fbcc3", "bsf", "BSF", "BITBYTE", "arithmetic"),
        ("f30fb8c3", "popcnt", "POPCNT", "SSE", "sse"),
        ("f30fbcc3", "tzcnt", "TZCNT", "BMI1", "other"),
        ("fc", "cld", "CLD", "FLAGOP", "arithmetic"),
        ("4898", "cdqe", "CDQE", "CONVERT", "other"),
        ("a4", "movsb", "MOVSB", "STRINGOP", "mem_read mem_write string"),
        ("f348a5", "movsq", "MOVSQ", "STRINGOP", "mem_read mem_write string"),
        ("f3aa", "stosb", "STOSB", "STRINGOP", "mem_write string"),
        ("a5", "movsd", "MOVSD", "STRINGOP", "mem_read mem_write string"),
        ("f20f10c1", "movsd", "MOVSD_XMM", "DATAXFER", "arithmetic"),
        ("f20fc2c100", "cmpsd", "CMPSD_XMM", "SSE", "sse"),
        ("0f58c1", "addps", "ADDPS", "SSE", "sse"),
        ("0ffcc1", "paddb", "PADDB", "MMX", "sse"),
        ("660fefc0", "pxor", "PXOR", "LOGICAL", "arithmetic"),
        ("0f57c0", "xorps", "XORPS", "LOGICAL_FP", "other"),
        ("f2480f2ac0", "cvtsi2sd", "CVTSI2SD", "CONVERT", "other"),
        ("c5f458c2", "vaddps", "VADDPS", "AVX", "other"),
        ("c5f5fec2", "vpaddd", "VPADDD", "AVX2", "other"),
        ("62f1744858c2", "vaddps", "VADDPS", "AVX512", "other"),
        ("c4e275b8c2", "vfmadd231ps", "VFMADD231PS", "VFMA", "other"),
        ("d8c1", "fadd", "FADD", "X87_ALU", "floating_point"),
        ("9b", "wait", "FWAIT", "X87_ALU", "floating_point"),
        ("d928", "fldcw", "FLDCW", "X87_ALU", "mem_read floating_point"),
        ("dac1", "fcmovb", "FCMOVB", "FCMOV", "floating_point"),
        ("90", "nop", "NOP", "NOP", "nop"),
        ("0f1f00", "nop", "NOP", "WIDENOP", "nop"),
        ("f390", "pause", "PAUSE", "MISC", "system"),
        ("f30f1efa", "endbr64", "ENDBR64", "CET", "other"),
        ("0f05", "syscall", "SYSCALL", "SYSCALL", "system"),
        ("cc", "int3", "INT3", "INTERRUPT", "system"),
        ("0f0b", "ud2", "UD2", "MISC", "system"),
        ("0fa2", "cpuid", "CPUID", "MISC", "system"),
        ("0f31", "rdtsc", "RDTSC", "SYSTEM", "system"),
        ("f00fb113", "cmpxchg", "CMPXCHG", "SEMAPHORE", "mem_read mem_write system"),
        ("0f1808", "prefetcht0", "PREFETCHT0", "PREFETCH", "system"),
        ("0fae00", "fxsave", "FXSAVE", "SSE", "mem_write sse"),
        ("0f01d0", "xgetbv", "XGETBV", "XSAVE", "other"),
    ],
)
def test_names_and_groups(code: str, mnemonic: str, opcode: str, category: str, groups: str) -> None:
    i = d(code)
    assert (i.mnemonic, i.opcode, i.category, " ".join(i.itypes)) == (mnemonic, opcode, category, groups)
    assert i.code == bytes.fromhex(code)
    assert i.reads_memory == ("mem_read" in i.itypes)
    assert i.writes_memory == ("mem_write" in i.itypes)


def test_flow_and_rep() -> None:
    flows = {"90": Flow.NEXT, "eb00": Flow.JUMP, "7400": Flow.BRANCH, "c3": Flow.RETURN, "0f05": Flow.SYSCALL}
    assert {code: d(code).flow for code in flows} == flows
    assert d("f3a4").rep
    assert d("f2ae").rep
    assert not d("a4").rep
    assert not d("f3c3").rep
    assert not d("f30f10c1").rep


def test_form_is_the_manuals_signature() -> None:
    assert d("62f1744858c2").form == "VADDPS zmm1 {k1}{z}, zmm2, zmm3/m512/m32bcst{er}"
    assert d("4889d8").form == "MOV r/m64, r64"


def test_register_moves() -> None:
    assert d("4889d8").register_move
    assert d("8ed8").register_move  # mov ds, eax
    assert not d("488b00").register_move
    assert not d("b801000000").register_move  # mov eax, 1
    assert not d("4801d8").register_move
    assert not d("0fb6c3").register_move


@pytest.mark.parametrize("code", ["06", "ff", "0f", "62f17c48", "f0", "66" * 15])
def test_invalid_bytes(code: str) -> None:
    i = d(code)
    assert (i.mnemonic, i.opcode, i.category, i.flow) == ("(bad)", "INVALID", "INVALID", Flow.INVALID)
    assert i.itypes == ("other",)
    assert i.simd is None
    assert i.length == len(code) // 2
    assert disassemble(bytes.fromhex(code), 0) == "(bad)"


def test_one_object_for_equal_bytes() -> None:
    assert d("4889d8") is d("4889d8")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("7405", "je 0x401007"),
        ("e8fbffffff", "call 0x401000"),
        ("488b0510000000", "mov rax, [0x401017]"),
        ("62f1744958c2", "vaddps zmm0{k1}, zmm1, zmm2"),
        ("f348a5", "rep movsq [rdi], [rsi]"),
        ("f00118", "lock add [rax], ebx"),
    ],
)
def test_disassembly(code: str, text: str) -> None:
    assert disassemble(bytes.fromhex(code), 0x401000) == text


# XED's category enumeration (xed-category-enum.h), as far as 64-bit code has instructions of it, and
# 3DNOW, CLZERO, MCOMMIT and RDPRU for AMD's.
CATEGORIES = """
    3DNOW ADOX_ADCX AES AMX_TILE AVX AVX2 AVX2GATHER AVX512 AVX512_4FMAPS AVX512_4VNNIW AVX512_BITALG
    AVX512_VBMI AVX512_VP2INTERSECT AVX_IFMA BINARY BITBYTE BLEND BMI1 BMI2 BROADCAST CALL CET CLDEMOTE
    CLFLUSHOPT CLWB CLZERO CMOV COMPRESS COND_BR CONFLICT CONVERT DATAXFER ENQCMD EXPAND FCMOV FLAGOP FMA4
    FP16 FRED GATHER GFNI HRESET IFMA INTERRUPT IO IOSTRINGOP KEYLOCKER KEYLOCKER_WIDE KMASK LEGACY LKGS
    LOGICAL LOGICAL_FP LZCNT MCOMMIT MISC MMX MOVDIR MSRLIST NOP PBNDKB PCLMULQDQ PCONFIG PKU POP PREFETCH
    PREFETCHWT1 PTWRITE PUSH RDPID RDPRU RDRAND RDSEED RDWRFSGS RET ROTATE SCATTER SEGOP SEMAPHORE SERIALIZE
    SETCC SGX SHA SHA512 SHIFT SMAP SSE STRINGOP STTNI SYSCALL SYSRET SYSTEM TBM TSX_LDTRK UINTR UNCOND_BR
    VAES VBMI2 VEX VFMA VIA_PADLOCK VPCLMULQDQ VTX WAITPKG WIDENOP WRMSRNS X87_ALU XOP XSAVE XSAVEOPT
"""


def test_categories_are_those_of_xed() -> None:
    assert vocabulary().categories == frozenset(CATEGORIES.split())


def test_vocabulary_is_what_instructions_have() -> None:
    described = [describe(code) for _, code in encodings()]
    assert {i.category for i in described} == vocabulary().categories
    assert {i.opcode for i in described} == vocabulary().opcodes


def test_importing_livepro_imports_no_decoder() -> None:
    script = "import sys, livepro; print(sorted({'iced_x86', 'capstone'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
