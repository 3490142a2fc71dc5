"""Subqueries as joins: conjuncts that are EXISTS, IN, ANY, ALL as semi and anti joins, LATERAL as the join it is.

Galindo-Legaria & Joshi 2001.
"""

from __future__ import annotations

from sweeparea.cql.binding.expressions.quantified import Test, negated
from sweeparea.cql.binding.subqueries.attaching import Attaching, Subquery
from sweeparea.cql.binding.subqueries.correlation import has_one_row, members, peel, witnesses
from sweeparea.cql.binding.subqueries.dependent_join import both, same
from sweeparea.cql.binding.subqueries.keyed import equal
from sweeparea.cql.binding.subqueries.pulled import pulled
from sweeparea.cql.binding.subqueries.values import SubqueryValues
from sweeparea.cql.rewrites.conditions import all_of, column
from sweeparea.operators.nodes import Join, Select
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Expr


class SubqueryJoins:
    """Joins plans with subqueries; ``kind`` is that of the join."""

    def __init__(self, attaching: Attaching, values: SubqueryValues) -> None:
        self.attaching, self.values = attaching, values

    def exists(self, plan: Node, subquery: Subquery, kind: JoinKind) -> Node:
        """The rows of ``plan`` for which a subquery has a row (``semi``) or none (``anti``)."""
        if has_one_row(peel(subquery.node, ()).node):
            mark, attach = self.values.exists(subquery)
            return Select(attach(plan), negated(mark) if kind == JoinKind.ANTI else mark)
        return self._matched(plan, witnesses(subquery.node), None, kind, subquery)

    def contains(self, plan: Node, values: list[Expr], subquery: Subquery, kind: JoinKind, test: Test) -> Node:
        """The rows of ``plan`` for whose ``values`` a row of the subquery passes the test (``semi``: IN, ANY), or none
        does (``anti``: NOT IN, ALL)."""
        node, theirs = members(subquery.node, subquery.columns)
        condition = test.of(values, theirs)
        if kind == JoinKind.ANTI:  # what might be equal is not certain to be different
            condition = Expr(f"coalesce({condition.sql}, TRUE)", condition.text, condition.columns)
        return self._matched(plan, node, condition, kind, subquery)

    def _matched(self, plan: Node, node: Node, condition: Expr | None, kind: JoinKind, subquery: Subquery) -> Node:
        outer = frozenset(c.id for c in subquery.outer)
        if not self.attaching.free(node) & outer:
            return Join(plan, node, condition, kind)
        found = pulled(self.attaching, node, outer)
        if found is not None:
            below, conditions = found
            return Join(plan, below, all_of([*conditions, *([] if condition is None else [condition])]), kind)
        keyed = self.attaching.keyed(node, subquery.outer)
        names = {c.id: c for c in subquery.outer}
        if keyed is not None:
            matching = all_of(equal(column(names[o]), column(c)) for o, c in keyed.keys.items())
            return Join(plan, keyed.node, both(matching, condition), kind)
        below, inner = self.attaching.domain(plan, node, subquery.place).of(node)
        matching = same([(column(names[o]), column(c)) for o, c in inner.items()])
        return Join(plan, below, both(matching, condition), kind)

    def lateral(self, plan: Node, subquery: Subquery, condition: Expr | None, kind: JoinKind) -> Node:
        """Each row of ``plan`` beside the rows of a subquery that sees its columns (``inner``, ``left``), or kept or
        dropped by whether there are any (``semi``, ``anti``)."""
        node = subquery.node
        outer = tuple(c for c in plan.columns if c.id in self.attaching.free(node))
        if not outer:
            return Join(plan, node, condition, kind)
        found = pulled(self.attaching, node, frozenset(c.id for c in outer))
        if found is not None:
            return Join(plan, found[0], both(all_of(found[1]), condition), kind)
        keyed = self.attaching.keyed(node, outer)
        if keyed is not None:
            names = {c.id: c for c in outer}
            matching = all_of(equal(column(names[o]), column(c)) for o, c in keyed.keys.items())
            return Join(plan, keyed.node, both(matching, condition), kind)
        below, inner = self.attaching.domain(plan, node, subquery.place).of(node)
        return Join(plan, below, both(same([(column(o), column(inner[o.id])) for o in outer]), condition), kind)
