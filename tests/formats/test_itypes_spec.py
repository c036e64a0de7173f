"""MICA's grammar of instruction-type specifications."""

from __future__ import annotations

from pathlib import Path

import pytest

from livepro.errors import LiveproError
from livepro.formats import itypes_spec
from livepro.model.itypes import Identifier, IdentifierType, ItypesSpec, Vocabulary

CATEGORY, OPCODE, SPECIAL = IdentifierType

WORDS = Vocabulary(
    categories=frozenset(("COND_BR", "BINARY", "SHIFT")), opcodes=frozenset(("ADD", "MOVSB", "CALL_NEAR"))
)


def parse(text: str, vocabulary: Vocabulary | None = WORDS) -> ItypesSpec:
    return itypes_spec.parse(text.splitlines(keepends=True), "groups.spec", vocabulary)


def test_groups_and_identifiers() -> None:
    text = (
        "0, 0, SPECIAL, mem_read\n1, 0, CATEGORY, COND_BR\n1, 1, OPCODE, CALL_NEAR\n2, 0, CATEGORY, SHIFT\n"
    )
    spec = parse(text)
    assert spec.groups == (
        (Identifier(SPECIAL, "mem_read"),),
        (Identifier(CATEGORY, "COND_BR"), Identifier(OPCODE, "CALL_NEAR")),
        (Identifier(CATEGORY, "SHIFT"),),
    )
    assert spec.names == ("0:mem_read", "1:COND_BR+CALL_NEAR", "2:SHIFT", "other")


def test_what_mica_reads_too() -> None:
    # sscanf skips white space before numbers and after commas; MICA files from Windows end in \r.
    expected = ((Identifier(CATEGORY, "COND_BR"), Identifier(OPCODE, "ADD")),)
    assert parse("0,0,CATEGORY,COND_BR\n0,1,OPCODE,ADD\n").groups == expected
    assert parse("  0,   0,  CATEGORY, COND_BR\r\n0, 1, OPCODE, ADD").groups == expected
    assert parse("0, 1, OPCODE, ADD\n0, 0, CATEGORY, COND_BR\n").groups == expected


def test_comments_and_empty_lines_mean_nothing() -> None:
    assert parse("# mine\n\n0, 0, OPCODE, ADD\n   \n").groups == ((Identifier(OPCODE, "ADD"),),)


def test_names_are_not_checked_without_a_vocabulary() -> None:
    assert parse("0, 0, CATEGORY, ELSEWHERE\n", None).groups == ((Identifier(CATEGORY, "ELSEWHERE"),),)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("nonsense\n", 1, "'nonsense' is not two numbers, a type and a name with commas between"),
        ("0, 0, CATEGORY\n", 1, "'0, 0, CATEGORY' is not two numbers, a type and a name with commas between"),
        (
            "0, 0, CATEGORY,\n",
            1,
            "'0, 0, CATEGORY,' is not two numbers, a type and a name with commas between",
        ),
        ("x, 0, CATEGORY, SHIFT\n", 1, "'x, 0, CATEGORY, SHIFT' is not two numbers"),
        ("0; 0; CATEGORY; SHIFT\n", 1, "'0; 0; CATEGORY; SHIFT' is not two numbers"),
        ("0, 0, CATEGROY, SHIFT\n", 1, "unknown type 'CATEGROY'; did you mean 'CATEGORY'?"),
        ("0, 0, opcode, ADD\n", 1, "unknown type 'opcode'; did you mean 'OPCODE'?"),
        ("0, 0, XYZ, ADD\n", 1, "unknown type 'XYZ'."),
        ("0, 0, SPECIAL, mem_reed\n", 1, "unknown special 'mem_reed'; did you mean 'mem_read'?"),
        (
            "0, 0, CATEGORY, COND_BRANCH\n",
            1,
            "no instruction is of category 'COND_BRANCH'; did you mean 'COND_BR'?",
        ),
        ("0, 0, CATEGORY, binary\n", 1, "no instruction is of category 'binary'; did you mean 'BINARY'?"),
        ("0, 0, OPCODE, CALL_NEER\n", 1, "no instruction is called 'CALL_NEER'; did you mean 'CALL_NEAR'?"),
        (
            "0, 0, OPCODE, REP_MOVSB\n",
            1,
            "operations are named without their prefixes; write 'MOVSB' for 'REP_MOVSB'",
        ),
        (
            "0, 0, OPCODE, ADD_LOCK\n",
            1,
            "operations are named without their prefixes; write 'ADD' for 'ADD_LOCK'",
        ),
        ("1, 0, OPCODE, ADD\n", 1, "group 1 where 0 was expected: groups are numbered from 0, in order"),
        ("-1, 0, OPCODE, ADD\n", 1, "group -1 where 0 was expected"),
        ("0, 0, OPCODE, ADD\n2, 0, OPCODE, ADD\n", 2, "group 2 where 0 or 1 was expected"),
        ("0, 0, OPCODE, ADD\n1, 0, OPCODE, ADD\n0, 1, OPCODE, ADD\n", 3, "group 0 where 1 or 2 was expected"),
        (
            "#\n0, 0, OPCODE, ADD\n\n0, 0, OPCODE, MOVSB\n",
            4,
            "group 0 has an identifier 0 already, in line 2",
        ),
        ("0, -1, OPCODE, ADD\n", 1, "identifier -1: identifiers are numbered from 0"),
        (
            "0, 0, OPCODE, ADD\n0, 2, OPCODE, MOVSB\n",
            2,
            "identifier 2 of group 0, which has 2, numbered from 0",
        ),
    ],
)
def test_bad_lines(text: str, line: int, reason: str) -> None:
    with pytest.raises(LiveproError) as caught:
        parse(text)
    assert caught.value.cause.startswith(f"groups.spec:{line}: {reason}")
    assert caught.value.remedy == "A line reads 'gid, sgid, TYPE, name'."
    assert caught.value.status == 2


@pytest.mark.parametrize("text", ["", "# nothing\n\n"])
def test_a_file_without_groups(text: str) -> None:
    with pytest.raises(LiveproError, match=r"groups\.spec specifies no instruction types\."):
        parse(text)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "groups.spec"
    file.write_text("0, 0, OPCODE, ADD\n0, 1, OPCODE, SUBB\n")
    assert len(itypes_spec.read(str(file)).groups[0]) == 2
    with pytest.raises(LiveproError) as caught:
        itypes_spec.read(str(file), WORDS)
    assert caught.value.cause.startswith(f"{file}:2: no instruction is called 'SUBB'")
    with pytest.raises(LiveproError, match=r"missing\.spec"):
        itypes_spec.read(str(tmp_path / "missing.spec"))
    with pytest.raises(LiveproError):
        itypes_spec.read(str(tmp_path))
