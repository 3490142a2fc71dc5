"""Update patterns and expiry of each edge of a plan (Golab & Oezsu 2005, sections 3 and 5.2, rules 1-5; semantics
section 7)."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from sweeparea.operators.logical import (
    Aggregate,
    Join,
    Node,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    UnionAll,
    Window,
)
from sweeparea.operators.patterns import readable_again
from sweeparea.operators.ticks import INF

ORDER = ("monotonic", "WKS", "WK", "STR")
"""From simplest to most complex: nothing expires, first in first out, out of order but known by expiry time, by
negative tuple."""


@dataclass(frozen=True)
class Edge:
    """What is known of a node's output: its update pattern, and whether a row's end is known when the row appears."""

    pattern: str
    expiry_known: bool

    def __str__(self) -> str:
        return f"{self.pattern}, expiry {'known' if self.expiry_known else 'unknown'}"


def edge_of(node: Node, static: Container[str] = ()) -> Edge:
    """The output edge of a node. ``static`` names the relations that never change."""
    edges = [edge_of(child, static) for child in node.inputs]
    if isinstance(node, StreamScan | RelationToStream):
        return Edge("monotonic", True)
    if isinstance(node, RelationScan):
        return Edge("monotonic", True) if node.name in static else Edge("STR", False)
    if isinstance(node, Window):
        return Edge("monotonic" if node.spec.monotonic else "WKS", True)
    if isinstance(node, Select | Project):  # rule 1: unary operators keep the pattern
        return edges[0]
    if isinstance(node, UnionAll):  # rule 2: the more complex of the inputs; mixed window lengths end out of order
        worst = max((e.pattern for e in edges), key=ORDER.index)
        same = len({_reach(child) for child in node.inputs}) == 1
        return Edge("WK" if worst == "WKS" and not same else worst, all(e.expiry_known for e in edges))
    if isinstance(node, Join):  # rule 3: the join of windows ends with the first of its parts
        known = all(e.expiry_known for e in edges)
        worst = max((e.pattern for e in edges), key=ORDER.index)
        return Edge("WK" if worst == "WKS" else worst, known)
    if isinstance(node, Aggregate):
        if not node.calls and not node.global_:  # rule 3 again: duplicate elimination
            worst = edges[0].pattern
            return Edge("WK" if worst == "WKS" else worst, edges[0].expiry_known)
        return Edge("WK", False)  # rule 4: group-by replaces its rows, whatever its input does
    raise TypeError(f"no update pattern is defined for {type(node).__name__}")


def _reach(node: Node) -> int | None:
    """The one reach of all windows below a node without another operator that mixes them."""
    reaches = {n.spec.reach for n in node.walk() if isinstance(n, Window)}
    return reaches.pop() if len(reaches) == 1 else None


def reach_of(node: Node) -> dict[str, int]:
    """Per scanned name, for how many ticks one of its rows can still change the result; ``INF``: for ever."""
    found: dict[str, int] = {}
    for child in node.inputs:
        for name, ticks in reach_of(child).items():
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
        if isinstance(join, Join):
            for side in join.inputs:
                if readable_again(side):
                    names |= {n.name for n in side.walk() if isinstance(n, StreamScan | RelationScan)}
    return frozenset(names)
