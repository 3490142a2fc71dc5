"""Streams enriched with non-retroactive relations (Golab & Oezsu 2005, section 4.1): below the stream's window.

``FROM S [w] JOIN N ON ..`` is the window w over the stream whose elements are joined with N as it was before each. So N
stands right behind its stream, by JOIN, LEFT JOIN or comma; behind a comma, the conjuncts of WHERE that name columns of
N and of the stream alone are the join's condition.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.scopes import Entry
from sweeparea.cql.binding.subqueries.correlation import ids
from sweeparea.cql.rewrites import conjunction
from sweeparea.cql.text.errors import Place, TypeError_
from sweeparea.operators.nodes import Enrich, Join, RelationScan, Select, Window
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Expr


def is_non_retroactive(context: Context, node: Node) -> bool:
    return isinstance(node, RelationScan) and not context.inputs[node.name.lower()].retroactive


def misplaced(name: str, place: Place) -> TypeError_:
    return TypeError_(
        f"{name} is a non-retroactive relation: it may only stand on the right side of an inner or left join whose "
        "left side is one stream",
        place,
        f"Write FROM S [window] JOIN {name} ON ..; or declare it without NON RETROACTIVE, if its changes are to change "
        "results of before",
    )


def stream_of(context: Context, left: Entry, join: exp.Expr, kind: str) -> Window:
    """The windowed stream that a non-retroactive relation is joined with. TypeError_ where there is none."""
    node = left[0]
    if kind not in ("inner", "left") or not isinstance(node, Window):
        raise misplaced(join.this.name, context.place(join.this))
    return node


def enriched(window: Window, relation: Node, condition: Expr | None, kind: JoinKind = JoinKind.INNER) -> Window:
    """The window over the enriched stream. Elements of one instant that were one before are told apart by the
    relation's columns."""
    stream = Enrich(window.input, relation, condition, kind)
    ties = (*window.ties, *(c.id for c in relation.columns)) if window.ties else ()
    return replace(window, input=stream, ties=ties)


def restricted(node: Node, condition: Expr, columns: frozenset[str]) -> Node | None:
    """The plan with a conjunct of WHERE made part of the join with the non-retroactive relation whose ``columns`` it
    names, or None if it names more than that relation and its stream."""
    if isinstance(node, Window) and isinstance(node.input, Enrich):
        below = _into(node.input, condition, columns)
        return None if below is None else replace(node, input=below)
    if isinstance(node, Join) and node.kind == JoinKind.INNER:
        for side, inner in (("left", node.left), ("right", node.right)):
            if condition.columns <= ids(inner):
                changed = restricted(inner, condition, columns)
                return None if changed is None else replace(node, **{side: changed})
    if isinstance(node, Select):
        changed = restricted(node.input, condition, columns)
        return None if changed is None else replace(node, input=changed)
    return None


def _into(node: Enrich, condition: Expr, columns: frozenset[str]) -> Enrich | None:
    if not condition.columns <= ids(node):
        return None
    if isinstance(node.stream, Enrich) and condition.columns <= ids(node.stream):
        below = _into(node.stream, condition, columns)
        return None if below is None else replace(node, stream=below)
    if node.kind != JoinKind.INNER or not condition.columns & ids(node.relation) & columns:
        return None
    return replace(node, condition=conjunction(node.condition, condition))
