"""Time zones by the rules of the package ``tzdata``, whatever the machine's own database says.

Python's ``zoneinfo`` takes the system's rules first, and those of a machine that is not kept up to date are old: a
bucket would begin elsewhere there. The lock file pins the package, so rules change with the installation alone.

Others about zones: ``cql/text/zone_names.py`` names as they are written, ``operators/time/wall_clock.py`` calendar
buckets, ``operators/sql/zone_texts.py`` zones in texts of Spark SQL, ``spark_jobs/spark/java_zones.py`` where Spark's
Java has other rules, ``spark_jobs/spark/zone_guards.py`` what is refused there.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import struct
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Changes = tuple[tuple[int, int, int], ...]
FIRST, LAST = dt.date(1970, 1, 1), dt.date(2100, 1, 1)
"""Between these days rules are compared: of earlier times releases often differ."""
_DAY = 86_400
_NONE, _SECOND = dt.timedelta(), dt.timedelta(seconds=1)


@cache
def names() -> frozenset[str]:
    """All zones that there are."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text("utf-8").split())


@cache
def zone(name: str) -> ZoneInfo:
    """The zone of that IANA name. ZoneInfoNotFoundError if there is none."""
    if name not in names():
        raise ZoneInfoNotFoundError(f"No time zone found with key {name}")
    with _file(name).open("rb") as file:
        return ZoneInfo.from_file(file, name)


def release() -> str:
    """The release of the IANA database that the rules are of, as ``2026b``."""
    from tzdata import IANA_VERSION

    return IANA_VERSION


def changes(name: str, first: dt.date, last: dt.date) -> Changes:
    """When a zone's offset becomes another between two days, in order: (instant, offset before, offset after), all in
    seconds, the instant since 1970 UTC.
    """
    return _changes(_file(name).read_bytes(), first, last)


@cache
def digest(name: str) -> str:
    """A short text that tells the rules of a zone from others."""
    begin = dt.datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=dt.UTC).astimezone(zone(name)).utcoffset()
    return hashlib.sha256(repr((begin, changes(name, FIRST, LAST))).encode()).hexdigest()[:8]


def changed(before: Mapping[str, Collection[str]]) -> list[str]:
    """The zones whose rules were others: ``before`` has by each zone the digests that its rules had."""
    return [name for name in before if name in names() and {*before[name]} - {digest(name)}]


@cache
def _changes(data: bytes, first: dt.date, last: dt.date) -> Changes:
    # by the zone's file: many zones are links to others
    here = ZoneInfo.from_file(io.BytesIO(data))

    def offset(second: int) -> int:
        return (dt.datetime.fromtimestamp(second, here).utcoffset() or _NONE) // _SECOND

    begin, end = ((day - dt.date(1970, 1, 1)).days * _DAY for day in (first, last))
    listed, repeats = _transitions(data)
    found = {at for at in listed if begin < at <= end}
    low = max([begin, *listed])
    before = offset(low)
    while repeats and low < end:  # behind what the file lists, a rule repeats each year: summer time lasts weeks
        high = min(low + 14 * _DAY, end)
        after = offset(high)
        if before != after:
            a, b = low, high
            while b - a > 1:
                middle = (a + b) // 2
                a, b = (middle, b) if offset(middle) == before else (a, middle)
            found.add(b)
        low, before = high, after
    told = ((at, offset(at - 1), offset(at)) for at in sorted(found))
    return tuple((at, before, after) for at, before, after in told if before != after)


def _transitions(data: bytes) -> tuple[tuple[int, ...], bool]:
    """The instants that a TZif file lists, and whether a rule follows them that changes the clock (RFC 9636)."""
    at, width = 0, 4
    while True:
        version = data[at + 4]
        utc, std, leap, times, types, letters = struct.unpack_from(">6l", data, at + 20)
        body = at + 44
        at = body + times * (width + 1) + types * 6 + letters + leap * (width + 4) + std + utc
        if width == 8 or version == 0:
            return struct.unpack_from(f">{times}{'q' if width == 8 else 'l'}", data, body), b"," in data[at:]
        width = 8  # from version 2 on the same follows in 64 bits


def _file(name: str) -> Traversable:
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
