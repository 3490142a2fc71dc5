"""Subqueries in expressions: EXISTS, IN, ANY, ALL and scalar ones, wherever an expression may stand.

A subquery is bound with the names of the queries around it behind its own, and becomes a value: a column or expression
over columns that ``Subqueries.attach`` puts beside the rows. A whole conjunct of WHERE becomes a semi or anti join.
What the plans look like is in ``decorrelate.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from sweeparea.cql.binding.expressions.quantified import Membership, membership_of, negated
from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.binding.subqueries.attaching import Attach, Subquery
from sweeparea.cql.binding.subqueries.decorrelate import Decorrelation
from sweeparea.cql.binding.subqueries.queries import Cte, Queries
from sweeparea.cql.functions import signatures, types
from sweeparea.cql.text.errors import RefusedError, TypeError_
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Expr


@dataclass
class Pending:
    """A value to be put beside the rows of a plan: the columns that it reads, and those that it makes."""

    attach: Attach
    reads: frozenset[str]
    values: frozenset[str]


class Subqueries:
    """The subqueries of one SELECT, or of one ON: those met while its expressions are bound, until they are attached to
    the plan that the expressions are for. Above GROUP BY that is another plan than below."""

    def __init__(self, queries: Queries, env: dict[str, Cte]) -> None:
        self.queries, self.env = queries, env
        self.decorrelation: Decorrelation = queries.decorrelation
        self._pending: dict[bool, list[Pending]] = {False: [], True: []}
        self._known: dict[tuple[bool, tuple[str, ...]], Bound] = {}  # equal texts at one place mean the same

    def attach(self, plan: Node, grouped: bool = False) -> Node:
        """The plan with all values met since the last time."""
        pending, self._pending[grouped] = self._pending[grouped], []
        for each in pending:
            plan = each.attach(plan)
        return plan

    @property
    def is_pending(self) -> bool:
        """Whether values over single rows wait to be attached."""
        return bool(self._pending[False])

    def take(self) -> list[Pending]:
        """The values met since the last time, for one who attaches them to parts of a plan."""
        pending, self._pending[False] = self._pending[False], []
        return pending

    # -- binding -------------------------------------------------------------------------------------------------------

    def value(self, binder: Binder, node: exp.Expr) -> Bound:
        """What stands in an expression for a subquery: EXISTS (..), IN (..), > ALL (..), or a scalar one."""
        key = binder.grouping is not None, self.queries.context.source.canonical(binder.span(node))
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
            return self._keep(binder, self.bind(binder, node.this, node), "boolean", self.decorrelation.values.exists)
        membership = membership_of(node)
        if membership is not None:
            values, subquery = self.membership(binder, membership, node)
            read = frozenset().union(*(v.expr.columns for v in values))
            make = partial(self.decorrelation.values.contains, [(v.expr, v.type) for v in values], membership.test)
            found = self._keep(binder, subquery, "boolean", make, read)
            return Bound(negated(found.expr), found.type) if membership.negated else found
        subquery = self.bind(binder, node, node)
        if len(subquery.columns) != 1:
            raise TypeError_(
                f"a scalar subquery has one column, found {len(subquery.columns)}",
                binder.place(node),
                "Select one expression, or struct(a, b)",
            )
        return self._keep(binder, subquery, subquery.columns[0].type, self.decorrelation.values.scalar)

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
        self._pending[binder.grouping is not None].append(Pending(attach, reads, expr.columns - reads))
        return Bound(expr, type_)

    def bind(self, binder: Binder, tree: exp.Expr, at: exp.Expr) -> Subquery:
        """A subquery of which the names at the place of ``binder`` can be seen; ``at`` is what it stands in."""
        bound, outer = self.queries.nested(tree, self.env, binder)
        return Subquery(bound.node, bound.columns, tuple(outer.used.values()), binder.place(at))

    def membership(self, binder: Binder, it: Membership, node: exp.Expr) -> tuple[list[Bound], Subquery]:
        """The values that are compared and the subquery whose rows they are compared with."""
        left = it.left.unnest()
        trees = list(left.expressions) if isinstance(left, exp.Tuple) else [it.left]
        if len(trees) > 1 and not it.test.is_equality:
            raise RefusedError(
                f"{it.word} compares one value: Spark SQL has no order of several that knows NULL",
                binder.place(node),
                "Only = ANY and <> ALL take (a, b); write EXISTS with the comparisons",
            )
        values = [binder.bind(t) for t in trees]
        subquery = self.bind(binder, it.query, node)
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


def comparable(a: str | None, b: str | None) -> bool:
    """Whether values of two types may be compared; False only where Spark is certain to refuse it."""
    if a is None or b is None or "void" in (a, b):
        return True
    alike = len({types.family(a), types.family(b)} - {"other"}) < 2
    return alike and not any(signatures.refusal("=", pair) for pair in ([a, b], [b, a]))


def _within(node: exp.Expr, kind: type) -> bool:
    """Whether a node stands in one of a kind inside its own query."""
    parent = node.parent
    while parent is not None and not isinstance(parent, exp.Select):
        if isinstance(parent, kind):
            return True
        parent = parent.parent
    return False
