"""A run made reachable from outside: commands over a Unix socket, counts for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from livepro.engines.base import Engine
from livepro.isa.base import Isa
from livepro.serving.endpoint import endpoint

__all__ = ["served"]


@contextmanager
def served(
    engine: Engine, isa: Isa, command: Sequence[str], *, commands: bool, metrics: str
) -> Iterator[None]:
    """Serve a run for as long as the context lasts: with `commands` to `livepro ctl`, with
    `metrics` (``[HOST]:PORT``) OpenMetrics. A socket that cannot be made is a warning of the
    engine's. Raises LiveproError when the metrics cannot be served."""
    with ExitStack() as stack:
        if metrics:
            from livepro.serving.metrics import metrics_server  # late: an HTTP server is seldom asked for

            stack.enter_context(metrics_server(engine, isa, command, metrics))
        if commands:
            try:
                stack.enter_context(endpoint(engine))
            except OSError as error:
                engine.warnings.append(f"`livepro ctl` cannot reach this run: {error}.")
        yield
