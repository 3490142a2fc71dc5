"""Subqueries in expressions: EXISTS, IN, ANY, ALL and scalar ones, wherever an expression may stand.

A subquery is bound with the names of the queries around it behind its own, and becomes a value: a column or expression
over columns that ``Subqueries.attach`` puts beside the rows. A whole conjunct of WHERE becomes a semi or anti join.
What the plans look like is in ``decorrelate.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from sweeparea.cql.binding.expressions.binder import Binder, Bound, conjuncts
from sweeparea.cql.binding.expressions.quantified import Membership, membership_of, negated
from sweeparea.cql.binding.from_clause.enrichment import restricted
from sweeparea.cql.binding.scope.scopes import Scope
from sweeparea.cql.binding.subqueries.correlation import ids
from sweeparea.cql.binding.subqueries.decorrelate import Attach, Decorrelation, Subquery
from sweeparea.cql.functions import signatures, types
from sweeparea.cql.rewrites import push_selection
from sweeparea.cql.rewrites.conditions import all_of
from sweeparea.cql.text.errors import BindError, Place, RefusedError, TypeError_
from sweeparea.operators.nodes import Select
from sweeparea.operators.plan.expressions import Column, Expr
from sweeparea.operators.plan.node import Node

if TYPE_CHECKING:
    from sweeparea.cql.binding.query import Cte, QueryBinder


@dataclass
class Outer:
    """What a subquery can name of the query around it, at the place where it stands; and through that query's own
    binder of those further out. ``used`` are the columns of this query that have been named."""

    binder: Binder
    used: dict[str, Column] = field(default_factory=dict)

    def resolve(self, names: list[str], place: Place) -> tuple[Column, int]:
        """The column of a name and how many of its parts name it. BindError if it is unknown here too."""
        binder = self.binder
        if not binder.scope.has(names) and binder.outer is not None:
            return binder.outer.resolve(names, place)
        column, used = binder.scope.resolve(names, place)
        if binder.grouping is not None:
            key = binder.grouping.key_of_column(column)
            if key is None:
                raise BindError(
                    f"column {'.'.join(names)} of the query around is neither grouped nor inside an aggregate",
                    place,
                    "Add it to GROUP BY there",
                )
            column = key
        self.used[column.id] = column
        return column, used

    def scopes(self) -> list[Scope]:
        """What can be named here, from the nearest query outwards."""
        return [self.binder.scope, *(self.binder.outer.scopes() if self.binder.outer is not None else [])]

    def knows(self, names: list[str]) -> bool:
        return self.binder.scope.has(names) or (self.binder.outer is not None and self.binder.outer.knows(names))

    def aggregate(self, node: exp.Expr) -> Bound | None:
        """An aggregate in a subquery's WHERE whose columns are all of the query around, which groups: it is that
        query's own."""
        binder = self.binder
        columns = [[p.name for p in c.parts] for c in node.find_all(exp.Column)]
        if binder.grouping is None or not columns or not all(binder.scope.has(names) for names in columns):
            return None
        bound = binder.bind(node)
        called = {c.id: c for c, _ in binder.grouping.calls.values()}
        self.used |= {id_: called[id_] for id_ in bound.expr.columns if id_ in called}
        return bound


@dataclass
class _Pending:
    attach: Attach
    reads: frozenset[str]
    values: frozenset[str]


class Subqueries:
    """The subqueries of one SELECT, or of one ON: those met while its expressions are bound, until they are attached to
    the plan that the expressions are for. Above GROUP BY that is another plan than below."""

    def __init__(self, queries: QueryBinder, env: dict[str, Cte]) -> None:
        self.queries, self.env = queries, env
        self.decorrelation: Decorrelation = queries.context.decorrelation
        self._pending: dict[bool, list[_Pending]] = {False: [], True: []}
        self._known: dict[tuple[bool, tuple[str, ...]], Bound] = {}  # equal texts at one place mean the same

    def attach(self, plan: Node, grouped: bool = False) -> Node:
        """The plan with all values met since the last time."""
        pending, self._pending[grouped] = self._pending[grouped], []
        for each in pending:
            plan = each.attach(plan)
        return plan

    def take(self) -> list[_Pending]:
        """The values met since the last time, for one who attaches them to parts of a plan."""
        pending, self._pending[False] = self._pending[False], []
        return pending

    # -- binding -------------------------------------------------------------------------------------------------------

    def value(self, binder: Binder, node: exp.Expr) -> Bound:
        """What stands in an expression for a subquery: EXISTS (..), IN (..), > ALL (..), or a scalar one."""
        key = binder.grouping is not None, self.queries.source.canonical(binder.span(node))
        if key not in self._known:
            self._known[key] = self._value(binder, node)
        return self._known[key]

    def _value(self, binder: Binder, node: exp.Expr) -> Bound:
        if _within(node, exp.Lambda):
            raise RefusedError(
                "a subquery inside a lambda function is not offered: it would be another one for each element",
                binder.place(node),
                "Explode the array in FROM with LATERAL VIEW, and join",
            )
        if isinstance(node, exp.Exists):
            return self._keep(binder, self._bind(binder, node.this, node), "boolean", self.decorrelation.exists)
        membership = membership_of(node)
        if membership is not None:
            values, subquery = self._membership(binder, membership, node)
            read = frozenset().union(*(v.expr.columns for v in values))
            make = partial(self.decorrelation.contains, [(v.expr, v.type) for v in values], membership.test)
            found = self._keep(binder, subquery, "boolean", make, read)
            return Bound(negated(found.expr), found.type) if membership.negated else found
        subquery = self._bind(binder, node, node)
        if len(subquery.columns) != 1:
            raise TypeError_(
                f"a scalar subquery has one column, found {len(subquery.columns)}",
                binder.place(node),
                "Select one expression, or struct(a, b)",
            )
        return self._keep(binder, subquery, subquery.columns[0].type, self.decorrelation.scalar)

    def _keep(
        self,
        binder: Binder,
        subquery: Subquery,
        type_: str | None,
        make: Callable[[Subquery], tuple[Expr, Attach]],
        reads: frozenset[str] = frozenset(),
    ) -> Bound:
        expr, attach = make(subquery)
        reads |= frozenset(c.id for c in subquery.outer)
        self._pending[binder.grouping is not None].append(_Pending(attach, reads, expr.columns - reads))
        return Bound(expr, type_)

    def _bind(self, binder: Binder, tree: exp.Expr, at: exp.Expr) -> Subquery:
        bound, outer = self.queries.nested(tree, self.env, binder)
        return Subquery(bound.node, bound.columns, tuple(outer.used.values()), binder.place(at))

    def _membership(self, binder: Binder, it: Membership, node: exp.Expr) -> tuple[list[Bound], Subquery]:
        left = it.left.unnest()
        trees = list(left.expressions) if isinstance(left, exp.Tuple) else [it.left]
        if len(trees) > 1 and not it.test.is_equality:
            raise RefusedError(
                f"{it.word} compares one value: Spark SQL has no order of several that knows NULL",
                binder.place(node),
                "Only = ANY and <> ALL take (a, b); write EXISTS with the comparisons",
            )
        values = [binder.bind(t) for t in trees]
        subquery = self._bind(binder, it.query, node)
        if len(values) != len(subquery.columns):
            raise TypeError_(
                f"{it.word} compares {len(values)} value{'s' if len(values) > 1 else ''} with the "
                f"{len(subquery.columns)} column{'s' if len(subquery.columns) > 1 else ''} of its subquery",
                binder.place(node),
                f"Write (a, b) {it.word} (SELECT x, y ..)" if it.test.is_equality else "Select one expression in it",
            )
        for value, column in zip(values, subquery.columns, strict=True):
            if not comparable(value.type, column.type):
                raise TypeError_(
                    f"{it.word} cannot compare {value.expr.text}, which is of type {(value.type or '').upper()}, with "
                    f"{column.label}, which is of type {(column.type or '').upper()}",
                    binder.place(node),
                    "CAST one of them",
                )
        return values, subquery

    # -- conditions ----------------------------------------------------------------------------------------------------

    def filtered(self, plan: Node, binder: Binder, condition: exp.Expr, attempt: Callable) -> Node:
        """The rows of ``plan`` for which a condition is TRUE. Conjuncts without subqueries come first, so that the
        subqueries are computed for few rows."""
        trees = conjuncts(condition)
        waiting: list[Expr] = []
        for tree in sorted(trees, key=has_subquery):
            found = attempt(lambda t=tree: self._conjunct(binder, t))
            own = isinstance(found, Expr) and not (self._pending[False] or found.columns & binder.scope.enriched)
            if isinstance(found, Expr) and own and found.columns <= ids(plan):
                waiting.append(found)
                continue
            plan, waiting = push_selection(plan, *waiting), []
            if isinstance(found, Expr):
                plan = self._selected(self.attach(plan), found, frozenset(binder.scope.enriched))
            elif found is not None:
                plan = found(plan)
        return push_selection(plan, *waiting)

    def _selected(self, plan: Node, condition: Expr, enriched: frozenset[str]) -> Node:
        if condition.columns & enriched:
            within = restricted(plan, condition, enriched)
            if within is not None:
                return within
        if condition.columns <= ids(plan):
            return push_selection(plan, condition)
        if isinstance(plan, Select):
            return Select(plan.input, all_of([plan.condition, condition]) or condition)
        return Select(plan, condition)

    def _conjunct(self, binder: Binder, tree: exp.Expr) -> Expr | Attach:
        inner, is_not = tree.unnest(), False
        while isinstance(inner, exp.Not):
            inner, is_not = inner.this.unnest(), not is_not
        if isinstance(inner, exp.Exists):
            subquery = self._bind(binder, inner.this, inner)
            return lambda plan: self.decorrelation.exists_join(plan, subquery, "anti" if is_not else "semi")
        membership = membership_of(inner)
        if membership is None or (membership.negated != is_not and not membership.test.is_equality):
            return binder.condition(tree)  # that no row passes a test of order, two extremes tell
        values, subquery = self._membership(binder, membership, inner)
        exprs = [v.expr for v in values]
        pending = self.take()
        join = partial(self.decorrelation.contains_join, test=membership.test)
        kind = "anti" if membership.negated != is_not else "semi"

        def attach(plan: Node) -> Node:
            for each in pending:  # values compared may be subqueries themselves
                plan = each.attach(plan)
            return join(plan, exprs, subquery, kind)

        return attach


def comparable(a: str | None, b: str | None) -> bool:
    """Whether values of two types may be compared; False only where Spark is certain to refuse it."""
    if a is None or b is None or "void" in (a, b):
        return True
    alike = len({types.family(a), types.family(b)} - {"other"}) < 2
    return alike and not any(signatures.refusal("=", pair) for pair in ([a, b], [b, a]))


def has_subquery(tree: exp.Expr) -> bool:
    return any(isinstance(n, exp.Query) for n in tree.walk())


def _within(node: exp.Expr, kind: type) -> bool:
    """Whether a node stands in one of a kind inside its own query."""
    parent = node.parent
    while parent is not None and not isinstance(parent, exp.Select):
        if isinstance(parent, kind):
            return True
        parent = parent.parent
    return False
