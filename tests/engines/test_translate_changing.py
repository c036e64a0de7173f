"""Code that may change, translated by compiled code: where it is looked for, and what is done once it has."""

from __future__ import annotations

import platform
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

if platform.machine() != "x86_64":
    pytest.skip("code that may change is translated in Python there", allow_module_level=True)

from engines.compiled_shapes import shapes_of_none
from engines.observed import observe

from fixtures import Builder
from livepro.engines.translate.translator.changing import ChangingCode
from livepro.engines.translate.translator.compiling.tables import LENGTH, PC
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.translate.translator.x86_64.compiled.changing import ChangingText, CodeOfBlocks
from livepro.engines.translate.translator.x86_64.compiled.module import CompiledModule
from livepro.engines.translate.translator.x86_64.compiled.templates import pieces
from livepro.engines.translate.translator.x86_64.emitter import Emitter
from livepro.linux.proc import AddressSpace, Mapping

PAGE = 1 << 12
MADE = 1 << 30
"""Where the code is."""


def mapping(start: int, pages: int, rights: str, path: str = "") -> Mapping:
    """Some pages."""
    return Mapping(start, start + pages * PAGE, True, "w" in rights, "x" in rights, False, 0, len(path), path)


def code(mappings: list[Mapping], modules: list[Mapping] | None = None) -> ChangingCode:
    """What knows of the code of a process with these mappings, of which these are modules with caches."""
    memory = SimpleNamespace(read=lambda address, size: bytes(size))
    process: Any = SimpleNamespace(space=AddressSpace(mappings), memory=memory)
    caches = [SimpleNamespace(module=module) for module in (None, *(modules or ()))]
    nothing: Any = None
    memory_of_caches: Any = SimpleNamespace(caches=SimpleNamespace(all=caches))
    return ChangingCode(process, memory_of_caches, nothing, nothing, nothing)


class Cache:
    """As much of a cache as is wanted."""

    def __init__(self) -> None:
        self.extent, self.text, self.changing = (0, 0), None, None
        self.compiled: object | None = object()
        self.record = SimpleNamespace(begin=lambda start: None)

    def give_up(self) -> None:
        """Do without compiled code."""
        self.compiled = None


def begun(changing: ChangingCode, pc: int) -> tuple[bool, Any]:
    """Whether compiled code translates the code around an address, and the cache for it."""
    cache: Any = Cache()
    compiler: Any = SimpleNamespace(changing=lambda start, size: ((start, size), "kept"))
    return changing.begin(cache, compiler, pc), cache


def test_it_reaches_to_the_files_on_both_sides() -> None:
    below, above = mapping(MADE - 64 * PAGE, 2, "r", "/lib"), mapping(MADE + 64 * PAGE, 2, "rx", "/lib")
    heap, made = mapping(MADE - 8 * PAGE, 4, "rw"), mapping(MADE, 4, "rwx")
    done, cache = begun(code([below, heap, made, above]), MADE + 100)
    assert done
    assert cache.extent == (below.end, above.start)
    assert (*cache.changing, cache.text) == ((below.end, above.start - below.end), "kept", "kept")


@pytest.mark.parametrize("rights", ["rw", "rx"])
def test_what_does_not_change_or_is_no_code_is_not_begun_with(rights: str) -> None:
    done, cache = begun(code([mapping(MADE, 4, rights, "/lib" if "x" in rights else "")]), MADE)
    assert (done, cache.extent) == (False, (0, 0))


def test_only_what_can_be_executed_is_read() -> None:
    changing = code([mapping(MADE, 2, "rwx"), mapping(MADE + 2 * PAGE, 2, "rw")])
    assert len(changing.read(MADE + PAGE, 4 * PAGE)) == PAGE
    assert changing.read(MADE + 2 * PAGE, PAGE) == b""


@pytest.mark.parametrize(("at", "keeps"), [(MADE + 16 * PAGE, False), (MADE + 64 * PAGE, True)])
def test_a_module_among_it_ends_that(at: int, keeps: bool) -> None:
    module = mapping(at, 2, "rx", "/lib")
    changing, cache = code([mapping(MADE, 4, "rwx")], [module]), Cache()
    cache.extent = MADE, MADE + 64 * PAGE
    given: Any = cache
    assert changing.keeps(given) is keeps
    assert (cache.compiled is not None) is keeps


def test_what_blocks_were_made_from_is_kept_when_it_changes() -> None:
    shapes = shapes_of_none()
    text, kept = ChangingText(MADE, 16 * PAGE, shapes), CodeOfBlocks(shapes)
    ways = [b"\x90\x90\xc3", b"\x48\x31\xc0\xc3"]
    for way in ways * 3000:
        text.forget()
        text.fill(PAGE, lambda _, size, way=way: way.ljust(size, b"\xcc"))  # type: ignore[misc]
        place = kept.add(text, np.array([PAGE, PAGE]), np.array([len(way), 1]))
        assert kept.code[place[0] : place[1] + 1].tobytes() == way + way[:1]
        assert kept.steps(int(place[0]), 2) == (b"\x01\x01" if way is ways[0] else b"\x03\x01")


def test_what_is_gone_is_left_to_python_until_it_is_wanted_again() -> None:
    """Two blocks: the first has a branch to the second."""
    emitter, image = Emitter(1 << 20, {}, Countdown.NONE), np.zeros(1 << 20, np.uint8)
    text = ChangingText(MADE, 16 * PAGE, shapes_of_none())
    module = CompiledModule(
        *(text, 1 << 31, image, *pieces(emitter.lookup, emitter.landing(0))),
        **{"low": False, "records": False, "filter": None, "asks": False, "checks": True},
    )
    program = b"\x31\xc0\x75\x02\x90\x90\xc3".ljust(16 * PAGE, b"\xcc")

    def blocks(pc: int, room: tuple[int, int]) -> list[tuple[int, int]]:
        made = None
        for _ in range(4):
            module.begin(0)
            made = module.run(pc, 0, (*room, 1 << 18, 1 << 20), lands=False, likely=True)
            if not module.prepare(lambda at, size: program[at - MADE : at - MADE + size]):
                break
        return [] if made is None else made.rows[:, [PC, LENGTH]].tolist()

    room = 16, 1 << 19
    assert blocks(0, room) == [[0, 2], [4, 3], [0, 0], [4, 0]]  # each has a comparison
    module.forget(4, gone=True)
    assert blocks(4, module.ends) == []
    module.forget(0, gone=True)
    module.forget(0, gone=False)
    assert blocks(0, module.ends) == [[0, 2], [0, 0]]
    module.forget(4, gone=False)
    assert blocks(4, module.ends) == [[4, 3], [4, 0]]


@pytest.mark.parametrize(("words", "told"), [([], b"1 1 2 0\n"), (["same"], b"1 1 1 0\n")])
@pytest.mark.parametrize("compiled", [False, True])
def test_flags_that_other_code_reads_in_the_same_place_are_preserved(
    builder: Builder, tmp_path: Path, compiled: bool, words: list[str], told: bytes
) -> None:
    """Nothing is taken to be so of which flags such code reads."""
    program = builder.hosted("rewritten_flags", "-static")
    seen = observe([program, *words], tmp_path / "out", engine="translate", cache=False, compiled=compiled)
    assert (seen.stdout, seen.result["exit"]) == (told, 0)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_may_not_be_executed_any_more_is_not(builder: Builder, tmp_path: Path, compiled: bool) -> None:
    """Though an earlier fragment of it is as right as before."""
    program = builder.hosted("unexecutable", "-static")
    seen = observe([program], tmp_path / "out", engine="translate", cache=False, compiled=compiled)
    assert (seen.stdout, seen.result["exit"]) == (b"7 fault 7\n", 0)
