"""The conditions of WHERE and ON over a plan, with the subqueries in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlglot import exp

from sweeparea.cql.binding.expressions.quantified import membership_of
from sweeparea.cql.binding.from_clause.enrichment import restricted
from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.subqueries.attaching import Attach
from sweeparea.cql.binding.subqueries.correlation import ids
from sweeparea.cql.binding.subqueries.subqueries import Subqueries
from sweeparea.cql.rewrites import push_selection
from sweeparea.cql.rewrites.conditions import all_of
from sweeparea.cql.syntax.trees import conjuncts, has_subquery
from sweeparea.operators.nodes import Select
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Expr

Attempt = Callable[[Callable[[], "Expr | Attach"]], "Expr | Attach | None"]
"""Runs a step; None: it has failed, and its fault is told later."""


def filtered(subqueries: Subqueries, plan: Node, binder: Binder, condition: exp.Expr, attempt: Attempt) -> Node:
    """The rows of ``plan`` for which a condition is TRUE. Conjuncts without subqueries come first, so that the
    subqueries are computed for few rows."""
    trees = conjuncts(condition)
    waiting: list[Expr] = []
    for tree in sorted(trees, key=has_subquery):
        found = attempt(lambda t=tree: _conjunct(subqueries, binder, t))
        own = isinstance(found, Expr) and not (subqueries.is_pending or found.columns & binder.scope.enriched)
        if isinstance(found, Expr) and own and found.columns <= ids(plan):
            waiting.append(found)
            continue
        plan, waiting = push_selection(plan, *waiting), []
        if isinstance(found, Expr):
            plan = _selected(subqueries.attach(plan), found, frozenset(binder.scope.enriched))
        elif found is not None:
            plan = found(plan)
    return push_selection(plan, *waiting)


def _selected(plan: Node, condition: Expr, enriched: frozenset[str]) -> Node:
    if condition.columns & enriched:
        within = restricted(plan, condition, enriched)
        if within is not None:
            return within
    if condition.columns <= ids(plan):
        return push_selection(plan, condition)
    if isinstance(plan, Select):
        return Select(plan.input, all_of([plan.condition, condition]) or condition)
    return Select(plan, condition)


def _conjunct(subqueries: Subqueries, binder: Binder, tree: exp.Expr) -> Expr | Attach:
    inner, is_not = tree.unnest(), False
    while isinstance(inner, exp.Not):
        inner, is_not = inner.this.unnest(), not is_not
    if isinstance(inner, exp.Exists):
        subquery = subqueries.bind(binder, inner.this, inner)
        return lambda plan: subqueries.decorrelation.joins.exists(
            plan, subquery, JoinKind.ANTI if is_not else JoinKind.SEMI
        )
    membership = membership_of(inner)
    if membership is None or (membership.negated != is_not and not membership.test.is_equality):
        return binder.condition(tree)  # that no row passes a test of order, two extremes tell
    values, subquery = subqueries.membership(binder, membership, inner)
    exprs = [v.expr for v in values]
    pending = subqueries.take()
    join = partial(subqueries.decorrelation.joins.contains, test=membership.test)
    kind = JoinKind.ANTI if membership.negated != is_not else JoinKind.SEMI

    def attach(plan: Node) -> Node:
        for each in pending:  # values compared may be subqueries themselves
            plan = each.attach(plan)
        return join(plan, exprs, subquery, kind)

    return attach
