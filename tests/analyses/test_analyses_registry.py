"""The registry: names, help, lazy import, and what happens with a wrong name."""

from __future__ import annotations

import subprocess
import sys

import model_builders as mb
import pytest

from livepro import analyses
from livepro.errors import LiveproError


def test_names_in_report_order() -> None:
    assert analyses.names() == ("totals", "simd", "itypes", "bbv", "origins", "hot")


@pytest.mark.parametrize("name", analyses.names())
def test_every_analysis_takes_a_table_and_a_thread(name: str) -> None:
    analysis = analyses.get(name)
    assert "\n" not in analysis.help
    assert analysis.help
    table = mb.table((0x1000, [mb.simd("ADDPS"), mb.RET]))
    found = analysis.function(table, mb.thread([3], intervals=[mb.interval({0: 6})]))
    assert found is not None
    assert list(found) if name != "totals" else found.instructions == 6


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(LiveproError) as error:
        analyses.get("smid")
    assert error.value.cause == "There is no analysis 'smid'."
    assert (
        error.value.remedy == "Did you mean 'simd'? The analyses are totals, simd, itypes, bbv, origins, hot."
    )
    assert error.value.status == 2


def test_name_like_no_other_suggests_nothing() -> None:
    with pytest.raises(LiveproError) as error:
        analyses.get("xyzzy")
    assert error.value.remedy == "The analyses are totals, simd, itypes, bbv, origins, hot."


def test_registry_imports_no_analysis() -> None:
    code = (
        "import sys; from livepro import analyses; analyses.get('simd');"
        "print(sorted(m for m in sys.modules if m.startswith('livepro.analyses.')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
