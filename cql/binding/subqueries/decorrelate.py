"""Subqueries as joins: scalar values, marks (EXISTS and IN anywhere), semi and anti joins, lateral joins.

A value or mark is a global aggregate over the subquery, joined beside the outer rows. Where the subquery is correlated,
it is computed for all outer rows at once: by key columns where equality is all that correlates it (``keyed.py``), else
for a domain, the different values of the outer columns that it reads (``dependent_join.py``). The outer rows appear in
the plan once as they are and, under a domain, once more as its distinct columns, however many subqueries there are.

Neumann & Kemper 2015; Kim 1982 for COUNT over an empty group; Galindo-Legaria & Joshi 2001 for semi and anti joins.
"""

from __future__ import annotations

from sweeparea.cql.binding.subqueries.attaching import Attach, Attaching
from sweeparea.cql.binding.subqueries.dependent_join import NewColumn
from sweeparea.cql.binding.subqueries.joins import SubqueryJoins
from sweeparea.cql.binding.subqueries.values import SubqueryValues
from sweeparea.cql.rewrites.conditions import column
from sweeparea.operators.nodes import Aggregate
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column


class Decorrelation:
    """Makes plans of the subqueries of one text: ``values`` beside the rows of a plan, and ``joins`` with it."""

    def __init__(self, new_column: NewColumn) -> None:
        attaching = Attaching(new_column)
        self.new_column = new_column
        self.values = SubqueryValues(attaching)
        self.joins = SubqueryJoins(attaching, self.values)

    def answers(
        self, plan: Node, attach: Attach, outer: frozenset[str], values: frozenset[str]
    ) -> tuple[Node, dict[str, Column]]:
        """Attached values as a relation of their own: for each combination of the columns ``outer`` of ``plan`` its
        ``values``, all under fresh ids. It has one row a combination."""
        attached = attach(plan)
        kept = [c for c in attached.columns if c.id in outer | values]
        fresh = {c.id: self.new_column(c.label, c.type) for c in kept}
        return Aggregate(attached, tuple((fresh[c.id], column(c)) for c in kept), ()), fresh
