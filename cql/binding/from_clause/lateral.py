"""LATERAL: a subquery in FROM that sees the columns of what stands before it."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.expressions.registry import binder_at
from sweeparea.cql.binding.from_clause import entries
from sweeparea.cql.binding.from_clause.conditions import filtered
from sweeparea.cql.binding.scope.scopes import Entry, Item, Scope
from sweeparea.cql.binding.subqueries.attaching import Subquery
from sweeparea.cql.binding.subqueries.queries import Cte, Queries
from sweeparea.cql.binding.subqueries.subqueries import Subqueries
from sweeparea.cql.rewrites.conditions import all_of
from sweeparea.cql.syntax.trees import conjuncts
from sweeparea.cql.text.errors import TypeError_, not_offered
from sweeparea.operators.sweeps.join import JoinKind


def lateral(queries: Queries, env: dict[str, Cte], left: Entry, join: exp.Expr, kind: str) -> Entry:
    """``left`` joined with a subquery that sees its columns."""
    context, place = queries.context, queries.context.place(join)
    if kind not in ("inner", "left"):
        raise TypeError_(
            "LATERAL joins are inner, cross or left ones: the subquery needs a row on its left side",
            place,
            "Write LEFT JOIN LATERAL (..), or EXISTS in WHERE",
        )
    if join.args.get("using") or join.args.get("method"):
        raise not_offered("LATERAL with USING or NATURAL", place, "Write ON")
    tree = join.this
    alias, names = entries.alias_of(tree)
    if entries.window_of(context, tree) is not None:
        raise TypeError_("a window needs a stream, not a LATERAL subquery", place, "Window each stream inside")
    bound, outer = queries.nested(tree.this, env, binder_at(context, left[1], "LATERAL"))
    columns = entries.renamed(context, bound.columns, names, tree)
    scope = left[1].beside(Scope.of(Item(alias, columns)))
    subquery = Subquery(bound.node, bound.columns, tuple(outer.used.values()), context.place(tree))
    decorrelation, on = queries.decorrelation, join.args.get("on")
    if kind == "inner":
        node = decorrelation.joins.lateral(left[0], subquery, None, JoinKind(kind))
        if on is None:
            return node, scope
        subqueries = Subqueries(queries, env)
        binder = binder_at(context, scope, "ON", subqueries)
        return filtered(subqueries, node, binder, on, lambda action: action()), scope
    binder = binder_at(context, scope, "ON of LEFT JOIN LATERAL")
    condition = None if on is None else all_of(binder.conditions(conjuncts(on)))
    return decorrelation.joins.lateral(left[0], subquery, condition, JoinKind(kind)), scope
