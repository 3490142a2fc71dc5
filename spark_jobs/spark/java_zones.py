"""When Spark's Java has other rules for a time zone than Python has (``infra/zones.py``): asked once a session for each
zone that is used.

Calendar windows follow Java's rules in Spark and ours in Python, and must not tell a day from another.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sweeparea.infra import zones
from sweeparea.operators.sql import zone_texts
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.probes import asked_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_DAY, PAST_DAY = dt.date(1840, 1, 1), dt.date(2130, 1, 1)
"""Between these days rules are compared, for all time: no zone had any before 1844, and none lists changes beyond 2087.
What then is repeated each year depends on the weekday of its first of January and whether it is a leap year: 2101 to
2128 are years of every kind.
"""
DAY = 86_400
ALWAYS: zone_texts.Spans = ((None, None),)
"""Java does not know the zone."""
_SPANS = 8
"""How many intervals a text tells at most, in which rules differ."""
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MONTH = 28 * DAY
_SHORT = {"EST", "HST", "MST"}
"""Zones that Java does not list and Spark knows all the same, as offsets that never change."""


def differences(spark: SparkSession, name: str) -> zone_texts.Spans:
    """When Spark's Java has other rules for a zone, in whole days: none for most. It is noted with the session."""

    def ask() -> str:
        found = _differences(spark, name)
        return " ".join(f"{'' if a is None else a}/{'' if b is None else b}" for a, b in found)

    pairs = (pair.split("/") for pair in asked_once(spark, f"zone {name} {zones.release()} differs: ", ask).split())
    return tuple((int(a) if a else None, int(b) if b else None) for a, b in pairs)


def differing(spark: SparkSession) -> frozenset[str]:
    """The zones for which Spark's Java has other rules; those that it does not know fail by themselves. A job of some
    seconds, once a session.
    """
    listed = asked_once(spark, f"zones {zones.release()} but ", lambda: ",".join(sorted(_differing(spark))))
    return frozenset(filter(None, listed.split(",")))


def _differing(spark: SparkSession) -> frozenset[str]:
    import pyarrow as pa

    [[text]] = spark.sql("SELECT java_method('java.time.ZoneId', 'getAvailableZoneIds')").collect()
    names = sorted(zones.names() & {*re.split(r"[\[\], ]+", text), *_SHORT})
    changes = {name: zones.changes(name, zones.FIRST, zones.LAST) for name in names}
    begin, end = ((day - EPOCH.date()).days for day in (zones.FIRST, zones.LAST))
    # exactly about each change that Python knows, and by months for those that it does not
    points = [(n, at, after) for n in names for at, _, after in changes[n]]
    points += [(n, at - 1, before) for n in names for at, before, _ in changes[n]]
    points += [(n, begin * DAY, _offset(n, begin * DAY)) for n in names]
    columns = zip(*points, strict=True)
    table = pa.table(dict(zip(("zone", "at", "should"), map(list, columns), strict=True)))
    wrong = frames.from_arrow(spark, table).where(f"{_offset_sql('at', 'zone')} <> should").select("zone").distinct()
    listed = ", ".join(f"'{name}'" for name in names)
    months = spark.sql(
        f"SELECT zone, id AS month, {_offset_sql(f'id * {_MONTH}', 'zone')} AS before,"
        f" {_offset_sql(f'(id + 1) * {_MONTH}', 'zone')} AS after FROM (SELECT explode(array({listed})) AS zone)"
        f" CROSS JOIN range({begin * DAY // _MONTH}, {end * DAY // _MONTH}, 1, 4)"
    ).where("before <> after")
    theirs: dict[str, set[tuple[int, int, int]]] = {}
    for row in months.toArrow().to_pylist():
        theirs.setdefault(row["zone"], set()).add((row["month"], row["before"], row["after"]))
    found = {name for name in names if theirs.get(name, set()) != _months(changes[name])}
    return frozenset(found | {row.zone for row in wrong.collect()})


def _months(changes: zones.Changes) -> set[tuple[int, int, int]]:
    """The months of 28 days, at whose ends the offset is another than at their beginnings."""
    found: dict[int, tuple[int, int]] = {}
    whole = (zones.LAST - EPOCH.date()).days * DAY // _MONTH
    for at, before, after in changes:
        month = (at - 1) // _MONTH
        if month >= whole:
            continue
        found[month] = (found.get(month, (before, before))[0], after)
    return {(month, before, after) for month, (before, after) in found.items() if before != after}


def _offset(name: str, second: int) -> int:
    at = (EPOCH + dt.timedelta(seconds=second)).astimezone(zones.zone(name)).utcoffset()
    return (at or dt.timedelta()) // dt.timedelta(seconds=1)


def _offset_sql(at: str, zone: str) -> str:
    return f"unix_seconds(from_utc_timestamp(timestamp_seconds({at}), {zone})) - ({at})"


def _changes(name: str) -> zones.Changes:
    return zones.changes(name, FIRST_DAY, PAST_DAY)


def _differences(spark: SparkSession, name: str) -> zone_texts.Spans:
    """One small job: Spark's offset at the end of each day against its beginning, and about the instants of Python's
    changes. A day differs where one of these does.
    """
    changes, zone = _changes(name), f"'{name}'"
    first, last = ((day - EPOCH.date()).days for day in (FIRST_DAY, PAST_DAY))
    instants = ", ".join(f"{at}L" for at, _, _ in changes) or f"{first * DAY}L"
    days = f"SELECT id * {DAY} AS a, (id + 1) * {DAY} AS b FROM range({first}, {last}, 1, 1)"
    exact = f"SELECT at - 1 AS a, at AS b FROM (SELECT explode(array({instants})) AS at)"
    text = f"SELECT a, b, {_offset_sql('a', zone)} AS before, {_offset_sql('b', zone)} AS after"
    try:
        rows = spark.sql(
            f"SELECT * FROM ({text} FROM ({days} UNION ALL {exact}))"
            f" WHERE before <> after OR b - a = 1 OR a = {first * DAY}"
        ).toArrow()
    except Exception as error:
        if "TIMEZONE" in str(error) or "ZoneRulesException" in str(error) or "DateTimeException" in str(error):
            return ALWAYS
        raise
    theirs: dict[int, int] = {}
    points: dict[int, tuple[int, int]] = {}
    for row in rows.to_pylist():
        if row["b"] - row["a"] == 1:
            points[row["b"]] = row["before"], row["after"]
        elif row["a"] == first * DAY:
            theirs[first] = row["before"]
        if row["b"] - row["a"] == DAY and row["before"] != row["after"]:
            theirs[row["b"] // DAY] = row["after"]
    ours = {first: _offset(name, first * DAY)}
    for at, _, after in changes:
        ours[-(-at // DAY)] = after
    wrong = [(at // DAY, at // DAY + 1) for at, before, after in changes if points.get(at) != (before, after)]
    wrong += _unequal(ours, theirs, last)
    return _spans(wrong, first, last)


def _unequal(ours: Mapping[int, int], theirs: Mapping[int, int], last: int) -> Iterator[tuple[int, int]]:
    # the days at whose beginning or end the offsets, each given from some days on, are not the same
    here = there = None
    bounds = sorted(ours.keys() | theirs.keys())
    for day, past in zip(bounds, [*bounds[1:], last], strict=True):
        here, there = ours.get(day, here), theirs.get(day, there)
        if here != there:
            yield day - 1, past


def _spans(days: Iterable[tuple[int, int]], first: int, last: int) -> zone_texts.Spans:
    merged: list[tuple[int, int]] = []
    for day, past in sorted(days):
        if merged and day <= merged[-1][1]:
            day, past = merged[-1][0], max(past, merged.pop()[1])
        merged.append((day, past))
    repeats = (zones.LAST - EPOCH.date()).days
    spans: list[tuple[int | None, int | None]] = []
    for day, past in merged:
        spans.append((None if day <= first else day * DAY, past * DAY if past <= repeats else None))
        if past > repeats:  # what differs in those years does so again
            break
    if len(spans) > _SPANS:  # as between summer and winter in all years: those from some year on are one
        spans[_SPANS - 1 :] = [(spans[_SPANS - 1][0], spans[-1][1])]
    return tuple(spans)
