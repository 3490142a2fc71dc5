"""Whether a Spark would give the answers that ours gives: asked once a session, and once for each zone that is used.

Ours is started by ``infra/machine.py``; a server or cluster of somebody else has the language, the encoding and the
time-zone rules that he gave it. UPPER and LOWER follow the language of the JVM that computes them, the driver's where
an expression is constant, else an executor's, so both are asked; calendar windows follow Java's rules in Spark and
those of ``infra/zones.py`` in Python, and must not tell a day from another. What is passed is noted with the session.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from sweeparea.infra import zones
from sweeparea.infra.errors import UnfitError
from sweeparea.operators.logical import Node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCALE = "locale"
"""How the probe of language is noted."""
FROM, TO = dt.date(1970, 1, 1), dt.date(2100, 1, 1)
"""Between these days the rules of a zone are compared: of earlier times releases often differ."""

_ANSWERS = {
    # Turkish and Azeri i, Lithuanian dots; ASCII alone takes another way inside Spark
    "upper({} || 'i ß é')": "I SS É",
    "lower({} || 'I Ì É')": "i ì é",
    "initcap({} || 'iI é')": "Ii É",
    # digits of Arabic and others, separators
    "format_string('%d', 1204 + length({}))": "1204",
    "{} || CAST(INTERVAL '1 02:03:04' DAY TO SECOND AS STRING)": "INTERVAL '1 02:03:04' DAY TO SECOND",
}
_DAY = 86_400_000_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NAME = re.compile(r"[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+")


class Passed(Protocol):
    """What a session was probed for: a set, or its lease."""

    def __contains__(self, probe: object, /) -> bool: ...

    def add(self, probe: str, /) -> None: ...


def require_fit(spark: SparkSession, passed: Passed) -> None:
    """UnfitError where the language of Spark's driver or executors would change answers."""
    _SESSIONS[_identity(spark)] = passed
    if LOCALE in passed:
        return
    on = {"driver": "''", "executors": "substr(CAST(id AS STRING), 1, 0)"}
    columns = [expression.format(of) for of in on.values() for expression in _ANSWERS]
    rows = spark.range(0, 8, 1, 4).selectExpr(*(f"{c} AS c{i}" for i, c in enumerate(columns))).collect()
    wanted = list(_ANSWERS.values())
    for i, (where, option) in enumerate((("driver", "driver"), ("executors", "executor"))):
        for row in rows:
            found = list(row)[i * len(wanted) : (i + 1) * len(wanted)]
            for expression, is_, should in zip(_ANSWERS, found, wanted, strict=True):
                if is_ != should:
                    raise UnfitError(
                        f"The {where} of this Spark would change answers by its language:"
                        f" {expression.replace('{} || ', '').replace(' + length({})', '')} is {is_!r} there and not"
                        f" {should!r}. Give it spark.{option}.extraJavaOptions=-Duser.language=en -Duser.country=US and"
                        " start it again. Nothing was computed."
                    )
    passed.add(LOCALE)


def require_zones(spark: SparkSession, root: Node) -> None:
    """UnfitError where Spark's Java has other rules for a zone that the plan uses."""
    passed = _SESSIONS.setdefault(_identity(spark), set())
    for name in sorted(used(root)):
        probe = f"zone {name} {zones.release()}"
        if probe in passed:
            continue
        first = _difference(spark, name)
        if first is not None:
            raise UnfitError(
                f"The time zone {name}: Spark's Java has other rules than release {zones.release()} of the IANA"
                f" database, by which SweepArea computes; they differ first about {first}. Give Spark a Java with rules"
                " of today (a newer update of it, or Oracle's TZUpdater), or write an offset that does not change, as"
                " in 'Etc/GMT-3'. Nothing was computed."
            )
        passed.add(probe)


def used(root: Node) -> set[str]:
    """The zones that a plan names: of windows, and in texts of its expressions."""
    names: set[str] = set()
    for node in root.walk():
        for text in _texts(node, node):
            names |= zones.names() & {text, *_NAME.findall(text)}
    return {name for name in names if "/" in name or name in _window_zones(root)}


def _window_zones(root: Node) -> set[str]:
    specs = (getattr(node, "spec", None) for node in root.walk())
    return {zone for spec in specs if (zone := getattr(spec, "zone", None))} - {"UTC"}


def _texts(value: Any, node: Node) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part, node)
    elif is_dataclass(value) and (value is node or not isinstance(value, Node)):
        for field in fields(value):
            yield from _texts(getattr(value, field.name), node)


@cache
def _changes(name: str) -> dict[int, tuple[int, int]]:
    # the instants after which a zone's offset is another (microseconds), with the offsets before and after
    zone = zones.zone(name)

    def offset(second: int) -> int:
        at = (_EPOCH + dt.timedelta(seconds=second)).astimezone(zone).utcoffset()
        return (at or dt.timedelta()) // dt.timedelta(microseconds=1)

    found, day = {}, 86_400
    first, last = ((d - dt.date(1970, 1, 1)).days for d in (FROM, TO))
    before = offset(first * day)
    for number in range(first, last):
        after = offset((number + 1) * day)
        if after != before:
            low, high = number * day, (number + 1) * day
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            found[high * 1_000_000] = (before, after)
        before = after
    return found


def _difference(spark: SparkSession, name: str) -> dt.date | None:
    """The first day on which Spark's rules of a zone differ. One small job: a day's end against its beginning, and the
    instants of Python's changes against those before them.
    """
    changes = _changes(name)
    first, last = ((d - dt.date(1970, 1, 1)).days for d in (FROM, TO))
    instants = ", ".join(f"{at}L" for at in changes) or "0L"

    def offset(at: str) -> str:
        return f"unix_micros(from_utc_timestamp(timestamp_micros({at}), '{name}')) - ({at})"

    days = f"SELECT id * {_DAY} AS a, (id + 1) * {_DAY} AS b FROM range({first}, {last}, 1, 1)"
    exact = f"SELECT at - 1 AS a, at AS b FROM (SELECT explode(array({instants})) AS at)"
    text = f"SELECT a, b, {offset('a')} AS before, {offset('b')} AS after FROM ({days} UNION ALL {exact})"
    try:
        rows = spark.sql(f"SELECT * FROM ({text}) WHERE before <> after OR b - a = 1 OR a = {first * _DAY}").collect()
    except Exception as error:
        if "TIMEZONE" in str(error) or "ZoneRulesException" in str(error) or "DateTimeException" in str(error):
            return FROM
        raise
    spans = {(row.a, row.b): (row.before, row.after) for row in rows if row.before != row.after}
    start = zones.zone(name).utcoffset((_EPOCH + dt.timedelta(days=first)).astimezone(zones.zone(name)))
    ours = {(at - 1, at): offsets for at, offsets in changes.items()}
    for at, offsets in changes.items():
        begin = (at - 1) // _DAY * _DAY
        ours[begin, begin + _DAY] = offsets
    wrong = [span for span in spans.keys() | ours.keys() if spans.get(span) != ours.get(span)]
    if not wrong and not changes:  # a zone that never changes: its offset
        shown = [row.before for row in rows if row.a == first * _DAY]
        wrong = [(first * _DAY, 0)] if shown != [(start or dt.timedelta()) // dt.timedelta(microseconds=1)] else []
    return min((_EPOCH + dt.timedelta(microseconds=a)).date() for a, _ in wrong) if wrong else None


_SESSIONS: dict[str, Passed] = {}


def _identity(spark: Any) -> str:
    # of a classic session its application, of a Connect session its own id
    context = getattr(spark, "_jsparkSession", None)
    return spark.sparkContext.applicationId if context is not None else spark.session_id
