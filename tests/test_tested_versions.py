"""The versions that CI installs are among those that pyproject.toml allows, and none is missing."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[1]


def test_each_dependency_has_a_tested_version_that_is_allowed() -> None:
    lines = (REPOSITORY / ".ci/tested.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    tested = {canonicalize_name(name): version for name, version in pairs}
    assert len(tested) == len(pairs)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    asked = [Requirement(text) for texts in (project["dependencies"], *extras) for text in texts]
    # setuptools comes with the environment, and livepro is what is tested.
    asked = [one for one in asked if one.name not in ("setuptools", "livepro")]
    wrong = [str(one) for one in asked if not one.specifier.contains(tested[canonicalize_name(one.name)])]
    assert wrong == []
