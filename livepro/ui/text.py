"""Numbers, bars and names as text, the same in every table."""

from __future__ import annotations

EIGHTHS = " ▏▎▍▌▋▊▉"
SCALES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def grouped(value: int) -> str:
    """`value` with thousands separators."""
    return f"{value:,}"


def scaled(value: float) -> str:
    """`value` in three significant digits: 987, 12.3 k, 4.56 M."""
    for scale, letter in SCALES:
        if value >= scale * 0.9995:
            short = value / scale
            digits = 2 if short < 9.995 else 1 if short < 99.95 else 0
            return f"{short:.{digits}f} {letter}"
    return f"{value:.0f}"


def percent(part: int, whole: int) -> str:
    """`part` of `whole`: 12.3 %; a part too small to show is not rounded to nothing."""
    if not whole or not part:
        return "-"
    share = 100 * part / whole
    if share < 0.05:
        return "<0.1 %"
    return "100 %" if part == whole else f"{min(share, 99.9):.1f} %"


def duration(seconds: float) -> str:
    """0.12 s, 12.3 s, 2:05 min, 1:02:05 h."""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def bar(share: float, width: int, ascii_only: bool = False) -> str:
    """A bar of up to `width` columns for a `share` of 0 to 1; something for every share above 0."""
    if share <= 0:
        return ""
    if ascii_only:
        return "#" * max(1, round(share * width))
    eighths = max(1, round(min(share, 1.0) * width * 8))
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def shortened(text: str, width: int, ascii_only: bool = False) -> str:
    """`text` in at most `width` columns, its middle left out: both ends of a C++ name tell something."""
    if len(text) <= width:
        return text
    dots = ".." if ascii_only else "…"
    head = (width - len(dots) + 1) // 2
    tail = width - len(dots) - head
    return text[:head] + dots + (text[-tail:] if tail else "")


def printable(text: str, ascii_only: bool = False) -> str:
    """`text` without what a terminal would take for a command (or could not show): names of threads and
    functions are the target's, and may hold anything."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "?" if ascii_only else "\ufffd" for c in text)


def plural(number: int, noun: str, many: str = "") -> str:
    """`1 thread`, `4 threads`, `2 processes` (`many` where adding an s is wrong)."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
