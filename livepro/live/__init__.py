"""Looking at a run while it goes on: frozen pictures, made a few times a second.

`Collector` turns the engine's live counts into what a view shows, at the cost of
what has changed; `LiveRun` has it work in a thread of its own.
"""

from livepro.live.collector import Collector
from livepro.live.run import Actions, LiveRun

__all__ = ["Actions", "Collector", "LiveRun"]
