"""A run's counts for Prometheus: OpenMetrics text over HTTP.

The format is that of https://github.com/prometheus/OpenMetrics (specification 1.0): counters
end in _total, every family has its type and help, the text ends with ``# EOF``. After a
reset counters begin anew, which Prometheus takes for a restart, as it should.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from livepro.engines.base import Engine
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.live import Collector
from livepro.model.live import Picture, Query
from livepro.serving.answering import PATIENCE, Few, answering

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))

_EVERYTHING = Query(rows=100_000, thread_order="start")


def exposition(picture: Picture) -> str:
    """A picture of a run as OpenMetrics text."""
    lines: list[str] = []

    def family(name: str, kind: str, text: str) -> None:
        lines.extend((f"# TYPE {name} {kind}", f"# HELP {name} {text}"))

    def sample(name: str, value: float, **labels: object) -> None:
        inner = ",".join(f'{key}="{_escaped(str(value))}"' for key, value in labels.items())
        lines.append(f"{name}{{{inner}}} {value}" if inner else f"{name} {value}")

    family("livepro_run", "info", "The run.")
    sample("livepro_run_info", 1, command=" ".join(picture.command), engine=picture.engine)
    family("livepro_instructions", "counter", "Instructions retired in user mode, by thread.")
    labels = [
        {"pid": t.pid, "tid": t.tid, "thread": t.name, "program": t.program, "number": t.number}
        for t in picture.threads
    ]
    for thread, known in zip(picture.threads, labels, strict=True):
        sample("livepro_instructions_total", max(thread.instructions.total, 0), **known)
    family("livepro_simd_instructions", "counter", "SIMD instructions among them, by thread.")
    for thread, known in zip(picture.threads, labels, strict=True):
        sample("livepro_simd_instructions_total", max(thread.simd.total, 0), **known)
    family("livepro_simd_set_instructions", "counter", "SIMD instructions of all threads, by set and width.")
    for (name, width), measure in picture.simd:
        sample("livepro_simd_set_instructions_total", max(measure.total, 0), set=name, width=width)
    family("livepro_instructions_per_second", "gauge", "Instructions a second, over the last seconds.")
    sample("livepro_instructions_per_second", round(picture.whole.rate, 3))
    family("livepro_threads", "gauge", "Threads alive.")
    sample("livepro_threads", picture.threads_alive)
    family("livepro_processes", "gauge", "Process images seen.")
    sample("livepro_processes", picture.processes)
    family("livepro_blocks", "gauge", "Distinct basic blocks executed.")
    sample("livepro_blocks", picture.distinct_blocks)
    family("livepro_counting", "gauge", "1 while counts grow, 0 while they are paused.")
    sample("livepro_counting", int(picture.counting))
    family("livepro_run_seconds", "gauge", "Seconds since the run began.")
    sample("livepro_run_seconds", round(picture.seconds, 3))
    lines.append("# EOF")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """A label's value: backslash, quote and newline escaped, odd bytes replaced."""
    plain = text.encode(errors="surrogateescape").decode(errors="replace")
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def address(text: str) -> tuple[str, int]:
    """Host and port of ``[HOST]:PORT``; loopback where no host is given. Raises LiveproError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise LiveproError(f"'{text}' is no address for metrics.", "Write [HOST]:PORT, as in :9464.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _meant(named: str, host: str) -> bool:
    """Whether a request to server `named` (the Host header) is meant for one that listens at `host`. On
    loopback it goes by a name of this machine's alone: a page in the browser may have another name lead
    here (DNS rebinding)."""
    if host not in _LOOPBACK:
        return True
    name = named.rpartition(":")[0] if named.rpartition(":")[2].isdecimal() else named
    return not name or name.strip("[]").lower() in _LOOPBACK


class _Server(Few, HTTPServer):
    pass


@contextmanager
def metrics_server(engine: Engine, isa: Isa, command: Sequence[str], where: str) -> Iterator[None]:
    """Serve a run's counts meanwhile, at any path. Raises LiveproError when the address cannot be had."""
    collector = Collector(engine, isa, command)
    lock = threading.Lock()

    host, port = address(where)

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE

        def do_GET(self) -> None:
            if not _meant(self.headers.get("Host", ""), host):
                self.send_error(421, "Misdirected Request")
                return
            with lock:
                collector.refresh()
                body = exposition(collector.picture(_EVERYTHING)).encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """(Standard error is the program's.)"""

    try:
        server = _Server((host, port), Handler)
    except OSError as error:
        raise LiveproError(
            f"Cannot serve metrics at {host}:{port}: {error.strerror or error}.", "Choose another address."
        ) from None
    with answering(server, "livepro-metrics"):
        yield
