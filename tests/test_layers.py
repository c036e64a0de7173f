"""The import directions of the design, and file sizes: read from the sources themselves."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "livepro"
LONGEST = 420  # lines; "about 400"

EVERYWHERE = {"errors", "model", ""}  # "" is livepro itself: its version

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "model": set(),
    "isa": set(),
    "kept": set(),
    "linux": {"kept"},
    "analyses": set(),
    "formats": set(),
    "jvm": {"linux"},
    "names": {"linux"},  # as people and other tools know functions
    "tracee": {"linux", "isa"},
    "engines": {"tracee", "linux", "kept", "isa", "jvm", "names"},
    "described": {"isa", "kept"},  # what instructions are, from run to run
    "results": {
        "described",
        "engines",
        "linux",
        "isa",
        "jvm",
        "names",
    },  # from an engine's records to the model
    "events": {"cachesim", "engines", "kept", "linux", "isa"},  # analyses of the event stream
    "cachesim": {"events", "engines", "isa", "linux"},  # the simulator is one of them
    "mica": {"events", "engines", "isa", "analyses", "formats"},  # another one
    "traces": {"events", "engines", "isa", "cachesim", "formats"},  # files for simulators
    "inprocess": set(),  # for the programs measured: nothing but the standard library
    "live": {
        "results",
        "engines",
        "tracee",
        "linux",
        "isa",
        "analyses",
        "names",
    },  # from counts to pictures, while it runs
    "serving": {"live", "engines", "isa"},
    "session": {"live", "results", "engines", "tracee", "linux", "isa"},
    "front": {"linux"},
    "attachment": {"session", "live", "engines", "tracee", "linux", "isa"},
    "sampling": {"attachment", "analyses"},  # windows of attachments, their results added up
    "api": {
        "events",
        "sampling",
        "serving",
        "session",
        "attachment",
        "live",
        "engines",
        "linux",
        "isa",
        "analyses",
        "formats",
        "kept",
    },
    "comparing": set(),  # reports as they were written
    "exports": {"analyses"},  # reports in the formats of other tools
    "reports": {"comparing", "analyses", "isa"},  # pages for the browser, of reports as they were written
    "flow": {"isa"},  # from executed blocks to loops
    "simpoint": {"analyses", "formats", "flow"},  # from vectors to points
    "ui": {"analyses", "formats", "comparing", "simpoint", "flow"},
    "doctor": {"linux", "isa", "engines", "ui"},  # asks the system itself, and reports on the layers
    "cli": {
        "doctor",
        "blocks",
        "comparing",
        "exports",
        "reports",
        "simpoint",
        "flow",
        "cachesim",
        "mica",
        "traces",
        "events",
        "inprocess",
        "serving",
        "api",
        "front",
        "session",
        "analyses",
        "formats",
        "ui",
        "kept",
    },
    "blocks": {
        "api",
        "kept",
        "jvm",
        "linux",
        "isa",
        "names",
        "analyses",
    },  # data sets of blocks, made from files and runs
    "pytest_plugin": {"inprocess", "cli"},
    "bytecode": {"kept"},
    "__main__": {"cli", "bytecode"},
    "": {"api", "session"},  # livepro/__init__.py: the Python API, imported late
}
"""Layer -> layers it may import besides itself and `EVERYWHERE` (model: nothing at all)."""

EXCEPTIONS = {
    "cli/outputs.py": {"isa", "linux", "names"},  # the names that a specification may use; source lines
    "cli/run.py": {"engines"},  # their names
    "cli/blocks/output.py": {"isa"},  # disassembly
    "cli/blocks/suite.py": {"isa"},  # their names
    "cli/blocks/run.py": {"engines"},  # their names
    "cli/mica.py": {"isa"},  # the names that a specification may use
    "cli/attach.py": {"engines"},
    "cli/simpoint.py": {"engines"},
    "cli/simpoint_outputs.py": {"linux"},  # where files are loaded
}


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def layer(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "" if parts[0] == "__init__" else parts[0]


def imported_layers(path: Path, text: str) -> set[str]:
    """Layers that `text` imports, at the top or inside functions, absolutely or relatively."""
    package = ("livepro", *path.relative_to(ROOT).parent.parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            modules = [module] if module != "livepro" else [f"livepro.{a.name}" for a in node.names]
        else:
            continue
        for module in modules:
            first, _, rest = module.partition(".")
            if first == "livepro":
                name = rest.partition(".")[0]
                found.add(name if name in MAY_IMPORT else "")
    return found


def violations(path: Path, text: str) -> set[str]:
    own = layer(path)
    allowed = MAY_IMPORT[own] | {own}
    if own not in ("model", "errors"):
        allowed |= EVERYWHERE
    allowed |= EXCEPTIONS.get(str(path.relative_to(ROOT)), set())
    return imported_layers(path, text) - allowed


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_layers(path: Path) -> None:
    assert layer(path) in MAY_IMPORT, "a new layer needs a line in the table"
    assert violations(path, path.read_text()) == set()


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize(
    ("where", "text", "wrong"),
    [
        ("model/blocks.py", "import livepro.errors", {"errors"}),
        ("model/blocks.py", "from livepro import errors", {"errors"}),
        ("analyses/simd.py", "from livepro.isa.base import Isa", {"isa"}),
        ("analyses/simd.py", "def f():\n    from ..engines import step", {"engines"}),
        ("isa/base.py", "from livepro.linux import ptrace", {"linux"}),
        ("ui/summary.py", "from livepro.linux import ptrace", {"linux"}),
        ("cli/run.py", "from livepro.linux import ptrace", {"linux"}),
        ("doctor/examination.py", "from livepro.linux import ptrace", set()),
        ("engines/step/engine.py", "from livepro.tracee import process", set()),
        ("isa/x86_64/decode.py", "from ...model import Flow\nfrom ..base import Isa", set()),
    ],
)
def test_the_check_itself_sees_a_wrong_import(where: str, text: str, wrong: set[str]) -> None:
    assert violations(ROOT / where, text) == wrong


def test_instruction_sets_have_mirrored_file_names() -> None:
    names = [sorted(p.name for p in (ROOT / "isa" / isa).glob("*.py")) for isa in ("x86_64", "aarch64")]
    assert names[0] == names[1]


def test_no_instruction_set_is_tested_for_outside_isa() -> None:
    """Comparing with a machine name belongs into `livepro/isa`."""
    guilty = []
    for path in sources():
        if layer(path) == "isa":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                words = {c.value for c in ast.walk(node) if isinstance(c, ast.Constant)}
                if words & {"x86_64", "aarch64"}:
                    guilty.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert guilty == []


# -- classes

DEEPEST = 3
"""Of the project's own classes in a row: more, and nobody can say who owns what."""

LIBRARIES = {
    "_asdict",
    "_fields",
    "_fields_",
    "_replace",
    "_exit",
    "_actions",
    "_ActionsContainer",
    "_didModify",
}
"""Of NamedTuple, ctypes, os, argparse and zipfile: documented, or without another way."""

MOST_MODULES = 14
FULLER = {"analyses": 17, "cli": 26, "isa/aarch64": 17, "isa/x86_64": 17, "linux": 21}
"""Folders with more; this table may only shrink."""


def classes(trees: Mapping[str, ast.Module]) -> dict[str, list[ast.ClassDef]]:
    """All class definitions by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def base_names(node: ast.ClassDef) -> list[str]:
    names = []
    for base in node.bases:
        while isinstance(base, ast.Subscript):
            base = base.value
        names.append(
            base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
        )
    return names


def depth(name: str, known: Mapping[str, list[ast.ClassDef]], below: frozenset[str] = frozenset()) -> int:
    """How many of the project's classes are in a row up to the one with that name, itself included."""
    if name in below or name not in known:
        return 0
    bases = [base for node in known[name] for base in base_names(node)]
    return 1 + max((depth(base, known, below | {name}) for base in bases), default=0)


def own_private(node: ast.ClassDef) -> set[str]:
    """Private names that a class defines: attributes of self, methods, fields, slots."""
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef):
            names.add(part.name)
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
            names.add(part.attr)
        elif isinstance(part, ast.AnnAssign | ast.Assign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return {name for name in names if name.startswith("_")}


def foreign_private(tree: ast.Module) -> set[str]:
    """Private attributes of other things than self that are used outside the class which defines them."""
    found: set[str] = set()

    def look(node: ast.AST, own: set[str]) -> None:
        for child in ast.iter_child_nodes(node):
            inside = own_private(child) if isinstance(child, ast.ClassDef) else own
            if (
                isinstance(child, ast.Attribute)
                and child.attr.startswith("_")
                and not child.attr.startswith("__")
            ):
                value = child.value
                itself = isinstance(value, ast.Name) and value.id in ("self", "cls")
                inherited = isinstance(value, ast.Call) and ast.unparse(value) == "super()"
                if not (itself or inherited or child.attr in own | LIBRARIES):
                    found.add(child.attr)
            look(child, inside)

    look(tree, set())
    return found


def trees() -> dict[str, ast.Module]:
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sources()}


def test_at_most_three_classes_in_a_row() -> None:
    known = classes(trees())
    deep = {name: depth(name, known) for name in known}
    assert {name: number for name, number in deep.items() if number > DEEPEST} == {}


def test_no_part_touches_private_names_of_another() -> None:
    found = {path: foreign_private(tree) for path, tree in trees().items()}
    assert {path: names for path, names in found.items() if names} == {}


def test_the_checks_of_classes_see_what_is_wrong() -> None:
    text = """
class A:
    def __init__(self): self._x = 0
    def fork(self, other): other._x = self._x
class B(A):
    def use(self, other): return other._y, other._asdict()
class C(B[int]): pass
class D(C): pass
"""
    tree = ast.parse(text)
    known = classes({"": tree})
    assert [depth(name, known) for name in "ABCD"] == [1, 2, 3, 4]
    assert foreign_private(tree) == {"_y"}


def test_a_folder_has_about_a_dozen_modules() -> None:
    """Counted without `__init__`."""
    many = {}
    for folder in {path.parent for path in sources()}:
        number = len([path for path in folder.glob("*.py") if path.name != "__init__.py"])
        if number > MOST_MODULES:
            many[str(folder.relative_to(ROOT))] = number
    assert many == FULLER
