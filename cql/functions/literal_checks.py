"""Literals that Spark's own parser refuses: numbers out of their range, dates that are none.

Left to Spark they would be told of only when a query first runs, and without their place.
"""

from __future__ import annotations

import calendar
import re
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from sweeparea.cql.functions import interval_checks
from sweeparea.cql.text.errors import ParseError, Place

_WIDTHS = {"Y": ("TINYINT", 8), "S": ("SMALLINT", 16), "L": ("BIGINT", 64)}
_SUFFIXED = re.compile(r"(?P<number>[\d.]+(?:[eE][+-]?\d+)?)(?P<suffix>BD|[YSLFD])", re.IGNORECASE)
_TYPED = re.compile(r"(?P<kind>DATE|TIMESTAMP(?:_NTZ|_LTZ)?)\s*r?(?P<quote>['\"])(?P<text>.*)(?P=quote)", re.I | re.S)
_DAY = re.compile(
    r"\s*[+-]?(?P<year>\d{4,7})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})(?!\d)(?P<rest>.*))?)?\s*", re.DOTALL
)
_CLOCK = re.compile(r"[ T](?P<hour>\d{1,2})(?::(?P<minute>\d{1,2}))?(?::(?P<second>\d{1,2}))?(?!\d).*", re.DOTALL)
_TIME = re.compile(r"\s*T?\d{1,2}:\d{1,2}.*", re.DOTALL | re.IGNORECASE)
MAX_DIGITS = 38
"""Digits of Spark's DECIMAL."""


def fault(node: exp.Expr, text: str, place: Place) -> ParseError | None:
    """What is wrong with a literal whose characters are ``text``; None if nothing is, or if the node is none."""
    if isinstance(node, exp.Interval):
        return interval_checks.fault(node, place)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _number(text, place)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return _number(text, place) or _typed(text, place)
    return None


def _number(text: str, place: Place) -> ParseError | None:
    suffixed = _SUFFIXED.fullmatch(text)
    number, suffix = (suffixed["number"], suffixed["suffix"].upper()) if suffixed else (text, "")
    try:
        value = Decimal(number)
    except InvalidOperation:
        return None
    if suffix in _WIDTHS:
        type_, bits = _WIDTHS[suffix]
        if not number.isdigit() or value >= 2 ** (bits - 1):
            return ParseError(f"{text} is no {type_}", place, f"It ends at {2 ** (bits - 1) - 1}; write a wider type")
    exact = suffix == "BD" or (not suffix and "e" not in number.lower())
    _, digits, exponent = value.as_tuple()
    whole = max(len(digits) + exponent, 0) + max(-exponent, 0) if isinstance(exponent, int) else 0
    if exact and whole > MAX_DIGITS:
        return ParseError(
            f"{text[:60]} has more than the {MAX_DIGITS} digits that a DECIMAL can hold", place, "Write a DOUBLE: 1e40"
        )
    return None


def _typed(text: str, place: Place) -> ParseError | None:
    typed = _TYPED.fullmatch(text)
    if typed is None or typed["text"].strip().lower() in ("epoch", "now", "today", "yesterday", "tomorrow"):
        return None
    kind, day = typed["kind"].upper(), _DAY.fullmatch(typed["text"])
    fits = day is not None and _is_day(day) and (kind == "DATE" or _is_clock(day["rest"] or ""))
    if fits or (kind != "DATE" and _TIME.fullmatch(typed["text"])):
        return None
    example = "DATE '2013-01-31'" if kind == "DATE" else f"{kind} '2013-01-31 12:00:00'"
    return ParseError(f"'{typed['text']}' is no {kind}", place, f"Write {example}")


def _is_day(day: re.Match[str]) -> bool:
    """Whether the Gregorian calendar, continued to all years, has the day."""
    year, month, number = int(day["year"]) % 400 + 400, int(day["month"] or 1), int(day["day"] or 1)
    return 1 <= month <= 12 and 1 <= number <= calendar.monthrange(year, month)[1]


def _is_clock(text: str) -> bool:
    """Whether the time of day behind a date is one, as far as it is written as a time of day."""
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return True
    return int(clock["hour"]) < 24 and int(clock["minute"] or 0) < 60 and int(clock["second"] or 0) < 60
