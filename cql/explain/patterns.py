"""How far back inputs matter, and which of them are read again. (Update patterns: ``operators/plan/patterns.py``.)"""

from __future__ import annotations

from sweeparea.operators.plan.logical import Join, Node, RelationScan, StreamScan, Window
from sweeparea.operators.plan.patterns import ORDER, Edge, edge_of, readable_again
from sweeparea.operators.time.ticks import INF

__all__ = ["ORDER", "Edge", "edge_of", "reach_of", "read_again"]


def reach_of(node: Node, seen: dict[int, dict[str, int]] | None = None) -> dict[str, int]:
    """Per scanned name, for how many ticks one of its rows can still change the result; ``INF``: for ever."""
    seen = {} if seen is None else seen
    if id(node) not in seen:
        seen[id(node)] = _reach_of(node, seen)
    return seen[id(node)]


def _reach_of(node: Node, seen: dict[int, dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for child in node.inputs:
        for name, ticks in reach_of(child, seen).items():
            found[name] = max(found.get(name, 0), ticks)
    if isinstance(node, StreamScan):
        return {node.name: 1}
    if isinstance(node, RelationScan):
        return {node.name: INF}
    if isinstance(node, Window):
        # below an inner stream the lengths add up: an element may make another when it enters and when it leaves
        inner = {n: t for n, t in found.items() if t > 1}
        return {n: min(INF, inner.get(n, 0) + node.spec.reach) for n in found}
    return found


def read_again(node: Node) -> frozenset[str]:
    """The inputs whose past rows a join reads by range instead of keeping them."""
    names: set[str] = set()
    for join in node.walk():
        if isinstance(join, Join) and join.kind == "inner":
            for side in join.inputs:
                if readable_again(side):
                    names |= {n.name for n in side.walk() if isinstance(n, StreamScan | RelationScan)}
    return frozenset(names)
