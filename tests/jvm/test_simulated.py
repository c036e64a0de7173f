"""Caches by Java method and compiler, while the machine collects garbage."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from jvm import jdk

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs"),
]


@pytest.mark.parametrize("collector", ["Serial", "G1", "Z", "Shenandoah"])
def test_caches_by_method_and_compiler(collector: str, tmp_path: Path) -> None:
    """A short-lived array for each call, in a small heap: what each function executed sums to what the
    threads did, and the method is told of each compiler that made code for it."""
    source = tmp_path / "Garbage.java"
    source.write_text(
        """public class Garbage {
    static long fill(int n) { int[] a = new int[2048]; for (int i = 0; i < a.length; i++) a[i] = i * n;
        long s = 0; for (int v : a) s += v; return s; }
    public static void main(String[] args) {
        long s = 0; for (int n = 0; n < 6000; n++) s += fill(n); System.out.println(s);
    }
}"""
    )
    subprocess.run(["javac", "-d", tmp_path, source], check=True)
    options = [f"-XX:+Use{collector}GC", "-Xmx24m", "-Xbatch", "-XX:CompileCommand=quiet"]
    options.append("-XX:CompileCommand=dontinline,Garbage.fill")
    command = jdk.command("17", tmp_path, "Garbage", options=options)
    alone = subprocess.run(command, capture_output=True, text=True, check=True)
    report = tmp_path / "run.json"
    simulating = ("--cachesim", "--json", report, "--cachegrind-out-file", tmp_path / "cachegrind.out")
    done = subprocess.run(
        [sys.executable, "-m", "livepro", "run", "-q", *map(str, simulating), "--", *command],
        capture_output=True,
        text=True,
        timeout=jdk.TIMEOUT,
    )
    assert (done.returncode, done.stdout) == (0, alone.stdout)
    told = json.loads(report.read_text())
    (process,) = told["processes"]
    result = told["analyses"]["cachesim"][0]["result"]
    executed = sum(thread["instructions"] for thread in process["threads"])
    assert result["totals"]["Ir"] == executed
    assert sum(row[2] for row in result["functions"]) == executed
    made = {row[1]: row for row in result["functions"] if row[0].startswith("Garbage.fill")}
    assert set(made) >= {"C2", "C1 tier 3"}
    event = 2 + result["events"].index("D1mw")
    assert made["C2"][event] > 0
    assert {"interpreter", "stub"} <= {row[1] for row in result["functions"]}
