"""A relocatable ELF object for each block, as uiCA reads them: its `.text` is the block.

Layout: System V ABI, "Object Files". The block is the object's one function.
"""

from __future__ import annotations

import struct

from livepro.blocks.rows import BlockRow
from livepro.linux import elf

_ALIGNMENT = 16
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_STRTAB = 1, 2, 3
_SHF_ALLOC = 2


def one(row: BlockRow) -> bytes:
    """An object file with this block alone."""
    code = row.bytes
    name = row.name.encode(errors="surrogateescape")
    strings = b"\0" + name + b"\0"
    section_names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    function = elf.STB_GLOBAL << 4 | elf.STT_FUNC
    symbols = bytes(_SYMBOL.size) + _SYMBOL.pack(1, function, 0, 1, 0, len(code))
    parts = (code, symbols, strings, section_names)
    places = []
    content = bytearray(_HEADER.size)
    for part in parts:
        content += bytes(-len(content) % _ALIGNMENT)
        places.append(len(content))
        content += part
    content += bytes(-len(content) % _ALIGNMENT)
    flags = _SHF_ALLOC | elf.SHF_EXECINSTR

    def section(at: int, title: bytes, kind: int, *rest: int) -> bytes:
        flag, link, info, entry = rest
        return _SECTION.pack(
            section_names.index(title),
            kind,
            flag,
            0,
            places[at],
            len(parts[at]),
            link,
            info,
            _ALIGNMENT,
            entry,
        )

    table = (
        bytes(_SECTION.size)
        + section(0, b".text", _SHT_PROGBITS, flags, 0, 0, 0)
        + section(1, b".symtab", _SHT_SYMTAB, 0, 3, 1, _SYMBOL.size)
        + section(2, b".strtab", _SHT_STRTAB, 0, 0, 0, 0)
        + section(3, b".shstrtab", _SHT_STRTAB, 0, 0, 0, 0)
    )
    identity = elf.MAGIC + bytes((elf.ELFCLASS64, elf.ELFDATA2LSB, 1))
    header = _HEADER.pack(
        identity.ljust(16, b"\0"),
        *(elf.ET_REL, elf.MACHINE_CODES[row.isa], 1, 0, 0, len(content), 0),
        *(_HEADER.size, 0, 0, _SECTION.size, 5, 4),
    )
    return header + bytes(content[_HEADER.size :]) + table
