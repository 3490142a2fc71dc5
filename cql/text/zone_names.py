"""Names of time zones as they are written: those that there are, those that Spark takes besides, and what to write."""

from __future__ import annotations

import re

from sweeparea.cql.text.errors import nearest
from sweeparea.infra import zones

_OFFSET = re.compile(r"(?:Z|(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?)", re.IGNORECASE)
"""What is read as an offset elsewhere: ``+05:30``, ``UTC-3``, ``Z``."""
_OF_SPARK = re.compile(r"Z|(?:UTC|GMT|UT)?[+-]\d{1,2}(?::?\d{1,2}(?::?\d{2})?)?|UT|SystemV/.*")
_SHORT = frozenset(
    "ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST".split()  # noqa: SIM905
)
"""Names that only Java has."""


def spark_knows(text: str) -> bool:
    """Whether a function of Spark's takes a text for a time zone; it minds capitals."""
    return text in zones.names() or text in _SHORT or _OF_SPARK.fullmatch(text) is not None


def suggestion(text: str) -> str:
    """The zone that a text, which is none, may mean; "" if that cannot be told.

    >>> suggestion("europe/berlin"), suggestion("UTC-3"), suggestion("utc"), suggestion("x")
    ('Europe/Berlin', 'Etc/GMT+3', 'UTC', '')
    """
    if offset := _OFFSET.fullmatch(text):
        hours, minutes = int(offset[2] or 0), offset[3] or "00"
        if minutes == "00" and hours < 13:  # POSIX counts from there to Greenwich
            return f"Etc/GMT{'-' if offset[1] == '+' else '+'}{hours}" if hours else "UTC"
        return ""
    return next((name for name in zones.names() if name.lower() == text.lower()), "")


def hint(text: str, before: str = "") -> str:
    """What to write for a text that is no zone."""
    if found := suggestion(text):
        return f"Write {before}'{found}'"
    if _OFFSET.fullmatch(text):
        return f"Write the name of a place that has this offset, as {before}'Asia/Kolkata'"
    known = nearest(text, sorted(zones.names())) if len(text) < 60 else ""
    return known or f"Write {before}'Europe/Berlin'"
