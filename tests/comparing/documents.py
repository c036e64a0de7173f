"""Reports made up by hand, with just what comparisons look at."""

from __future__ import annotations

from typing import Any


def thread(name: str, instructions: int, simd: int = 0) -> dict[str, Any]:
    row = {"set": "AVX", "width": 256, "scalar": False, "count": simd}
    return {
        "name": name,
        "instructions": instructions,
        "itypes": {"arithmetic": instructions, "sse": simd},
        "simd": [row] if simd else [],
    }


def function(name: str, instructions: int, module: str = "/bin/prog", **more: Any) -> dict[str, Any]:
    return {"function": name, "module": module, "instructions": instructions, **more}


def process(command: str, threads: list[dict[str, Any]], functions: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "command": [command],
        "instructions": sum(t["instructions"] for t in threads),
        "threads": threads,
        "functions": functions,
        "hottest_functions": functions[:1],
    }


def run(*processes: dict[str, Any]) -> dict[str, Any]:
    return {
        "command": ["prog", "--fast"],
        "engine": "step",
        "exit": 0,
        "instructions": sum(p["instructions"] for p in processes),
        "processes": list(processes),
    }
