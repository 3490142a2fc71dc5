"""Calendar buckets in a zone's wall clock: where the hour, day, month, .. that holds an instant begins and ends.

A bucket begins at each instant at which the zone's wall clock shows the start of a unit; the start of a day or of a
longer unit that it shows twice counts once, the first time. A start that the clock skips counts at the instant that it
would have had without the skip. Hence days of 23, 24 and 25 hours, and buckets that follow each other without gaps.
Weeks begin on Monday (ISO 8601). Instants are microseconds since 1970-01-01 UTC, in the proleptic Gregorian calendar.

Each function is given twice: over Python integers, with the zone's rules of ``infra/zones.py``, and as Spark SQL, with
those of Spark's Java, which are compared before a slice uses them. SQL comes as steps ``(column, expression)``, to be
computed one after the other: each may use those before it, so no text is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from sweeparea.infra.zones import zone as _zone

_DAY = 86_400_000_000
CLOCK_UNITS = {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
"""Units that the clock counts, in microseconds."""
DATE_UNITS = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
"""Units that the calendar counts, and the most days that one has."""
UNITS = (*CLOCK_UNITS, *DATE_UNITS)
RANGE = 1 << 62
"""Buckets are known for instants up to so many microseconds before and after 1970, some 146,000 years."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE = 146_097 * _DAY  # the Gregorian calendar repeats after 400 years, weekdays included
_FIRST, _LAST = -970 * 365 * _DAY, 6000 * 365 * _DAY  # no zone has a rule of its own before or after


def _near(micros: int) -> int:
    # how far to move an instant into the years that Python's datetime knows; the rules repeat with the calendar there
    if micros < _FIRST:
        return -((micros - _FIRST) // _CYCLE) * _CYCLE
    return -((micros - _LAST) // _CYCLE) * _CYCLE if micros > _LAST + _CYCLE else 0


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _offset(micros: int, zone: str) -> int:
    at = (_EPOCH + timedelta(microseconds=micros)).astimezone(_zone(zone))
    return _micros(at.utcoffset() or timedelta())


def _midnight(day: date, zone: str) -> int:
    # fold 0: of two midnights the first, of a skipped one that by the offset before
    at = datetime(day.year, day.month, day.day, tzinfo=_zone(zone))
    return (day - date(1970, 1, 1)).days * _DAY - _micros(at.utcoffset() or timedelta())


def _first_day(day: date, unit: str) -> date:
    match unit:
        case "week":
            return day - timedelta(day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=day.month - (day.month - 1) % 3, day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            return day


def _date_starts(micros: int, unit: str, zone: str) -> list[int]:
    # the starts of the units before, of and after the local date; two after, since a date may be shown again or skipped
    local = date(1970, 1, 1) + timedelta((micros + _offset(micros, zone)) // _DAY)
    first = _first_day(local, unit)
    days = [_first_day(first - timedelta(1), unit), first]
    for _ in range(2):
        days.append(_first_day(days[-1] + timedelta(DATE_UNITS[unit]), unit))
    return [_midnight(day, zone) for day in days]


def bucket(micros: int, unit: str, zone: str) -> tuple[int, int]:
    """``[start, end)`` of the bucket that holds the instant.

    >>> [b // 3_600_000_000 for b in bucket(1_711_846_800_000_000, "day", "Europe/Berlin")]  # 31 March 2024: 23 hours
    [475511, 475534]
    """
    shift = _near(micros)
    micros += shift
    if unit in DATE_UNITS:
        starts = _date_starts(micros, unit, zone)
        start, end = max(b for b in starts if b <= micros), min(b for b in starts if b > micros)
    else:
        start, end = _clock_start(micros, unit, zone), _clock_end(micros, unit, zone)
    return start - shift, end - shift


def _clock_end(micros: int, unit: str, zone: str) -> int:
    length, here = CLOCK_UNITS[unit], _offset(micros, zone)
    end = micros + length - (micros + here) % length
    skip = _offset(end, zone) - here
    if skip % length == 0:
        return end
    if skip > 0:  # is the next start among what the clock skips, or shown after it?
        return end if _offset(end - skip, zone) == here else end - skip
    again = micros + length - (micros + here + skip) % length
    return again if _offset(again, zone) == here + skip else again + length


def _clock_start(micros: int, unit: str, zone: str) -> int:
    length, here = CLOCK_UNITS[unit], _offset(micros, zone)
    start = micros - (micros + here) % length
    skip = here - _offset(start, zone)
    if skip % length == 0:
        return start
    if skip > 0:
        return start + skip if start + skip <= micros else start + skip - length
    before = micros - (micros + here - skip) % length
    return before if _offset(before, zone) == here - skip else before - length


def longest(unit: str) -> int:
    """Microseconds that no bucket exceeds: a clock unit may be cut by a change of offset, a date shown twice."""
    return 2 * CLOCK_UNITS[unit] if unit in CLOCK_UNITS else (DATE_UNITS[unit] + 1) * _DAY


def _local_sql(micros: str, zone: str) -> str:
    return f"unix_micros(from_utc_timestamp(timestamp_micros({micros}), '{zone}'))"


def _offset_sql(micros: str, zone: str) -> str:
    return f"({_local_sql(micros, zone)} - {micros})"


def _midnight_sql(day: str, zone: str) -> str:
    return f"unix_micros(to_utc_timestamp(timestamp_micros(unix_date({day}) * {_DAY}L), '{zone}'))"


_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _later_sql(day: str, unit: str, count: int) -> str:
    if unit in _MONTHS:
        return f"add_months({day}, {count * _MONTHS[unit]})"
    return f"date_add({day}, {count * DATE_UNITS[unit]})"


Steps = Sequence[tuple[str, str]]


def _date_sql(micros: str, unit: str, zone: str, prefix: str, which: Sequence[int]) -> tuple[list[str], Steps]:
    # the columns that hold the starts of some units, 0 being that of the local date, and the steps to them
    local, day = f"{prefix}local", f"{prefix}day"
    date_ = f"date_from_unix_date(CAST(({local} - pmod({local}, {_DAY}L)) DIV {_DAY}L AS INT))"
    first = date_ if unit == "day" else f"CAST(trunc({date_}, '{unit.upper()}') AS DATE)"
    names = [f"{prefix}unit{i}" for i in range(len(which))]
    starts = [(name, _midnight_sql(_later_sql(day, unit, i), zone)) for name, i in zip(names, which, strict=True)]
    return names, [(local, _local_sql(micros, zone)), (day, first), *starts]


def end_sql(micros: str, unit: str, zone: str, prefix: str) -> Steps:
    """Steps whose last column is the end of the bucket that holds the instant ``micros`` (an expression)."""
    if unit in DATE_UNITS:
        b, steps = _date_sql(micros, unit, zone, prefix, (0, 1, 2))
        end = f"CASE WHEN {b[0]} > {micros} THEN {b[0]} WHEN {b[1]} > {micros} THEN {b[1]} ELSE {b[2]} END"
        return [*steps, (f"{prefix}end", end)]
    length = f"{CLOCK_UNITS[unit]}L"
    here, end, skip = f"{prefix}here", f"{prefix}plain", f"{prefix}skip"
    again = f"({micros} + {length} - pmod({micros} + {here} + {skip}, {length}))"
    return [
        (here, _offset_sql(micros, zone)),
        (end, f"{micros} + {length} - pmod({micros} + {here}, {length})"),
        (skip, f"{_offset_sql(end, zone)} - {here}"),
        (
            f"{prefix}end",
            f"CASE WHEN pmod({skip}, {length}) = 0 THEN {end}"
            f" WHEN {skip} > 0 THEN IF({_offset_sql(f'({end} - {skip})', zone)} = {here}, {end}, {end} - {skip})"
            f" ELSE IF({_offset_sql(again, zone)} = {here} + {skip}, {again}, {again} + {length}) END",
        ),
    ]


def start_sql(micros: str, unit: str, zone: str, prefix: str) -> Steps:
    """Steps whose last column is the start of the bucket that holds the instant ``micros`` (an expression)."""
    if unit in DATE_UNITS:
        b, steps = _date_sql(micros, unit, zone, prefix, (1, 0, -1))
        start = f"CASE WHEN {b[0]} <= {micros} THEN {b[0]} WHEN {b[1]} <= {micros} THEN {b[1]} ELSE {b[2]} END"
        return [*steps, (f"{prefix}start", start)]
    length = f"{CLOCK_UNITS[unit]}L"
    here, start, skip = f"{prefix}here", f"{prefix}plain", f"{prefix}skip"
    before = f"({micros} - pmod({micros} + {here} - {skip}, {length}))"
    shown = f"IF({start} + {skip} <= {micros}, {start} + {skip}, {start} + {skip} - {length})"
    return [
        (here, _offset_sql(micros, zone)),
        (start, f"{micros} - pmod({micros} + {here}, {length})"),
        (skip, f"{here} - {_offset_sql(start, zone)}"),
        (
            f"{prefix}start",
            f"CASE WHEN pmod({skip}, {length}) = 0 THEN {start} WHEN {skip} > 0 THEN {shown}"
            f" ELSE IF({_offset_sql(before, zone)} = {here} - {skip}, {before}, {before} - {length}) END",
        ),
    ]
