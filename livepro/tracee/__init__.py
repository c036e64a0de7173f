"""Traced processes: launch, threads, fork, exec and clone, signals, group stops. No counting."""

from livepro.tracee.listener import Listener
from livepro.tracee.process import TracedProcess, TracedThread
from livepro.tracee.tracer import Tracer

__all__ = ["Listener", "TracedProcess", "TracedThread", "Tracer"]
