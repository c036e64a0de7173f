"""Sampling: the records, the mappings, real programs, perf's files, and the comparison."""

from __future__ import annotations

import errno
import os
import platform
import re
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from blocks.samples import build, tool
from scipy.stats import spearmanr

from livepro.blocks.comparison import Pair, _rank_correlation, compare
from livepro.blocks.rows import BlockRow
from livepro.blocks.sampling.collect import Samples, sample_command, sample_process
from livepro.blocks.sampling.perf_data import perf_samples, read_script
from livepro.blocks.sampling.sampled import sampled_rows
from livepro.cli.main import main
from livepro.errors import LiveproError
from livepro.linux.sampling import events
from livepro.linux.sampling.records import Executed, Forked, Lost, Mapped, Sample, records
from livepro.linux.sampling.spaces import ANONYMOUS, Located, Spaces

HOT = """
#include <stdio.h>
__attribute__((noinline)) unsigned hot(unsigned n) {
    unsigned x = 1;
    for (unsigned i = 0; i < n; i++) x = x * 1664525u + 1013904223u;
    return x;
}
__attribute__((noinline)) unsigned cold(unsigned n) {
    unsigned x = 1;
    for (unsigned i = 0; i < n; i++) x = x * 22695477u + 1u;
    return x;
}
int main(int argc, char **argv) {
    unsigned sum = 0;
    for (int i = 0; i < (argc > 1 ? 400 : 100); i++) sum += hot(900000 + i) + cold(100000 + i);
    printf("%u\\n", sum);
    return 7;
}
"""


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("hot"), HOT, "-O1", suffix=".c")


def sample_bytes(time_: int, pid: int, ip: int) -> bytes:
    return struct.pack("=IHHQIIQ", 9, 2, 32, ip, pid, pid, time_)


def mmap_bytes(time_: int, pid: int, start: int, length: int, offset: int, path: bytes) -> bytes:
    name = path + bytes(8 - len(path) % 8)
    body = struct.pack("=IIQQQIIQQII", pid, pid, start, length, offset, 8, 1, 1234, 0, 5, 2) + name
    return struct.pack("=IHH", 10, 2, 8 + len(body) + 16) + body + struct.pack("=IIQ", pid, pid, time_)


def with_trailer(kind: int, misc: int, body: bytes, time_: int) -> bytes:
    return struct.pack("=IHH", kind, misc, 8 + len(body) + 16) + body + struct.pack("=IIQ", 1, 1, time_)


def test_records_are_read_as_the_kernel_writes_them() -> None:
    data = (
        sample_bytes(5, 10, 0x401000)
        + mmap_bytes(6, 10, 0x7000, 0x2000, 0x1000, b"/lib/x.so")
        + with_trailer(7, 0, struct.pack("=IIIIQ", 11, 10, 11, 10, 7), 7)
        + with_trailer(7, 0, struct.pack("=IIIIQ", 10, 10, 12, 10, 8), 8)  # a thread
        + with_trailer(3, 1 << 13, struct.pack("=II8s", 11, 11, b"prog"), 9)
        + with_trailer(3, 0, struct.pack("=II8s", 11, 11, b"thread"), 10)
        + with_trailer(2, 0, struct.pack("=QQ", 1, 42), 11)
        + with_trailer(5, 0, struct.pack("=QQQ", 12, 1, 1), 12)
    )
    assert list(records(data)) == [
        Sample(5, 10, 10, 0x401000),
        Mapped(6, 10, 0x7000, 0x9000, 0x1000, "/lib/x.so"),
        Forked(7, 11, 10),
        Executed(9, 11),
        Lost(11, 42),
        Lost(12, 0, throttled=True),
    ]


def test_mappings_are_followed() -> None:
    spaces = Spaces()
    spaces.follow(Mapped(1, 1, 0x1000, 0x4000, 0, "/a"))
    spaces.follow(Mapped(2, 1, 0x2000, 0x3000, 0x500, "/b"))
    spaces.follow(Mapped(3, 1, 0x9000, 0xA000, 0, "//anon"))
    spaces.follow(Forked(4, 2, 1))
    spaces.follow(Executed(5, 1))
    assert spaces.locate(1, 0x1000) == Located(ANONYMOUS, 0x1000)
    assert spaces.locate(2, 0x1800) == Located("/a", 0x800)
    assert spaces.locate(2, 0x2800) == Located("/b", 0xD00)
    assert spaces.locate(2, 0x3800) == Located("/a", 0x2800)
    assert spaces.locate(2, 0x9800) == Located(ANONYMOUS, 0x9800)
    assert spaces.locate(2, 0x4000) == Located(ANONYMOUS, 0x4000)


def by_function(rows: list[BlockRow], samples: Samples) -> dict[str, float]:
    out: dict[str, float] = {}
    for row in rows:
        out[row.function] = out.get(row.function, 0.0) + (row.occurrences or 0) / samples.total
    return out


def test_the_hot_loop_has_nearly_all_samples(hot: Path, capfd: pytest.CaptureFixture[str]) -> None:
    samples = sample_command([str(hot)], dict(os.environb), frequency=2000)
    plain = subprocess.run([hot], capture_output=True, text=True)
    assert capfd.readouterr().out == plain.stdout
    assert samples.exit == plain.returncode == 7
    assert samples.lost == 0
    assert samples.total > 50
    found = sampled_rows(samples)
    shares = by_function(found.rows, samples)
    # Samples come at chance: nine tenths of the work are in `hot`; beside a loader that takes its time, half
    # of some fifty samples leaves room for that.
    assert shares["hot"] > 0.5 > shares.get("cold", 0)
    hottest = found.rows[0]
    assert (hottest.function, hottest.loop, hottest.method) == ("hot", "self", "sampled")
    assert sum(r.occurrences or 0 for r in found.rows) + found.elsewhere.total() == samples.total


def test_children_are_followed_and_time_can_be_limited(hot: Path) -> None:
    samples = sample_command(["sh", "-c", f"{hot} & {hot}; wait"], dict(os.environb), 500)
    assert by_function(sampled_rows(samples).rows, samples)["hot"] > 0.5
    # Twenty times the program, of which a moment is sampled: less than half of it, however late that ends.
    turns = f"n=0; while [ $n -lt 20 ]; do {hot}; status=$?; n=$((n+1)); done; exit $status"
    short = sample_command(["sh", "-c", turns], dict(os.environb), 500, seconds=0.1)
    assert short.exit == 7
    assert short.total < 5 * samples.total  # (that is of two runs)


def test_a_running_process_is_sampled_and_goes_on(hot: Path) -> None:
    with subprocess.Popen([hot, "longer"], stdout=subprocess.PIPE) as running:
        time.sleep(0.1)
        samples = sample_process(running.pid, 500, seconds=0.5)
        assert samples.exit is None
        assert by_function(sampled_rows(samples).rows, samples)["hot"] > 0.5
        assert running.wait() == 7


GENERATED = """
import ctypes, mmap, os, time
# mov ecx, edi; 1: dec ecx; jnz 1b; ret
code = bytes.fromhex("89f9" "ffc9" "75fc" "c3")
area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
area.write(code)
start = ctypes.addressof(ctypes.c_char.from_buffer(area))
with open(f"/tmp/perf-{os.getpid()}.map", "w") as out:
    out.write(f"{start:x} {len(code):x} spinning loop\\n")
spin = ctypes.CFUNCTYPE(None, ctypes.c_uint)(start)
end = time.monotonic() + 1  # code is looked up ten times a second, while its process lives
while time.monotonic() < end:
    spin(40_000_000)
os.unlink(f"/tmp/perf-{os.getpid()}.map")
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 code")
def test_generated_code_is_told_by_its_perf_map() -> None:
    samples = sample_command([sys.executable, "-c", GENERATED], dict(os.environb), 500)
    rows = sampled_rows(samples).rows
    assert (rows[0].function, rows[0].module, rows[0].code) == ("spinning loop", ANONYMOUS, "ffc975fc")
    assert (rows[0].offset, rows[0].loop) == (2, "self")


@pytest.mark.long
def test_compiled_java_methods_are_told_by_the_virtual_machine(tmp_path: Path) -> None:
    tool("javac", "openjdk-17-jdk-headless")
    source = tmp_path / "Spin.java"
    source.write_text(
        "public class Spin { static float s(float[] a) { float t = 0; for (float x : a) t += x * 3f; "
        "return t; } public static void main(String[] x) { float[] a = new float[10000]; float t = 0;"
        "long e = System.nanoTime() + 3_000_000_000L; while (System.nanoTime() < e) t += s(a);"
        "System.out.println(t); } }"
    )
    subprocess.run(["javac", "-d", tmp_path, source], check=True)
    # Inlined, it would be a part of what the loop around it is compiled to.
    alone = "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Spin::s"
    samples = sample_command(["java", *alone, "-cp", str(tmp_path), "Spin"], dict(os.environb), 500)
    rows = sampled_rows(samples).rows
    assert rows[0].function == "Spin.s([F)F"
    assert rows[0].loop


def test_perf_files_are_read(hot: Path, tmp_path: Path) -> None:
    perf = tool("perf", "linux-perf")
    data = tmp_path / "perf.data"
    subprocess.run(
        [perf, "record", "-q", "-g", "-e", "cpu-clock:u", "-F", "999", "-o", data, hot], check=False
    )
    samples = perf_samples(str(data))
    assert samples.total > 20
    shares = by_function(sampled_rows(samples).rows, samples)
    assert shares["hot"] > 0.5  # of some fifty samples


SCRIPT = """\
     prog 7/7 1.0: PERF_RECORD_MMAP2 7/7: [0x401000(0x1000) @ 0x1000 fe:00 26 0]: r-xp /bin/prog
     prog 7/7 1.1: cycles:u: 401010 (/bin/prog)
     prog 7/7 1.2: cycles:u: ffffffff81000000 ([kernel.kallsyms])
     prog 7/7 1.3: PERF_RECORD_FORK(8:8):(7:7)
     prog 8/8 1.4: cycles:u: 401010 (/bin/prog)
     prog 8/8 1.5: PERF_RECORD_COMM exec: other:8/8
     prog 8/8 1.6: cycles:u: 401010 ([unknown])
     prog 7/7 1.7: PERF_RECORD_LOST lost 3
"""


def test_what_perf_script_prints() -> None:
    samples = read_script(SCRIPT.splitlines())
    assert samples.places == {Located("/bin/prog", 0x1010): 2, Located(ANONYMOUS, 0x401010): 1}
    assert (samples.total, samples.lost, samples.source) == (3, 3, "perf, cycles:u")
    with pytest.raises(LiveproError, match="no samples of user code"):
        read_script([])
    with pytest.raises(LiveproError, match="no file"):
        perf_samples("/nowhere/perf.data")


def test_the_rank_correlation_is_spearmans() -> None:
    exact = [5.0, 4.0, 4.0, 2.0, 1.0, 0.0, 0.0]
    sampled = [4.0, 5.0, 0.0, 3.0, 0.0, 0.0, 1.0]
    pairs = [Pair("", "", a, b) for a, b in zip(exact, sampled, strict=True)]
    assert _rank_correlation(pairs) == pytest.approx(spearmanr(exact, sampled).statistic, abs=1e-12)
    assert _rank_correlation(pairs[:1]) != _rank_correlation(pairs[:1])  # not a number


def test_comparing_brings_samples_to_the_exact_blocks() -> None:
    row = BlockRow(
        "90" * 8, "x86_64", 8, 8, 90, 0.9, 0.9, "exact", "f", 0, "/m", 0x100, "", 0, "", "", False, 0, "", 0
    )
    exact = [row, replace(row, address=0x108, offset=8, time_share=0.1)]
    sampled = [
        replace(row, method="sampled", time_share=0.25),
        replace(row, method="sampled", address=0x104, offset=4, time_share=0.75),  # a static split's
    ]
    found = compare(exact, sampled)
    assert [(p.name, p.exact, p.sampled) for p in found.blocks] == [("f+0x0", 0.9, 1.0), ("f+0x8", 0.1, 0.0)]
    assert (found.missed, found.missed_blocks, found.exact_hottest) == (0.1, 1, 1.0)
    assert found.functions == [Pair("f", "/m", 1.0, 1.0)]


def test_gzip_exact_and_sampled_agree_on_the_hottest_function(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    text.write_bytes(Path(sys.executable).resolve().read_bytes()[:1_500_000] * 2)
    assert (
        main(["blocks", "compare", "--frequency", "3000", "-q", "--", "gzip", "-9", "-f", "-k", str(text)])
        == 0
    )
    err = capfd.readouterr().err
    functions = err.partition("Functions")[2].partition("Blocks")[0].splitlines()[2:]
    words = [re.sub(r"^ *-", "0", re.sub("[%<]", "", line)).replace(" - ", " 0 ") for line in functions[:2]]
    shares = [[float(word) for word in line.split()[:2]] for line in words]
    assert shares[0] == [max(s[0] for s in shares), max(s[1] for s in shares)]
    assert "rank correlation" in err


@pytest.mark.long
def test_cpython_exact_and_sampled_agree_on_the_hottest_function() -> None:
    import livepro
    from livepro.blocks.exact import run_rows

    script = "def f(n):\n    x = 0\n    while n:\n        n -= 1\n        x ^= n\nf(2_000_000)\n"
    command = [sys.executable, "-S", "-c", script]
    samples = sample_command(command, dict(os.environb), 2000)
    found = compare(run_rows(livepro.run(command)), sampled_rows(samples).rows)
    assert found.functions[0].name == max(found.functions, key=lambda p: p.sampled).name


def test_what_cannot_be_sampled_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["blocks", "sample", "--frequency", "100000000", "--", "true"]) == 2
    assert "takes no more than" in capfd.readouterr().err
    assert main(["blocks", "sample", "--", "no_such_program"]) == 127
    assert main(["blocks", "sample"]) == 2
    assert "either a command or the --pid" in capfd.readouterr().err
    with pytest.raises(LiveproError, match="no process"):
        sample_process(4_194_303)

    def refuse(*_: object) -> int:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(events, "_open_event", refuse)
    with pytest.raises(LiveproError, match="perf_event_paranoid"):
        sample_command(["true"], dict(os.environb))
    if os.geteuid() == 0:
        with subprocess.Popen(["sleep", "60"], user=65534) as other:
            with pytest.raises(LiveproError, match=r"another user's.*as root"):
                sample_process(other.pid)
            other.kill()
