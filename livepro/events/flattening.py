"""A function on a state made one on its arrays.

Passing a tuple of arrays to a function counts references to each of them, up and down, at every call: some
hundred nanoseconds an event. So `state.name` in the source of a user's function becomes a parameter of
its own. Functions that use the state in any other way stay as they are.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType


class _Arrays(ast.NodeTransformer):
    """Replaces the attributes of the name `state` by names; `used` are those, in order."""

    def __init__(self, state: str, known: list[str]) -> None:
        self._state = state
        self._known = known
        self.used: list[str] = []
        self.whole = False

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == self._state and node.attr in self._known:
            if node.attr not in self.used:
                self.used.append(node.attr)
            return ast.copy_location(ast.Name(f"s_{node.attr}", node.ctx), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self.whole |= node.id == self._state
        return node


def flattened(hook: Callable[..., None], known: list[str]) -> tuple[Callable[..., None], list[str]] | None:
    """The function with the arrays that it uses in place of its first parameter, and their names (of the
    `known`); None where that cannot be done."""
    if not isinstance(hook, FunctionType) or hook.__closure__:
        return None
    try:
        lines, first = inspect.getsourcelines(hook)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return None
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef):
        return None
    arguments = function.args.args
    change = _Arrays(arguments[0].arg, known)
    function.body = [change.visit(statement) for statement in function.body]
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    taken = {argument.arg for argument in arguments} | {n for n in names if isinstance(n, str)}
    if change.whole or any(f"s_{name}" in taken - {f"s_{n}" for n in change.used} for name in known):
        return None
    function.decorator_list = []
    function.returns = None
    for argument in arguments:
        argument.annotation = None
    arguments[:1] = [ast.arg(f"s_{name}") for name in change.used]
    ast.fix_missing_locations(tree)
    ast.increment_lineno(tree, first - 1)
    space: dict[str, Callable[..., None]] = {}
    exec(compile(tree, hook.__code__.co_filename, "exec"), hook.__globals__, space)
    made = space[function.name]
    made.__qualname__, made.__module__ = hook.__qualname__, hook.__module__
    return made, change.used
