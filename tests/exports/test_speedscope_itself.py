"""speedscope opens what `livepro export --to speedscope` writes: its own pages, in a browser."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest
from exports.test_exports import document
from reports.browser import launched
from tools import needed

from livepro.exports import speedscope

VERSION = "1.25.0"


def pages(directory: Path) -> Path:
    """speedscope's start page, fetched from the npm registry."""
    npm = needed("npm", "npm")
    command = [npm, "pack", "--silent", f"speedscope@{VERSION}"]
    fetched = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True, timeout=120)
    if fetched.returncode:
        if os.environ.get("CI"):
            pytest.fail(fetched.stderr)
        pytest.skip("speedscope cannot be fetched from the npm registry")
    subprocess.run(["tar", "xzf", f"speedscope-{VERSION}.tgz"], cwd=directory, check=True)
    return directory / "package" / "dist" / "release" / "index.html"


def test_speedscope_reads_every_thread(tmp_path: Path) -> None:
    content = base64.b64encode(speedscope.export(document())).decode()
    script = tmp_path / "run.js"  # as speedscope's own command hands a file to its pages (bin/cli.mjs)
    script.write_text(f"speedscope.loadFileFromBase64('run.json', {json.dumps(content)})")
    start = pages(tmp_path)
    with launched() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 700})
        trouble: list[str] = []
        page.on("pageerror", lambda e: trouble.append(str(e)))
        page.on("dialog", lambda d: (trouble.append(d.message), d.dismiss()))
        page.goto(f"{start.as_uri()}#localProfilePath={script}")
        page.get_by_text("prog 100 one 1 (1/2)").wait_for()
        assert page.title() == "/bin/prog --fast - speedscope"
        page.get_by_text("Sandwich").click()
        page.get_by_text("Symbol Name").wait_for()
        first = page.locator("body").inner_text()
        page.get_by_text("prog 100 one 1 (1/2)").click()
        page.get_by_text("prog 100 two;").last.click()
        page.get_by_text("(2/2)").wait_for()
        second = page.locator("body").inner_text()
    assert trouble == []
    # Symbols with their shares: thread 1 executed 20 and 5 instructions, thread 2 2 and 3.
    assert "20 (80%)\n\t20 (80%)\n\tmain" in first
    assert "5 (20%)\n\t5 (20%)\n\tevil;fn" in first
    assert "2 (40%)\n\t2 (40%)\n\tmain" in second
    assert "3 (60%)\n\t3 (60%)\n\t[vdso without symbols]" in second
