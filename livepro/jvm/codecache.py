"""HotSpot's code cache: what lies at an address of it, and which method it was compiled from.

The cache is a few heaps. A heap's segment map leads from any address to the beginning
of the block that holds it (src/hotspot/share/memory/heap.cpp, CodeHeap::find_block_for);
a used block holds a code blob, whose name tells its kind (src/hotspot/share/code/codeBlob.hpp),
and a compiled method (`nmethod`) knows its method and tier.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from livepro.jvm.vmstructs import NotReadable, VmStructs
from livepro.model.label import CodeLabel, Origin

_FREE = 0xFF  # CodeHeap::free_sentinel
_MOST_HOPS = 1 << 16
_HEAPS = 16  # more than there are kinds of code (CodeBlobType)

_C2_TIER = 4  # CompLevel_full_optimization, src/hotspot/share/compiler/compilerDefinitions.hpp

# Names of blobs: src/hotspot/share/code/nmethod.cpp, src/hotspot/share/interpreter/templateInterpreter.cpp.
NATIVE_METHOD = "native nmethod"
_METHODS = ("nmethod", NATIVE_METHOD)
INTERPRETER = "Interpreter"


class Blob(NamedTuple):
    """A piece of generated code at [start, end), `name` its kind in HotSpot's words.

    `head` is what its header holds that tells it from another at the same place;
    `segment` is where its heap's segment map says that a block begins there.
    """

    start: int
    end: int
    name: str
    label: CodeLabel
    head: tuple[int, int, int]
    segment: int


def code_fields(structs: VmStructs) -> list[tuple[int, int]]:
    """(offset, size in bytes) of the fields that say where a blob's instructions begin and end: addresses
    (8 bytes) once, offsets from the blob later; nothing where there are neither."""
    fields = []
    for names in (
        ("CodeBlob._code_begin", "CodeBlob._code_offset"),
        ("CodeBlob._code_end", "CodeBlob._data_offset"),
    ):
        try:
            kind = structs.type_of(*names)
            size = 8 if kind in ("address", "u_char*") else 2 if kind in ("uint16_t", "u2") else 4
            fields.append((structs.offset(*names), size))
        except KeyError:
            return []
    return fields


class CodeCache:
    """The code cache of one process, read as it is asked for.

    `find` raises NotReadable for memory that is just being changed; KeyError on
    construction says that this HotSpot is of a kind that is not known.
    """

    def __init__(self, structs: VmStructs) -> None:
        self._values = structs.values
        self._heaps_at = structs.static("CodeCache._heaps")
        self._array_length = structs.offset("GrowableArrayBase._len")
        self._array_data = structs.offset("GrowableArray<int>._data")
        self._memory = structs.offset("CodeHeap._memory")
        self._segments = structs.offset("CodeHeap._segmap")
        self._shift = structs.offset("CodeHeap._log2_segment_size")
        self._low = structs.offset("VirtualSpace._low")
        self._high = structs.offset("VirtualSpace._high")
        self._used = structs.offset("HeapBlock::Header._used")
        self._header = structs.size("HeapBlock")
        self._name = structs.offset("CodeBlob._name")
        self._size = structs.offset("CodeBlob._size")
        self._method = structs.offset("nmethod._method", "CompiledMethod._method")
        self._id = structs.offset("nmethod._compile_id")
        self._level = structs.offset("nmethod._comp_level")
        # An int once, later an enumeration of one byte.
        self._level_size = 4 if structs.type_of("nmethod._comp_level") == "int" else 1
        self._head_size = max(self._size + 4, self._method + 8, self._id + 4)
        self._code = code_fields(structs)
        self._names = MethodNames(structs)
        self._codelets = Codelets(structs)

    def find(self, pc: int) -> Blob | None:
        """What lies at an address; None where there is no code of the VM's."""
        values = self._values
        heap = self._heap_of(pc)
        if not heap:
            return None
        low = values.unsigned(heap + self._memory + self._low)
        shift = values.signed(heap + self._shift)
        segments = values.unsigned(heap + self._segments + self._low)
        segment = segments + (pc - low >> shift)
        for _ in range(_MOST_HOPS):
            back = values.unsigned(segment, 1)
            if back == _FREE:
                return None
            if not back:
                break
            segment -= back
        block = low + (segment - segments << shift)
        start = block + self._header
        if not values.unsigned(block + self._used, 1):
            return None
        end = start + values.signed(start + self._size)
        if not start <= pc < end:
            return None
        name = values.text(values.unsigned(start + self._name))
        head = self._head(start)
        if name in _METHODS:
            tier = values.signed(start + self._level, self._level_size)
            label = self._method_label(name, tier, head[1])
        else:
            label = CodeLabel(Origin.INTERPRETER if name == INTERPRETER else Origin.STUB, 0, name)
        return Blob(start, end, name, label, head, segment)

    def code_range(self, blob: Blob) -> tuple[int, int]:
        """The [start, end) of a blob's instructions, without its header, constants and tables. Where this
        HotSpot does not tell, the whole blob's."""
        values = self._values
        bounds = []
        for at, size in self._code:
            value = values.unsigned(blob.start + at, size)
            bounds.append(value if size == 8 else blob.start + value)
        if len(bounds) == 2 and blob.start <= bounds[0] < bounds[1] <= blob.end:
            return bounds[0], bounds[1]
        return blob.start, blob.end

    def still(self, blob: Blob) -> bool:
        """Whether a blob found before is still there."""
        return (
            self._values.unsigned(blob.segment, 1) == 0
            and self._values.unsigned(blob.start - self._header + self._used, 1) != 0
            and self._head(blob.start) == blob.head
        )

    def codelet(self, pc: int) -> str:
        """What the interpreter calls its piece at `pc`."""
        return self._codelets.name(pc)

    def _heap_of(self, pc: int) -> int:
        """The address of the heap that holds `pc`, 0 if none does."""
        values = self._values
        heaps = values.unsigned(self._heaps_at)
        if not heaps:
            return 0
        count = values.signed(heaps + self._array_length)
        data = values.unsigned(heaps + self._array_data)
        for number in range(min(count, _HEAPS)):
            heap = values.unsigned(data + 8 * number)
            space = heap + self._memory
            if values.unsigned(space + self._low) <= pc < values.unsigned(space + self._high):
                return heap
        return 0

    def _head(self, start: int) -> tuple[int, int, int]:
        """The fields of a header that tell one blob from another: size, method and number of the
        compilation (the last two are something else in blobs that are no methods)."""
        data = self._values.exactly(start, self._head_size)
        size, method, number = self._size, self._method, self._id
        return (
            int.from_bytes(data[size : size + 4], "little"),
            int.from_bytes(data[method : method + 8], "little"),
            int.from_bytes(data[number : number + 4], "little"),
        )

    def _method_label(self, name: str, tier: int, method: int) -> CodeLabel:
        if name == NATIVE_METHOD:
            return CodeLabel(Origin.WRAPPER, 0, self._names.name(method))
        return CodeLabel(Origin.C2 if tier == _C2_TIER else Origin.C1, tier, self._names.name(method))


class MethodNames:
    """Names of methods, from a pointer to HotSpot's Method."""

    def __init__(self, structs: VmStructs) -> None:
        self._values = structs.values
        self._const = structs.offset("Method._constMethod")
        self._constants = structs.offset("ConstMethod._constants")
        self._name = structs.offset("ConstMethod._name_index")
        self._signature = structs.offset("ConstMethod._signature_index")
        self._holder = structs.offset("ConstantPool._pool_holder")
        self._pool = structs.size("ConstantPool")
        self._class = structs.offset("Klass._name")
        self._length = structs.offset("Symbol._length")
        self._body = structs.offset("Symbol._body")

    def name(self, method: int) -> str:
        """Class, method and descriptor, as jcmd's Compiler.codelist writes them."""
        values = self._values
        const = values.unsigned(method + self._const)
        pool = values.unsigned(const + self._constants)
        holder = self._symbol(values.unsigned(values.unsigned(pool + self._holder) + self._class))
        name, signature = (
            self._symbol(values.unsigned(pool + self._pool + 8 * values.unsigned(const + index, 2)))
            for index in (self._name, self._signature)
        )
        return f"{holder.replace('/', '.')}.{name}{signature}"

    def _symbol(self, symbol: int) -> str:
        size = self._values.unsigned(symbol + self._length, 2)
        return self._values.exactly(symbol + self._body, size).decode("utf-8", "replace") if size else ""


class Codelets:
    """The pieces of the template interpreter (src/hotspot/share/interpreter/interpreter.hpp)."""

    def __init__(self, structs: VmStructs) -> None:
        self._values = structs.values
        self._queue_at = structs.static("AbstractInterpreter._code")
        self._buffer = structs.offset("StubQueue._stub_buffer")
        self._begin = structs.offset("StubQueue._queue_begin")
        self._end = structs.offset("StubQueue._queue_end")
        self._size = structs.offset("InterpreterCodelet._size")
        self._description = structs.offset("InterpreterCodelet._description")
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._names: list[str] = []

    def name(self, pc: int) -> str:
        """What the interpreter calls the piece at `pc`: a bytecode's name, or an entry's."""
        if not self._starts:
            self._read()
        row = bisect_right(self._starts, pc) - 1
        return self._names[row] if row >= 0 and pc < self._ends[row] else INTERPRETER

    def _read(self) -> None:
        values = self._values
        queue = values.unsigned(self._queue_at)
        if not queue:
            return
        buffer = values.unsigned(queue + self._buffer)
        at, end = (values.signed(queue + where) for where in (self._begin, self._end))
        while at < end:
            size = values.signed(buffer + at + self._size)
            if size <= 0:
                raise NotReadable("the interpreter is not complete")
            self._starts.append(buffer + at)
            self._ends.append(buffer + at + size)
            self._names.append(values.text(values.unsigned(buffer + at + self._description)))
            at += size
