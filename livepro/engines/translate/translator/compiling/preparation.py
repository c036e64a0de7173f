"""Kernels that are loaded once somebody wants them, and compiled meanwhile if they have not been."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

_LOOK_AGAIN = 5  # seconds until it is looked again whether all has been compiled meanwhile
Loaded = TypeVar("Loaded")


class Store(Protocol):
    """Where they are kept."""

    @property
    def possible(self) -> bool:
        """Whether there is what compiles."""

    @property
    def place(self) -> Path:
        """The directory."""

    def read(self) -> object | None:
        """What is kept; None where nothing is."""


class Preparation(Generic[Loaded]):
    """What is `loaded` (None: it is not yet): what `load` returns, given a `store` and what is kept there.
    Both are called when it is wanted."""

    def __init__(self, store: Callable[[], Store], load: Callable[[Any, Any], Loaded]) -> None:
        self.loaded: Loaded | None = None
        self._store = store
        self._load = load
        self._asked = -float(_LOOK_AGAIN)

    def ready(self, *, waits: bool) -> bool:
        """Whether it is loaded. What has yet to be compiled is: by another process if this one `waits`."""
        if self.loaded is None and time.monotonic() - self._asked >= _LOOK_AGAIN:
            self._look(waits=waits)
        return self.loaded is not None

    def _look(self, *, waits: bool) -> None:
        self._asked = time.monotonic()
        store = self._store()
        if not store.possible:
            self._asked = float("inf")  # there is no numba: all is translated in Python
            return
        kept = store.read()
        if waits and kept is None:
            from livepro.engines.translate.translator.compiling.background import prepare_meanwhile

            prepare_meanwhile(store.place)
            return
        try:
            self.loaded = self._load(store, kept)
        except (ImportError, OSError, RuntimeError):
            # (A kernel may refuse memory that can be written and executed.)
            self._asked = float("inf")

    @property
    def prepared(self) -> bool | None:
        """Whether all has been compiled that is needed; None without what compiles."""
        store = self._store()
        return store.read() is not None if store.possible else None
