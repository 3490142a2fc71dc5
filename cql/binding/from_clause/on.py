"""Joins with ON. What it says of one side alone goes into that side where the other rows of the side cannot matter:
into both of an inner join, into the optional side of an outer, semi or anti join.
"""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.expressions.registry import binder_at
from sweeparea.cql.binding.from_clause.conditions import filtered
from sweeparea.cql.binding.scope.scopes import Entry
from sweeparea.cql.binding.subqueries.attaching import Attach
from sweeparea.cql.binding.subqueries.correlation import ids
from sweeparea.cql.binding.subqueries.dependent_join import both, same
from sweeparea.cql.binding.subqueries.queries import Cte, Queries
from sweeparea.cql.binding.subqueries.subqueries import Pending, Subqueries
from sweeparea.cql.rewrites import push_selection
from sweeparea.cql.rewrites.conditions import all_of, column, substitute
from sweeparea.cql.syntax.trees import conjuncts
from sweeparea.operators.nodes import Join, Project, UnionAll
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr


def exchanged(left: Node, right: Node, condition: Expr | None, kind: str) -> Join:
    """The join of a kind as it is written; RIGHT JOIN has its sides exchanged."""
    if kind == "right":
        return Join(right, left, condition, JoinKind.LEFT)
    return Join(left, right, condition, JoinKind(kind))


class OnCondition:
    """One join with ON."""

    def __init__(
        self, queries: Queries, env: dict[str, Cte], left: Entry, right: Entry, on: exp.Expr, kind: str
    ) -> None:
        self.queries, self.kind, self.on = queries, kind, on
        self.left, self.right = left[0], right[0]
        self.subqueries = Subqueries(queries, env)
        self.binder = binder_at(queries.context, left[1].beside(right[1]), "ON", self.subqueries)

    def bind(self) -> Node:
        if self.kind == "inner":
            return filtered(self.subqueries, Join(self.left, self.right), self.binder, self.on, lambda action: action())
        conditions = self.binder.conditions(conjuncts(self.on))
        answered = [each for each in self.subqueries.take() if not self._attached(each.attach, each.reads)]
        if answered:
            return self._with_answers(answered, conditions)
        return self._joined(conditions)

    def _attached(self, attach: Attach, reads: frozenset[str]) -> bool:
        """Whether a subquery's value could be put beside the rows of one side."""
        if not reads & ids(self.left):
            self.right = attach(self.right)
        elif not reads & ids(self.right):
            self.left = attach(self.left)
        else:
            return False
        return True

    def _joined(self, conditions: list[Expr]) -> Node:
        stay: list[Expr] = []
        on_left: list[Expr] = []
        on_right: list[Expr] = []
        for condition in conditions:
            # rows that a condition on the optional side drops have no partner in any case
            if self.kind in ("left", "semi", "anti") and condition.columns and condition.columns <= ids(self.right):
                on_right.append(condition)
            elif self.kind in ("right", "semi") and condition.columns and condition.columns <= ids(self.left):
                on_left.append(condition)
            else:
                stay.append(condition)
        self.left, self.right = push_selection(self.left, *on_left), push_selection(self.right, *on_right)
        return exchanged(self.left, self.right, all_of(stay), self.kind)

    def _with_answers(self, pending: list[Pending], conditions: list[Expr]) -> Node:
        """A condition with subqueries that read both sides: their values for each combination of what they read are a
        relation of its own, with one row for each pair, which the optional side is joined with."""
        reads = frozenset().union(*(p.reads for p in pending))
        values = frozenset().union(*(p.values for p in pending))

        def attach(plan: Node) -> Node:
            for each in pending:
                plan = each.attach(plan)
            return plan

        decorrelation = self.queries.decorrelation
        answers, fresh = decorrelation.answers(Join(self.left, self.right), attach, reads, values)
        left_ids, right_ids = ids(self.left), ids(self.right)
        by = {i: column(fresh[i]) for i in values if i in fresh}
        of = {c.id: c for c in (*self.left.columns, *self.right.columns)}
        on_left = same([(column(of[i]), column(fresh[i])) for i in fresh if i in left_ids])
        on_right = same([(column(of[i]), column(fresh[i])) for i in fresh if i in right_ids])
        full = both(all_of(substitute(c, by) for c in conditions), None)
        if self.kind == "right":
            return Join(self.right, Join(self.left, answers, on_left), both(on_right, full), JoinKind.LEFT)
        optional = Join(self.right, answers, on_right)
        if self.kind != "full":
            return Join(self.left, optional, both(on_left, full), JoinKind(self.kind))
        # the right rows without a partner: against the left side joined with the answers
        columns = (*self.left.columns, *self.right.columns)
        matched = Join(self.left, optional, both(on_left, full), JoinKind.LEFT)
        alone = Join(self.right, Join(self.left, answers, on_left), both(on_right, full), JoinKind.ANTI)
        new_column = self.queries.context.new_column
        first = Project(matched, tuple((new_column(c.label, c.type), column(c)) for c in columns))
        outputs = [(new_column(c.label, c.type), column(c) if c.id in right_ids else _null(c)) for c in columns]
        return UnionAll((first, Project(alone, tuple(outputs))), columns)


def _null(column: Column) -> Expr:
    return Expr("NULL" if column.type is None else f"CAST(NULL AS {column.type})", "NULL")
