"""Collapsed stacks (Brendan Gregg's FlameGraph): ``process;thread;module;function N``, a line each."""

from __future__ import annotations

from livepro.exports.rows import Document, rows, text


def export(document: Document) -> bytes:
    """The lines; what would end a frame's name or a line is replaced."""
    lines = []
    for row in rows(document):
        frames = (row.process, row.thread, row.module, row.function)
        stack = ";".join(_frame(frame) for frame in frames if frame)
        lines.append(f"{stack} {row.instructions}\n")
    return text("".join(lines))


def _frame(name: str) -> str:
    return "".join(":" if c == ";" else c if c.isprintable() else "?" for c in name)
