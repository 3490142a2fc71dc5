"""Columns under ids that depend on nothing but the plan: what is equal up to ids becomes equal."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

from sweeparea.cql.rewrites.conditions import substitute
from sweeparea.cql.rewrites.identity import IDS
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.sharing import nodes
from sweeparea.operators.sql.expressions import Column, Expr


def renumbered(root: Node) -> Node:
    """The plan with the ids ``c0``, ``c1``, .. in the order in which its columns come to be, inputs first.

    A node that is used twice stays one node.
    """
    ids: dict[str, str] = {}
    for node in nodes(root):
        for column in node.columns:
            ids.setdefault(column.id, f"c{len(ids)}")
    exprs = {old: Expr(f"`{new}`", "", frozenset({new})) for old, new in ids.items()}
    made: dict[int, Node] = {}

    def of(node: Node) -> Node:
        if id(node) not in made:
            changes: dict[str, Any] = {}
            for each in dataclasses.fields(node):
                value = getattr(node, each.name)
                changes[each.name] = tuple(ids[i] for i in value) if each.name in IDS else changed(value)
            made[id(node)] = replace(node, **changes)
        return made[id(node)]

    def changed(value: Any) -> Any:
        if isinstance(value, Node):
            return of(value)
        if isinstance(value, Column):
            return replace(value, id=ids[value.id])
        if isinstance(value, Expr):
            return substitute(value, exprs)
        if isinstance(value, tuple):
            return tuple(changed(part) for part in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
            new = {name: changed(part) for name, part in parts.items()}
            return value if new == parts else replace(value, **new)
        return value

    return of(root)
