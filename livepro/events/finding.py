"""Analyses by name: built-in ones, those of installed packages, and classes in files and modules."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from livepro.errors import LiveproError
from livepro.events.analysis import Analysis
from livepro.events.needed import compiler

GROUP = "livepro.analyses"
"""Of entry points: a package that has analyses names its classes there."""

BUILT_IN = {
    "cachesim": "livepro.cachesim.model:CacheSim",
    "hierarchy": "livepro.cachesim.hierarchy.model:HierarchySim",
    "predictors": "livepro.cachesim.predictors.model:Predictors",
    "mica": "livepro.mica.model:Mica",
    "pages": "livepro.events.examples:Pages",
    "misses": "livepro.cachesim.classes.model:Misses",
    "sharing": "livepro.cachesim.sharing.model:Sharing",
    "strides": "livepro.events.examples:Strides",
    "indirect": "livepro.events.examples:Indirect",
    "split": "livepro.events.examples:Split",
}
"""Name to ``module:class``."""


class Found(NamedTuple):
    """An analysis that can be asked for."""

    name: str
    help: str
    where: str


def available() -> Iterator[Found]:
    """All built-in analyses of the event stream, and those of installed packages."""
    for name, where in BUILT_IN.items():
        yield Found(name, _class(where, name).help(), "built in")
    for point in entry_points(group=GROUP):
        try:
            yield Found(point.name, point.load().help(), point.value)
        except Exception as error:
            yield Found(point.name, f"cannot be loaded ({type(error).__name__}: {error})", point.value)


def find(text: str) -> tuple[str, Analysis]:
    """The analysis that `text` asks for, and its name: a name, ``FILE.py:CLASS`` or ``MODULE:CLASS``,
    with options ``:key=value`` behind it. Raises LiveproError if there is none."""
    parts = text.split(":")
    written: dict[str, str] = {}
    while len(parts) > 1 and "=" in parts[-1]:
        key, _, value = parts.pop().partition("=")
        written[key] = value
    where = ":".join(parts)
    found = _class(_named(where), where)
    options = {key: _value(value, found, key) for key, value in written.items()}
    try:
        inspect.signature(found).bind(**options)
    except TypeError as error:
        raise LiveproError(f"{where} does not take these options ({error}).", _options(found)) from None
    try:
        return text, found(**options)
    except LiveproError:
        raise
    except Exception as error:
        raise LiveproError(f"{text} cannot be made ({type(error).__name__}: {error}).") from error


def _options(found: type[Analysis]) -> str:
    names = [str(p) for p in inspect.signature(found).parameters.values()]
    return f"Its options are {', '.join(names)}." if names else "It has no options."


def _value(text: str, found: type[Analysis], key: str) -> Any:
    """What an option is, as Python has it; what is no literal, or is to be a string, is one."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    parameter = inspect.signature(found).parameters.get(key)
    wanted = None if parameter is None else parameter.annotation
    return text if wanted in (str, "str") and not isinstance(value, str) else value


def _named(where: str) -> str:
    if ":" in where:
        return where
    if where in BUILT_IN:
        return BUILT_IN[where]
    for point in entry_points(group=GROUP):
        if point.name == where:
            return point.value
    raise LiveproError(
        f"There is no analysis '{where}'.",
        "`livepro analyses` lists those there are; one of your own is FILE.py:CLASS or MODULE:CLASS.",
    )


def _class(where: str, asked: str) -> type[Analysis]:
    place, _, name = where.rpartition(":")
    try:
        with compiler():
            module = _file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except LiveproError:
        raise
    except SyntaxError as error:
        raise LiveproError(f"{error.filename}, line {error.lineno}: {error.msg}.") from None
    except Exception as error:
        raise LiveproError(f"'{place}' cannot be imported ({type(error).__name__}: {error}).") from None
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, Analysis)):
        there = [
            n
            for n, v in vars(module).items()
            if isinstance(v, type) and issubclass(v, Analysis) and v is not Analysis
        ]
        raise LiveproError(
            f"'{asked}': {place} has no class '{name}' derived from livepro.events.Analysis.",
            f"It has {', '.join(there)}." if there else "",
        )
    return found


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise LiveproError(f"There is no file {path}.")
    whole = path.resolve()
    name = f"livepro_user_{hashlib.sha256(bytes(whole)).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, whole)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
