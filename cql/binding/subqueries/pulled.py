"""The conditions of a subquery on the outer row, pulled above it: a semi or anti join takes them into its own."""

from __future__ import annotations

from dataclasses import replace

from sweeparea.cql.binding.subqueries.attaching import Attaching
from sweeparea.cql.rewrites.conditions import all_of, column, conjuncts, substitute
from sweeparea.operators.nodes import Join, Project, Select
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Expr


def pulled(attaching: Attaching, node: Node, outer: frozenset[str]) -> tuple[Node, list[Expr]] | None:
    """A subquery without its conditions on the outer row, and these: what has a row under the conditions has one.
    None where they do not stand above all that would notice their absence."""
    if not attaching.free(node) & outer:
        return node, []
    if isinstance(node, Select):
        found = pulled(attaching, node.input, outer)
        if found is None:
            return None
        below, conditions = found
        parts = conjuncts(node.condition)
        stay = all_of(p for p in parts if not p.columns & outer)
        return (
            below if stay is None else Select(below, stay),
            [*conditions, *(p for p in parts if p.columns & outer)],
        )
    if isinstance(node, Project):
        found = pulled(attaching, node.input, outer)
        if found is None or any(e.columns & outer for _, e in node.outputs):
            return None
        below, conditions = found
        read = frozenset().union(*(c.columns for c in conditions))
        fresh = {c.id: attaching.new_column(c.label, c.type) for c in below.columns if c.id in read}
        kept = [(fresh[c.id], column(c)) for c in below.columns if c.id in read]
        by = {id_: column(c) for id_, c in fresh.items()}
        return Project(below, (*node.outputs, *kept)), [substitute(c, by) for c in conditions]
    if not isinstance(node, Join) or node.kind == JoinKind.FULL:
        return None
    left = pulled(attaching, node.left, outer)
    if left is None:
        return None
    if node.kind == JoinKind.INNER:
        right = pulled(attaching, node.right, outer)
        if right is None:
            return None
        parts = conjuncts(node.condition)
        stay = all_of(p for p in parts if not p.columns & outer)
        taken = [*left[1], *right[1], *(p for p in parts if p.columns & outer)]
        return Join(left[0], right[0], stay), taken
    if attaching.free(node.right) & outer or node.reads & outer:
        return None
    return replace(node, left=left[0]), left[1]
