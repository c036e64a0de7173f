"""A plugin for pytest: how many instructions a test executes, compared with a baseline.

    def test_work(instructions):
        with instructions() as n:
            work()

Without ``--livepro`` the fixture does nothing. With it, pytest runs itself anew under
`livepro run`, so that its workers (pytest-xdist) are measured, too. This module is loaded by every
pytest that finds livepro installed: it imports nothing more until it is asked for.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from livepro.inprocess.counting import Counting

SCHEMA = "livepro-tests/1"

_PROPERTY = "livepro"
_STARTED = "LIVEPRO_PYTEST"  # in the environment of the pytest that runs under livepro
_MEASURED = pytest.StashKey[list[tuple[str, "Measurement"]]]()
_BASELINE = pytest.StashKey[dict[str, int]]()


class Measurement:
    """What `instructions()` gives: a context manager; `instructions` is the count, once it is left.
    Where nothing is counted, asking for it skips the test."""

    def __init__(self, counting: Counting | None) -> None:
        self._counting = counting

    def __enter__(self) -> Any:
        return self if self._counting is None else self._counting.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._counting is not None:
            self._counting.__exit__(*error)

    @property
    def count(self) -> int | None:
        """The count; None where there is none."""
        return None if self._counting is None else self._counting.instructions

    @property
    def instructions(self) -> int:
        """The count. Skips the test where there is none."""
        if self.count is None:
            pytest.skip("instructions are counted with --livepro only")
        return self.count


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; nothing happens without --livepro."""
    group = parser.getgroup("livepro", "instructions that tests execute")
    group.addoption(
        "--livepro", action="store_true", help="count what tests with the fixture 'instructions' execute"
    )
    group.addoption("--livepro-baseline", metavar="FILE", help="fail tests that execute more than FILE says")
    group.addoption(
        "--livepro-soft", metavar="PERCENT", default="1%", help="let them grow by so much (default: 1%%)"
    )
    group.addoption(
        "--livepro-save-baseline", metavar="FILE", help="keep the counts of tests that passed in FILE"
    )


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Become a pytest under livepro before anything is captured or collected."""
    if early_config.known_args_namespace.livepro and "PYTEST_XDIST_WORKER" not in os.environ:
        _under_livepro()
    yield


def pytest_configure(config: pytest.Config) -> None:
    """Read the baseline: a file that is wrong must be told at once."""
    config.stash[_BASELINE] = {}
    if not config.option.livepro:
        return
    _soft(config)
    if config.option.livepro_baseline is not None:
        config.stash[_BASELINE] = _read(config.option.livepro_baseline)


@pytest.fixture
def instructions(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`with instructions() as n:` counts what the calling thread executes there; `n.instructions` is the
    count. `instructions("label")` tells several in one test apart."""
    measured = request.node.stash.setdefault(_MEASURED, [])
    on = request.config.option.livepro

    def begin(label: str = "") -> Any:
        if not on:
            return Measurement(None)
        from livepro.inprocess.counting import Counting

        counting = Counting()
        found = sum(other == label or other.startswith(f"{label} #") for other, _ in measured)
        measured.append((f"{label} #{found + 1}" if found else label, Measurement(counting)))
        return counting

    return begin


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any]:
    """Compare what a test that passed has executed, and fail it where that is too much."""
    outcome = yield
    report = outcome.get_result()
    if call.when != "call" or _MEASURED not in item.stash or not item.config.option.livepro:
        return
    baseline, soft = item.config.stash[_BASELINE], _soft(item.config)
    rows: list[tuple[str, int, int | None]] = []
    for label, measurement in item.stash[_MEASURED]:
        if measurement.count is not None:
            name = f"{item.nodeid} [{label}]" if label else item.nodeid
            rows.append((name, measurement.count, baseline.get(name)))
    report.user_properties.append((_PROPERTY, rows))
    grown = [
        (name, now, then) for name, now, then in rows if then is not None and now - then > soft * abs(then)
    ]
    if report.passed and grown:
        report.outcome = "failed"
        report.longrepr = "\n".join(
            f"{name} executed {now:,} instructions, {100 * (now - then) / max(then, 1):+.2f} % against the "
            f"baseline's {then:,}: it may grow by {100 * soft:g} %."
            for name, now, then in grown
        )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """A table of all counts; the new baseline."""
    if not config.option.livepro or hasattr(config, "workerinput"):
        return
    rows: list[tuple[str, int, int | None, str]] = []
    passed: dict[str, int] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == _PROPERTY and report.when == "call":
                    rows += [(*row, report.outcome) for row in value]
                    if report.outcome == "passed":
                        passed.update({row[0]: row[1] for row in value})
    if rows:
        terminalreporter.section("instructions")
        for line in _table(rows):
            terminalreporter.line(line)
    target = config.option.livepro_save_baseline
    if target is not None:
        _save(target, passed)
        terminalreporter.line(f"{target}: {len(passed)} counts written")


def _table(rows: list[tuple[str, int, int | None, str]]) -> list[str]:
    cells = [("baseline", "instructions", "change", "test")]
    for name, now, then, outcome in sorted(rows, key=lambda row: row[0]):
        change = (
            "new" if then is None else f"{100 * (now - then) / max(then, 1):+.2f} %" if now != then else "0"
        )
        shown = "".join(c if c.isprintable() else "?" for c in name)
        cells.append(
            (
                "-" if then is None else f"{then:,}",
                f"{now:,}",
                change,
                shown + (" FAILED" if outcome == "failed" else ""),
            )
        )
    widths = [max(len(row[n]) for row in cells) for n in range(3)]
    return ["  ".join([*(row[n].rjust(widths[n]) for n in range(3)), row[3]]) for row in cells]


def _under_livepro() -> None:
    from livepro import inprocess

    if inprocess.active():
        return
    if _STARTED in os.environ:
        raise pytest.UsageError("livepro does not count here; `livepro doctor` says why.")
    # The order of sets and dictionaries must not differ from run to run.
    environment = {"PYTHONHASHSEED": "0", **os.environ, _STARTED: "1"}
    command = [sys.executable, "-m", "livepro", "run", "--quiet", "--no-aslr", "--"]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [*command, sys.executable, *sys.orig_argv[1:]], environment)


def _soft(config: pytest.Config) -> float:
    import argparse

    from livepro.cli.parser import part

    try:
        return part(config.option.livepro_soft)
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"--livepro-soft: {error}") from None


def _read(name: str) -> dict[str, int]:
    try:
        document = json.loads(Path(name).read_text())
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}")
        return {str(test): int(count) for test, count in document["tests"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise pytest.UsageError(
            f"--livepro-baseline: {name} cannot be read ({error}); --livepro-save-baseline writes such files."
        ) from None


def _save(name: str, counts: dict[str, int]) -> None:
    """Write `counts`; tests that did not run, or failed, keep those that the file has."""
    kept = _read(name) if Path(name).exists() else {}
    document = {"schema": SCHEMA, "tests": dict(sorted({**kept, **counts}.items()))}
    try:
        Path(name).write_text(json.dumps(document, indent=1) + "\n")
    except OSError as error:
        raise pytest.UsageError(f"--livepro-save-baseline: {name} cannot be written ({error}).") from None
