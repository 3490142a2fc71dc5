"""Subqueries as values: scalar ones, and marks: whether a subquery has a row (EXISTS), or one that passes a test (IN,
ANY).

A value or mark is a global aggregate over the subquery, joined beside the outer rows.
"""

from __future__ import annotations

from sweeparea.cql.binding.expressions.quantified import Test, enclosed
from sweeparea.cql.binding.subqueries.attaching import Attach, Attaching, Subquery
from sweeparea.cql.binding.subqueries.correlation import Peeled, has_one_row, members, peel, witnesses
from sweeparea.cql.binding.subqueries.keyed import equal, one_for_one
from sweeparea.cql.functions import types
from sweeparea.cql.rewrites.conditions import all_of, column
from sweeparea.operators.nodes import Aggregate, AggregateCall, Join
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr

TRUE = Expr("TRUE", "TRUE")


class SubqueryValues:
    """Makes values of subqueries."""

    def __init__(self, attaching: Attaching) -> None:
        self.attaching, self.new_column = attaching, attaching.new_column

    def scalar(self, subquery: Subquery) -> tuple[Expr, Attach]:
        """The value of a scalar subquery: NULL of no row, an error of more than one."""
        peeled = peel(subquery.node, subquery.columns)
        if not has_one_row(peeled.node):
            value = self.new_column(subquery.columns[0].label, subquery.columns[0].type)
            call = AggregateCall("SINGLE_VALUE", column(subquery.columns[0]))
            peeled = Peeled(Aggregate(subquery.node, (), ((value, call),), global_=True), [column(value)])
        value, attach = self.attaching.value(peeled, subquery)
        return value, attach

    def exists(self, subquery: Subquery) -> tuple[Expr, Attach]:
        """Whether a subquery has a row."""
        peeled = peel(subquery.node, ())
        if has_one_row(peeled.node):
            guards = [Expr(f"coalesce({g.sql}, FALSE)", g.text, g.columns) for g in peeled.guards]
            return self.attaching.value(Peeled(peeled.node, [all_of(guards) or TRUE]), subquery)
        count = self.new_column("count(*)", "bigint")
        counted = Aggregate(witnesses(subquery.node), (), ((count, AggregateCall("COUNT")),), global_=True)
        found = Expr(f"`{count.id}` > 0L", "EXISTS", frozenset({count.id}))
        return self.attaching.value(Peeled(counted, [found]), subquery)

    def contains(self, values: list[tuple[Expr, str | None]], test: Test, subquery: Subquery) -> tuple[Expr, Attach]:
        """Whether a subquery has a row that passes a test against ``values`` (with their types), in three-valued logic:
        NULL where none does and one with NULL might."""
        found = self._look_up(values, subquery) if test.is_equality else self._extremes(values, test, subquery)
        if found is not None:
            return found
        node, theirs = members(subquery.node, subquery.columns)
        condition = test.of([v for v, _ in values], theirs)
        equals, unknown = self.new_column("equal", "bigint"), self.new_column("unknown", "bigint")
        counts = (
            (equals, f"IF({condition.sql}, 1, NULL)"),
            (unknown, f"IF(({condition.sql}) IS NULL, 1, NULL)"),
        )
        calls = tuple((c, AggregateCall("COUNT", Expr(sql, condition.text, condition.columns))) for c, sql in counts)
        result = Expr(
            f"CASE WHEN `{equals.id}` > 0L THEN TRUE WHEN `{unknown.id}` > 0L THEN NULL ELSE FALSE END",
            f"ANY ({condition.text})",
            frozenset({equals.id, unknown.id}),
        )
        return self.attaching.value(
            Peeled(Aggregate(node, (), calls, global_=True), [result]), subquery, correlated=True
        )

    def _look_up(self, values: list[tuple[Expr, str | None]], subquery: Subquery) -> tuple[Expr, Attach] | None:
        """``contains`` by equality alone: the distinct values of the subquery, and how many rows and NULLs it has."""
        if len(values) != 1:
            return None
        node, (theirs,) = members(subquery.node, subquery.columns)
        outer = frozenset(c.id for c in subquery.outer)
        [(value, type_)], own = values, subquery.columns[0]
        if theirs.columns & outer or not one_for_one(type_, own.type):
            return None
        keyed = self.attaching.keyed(node, subquery.outer)
        if keyed is None:
            return None
        keys = list(keyed.keys.items())
        labels = {o.id: o for o in subquery.outer}

        def grouped(more: tuple[tuple[Column, Expr], ...], calls: tuple[tuple[Column, AggregateCall], ...]):
            fresh = [self.new_column(c.label, c.type) for _, c in keys]
            own_keys = tuple((f, column(c)) for f, (_, c) in zip(fresh, keys, strict=True))
            made = Aggregate(keyed.node, (*own_keys, *more), calls, global_=not keys and not more)
            return made, [equal(column(labels[o]), column(f)) for f, (o, _) in zip(fresh, keys, strict=True)]

        found, rows, known = (
            self.new_column(n, t) for n, t in ((own.label, own.type), ("n", "bigint"), ("k", "bigint"))
        )
        distinct, matching = grouped(((found, theirs),), ())
        counts = ((rows, AggregateCall("COUNT")), (known, AggregateCall("COUNT", theirs)))
        totals, same_group = grouped((), counts)

        def attach(plan: Node) -> Node:
            plan = Join(plan, distinct, all_of([*matching, equal(enclosed(value), column(found))]), JoinKind.LEFT)
            return Join(plan, totals, all_of(same_group), JoinKind.LEFT) if keys else Join(plan, totals)

        sql = (
            f"CASE WHEN `{found.id}` IS NOT NULL THEN TRUE WHEN coalesce(`{rows.id}`, 0L) = 0L THEN FALSE "
            f"WHEN ({value.sql}) IS NULL OR `{known.id}` < `{rows.id}` THEN NULL ELSE FALSE END"
        )
        columns = frozenset({found.id, rows.id, known.id}) | value.columns
        return Expr(sql, f"{value.text} IN (SELECT {theirs.text} ..)", columns), attach

    def _extremes(
        self, values: list[tuple[Expr, str | None]], test: Test, subquery: Subquery
    ) -> tuple[Expr, Attach] | None:
        """``contains`` by an order: the greatest or least value of the subquery passes if any does."""
        [(value, type_)], own = values, subquery.columns[0]
        if not test.extremes or not _one_order(type_, own.type):
            return None
        node, (theirs,) = members(subquery.node, subquery.columns)
        made = [(self.new_column(f.lower(), own.type), AggregateCall(f, theirs)) for f in test.extremes]
        rows, known = self.new_column("n", "bigint"), self.new_column("k", "bigint")
        counts = ((rows, AggregateCall("COUNT")), (known, AggregateCall("COUNT", theirs)))
        passed = [test.of([value], [column(c)]) for c, _ in made]
        sql = (
            f"CASE WHEN {' OR '.join(p.sql for p in passed)} THEN TRUE WHEN `{rows.id}` = 0L THEN FALSE "
            f"WHEN ({value.sql}) IS NULL OR `{known.id}` < `{rows.id}` THEN NULL ELSE FALSE END"
        )
        columns = frozenset({rows.id, known.id}).union(*(p.columns for p in passed))
        result = Expr(sql, f"{value.text} {test.sign} ANY (SELECT {theirs.text} ..)", columns)
        return self.attaching.value(Peeled(Aggregate(node, (), (*made, *counts), global_=True), [result]), subquery)


def _one_order(a: str | None, b: str | None) -> bool:
    """Whether values of two types compare as values of the second alone do, so that its extremes stand for all."""
    if a is None or b is None:
        return False
    return (types.family(a) == types.family(b)) and (a == b or types.family(a) != "other") and not b.startswith("map")
