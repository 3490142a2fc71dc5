"""Interval literals that Spark's own parser refuses: a unit or a number that is none, formats, ranges."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from sweeparea.cql.syntax.dialect.intervals import AMOUNTS
from sweeparea.cql.text.errors import ParseError, Place, nearest
from sweeparea.operators.time.domain import MICROS

_MONTHS = {"year": 12, "month": 1}
_MICROS = {unit.lower(): size for unit, size in reversed(MICROS.items())}
_UNITS = (*_MONTHS, *_MICROS)
_FIELDS = ("day", "hour", "minute", "second")
_MOST = {True: 2**31 - 1, False: 2**63 - 1}
"""The greatest interval, of months and of microseconds."""
_NUMBER = re.compile(r"(?P<sign>[+-]?)\s*(?P<whole>\d*)(?P<fraction>\.\d*)?", re.ASCII)
_PAIR = re.compile(r"\s*(?P<value>[+-]?\s*(?:\d+(?:\.\d*)?|\.\d+))\s+(?P<unit>[A-Za-z]+)(?=\s|$)", re.ASCII)
_PLAIN = "Write INTERVAL 6 HOURS"


def fault(node: exp.Interval, place: Place) -> ParseError | None:
    """What is wrong with an interval literal; None if nothing is."""
    amounts, unit = node.meta.get(AMOUNTS), node.args.get("unit")
    if amounts is None:
        return None
    value, quoted, first = amounts[0]
    if not first:
        found = _pairs(value)
        if found is None:
            hint = "Write INTERVAL '6' HOUR or INTERVAL '1 day 6 hours'"
            return ParseError(f"'{value}' is no interval", place, hint)
        return _sum(found, place)
    if isinstance(unit, exp.IntervalSpan) and len(amounts) == 1:
        return _fields(value, quoted, first.lower(), unit.expression.name.lower(), place)
    return _sum([(value, unit) for value, _, unit in amounts], place)


def _pairs(text: str) -> list[tuple[str, str]] | None:
    """The numbers of a text with their units; None if it is none such."""
    rest, found = re.sub(r"(?i)^\s*interval\s", "", text), []
    while match := _PAIR.match(rest):
        found.append((match["value"], match["unit"]))
        rest = rest[match.end() :]
    return None if rest.strip() or not found else found


def _sum(amounts: list[tuple[str, str]], place: Place) -> ParseError | None:
    total, kinds = Fraction(0), set()
    for value, written in amounts:
        unit = written.lower().removesuffix("s")
        number = _NUMBER.fullmatch(value)
        if unit == "nanosecond":
            return _too_fine(value, place)
        if unit not in _UNITS:
            three = f"Write INTERVAL {3 * int(value)} MONTHS" if value.isdigit() else "Write months"
            hint = three if unit == "quarter" else nearest(unit, _UNITS) or f"Units are {', '.join(_UNITS)}"
            return ParseError(f"{written} is no unit of an INTERVAL", place, hint)
        if number is None or not (number["whole"] or (number["fraction"] or "")[1:]):
            return ParseError(f"'{value}' is no number of {unit}s", place, _PLAIN)
        if number["fraction"] is not None and unit != "second":
            what = f"{value} {written} has a fraction, which an INTERVAL takes of seconds alone"
            return ParseError(what, place, "Write it in a smaller unit")
        if len(number["fraction"] or "") > 10:
            return ParseError(f"{value} {written} is too fine", place, "A point takes at most nine digits behind it")
        amount = Fraction(f"{number['whole'] or 0}{number['fraction'] or ''}".rstrip("."))
        total += (-amount if number["sign"] == "-" else amount) * (_MONTHS.get(unit) or _MICROS[unit])
        kinds.add(unit in _MONTHS)
    if len(kinds) > 1:
        hint = "Add two, one after the other: t + INTERVAL 1 MONTH + INTERVAL 1 DAY"
        return ParseError("an INTERVAL holds years and months, or days and less, not both", place, hint)
    return None if abs(total) <= _MOST[kinds.pop()] else _too_long(place)


def _fields(value: str, quoted: bool, first: str, last: str, place: Place) -> ParseError | None:
    """``'1 02:03:04.5' DAY TO SECOND`` and its shorter forms, ``'1-2' YEAR TO MONTH``."""
    span = f"{first} TO {last}".upper()
    months = (first, last) == ("year", "month")
    days = first in _FIELDS and last in _FIELDS and _FIELDS.index(first) < _FIELDS.index(last)
    if not months and not days:
        hint = "Write DAY TO SECOND, HOUR TO MINUTE, YEAR TO MONTH or the like"
        return ParseError(f"INTERVAL {span} is no interval", place, hint)
    example = "'1-2' YEAR TO MONTH" if months else "'1 02:03:04' DAY TO SECOND"
    if not quoted:
        return ParseError(f"INTERVAL .. {span} needs a text in quotes", place, f"Write INTERVAL {example}")
    units = (first, last) if months else _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
    between = {"month": "-", "hour": " ", "minute": ":", "second": ":"}
    pattern = r"[+-]{0,2}(\d+)"
    for unit in units[1:]:
        digits = r"(\d+)" if months else r"(\d{1,2}(?:\.\d{1,9})?)" if unit == "second" else r"(\d{1,2})"
        pattern += between[unit] + digits
    match = re.fullmatch(pattern, value, re.ASCII)
    rest = match.groups()[1:] if match is not None else ()
    limits = {"month": 12, "hour": 24}
    if match is None or any(Fraction(t) >= limits.get(u, 60) for t, u in zip(rest, units[1:], strict=True)):
        return ParseError(f"'{value}' does not fit {span}", place, f"Write INTERVAL {example}")
    sizes = _MONTHS if months else _MICROS
    total = sum((Fraction(t) * sizes[u] for t, u in zip(match.groups(), units, strict=True)), Fraction(0))
    return None if total <= _MOST[months] else _too_long(place)


def _too_fine(value: str, place: Place) -> ParseError:
    count = int(value) if re.fullmatch(r"[+-]?\d+", value, re.ASCII) else 1
    return ParseError(
        "Spark's intervals are no finer than microseconds",
        place,
        f"Write INTERVAL {count // 1_000} MICROSECONDS"
        if count and count % 1_000 == 0
        else "Write INTERVAL 1 MICROSECOND or more",
    )


def _too_long(place: Place) -> ParseError:
    hint = "An INTERVAL ends at 106,751,991 days, and of months at 2,147,483,647"
    return ParseError("the INTERVAL is longer than Spark can hold", place, hint)
