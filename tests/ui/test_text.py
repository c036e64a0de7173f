from __future__ import annotations

import pytest

from livepro.ui.text import bar, duration, percent, plural, scaled, shortened


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00 k"),
        (9_994, "9.99 k"),
        (9_995, "10.0 k"),
        (12_345, "12.3 k"),
        (99_950, "100 k"),
        (999_499, "999 k"),
        (999_500, "1.00 M"),
        (4_560_000_000, "4.56 G"),
        (7e15, "7000 T"),
    ],
)
def test_scaled(value: float, text: str) -> None:
    assert scaled(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 10, "-"),
        (0, 0, "-"),
        (1, 3, "33.3 %"),
        (1, 10**6, "<0.1 %"),
        (10**6 - 1, 10**6, "99.9 %"),  # all but one is not all
        (5, 5, "100 %"),
    ],
)
def test_percent(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.1234, "0.12 s"),
        (12.34, "12.3 s"),
        (59.94, "59.9 s"),
        (75, "1:15 min"),
        (3599.6, "1:00:00 h"),
        (3725, "1:02:05 h"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, ""), (1, "████"), (0.5, "██"), (0.53125, "██▏"), (0.0001, "▏"), (2.0, "████")]
)
def test_bar(share: float, text: str) -> None:
    assert bar(share, 4) == text


def test_bar_in_ascii() -> None:
    assert bar(0.5, 4, ascii_only=True) == "##"
    assert bar(0.001, 4, ascii_only=True) == "#"


def test_shortened() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefgh", 5) == "ab…gh"
    assert shortened("abcdefgh", 6, ascii_only=True) == "ab..gh"
    assert [len(shortened("abcdefgh", n)) for n in range(1, 9)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_plural() -> None:
    assert [plural(1, "thread"), plural(2, "thread"), plural(1234, "process", "processes")] == [
        "1 thread",
        "2 threads",
        "1,234 processes",
    ]
