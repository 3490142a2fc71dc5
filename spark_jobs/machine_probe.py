"""Whether a Spark would give the answers that ours gives: asked once a session, and once for each zone that is used.

Ours is started by ``infra/machine.py``; a server or cluster of somebody else has the language, the encoding and the
time-zone rules that he gave it. UPPER and LOWER follow the language of the JVM that computes them, the driver's where
an expression is constant, else an executor's, so both are asked; calendar windows follow Java's rules in Spark and
those of ``infra/zones.py`` in Python, and must not tell a day from another. What is passed is noted with the session.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from sweeparea.infra import zones
from sweeparea.infra.errors import UnfitSetupError
from sweeparea.operators import zone_texts
from sweeparea.operators.logical import Expr, Node, Plan
from sweeparea.operators.sharing import nodes
from sweeparea.spark_jobs import frames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCALE = "locale"
"""How the probe of language is noted."""
FROM, TO = zones.FIRST, zones.LAST

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
_MONTH = 28 * 86_400
_SHORT = {"EST", "HST", "MST"}
"""Zones that Java does not list and Spark knows all the same, as offsets that never change."""


class Passed(Protocol):
    """What a session was probed for: a set, or its lease."""

    def __contains__(self, probe: object, /) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def add(self, probe: str, /) -> None: ...


def require_fit(spark: SparkSession, passed: Passed) -> None:
    """UnfitSetupError where the language of Spark's driver or executors would change answers."""
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
                    raise UnfitSetupError(
                        f"The {where} of this Spark would change answers by its language:"
                        f" {expression.replace('{} || ', '').replace(' + length({})', '')} is {is_!r} there and not"
                        f" {should!r}. Give it spark.{option}.extraJavaOptions=-Duser.language=en -Duser.country=US and"
                        " start it again. Nothing was computed."
                    )
    passed.add(LOCALE)


def require_zones(spark: SparkSession, root: Node) -> None:
    """UnfitSetupError where Spark's Java has other rules for a zone that the plan uses."""
    require(spark, used(root))


def require_zones_in(spark: SparkSession, texts: Iterable[str]) -> None:
    """The same for expressions alone."""
    require(spark, set().union(*map(_named, texts)))


def _named(text: str) -> set[str]:
    return zone_texts.named(text, zones.names()) - {"UTC"}


def require(spark: SparkSession, names: Iterable[str]) -> None:
    """The same for zones by their names."""
    passed = _SESSIONS.setdefault(_identity(spark), set())
    for name in sorted(names):
        probe = f"zone {name} {zones.release()}"
        if probe in passed:
            continue
        first = _difference(spark, name)
        if first is not None:
            raise UnfitSetupError(f"{_told(name, f'; they differ first about {first}')} Nothing was computed.")
        passed.add(probe)


def _told(name: str, more: str = "") -> str:
    return (
        f"The time zone {name}: Spark's Java has other rules than release {zones.release()} of the IANA database, by"
        f" which SweepArea computes{more}. Give Spark a Java with rules of today (a newer update of it, or Oracle's"
        " TZUpdater), or write an offset that does not change, as in 'Etc/GMT-3'."
    )


def used(root: Node) -> set[str]:
    """The zones that a plan names: of windows, and in texts of its expressions."""
    names: set[str] = set()
    for node in nodes(root):
        if zone := getattr(getattr(node, "spec", None), "zone", None):
            names.add(zone)
        for text in _texts(node, node):
            names |= zone_texts.named(text, zones.names())
    return names - {"UTC"}


def zones_of(plan: Plan) -> frozenset[str]:
    """The zones that a query names: in its plan and in its constraints. Looked for once in a plan, whose slices follow
    each other.
    """
    global _OF_LAST
    last, found = _OF_LAST
    if last is not plan:
        found = frozenset(used(plan.root).union(*(_named(c.condition.sql) for c in plan.constraints)))
        _OF_LAST = (plan, found)
    return found


def rules(names: Iterable[str], before: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """By each zone that a query names (``zones_of``) the rules by which its results were computed (``zones.digest``):
    those of ``before``, as its ledger row has them, and those of now.
    """
    return {name: sorted({*before.get(name, ()), zones.digest(name)}) for name in sorted(names)}


def guarded(spark: SparkSession, root: Node) -> Node:
    """The plan, which fails by name in a row that has the zone in a column, where that is a zone for which Spark's Java
    has other rules.
    """
    if not any(zone_texts.varies(e.sql) for node in nodes(root) for e in node.expressions()):
        return root
    refused = differing(spark)
    seen: dict[int, Node] = {}

    def change(expr: Expr) -> Expr:
        return replace(expr, sql=zone_texts.guarded(expr.sql, refused, _told("{zone}")))

    def visit(node: Node) -> Node:
        if id(node) not in seen:
            one = node.with_inputs(tuple(visit(child) for child in node.inputs))
            odd = any(zone_texts.varies(e.sql) for e in one.expressions())
            seen[id(node)] = one.map_expressions(change) if odd else one
        return seen[id(node)]

    return visit(root) if refused else root


def guarded_text(spark: SparkSession, text: str) -> str:
    """The same for one expression."""
    if not zone_texts.varies(text):
        return text
    refused = differing(spark)
    return zone_texts.guarded(text, refused, _told("{zone}")) if refused else text


def differing(spark: SparkSession) -> frozenset[str]:
    """The zones for which Spark's Java has other rules; those that it does not know fail by themselves. A job of some
    seconds, once a session.
    """
    passed = _SESSIONS.setdefault(_identity(spark), set())
    start = f"zones {zones.release()} but "
    for probe in passed:
        if probe.startswith(start):
            return frozenset(filter(None, probe.removeprefix(start).split(",")))
    found = _differing(spark)
    passed.add(start + ",".join(sorted(found)))
    return found


def _differing(spark: SparkSession) -> frozenset[str]:
    import pyarrow as pa

    [[text]] = spark.sql("SELECT java_method('java.time.ZoneId', 'getAvailableZoneIds')").collect()
    names = sorted(zones.names() & {*re.split(r"[\[\], ]+", text), *_SHORT})
    changes = {name: zones.changes(name, FROM, TO) for name in names}
    begin, end = ((day - _EPOCH.date()).days for day in (FROM, TO))
    # exactly about each change that Python knows, and by months for those that it does not
    points = [(n, at, after) for n in names for at, _, after in changes[n]]
    points += [(n, at - 1, before) for n in names for at, before, _ in changes[n]]
    points += [(n, begin * 86_400, _offset(n, begin * 86_400)) for n in names]
    columns = zip(*points, strict=True)
    table = pa.table(dict(zip(("zone", "at", "should"), map(list, columns), strict=True)))
    wrong = frames.from_arrow(spark, table).where(f"{_offset_sql('at', 'zone')} <> should").select("zone").distinct()
    listed = ", ".join(f"'{name}'" for name in names)
    months = spark.sql(
        f"SELECT zone, id AS month, {_offset_sql(f'id * {_MONTH}', 'zone')} AS before,"
        f" {_offset_sql(f'(id + 1) * {_MONTH}', 'zone')} AS after FROM (SELECT explode(array({listed})) AS zone)"
        f" CROSS JOIN range({begin * 86_400 // _MONTH}, {end * 86_400 // _MONTH}, 1, 4)"
    ).where("before <> after")
    theirs: dict[str, set[tuple[int, int, int]]] = {}
    for row in months.toArrow().to_pylist():
        theirs.setdefault(row["zone"], set()).add((row["month"], row["before"], row["after"]))
    found = {name for name in names if theirs.get(name, set()) != _months(changes[name])}
    return frozenset(found | {row.zone for row in wrong.collect()})


def _months(changes: zones.Changes) -> set[tuple[int, int, int]]:
    """The months of 28 days, at whose ends the offset is another than at their beginnings."""
    found: dict[int, tuple[int, int]] = {}
    whole = (TO - _EPOCH.date()).days * 86_400 // _MONTH
    for at, before, after in changes:
        month = (at - 1) // _MONTH
        if month >= whole:
            continue
        found[month] = (found.get(month, (before, before))[0], after)
    return {(month, before, after) for month, (before, after) in found.items() if before != after}


def _offset(name: str, second: int) -> int:
    at = (_EPOCH + dt.timedelta(seconds=second)).astimezone(zones.zone(name)).utcoffset()
    return (at or dt.timedelta()) // dt.timedelta(seconds=1)


def _offset_sql(at: str, zone: str) -> str:
    return f"unix_seconds(from_utc_timestamp(timestamp_seconds({at}), {zone})) - ({at})"


def _texts(value: Any, node: Node) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part, node)
    elif is_dataclass(value) and (value is node or not isinstance(value, Node)):
        for field in fields(value):
            yield from _texts(getattr(value, field.name), node)


def _changes(name: str) -> dict[int, tuple[int, int]]:
    # the instants after which a zone's offset is another (microseconds), with the offsets before and after
    return {
        at * 1_000_000: (before * 1_000_000, after * 1_000_000) for at, before, after in zones.changes(name, FROM, TO)
    }


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
_OF_LAST: tuple[Plan | None, frozenset[str]] = (None, frozenset())


def _identity(spark: Any) -> str:
    # of a classic session its application, of a Connect session its own id
    context = getattr(spark, "_jsparkSession", None)
    return spark.sparkContext.applicationId if context is not None else spark.session_id
