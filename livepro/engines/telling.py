"""Warnings that are about ever more processes as a run goes on: one each, said anew."""

from __future__ import annotations

from livepro.tracee import TracedProcess


class Telling:
    """One of `warnings`, about the processes that have been added so far; none before."""

    def __init__(self, warnings: list[str]) -> None:
        self._warnings = warnings
        self._processes: dict[TracedProcess, None] = {}
        self._told = ""

    def __contains__(self, process: TracedProcess) -> bool:
        return process in self._processes

    def add(self, process: TracedProcess, what: str) -> None:
        """Say `what` of this process, too: what follows "Process 1 (command) and 2 more"."""
        self._processes[process] = None
        if self._told in self._warnings:
            self._warnings.remove(self._told)
        first, *others = self._processes
        more = f" and {len(others):,} more" if others else ""
        self._told = f"Process {first.pid} ({' '.join(first.command)}){more} {what}"
        self._warnings.append(self._told)
