"""The time zones that plans and expressions name: where Spark's Java has other rules for one (``java_zones.py``), rows
that ask for it at such an instant are refused; where that cannot be told row by row, the plan is.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from sweeparea.infra import zones
from sweeparea.infra.errors import UnfitSetupError
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import nodes
from sweeparea.operators.sql import zone_texts
from sweeparea.operators.sql.expressions import Expr
from sweeparea.spark_jobs.spark import java_zones
from sweeparea.spark_jobs.spark.java_zones import ALWAYS, DAY, EPOCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def require(spark: SparkSession, everywhere: Iterable[str], guardable: Iterable[str] = ()) -> None:
    """The same for zones by their names: ``everywhere`` those whose rules must not differ at any instant from 1970 to
    2100, ``guardable`` those that are guarded, which Java must know.
    """
    begin, end = ((day - EPOCH.date()).days * DAY for day in (zones.FIRST, zones.LAST))
    refused = [(name, (begin, end)) for name in everywhere] + [(name, None) for name in guardable]
    for name, years in sorted(refused, key=str):
        spans = java_zones.differences(spark, name)
        if years is not None:
            spans = [(a, b) for a, b in spans if (b is None or b > years[0]) and (a is None or a < years[1])]
        elif tuple(spans) != ALWAYS:
            continue
        if spans:
            raise UnfitSetupError(f"{_told_of(name, spans)} Nothing was computed.")


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


def guarded_text(spark: SparkSession, text: str) -> str:
    """The same for one expression."""
    spans = {
        name: java_zones.differences(spark, name) for name in _named(text) - zone_texts.elsewhere(text, zones.names())
    }
    text = zone_texts.bounded(text, spans, lambda name: _told_of_row(name, spans[name]))
    if not zone_texts.varies(text):
        return text
    refused = java_zones.differing(spark)
    return zone_texts.guarded(text, refused, _told("{zone}")) if refused else text


def zones_of(plan: Plan) -> frozenset[str]:
    """The zones that a query names: in its plan and in its constraints."""
    return frozenset().union(*_uses_of(plan))


def rules(names: Iterable[str], before: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """By each zone that a query names (``zones_of``) the rules by which its results were computed (``zones.digest``):
    those of ``before``, as its ledger row has them, and those of now.
    """
    return {name: sorted({*before.get(name, ()), zones.digest(name)}) for name in sorted(names)}


def _uses_of(plan: Plan) -> tuple[set[str], set[str]]:
    # looked for once in a plan, whose slices follow each other
    global _OF_LAST
    last, found = _OF_LAST
    if last is not plan:
        everywhere, guardable = _uses(plan.root)
        found = (everywhere.union(*(_named(c.condition.sql) for c in plan.constraints)), guardable)
        _OF_LAST = (plan, found)
    return found


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


def _texts(value: Any, node: Node) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part, node)
    elif is_dataclass(value) and (value is node or not isinstance(value, Node)):
        for field in fields(value):
            yield from _texts(getattr(value, field.name), node)


def _named(text: str) -> set[str]:
    return zone_texts.named(text, zones.names()) - {"UTC"}


def _zoned(text: str) -> bool:
    return zone_texts.varies(text) or bool(_named(text))


def _told(name: str, more: str = "") -> str:
    return (
        f"The time zone {name}: Spark's Java has other rules than release {zones.release()} of the IANA database, by"
        f" which SweepArea computes{more}. Give Spark a Java with rules of today (a newer update of it, or Oracle's"
        " TZUpdater), or write an offset that does not change, as in 'Etc/GMT-3'."
    )


def _told_of_row(name: str, spans: zone_texts.Spans) -> str:
    return _told(name, f"{_listed(spans)}, and a row asks for them there")


def _told_of(name: str, spans: zone_texts.Spans) -> str:
    if tuple(spans) == ALWAYS:
        return f"The time zone {name}: Spark's Java does not know it. Give Spark a newer update of Java."
    return _told(name, _listed(spans))


def _listed(spans: zone_texts.Spans) -> str:
    def day(second: int) -> str:
        return str((EPOCH + dt.timedelta(seconds=second)).date())

    texts = []
    for first, past in list(spans)[:3]:
        until = "" if past is None else f" until {day(past - 1)}"
        texts.append(f"{'' if first is None else f' from {day(first)}'}{until}")
    return f"; they differ{','.join(texts)}{' and later' if len(spans) > 3 else ''}"


_OF_LAST: tuple[Plan | None, tuple[set[str], set[str]]] = (None, (set(), set()))
