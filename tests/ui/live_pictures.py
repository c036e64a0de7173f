"""Pictures of runs made up by hand, for the screens of the live view."""

from __future__ import annotations

from dataclasses import replace

from livepro.model.live import BlockRow, FunctionRow, Line, Measure, Moment, Picture, Query, ThreadRow

LONG_NAME = "std::vector<std::pair<int, std::string>, std::allocator<int>>::_M_realloc_insert"


def share(total: int, rate: float, part: float) -> Measure:
    return Measure(round(total * part), rate * part)


def picture(threads: int = 3, functions: int = 30, total: int = 123_456_789_012, **facts: object) -> Picture:
    """A busy run of two processes."""
    rate = 812_345_678.0
    whole = Measure(total, rate)
    rows = tuple(
        ThreadRow(
            number=n,
            pid=4000 + n % 2,
            tid=4000 + n,
            name=f"worker-{n}" if n else "a-very-long-nam",
            program="server",
            alive=n != 2,
            blocks=1000 * n + 1,
            instructions=share(total, rate, 0.5 / (n + 1)),
            simd=share(total, rate, 0.1 / (n + 1)),
        )
        for n in range(threads)
    )
    names = ["main", LONG_NAME, "", "interp", "memcpy"]
    hot = tuple(
        FunctionRow(
            n, names[n % 5], "/usr/lib/libthing.so.6" if n % 5 else "", n + 1, part, share(total, rate, 0.01)
        )
        for n, part in ((n, share(total, rate, 0.6 / (n + 1))) for n in range(functions))
    )
    blocks = tuple(
        BlockRow(n, names[n % 5], "/usr/lib/libthing.so.6", 0x4000 + 16 * n, 7, Measure(10**9, 1e6), whole)
        for n in range(functions)
    )
    code = ((b"\x48\x89\xe5", "mov rbp, rsp"), (b"\xf3\xa4", "rep movsb [rdi], [rsi]"), (b"\xc3", "ret"))
    listing = tuple(
        Line(0x4000 + n, bytes_, text, n == 0, Measure(10**9 - n, 1e6))
        for n, (bytes_, text) in enumerate(code)
    )
    given = Picture(
        seconds=75.3,
        command=("/opt/server/bin/server", "--config", "/etc/server/server.conf", "--verbose"),
        engine="translate",
        ended=False,
        counting=True,
        exit=None,
        query=Query(),
        processes=2,
        threads_alive=threads,
        distinct_blocks=54_321,
        whole=whole,
        whole_simd=share(total, rate, 0.123),
        selected=whole,
        selected_simd=share(total, rate, 0.123),
        unnamed=0,
        itypes=(
            ("mem_read", share(total, rate, 0.25)),
            ("mem_write", share(total, rate, 0.125)),
            ("arithmetic", share(total, rate, 0.5)),
            ("floating_point", Measure()),
            ("other", share(total, rate, 0.0001)),
        ),
        simd=(
            (("AVX512BW", "256"), share(total, rate, 0.1)),
            (("SSE2f", "scalar"), share(total, rate, 0.023)),
        ),
        simd_types=(("DATA_TRANSFER", share(total, rate, 0.1)), ("LOGICAL", share(total, rate, 0.023))),
        threads=rows,
        threads_total=threads,
        functions=hot,
        functions_total=functions + 500 if functions else 0,
        blocks=blocks,
        blocks_total=functions,
        listing=listing,
        moments=tuple(
            Moment(0.25, 10_000_000 * (n % 9), 1_000_000 * (n % 9), n // 40 if n % 9 else None)
            for n in range(200)
        ),
        warnings=(),
    )
    return replace(given, **facts)  # type: ignore[arg-type]
