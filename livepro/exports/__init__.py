"""Reports in the formats of other tools: a file for each format, a function of the report's document."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Format(NamedTuple):
    """A format: `help` is one line, `suffix` that of its files."""

    name: str
    help: str
    suffix: str

    @property
    def function(self) -> Callable[[dict[str, Any]], bytes]:
        """Gives the content of the file; its module is imported only now."""
        found: Callable[[dict[str, Any]], bytes] = import_module(f"livepro.exports.{self.name}").export
        return found


FORMATS = (
    Format("speedscope", "a profile for each thread, for speedscope.app", ".speedscope.json"),
    Format("collapsed", "collapsed stacks, for flame graphs", ".collapsed.txt"),
    Format("pprof", "a profile for pprof, by function, thread as label", ".pb.gz"),
    Format("perfetto", "a trace with counters over time, for ui.perfetto.dev", ".perfetto.json"),
    Format("callgrind", "costs by source line, for KCachegrind and callgrind_annotate", ".callgrind.out"),
)
