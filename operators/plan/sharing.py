"""Subplans that several nodes read: one object each, so that they are computed once and keep one SweepArea.

Decorrelation and the marks of IN and EXISTS read a subplan more than once. A plan is a tree by its type; by the
identity of its nodes it is a graph, and ``shared`` makes that so for equal subplans, whatever rewrites copied.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sweeparea.infra.deep_stack import bottom_up
from sweeparea.operators.base.stored_names import name_of
from sweeparea.operators.plan.node import Node


def shared(root: Node) -> Node:
    """The same plan, in which equal subplans are one object. Column ids are unique, so equal subplans are one by right.

    >>> from sweeparea.operators.nodes import RelationScan, UnionAll
    >>> plan = shared(UnionAll((RelationScan("R", ()), RelationScan("R", ())), ()))
    >>> plan.inputs[0] is plan.inputs[1]
    True
    """
    seen: dict[int, Node] = {}
    known: dict[tuple[Any, ...], Node] = {}

    def visit(node: Node) -> Node:
        if id(node) not in seen:
            one = node.with_inputs(tuple(visit(child) for child in node.inputs))
            children = {id(child) for child in one.inputs}
            # children are one object each already: they are compared by identity, not down to the leaves again
            key = type(one), *(_key(getattr(one, f.name), children) for f in dataclasses.fields(one))
            try:
                seen[id(node)] = known.setdefault(key, one)
            except TypeError:  # a field, a user's object, that cannot be compared
                seen[id(node)] = one
        return seen[id(node)]

    return visit(root)


def _key(value: object, children: set[int]) -> object:
    if id(value) in children:
        return id(value)
    if isinstance(value, tuple):
        return tuple(_key(part, children) for part in value)
    return value


def nodes(root: Node) -> Iterator[Node]:
    """Each node once, inputs first; of a plan without shared subplans in the order of ``Node.walk``."""
    return bottom_up(root, lambda node: node.inputs, id)


def named(root: Node) -> Iterator[tuple[str, Node]]:
    """As ``nodes``, each with the name of its SweepArea: its kind, and its number in the plan that runs."""
    return ((f"{name_of(node).lower()}{i}", node) for i, node in enumerate(nodes(root)))


def read_twice(root: Node) -> set[int]:
    """The identities (``id``) of the nodes that are inputs more than once."""
    counts = Counter(id(child) for node in nodes(root) for child in node.inputs)
    return {child for child, count in counts.items() if count > 1}
