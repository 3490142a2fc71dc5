"""How what a subquery makes gets beside the outer rows: by keys, or by a domain of the outer columns that it reads.

The left join back is by value; what it finds nothing for has an empty subquery, of which COUNT is 0 (Kim 1982).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sweeparea.cql.binding.expressions.quantified import enclosed
from sweeparea.cql.binding.subqueries.correlation import FreeColumns, Peeled, has_one_row, identity, ids
from sweeparea.cql.binding.subqueries.dependent_join import (
    DependentJoin,
    Domain,
    NewColumn,
    empty_is_known,
    or_empty,
    same,
)
from sweeparea.cql.binding.subqueries.keyed import KeyedPlan, Keying, equal
from sweeparea.cql.rewrites.conditions import all_of, column, substitute
from sweeparea.cql.text.errors import Place
from sweeparea.operators.nodes import Aggregate, Join, OneRow, Project, Select
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr

Attach = Callable[[Node], Node]
"""Puts what a value needs beside the outer rows."""


@dataclass(frozen=True)
class Subquery:
    """A bound subquery. ``outer`` are the columns of the query right around it that it reads; those of queries further
    out stay free."""

    node: Node
    columns: tuple[Column, ...]
    outer: tuple[Column, ...]
    place: Place

    @property
    def correlated(self) -> bool:
        return bool(self.outer)


class Attaching:
    """Plans with subqueries beside them. ``new_column`` makes their columns."""

    def __init__(self, new_column: NewColumn) -> None:
        self.new_column = new_column
        self.free_columns = FreeColumns()

    def free(self, node: Node) -> frozenset[str]:
        """The ids that a plan reads without having them."""
        return self.free_columns.of(node)

    def domain(self, plan: Node, subquery: Node, place: Place) -> DependentJoin:
        free = self.free(subquery)
        outer = tuple(c for c in plan.columns if c.id in free)
        source = domain_source(plan, frozenset(c.id for c in outer), may_fail(subquery))
        return DependentJoin(Domain(source, outer, self.new_column), self.free_columns, place)

    def keyed(self, node: Node, outer: tuple[Column, ...]) -> KeyedPlan | None:
        return Keying({c.id: c for c in outer}, self.free_columns, self.new_column).of(node)

    def beside(self, plan: Node, other: Node) -> Node:
        return other if isinstance(plan, OneRow) else Join(plan, other)

    def value(self, peeled: Peeled, subquery: Subquery, correlated: bool = False) -> tuple[Expr, Attach]:
        """The value of a plan with one row for each outer row, and how the plan gets beside them."""
        value = peeled.values[0]
        if peeled.guards:
            guard = all_of(peeled.guards)
            assert guard is not None
            value = Expr(f"CASE WHEN {guard.sql} THEN {value.sql} END", value.text, guard.columns | value.columns)
        below = peeled.node
        if not isinstance(below, Aggregate):
            return enclosed(value), lambda plan: plan
        if not subquery.correlated and not correlated:
            return enclosed(value), lambda plan: self.beside(plan, below)
        known = empty_is_known(below.calls)
        if known:
            value = substitute(value, {c.id: or_empty(c, call) for c, call in below.calls})
        return enclosed(value), lambda plan: self._joined_back(plan, below, known, subquery)

    def _joined_back(self, plan: Node, one: Aggregate, known: bool, subquery: Subquery) -> Node:
        """The outer rows, each beside its row of a global aggregate; NULLs where that has no input."""
        outer = tuple(c for c in plan.columns if c.id in self.free(one))
        if not outer:
            return self.beside(plan, one)
        # a key that no outer row has could hold more than one value: then there would be an error that no row asked for
        single = any(call.function == "SINGLE_VALUE" for _, call in one.calls)
        keyed = None if single or not known else self.keyed(one.input, outer)
        if keyed is not None and not any(e.columns & {c.id for c in outer} for e in one.expressions()):
            fresh = {o: self.new_column(c.label, c.type) for o, c in keyed.keys.items()}
            grouped = Aggregate(keyed.node, tuple((fresh[o], column(c)) for o, c in keyed.keys.items()), one.calls)
            names = {c.id: c for c in outer}
            return Join(
                plan, grouped, all_of(equal(column(names[o]), column(f)) for o, f in fresh.items()), JoinKind.LEFT
            )
        domain = self.domain(plan, one, subquery.place)
        if known:
            below, keys, values = domain.grouped(one)
            outputs = [(c, column(values[c.id])) for c, _ in one.calls]
            below = Project(below, (*outputs, *identity(list(keys.values()))))
        else:
            below, keys = domain.over_padded(one)
        return Join(plan, below, same([(column(o), column(keys[o.id])) for o in outer]), JoinKind.LEFT)


def may_fail(node: Node) -> bool:
    """Whether a subquery is an error for some outer rows: it must not be computed for rows that are not there."""
    return any(call.function == "SINGLE_VALUE" for n in node.walk() if isinstance(n, Aggregate) for _, call in n.calls)


def domain_source(plan: Node, outer: frozenset[str], exact: bool) -> Node:
    """A part of ``plan`` whose columns ``outer`` have at least the values that they have in ``plan``; ``exact``: just
    these. So a plan does not double with each subquery: what was put beside its rows before is left out.
    """
    if isinstance(plan, Join) and outer <= ids(plan.left):
        beside = plan.kind == JoinKind.LEFT or (
            plan.kind == JoinKind.INNER and has_one_row(plan.right) and (plan.condition is None or not exact)
        )
        if beside or (plan.kind in (JoinKind.SEMI, JoinKind.ANTI) and not exact):
            return domain_source(plan.left, outer, exact)
    if isinstance(plan, Select):
        below = domain_source(plan.input, outer, exact)
        if below is plan.input:
            return plan
        if plan.condition.columns <= ids(below):
            return Select(below, plan.condition)
        return plan if exact else below
    return plan
