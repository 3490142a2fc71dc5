"""Units of time that a window may be written in."""

from __future__ import annotations

from sweeparea.operators.time.domain import MICROS

CALENDAR_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
"""What Tumbling By takes."""
UNITS = tuple(unit.lower() + "s" for unit in MICROS)


def calendar_unit(text: str) -> str | None:
    """``month`` of ``Month`` or ``MONTHS``; None for what is no unit of the calendar."""
    unit = text.lower().removesuffix("s")
    return unit if unit in CALENDAR_UNITS else None


def is_unit(word: str) -> bool:
    """Whether a word is a unit of time, of a fixed length or of the calendar."""
    return word.lower() in (*UNITS, *(u.removesuffix("s") for u in UNITS)) or calendar_unit(word) is not None
