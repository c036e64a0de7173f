"""What differs between two reports: every number worked out by hand."""

from __future__ import annotations

import documents as d

from livepro.comparing.changes import KINDS, Change, changes, function_name, to_document

BEFORE = d.run(
    d.process("/bin/prog", [d.thread("main", 100), d.thread("w", 50, 20), d.thread("w", 40)],
              [d.function("f", 120), d.function("gone", 60), d.function("", 10, "/lib/libx.so")]),
    d.process("sh", [d.thread("sh", 7)], [d.function("f", 7, "/other/prog")]),
)  # fmt: skip
AFTER = d.run(
    d.process("/elsewhere/prog", [d.thread("main", 100), d.thread("w", 80, 25), d.thread("w", 30)],
              [d.function("f", 190), d.function("new", 10), d.function("", 10, "/lib64/libx.so")]),
)  # fmt: skip


def rows(kind: str) -> list[tuple[str, int, int, str]]:
    return [(c.name, c.before, c.after, c.status) for c in changes(BEFORE, AFTER)[kind]]


def test_every_kind_is_there() -> None:
    assert tuple(changes(BEFORE, AFTER)) == KINDS
    assert rows("total") == [("instructions", 197, 210, "grew")]


def test_processes_and_threads_are_found_again_by_name_and_place() -> None:
    assert rows("process") == [("prog", 190, 210, "grew"), ("sh", 7, 0, "vanished")]
    assert rows("thread") == [
        ("prog: w", 50, 80, "grew"),
        ("prog: w #2", 40, 30, "shrank"),
        ("sh: sh", 7, 0, "vanished"),
        ("prog: main", 100, 100, "same"),
    ]


def test_functions_are_found_again_by_module_file_and_name() -> None:
    assert rows("function") == [
        ("f (prog)", 127, 190, "grew"),
        ("gone (prog)", 60, 0, "vanished"),
        ("new (prog)", 0, 10, "appeared"),
        ("[libx.so without symbols] (libx.so)", 10, 10, "same"),
    ]


def test_types_and_simd() -> None:
    assert rows("type") == [("arithmetic", 197, 210, "grew"), ("sse", 20, 25, "grew")]
    assert rows("simd") == [("AVX 256", 20, 25, "grew")]


def test_compiled_code_is_named_by_its_maker() -> None:
    assert function_name(d.function("a.B.c()V", 1, "[anon]", origin="C2", tier=4)) == "a.B.c()V (C2 4)"
    native = d.function("write", 1, "/lib/libc.so.6", origin="native", tier=0)
    assert function_name(native) == "write (libc.so.6)"


def test_a_report_without_all_functions_has_the_hottest() -> None:
    old = d.run(d.process("p", [d.thread("p", 5)], [d.function("f", 5)]))
    del old["processes"][0]["functions"]
    assert changes(old, old)["function"] == [Change("function", "f (prog)", 5, 5)]


def test_growth_is_a_part() -> None:
    assert Change("total", "x", 200, 201).growth == 0.005
    assert Change("total", "x", 0, 201).growth is None


def test_the_document_has_everything() -> None:
    found = to_document(changes(BEFORE, AFTER), BEFORE, AFTER)
    assert found["before"]["instructions"] == 197
    assert found["changes"]["simd"] == [
        {"name": "AVX 256", "before": 20, "after": 25, "delta": 5, "growth": 0.25, "status": "grew"}
    ]
