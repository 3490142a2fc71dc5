"""Rewrites of logical plans: small rules that leave every instant's contents as they are (law S4).

A rule is a function from node to node with its condition in its docstring.
"""

from __future__ import annotations

from dataclasses import replace

from sweeparea.operators.logical import Expr, Join, Node, Select


def push_selection(node: Node, condition: Expr) -> Node:
    """Select over inner joins: a condition moves into the lowest join, or above the one input, that has its columns.

    So a comma join with WHERE becomes the join that ON would have made. Only below inner joins, which keep just what
    matches (Patroumpas & Sellis 2006, section 4.2); a condition without columns stays on top.
    """
    if isinstance(node, Join) and condition.columns:
        if condition.columns <= _ids(node.left):
            return replace(node, left=push_selection(node.left, condition))
        if condition.columns <= _ids(node.right):
            return replace(node, right=push_selection(node.right, condition))
        return replace(node, condition=conjunction(node.condition, condition))
    if isinstance(node, Select):
        return replace(node, condition=conjunction(node.condition, condition))
    return Select(node, condition)


def conjunction(first: Expr | None, second: Expr) -> Expr:
    """Both conditions, in the order given."""
    if first is None:
        return second
    return Expr(f"({first.sql}) AND ({second.sql})", f"{first.text} AND {second.text}", first.columns | second.columns)


def _ids(node: Node) -> frozenset[str]:
    return frozenset(c.id for c in node.columns)
