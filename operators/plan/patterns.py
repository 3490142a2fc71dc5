"""What a plan's edges say of themselves, asked through the plan: update patterns, how far back inputs matter."""

from __future__ import annotations

from collections.abc import Container

from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.plan.node import Node


def edge_of(node: Node, static: Container[str] = (), seen: dict[int, Edge] | None = None) -> Edge:
    """The output edge of a node. ``static`` names the relations that never change; ``seen`` remembers by id."""
    seen = {} if seen is None else seen
    if id(node) not in seen:
        seen[id(node)] = node.edge([edge_of(child, static, seen) for child in node.inputs], static)
    return seen[id(node)]


def reach_of(node: Node, seen: dict[int, dict[str, int]] | None = None) -> dict[str, int]:
    """Per scanned name, for how many ticks one of its rows can still change the result; ``INF``: for ever."""
    seen = {} if seen is None else seen
    if id(node) not in seen:
        found: dict[str, int] = {}
        for child in node.inputs:
            for name, ticks in reach_of(child, seen).items():
                found[name] = max(found.get(name, 0), ticks)
        seen[id(node)] = node.reaches(found)
    return seen[id(node)]


def read_again(node: Node) -> frozenset[str]:
    """The names of the inputs whose past rows are read by range instead of being kept."""
    sides = (side for reader in node.walk() for side in reader.read_again)
    return frozenset(name for side in sides for scan in side.walk() if (name := scan.scans) is not None)
