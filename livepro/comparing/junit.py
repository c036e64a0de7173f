"""What a gate found as JUnit XML, which every CI system shows.

The elements are those that Jenkins' xunit plugin takes (its junit-10.xsd): a test suite with a
test case for each comparison, a failure in those that broke a limit.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from livepro.comparing.gate import Outcome, Verdict

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, production Char


def document(verdicts: list[Verdict], suite: str) -> str:
    """The verdicts as an XML document; names are shown with what XML cannot hold replaced."""
    failed = [v for v in verdicts if v.outcome is Outcome.REGRESSED]
    root = ElementTree.Element("testsuites")
    attributes = {"name": _text(suite), "tests": str(len(verdicts)), "failures": str(len(failed))}
    parent = ElementTree.SubElement(root, "testsuite", {**attributes, "errors": "0", "skipped": "0"})
    for verdict in verdicts:
        row = verdict.change
        case = ElementTree.SubElement(
            parent, "testcase", {"classname": f"livepro.{row.kind}", "name": _text(row.name), "time": "0"}
        )
        told = f"{row.before:,} -> {row.after:,} instructions"
        if verdict.outcome is Outcome.REGRESSED:
            message = f"{told}: {verdict.limit}"
            ElementTree.SubElement(case, "failure", {"message": message, "type": "regression"}).text = message
        else:
            ElementTree.SubElement(case, "system-out").text = f"{told} ({verdict.outcome})"
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _text(text: str) -> str:
    return _NOT_XML.sub("�", text)
