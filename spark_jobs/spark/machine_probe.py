"""Whether a Spark would give the answers that ours gives: asked once a session, and once for each zone that is used.

Ours is started by ``infra/machine.py``; a server or cluster of somebody else has the language, the encoding and the
time-zone rules that he gave it. UPPER and LOWER follow the language of the JVM that computes them, the driver's where
an expression is constant, else an executor's, so both are asked; calendar windows follow Java's rules in Spark and
those of ``infra/zones.py`` in Python, and must not tell a day from another. Where they differ, rows that ask for them
at such an instant are refused. What is passed is noted with the session.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from sweeparea.infra import zones
from sweeparea.infra.errors import UnfitSetupError
from sweeparea.operators.plan import zone_texts
from sweeparea.operators.plan.expressions import Expr
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import nodes
from sweeparea.spark_jobs.spark import frames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCALE = "locale"
"""How the probe of language is noted."""
FROM, TO = dt.date(1840, 1, 1), dt.date(2130, 1, 1)
"""Between these days rules are compared, for all time: no zone had any before 1844, and none lists changes beyond 2087.
What then is repeated each year depends on the weekday of its first of January and whether it is a leap year: 2101 to
2128 are years of every kind.
"""

_ANSWERS = {
    # Turkish and Azeri i, Lithuanian dots; ASCII alone takes another way inside Spark
    "upper({} || 'i ß é')": "I SS É",
    "lower({} || 'I Ì É')": "i ì é",
    "initcap({} || 'iI é')": "Ii É",
    # digits of Arabic and others, separators
    "format_string('%d', 1204 + length({}))": "1204",
    "{} || CAST(INTERVAL '1 02:03:04' DAY TO SECOND AS STRING)": "INTERVAL '1 02:03:04' DAY TO SECOND",
}
_DAY = 86_400
_ALWAYS: zone_texts.Spans = ((None, None),)
"""Java does not know the zone."""
_SPANS = 8
"""How many intervals a text tells at most, in which rules differ."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MONTH = 28 * _DAY
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
    """UnfitSetupError where Spark's Java has other rules for a zone that the plan uses where ``guarded`` does not reach
    it, or does not know one.
    """
    require(spark, *_uses(root))


def require_zones_of(spark: SparkSession, plan: Plan) -> None:
    """The same for a plan and its constraints, which are never guarded."""
    require(spark, *_uses_of(plan))


def require_zones_in(spark: SparkSession, texts: Iterable[str]) -> None:
    """The same for expressions alone, which ``guarded_text`` has changed."""
    for text in texts:
        named = _named(text)
        everywhere = zone_texts.elsewhere(text, named)
        require(spark, everywhere, named - everywhere)


def _named(text: str) -> set[str]:
    return zone_texts.named(text, zones.names()) - {"UTC"}


def require(spark: SparkSession, everywhere: Iterable[str], guardable: Iterable[str] = ()) -> None:
    """The same for zones by their names: ``everywhere`` those whose rules must not differ at any instant from 1970 to
    2100, ``guardable`` those that are guarded, which Java must know.
    """
    begin, end = ((day - _EPOCH.date()).days * _DAY for day in (zones.FIRST, zones.LAST))
    refused = [(name, (begin, end)) for name in everywhere] + [(name, None) for name in guardable]
    for name, years in sorted(refused, key=str):
        spans = differences(spark, name)
        if years is not None:
            spans = [(a, b) for a, b in spans if (b is None or b > years[0]) and (a is None or a < years[1])]
        elif tuple(spans) != _ALWAYS:
            continue
        if spans:
            raise UnfitSetupError(f"{_told_of(name, spans)} Nothing was computed.")


def differences(spark: SparkSession, name: str) -> zone_texts.Spans:
    """When Spark's Java has other rules for a zone, in whole days: none for most. It is noted with the session."""

    def ask() -> str:
        found = _differences(spark, name)
        return " ".join(f"{'' if a is None else a}/{'' if b is None else b}" for a, b in found)

    pairs = (pair.split("/") for pair in _asked_once(spark, f"zone {name} {zones.release()} differs: ", ask).split())
    return tuple((int(a) if a else None, int(b) if b else None) for a, b in pairs)


def _asked_once(spark: SparkSession, probe: str, ask: Callable[[], str]) -> str:
    # the answer to a probe, as it is noted with the session
    passed = _SESSIONS.setdefault(_identity(spark), set())
    for noted in passed:
        if noted.startswith(probe):
            return noted.removeprefix(probe)
    answer = ask()
    passed.add(probe + answer)
    return answer


def _told(name: str, more: str = "") -> str:
    return (
        f"The time zone {name}: Spark's Java has other rules than release {zones.release()} of the IANA database, by"
        f" which SweepArea computes{more}. Give Spark a Java with rules of today (a newer update of it, or Oracle's"
        " TZUpdater), or write an offset that does not change, as in 'Etc/GMT-3'."
    )


def _told_of_row(name: str, spans: zone_texts.Spans) -> str:
    return _told(name, f"{_listed(spans)}, and a row asks for them there")


def _told_of(name: str, spans: zone_texts.Spans) -> str:
    if tuple(spans) == _ALWAYS:
        return f"The time zone {name}: Spark's Java does not know it. Give Spark a newer update of Java."
    return _told(name, _listed(spans))


def _listed(spans: zone_texts.Spans) -> str:
    def day(second: int) -> str:
        return str((_EPOCH + dt.timedelta(seconds=second)).date())

    texts = []
    for first, past in list(spans)[:3]:
        until = "" if past is None else f" until {day(past - 1)}"
        texts.append(f"{'' if first is None else f' from {day(first)}'}{until}")
    return f"; they differ{','.join(texts)}{' and later' if len(spans) > 3 else ''}"


def _uses(root: Node) -> tuple[set[str], set[str]]:
    # the zones of a plan: those that must not differ anywhere, and those that are guarded wherever they are used
    guardable: set[str] = set()
    everywhere: set[str] = set()
    for node in nodes(root):
        guarded_texts = {expression.sql for expression in node.expressions()}
        if zone := getattr(getattr(node, "spec", None), "zone", None):
            guardable.add(zone)
        for text in _texts(node, node):
            named = _named(text)
            guardable |= named
            if named:
                # a window's zone is a text by itself, and its steps are guarded as they are made
                everywhere |= zone_texts.elsewhere(text, named) if text in guarded_texts else named - {text}
    return everywhere - {"UTC"}, guardable - everywhere - {"UTC"}


def zones_of(plan: Plan) -> frozenset[str]:
    """The zones that a query names: in its plan and in its constraints."""
    return frozenset().union(*_uses_of(plan))


def _uses_of(plan: Plan) -> tuple[set[str], set[str]]:
    # looked for once in a plan, whose slices follow each other
    global _OF_LAST
    last, found = _OF_LAST
    if last is not plan:
        everywhere, guardable = _uses(plan.root)
        found = (everywhere.union(*(_named(c.condition.sql) for c in plan.constraints)), guardable)
        _OF_LAST = (plan, found)
    return found


def rules(names: Iterable[str], before: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """By each zone that a query names (``zones_of``) the rules by which its results were computed (``zones.digest``):
    those of ``before``, as its ledger row has them, and those of now.
    """
    return {name: sorted({*before.get(name, ()), zones.digest(name)}) for name in sorted(names)}


def guarded(spark: SparkSession, root: Node) -> Node:
    """The plan, which fails by name in a row that asks for a zone at an instant for which Spark's Java has other rules;
    where the zone is in a column, if it has other rules at any instant from 1970 to 2100.
    """
    if not any(map(_zoned, (e.sql for node in nodes(root) for e in node.expressions()))):
        return root
    seen: dict[int, Node] = {}

    def change(expr: Expr) -> Expr:
        return replace(expr, sql=guarded_text(spark, expr.sql))

    def visit(node: Node) -> Node:
        if id(node) not in seen:
            one = node.with_inputs(tuple(visit(child) for child in node.inputs))
            odd = any(_zoned(e.sql) for e in one.expressions())
            seen[id(node)] = one.map_expressions(change) if odd else one
        return seen[id(node)]

    return visit(root)


def _zoned(text: str) -> bool:
    return zone_texts.varies(text) or bool(_named(text))


def guarded_text(spark: SparkSession, text: str) -> str:
    """The same for one expression."""
    spans = {name: differences(spark, name) for name in _named(text) - zone_texts.elsewhere(text, zones.names())}
    text = zone_texts.bounded(text, spans, lambda name: _told_of_row(name, spans[name]))
    if not zone_texts.varies(text):
        return text
    refused = differing(spark)
    return zone_texts.guarded(text, refused, _told("{zone}")) if refused else text


def differing(spark: SparkSession) -> frozenset[str]:
    """The zones for which Spark's Java has other rules; those that it does not know fail by themselves. A job of some
    seconds, once a session.
    """
    listed = _asked_once(spark, f"zones {zones.release()} but ", lambda: ",".join(sorted(_differing(spark))))
    return frozenset(filter(None, listed.split(",")))


def _differing(spark: SparkSession) -> frozenset[str]:
    import pyarrow as pa

    [[text]] = spark.sql("SELECT java_method('java.time.ZoneId', 'getAvailableZoneIds')").collect()
    names = sorted(zones.names() & {*re.split(r"[\[\], ]+", text), *_SHORT})
    changes = {name: zones.changes(name, zones.FIRST, zones.LAST) for name in names}
    begin, end = ((day - _EPOCH.date()).days for day in (zones.FIRST, zones.LAST))
    # exactly about each change that Python knows, and by months for those that it does not
    points = [(n, at, after) for n in names for at, _, after in changes[n]]
    points += [(n, at - 1, before) for n in names for at, before, _ in changes[n]]
    points += [(n, begin * _DAY, _offset(n, begin * _DAY)) for n in names]
    columns = zip(*points, strict=True)
    table = pa.table(dict(zip(("zone", "at", "should"), map(list, columns), strict=True)))
    wrong = frames.from_arrow(spark, table).where(f"{_offset_sql('at', 'zone')} <> should").select("zone").distinct()
    listed = ", ".join(f"'{name}'" for name in names)
    months = spark.sql(
        f"SELECT zone, id AS month, {_offset_sql(f'id * {_MONTH}', 'zone')} AS before,"
        f" {_offset_sql(f'(id + 1) * {_MONTH}', 'zone')} AS after FROM (SELECT explode(array({listed})) AS zone)"
        f" CROSS JOIN range({begin * _DAY // _MONTH}, {end * _DAY // _MONTH}, 1, 4)"
    ).where("before <> after")
    theirs: dict[str, set[tuple[int, int, int]]] = {}
    for row in months.toArrow().to_pylist():
        theirs.setdefault(row["zone"], set()).add((row["month"], row["before"], row["after"]))
    found = {name for name in names if theirs.get(name, set()) != _months(changes[name])}
    return frozenset(found | {row.zone for row in wrong.collect()})


def _months(changes: zones.Changes) -> set[tuple[int, int, int]]:
    """The months of 28 days, at whose ends the offset is another than at their beginnings."""
    found: dict[int, tuple[int, int]] = {}
    whole = (zones.LAST - _EPOCH.date()).days * _DAY // _MONTH
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


def _changes(name: str) -> zones.Changes:
    return zones.changes(name, FROM, TO)


def _differences(spark: SparkSession, name: str) -> zone_texts.Spans:
    """One small job: Spark's offset at the end of each day against its beginning, and about the instants of Python's
    changes. A day differs where one of these does.
    """
    changes, zone = _changes(name), f"'{name}'"
    first, last = ((day - _EPOCH.date()).days for day in (FROM, TO))
    instants = ", ".join(f"{at}L" for at, _, _ in changes) or f"{first * _DAY}L"
    days = f"SELECT id * {_DAY} AS a, (id + 1) * {_DAY} AS b FROM range({first}, {last}, 1, 1)"
    exact = f"SELECT at - 1 AS a, at AS b FROM (SELECT explode(array({instants})) AS at)"
    text = f"SELECT a, b, {_offset_sql('a', zone)} AS before, {_offset_sql('b', zone)} AS after"
    try:
        rows = spark.sql(
            f"SELECT * FROM ({text} FROM ({days} UNION ALL {exact}))"
            f" WHERE before <> after OR b - a = 1 OR a = {first * _DAY}"
        ).toArrow()
    except Exception as error:
        if "TIMEZONE" in str(error) or "ZoneRulesException" in str(error) or "DateTimeException" in str(error):
            return _ALWAYS
        raise
    theirs: dict[int, int] = {}
    points: dict[int, tuple[int, int]] = {}
    for row in rows.to_pylist():
        if row["b"] - row["a"] == 1:
            points[row["b"]] = row["before"], row["after"]
        elif row["a"] == first * _DAY:
            theirs[first] = row["before"]
        if row["b"] - row["a"] == _DAY and row["before"] != row["after"]:
            theirs[row["b"] // _DAY] = row["after"]
    ours = {first: _offset(name, first * _DAY)}
    for at, _, after in changes:
        ours[-(-at // _DAY)] = after
    wrong = [(at // _DAY, at // _DAY + 1) for at, before, after in changes if points.get(at) != (before, after)]
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
    repeats = (zones.LAST - _EPOCH.date()).days
    spans: list[tuple[int | None, int | None]] = []
    for day, past in merged:
        spans.append((None if day <= first else day * _DAY, past * _DAY if past <= repeats else None))
        if past > repeats:  # what differs in those years does so again
            break
    if len(spans) > _SPANS:  # as between summer and winter in all years: those from some year on are one
        spans[_SPANS - 1 :] = [(spans[_SPANS - 1][0], spans[-1][1])]
    return tuple(spans)


_SESSIONS: dict[str, Passed] = {}
_OF_LAST: tuple[Plan | None, tuple[set[str], set[str]]] = (None, (set(), set()))


def _identity(spark: Any) -> str:
    # of a classic session its application, of a Connect session its own id
    context = getattr(spark, "_jsparkSession", None)
    return spark.sparkContext.applicationId if context is not None else spark.session_id
