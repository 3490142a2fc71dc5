"""What can be said of an edge before anything runs: its update pattern, whether expiry is known, whether it can still
change, how it is re-read. (How its rows travel: ``encoding.py``.)

Patterns follow rules 1-5 of Golab & Oezsu 2005, section 5.2, those of windows Patroumpas & Sellis 2006, section 3.4.
*Known* expiry (Golab & Oezsu, section 3.1) means that a row's te is final when the row is emitted: no negative tuple
will follow. It decides which SweepAreas may forget dominated rows.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from sweeparea.operators.plan.logical import (
    Aggregate,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
    Node,
    OneRow,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    UnionAll,
    Window,
)
from sweeparea.operators.windows.definitions import Rows, Session, TimeWindow, UserWindow, When

ORDER = ("monotonic", "WKS", "WK", "STR")
"""From simplest to most complex: nothing expires, first in first out, out of order but known by expiry time, by
negative tuple.
"""


@dataclass(frozen=True)
class Edge:
    """What is known of a node's output: its update pattern, and whether a row's end is known when the row appears."""

    pattern: str
    expiry_known: bool

    def __str__(self) -> str:
        return f"{self.pattern}, expiry {'known' if self.expiry_known else 'unknown'}"


def edge_of(node: Node, static: Container[str] = (), seen: dict[int, Edge] | None = None) -> Edge:
    """The output edge of a node. ``static`` names the relations that never change; ``seen`` remembers by id."""
    seen = {} if seen is None else seen
    if id(node) not in seen:
        seen[id(node)] = _edge(node, [edge_of(child, static, seen) for child in node.inputs], static)
    return seen[id(node)]


def _edge(node: Node, below: list[Edge], static: Container[str]) -> Edge:
    worst = max((e.pattern for e in below), key=ORDER.index, default="monotonic")
    known = all(e.expiry_known for e in below)
    weak = "WK" if worst == "WKS" else worst
    match node:
        case StreamScan() | RelationToStream() | OneRow():
            return Edge("monotonic", True)
        case RelationScan():
            return Edge("monotonic", True) if node.name in static else Edge("STR", False)
        case Enrich():  # rule 1: a relation that is not retroactive adds nothing
            return below[0]
        case Window():
            return _window_edge(node)
        case Select() | Project() | Generate():  # rule 1: unary operators keep the pattern
            return below[0]
        case UnionAll():  # rule 2: the more complex of the inputs; unlike windows end out of order
            ends = _ends(node)
            return Edge(worst if len(ends) == 1 and isinstance(ends.pop(), TimeWindow) else weak, known)
        case Join() if node.kind in ("inner", "semi"):  # rule 3: what matches ends with the first of its parts
            return Edge(weak, known)
        case Intersect():  # rule 3
            return Edge(weak, known)
        case Aggregate() if not node.calls and not node.global_:  # rule 3: duplicate elimination
            return Edge(weak, known)
        case Aggregate():  # rule 4: group-by replaces its rows, whatever its input does
            return Edge("WK", False)
        case Join() | Difference() | Analytic() | TopK():  # rule 5: what arrives takes rows back
            return Edge("STR", False)
    raise TypeError(f"no update pattern is defined for {type(node).__name__}")


def _window_edge(node: Window) -> Edge:
    spec = node.spec
    if isinstance(spec, UserWindow):  # its function gives each element's interval, when it is seen
        return Edge(spec.pattern if spec.pattern in ORDER else "STR", True)
    if isinstance(spec, Rows):  # first in first out, by partition
        return Edge("WK" if node.partition else "WKS", False)
    if isinstance(spec, Session | When):  # later elements decide
        return Edge("WK", False)
    return Edge("monotonic" if spec.monotonic else "WKS", True)


def _ends(node: Node) -> set[object]:
    """By what the rows of an edge end, through operators that keep their order: windows, or what stands there else.

    Elements that one and the same time window ends leave in the order of their instants, whatever their streams are.
    Windows of one length do not: ``[Fixed 10]`` ends an element sooner than ``[Range 10]``; and two windows of rows
    move each with its own stream.
    """
    if isinstance(node, UnionAll | Select | Project | Generate):
        return set().union(*map(_ends, node.inputs))
    return {node.spec if isinstance(node, Window) else node}


def settled(node: Node, static: Container[str]) -> bool:
    """Whether this edge cannot change after the query's first slice: it rests on static relations alone."""
    if isinstance(node, StreamScan):
        return False
    if isinstance(node, RelationScan):
        return node.name in static
    if isinstance(node, Aggregate) and node.global_ and not node.inputs:
        return True
    return all(settled(child, static) for child in node.inputs)


def readable_again(node: Node) -> bool:
    """Whether the rows that this edge still holds can be read from the inputs by range, so that no SweepArea is
    needed.
    """
    if isinstance(node, Aggregate | Analytic | Difference | Enrich | Intersect | RelationToStream | TopK):
        return False
    if isinstance(node, Join) and node.kind != "inner":
        return False
    if isinstance(node, Window) and not isinstance(node.spec, TimeWindow):
        return False
    if isinstance(node, StreamScan | RelationScan):
        return True
    return all(readable_again(child) for child in node.inputs)


def touching(node: Node) -> bool:
    """Whether of an edge whose expiry is known a record may come in pieces that follow each other: duplicate
    elimination, intersection and semi join lengthen what they have told (``two_counts``).
    """
    if isinstance(node, Window | StreamScan | RelationToStream):
        return False
    lengthens = isinstance(node, Intersect) or (isinstance(node, Aggregate) and not node.calls and not node.global_)
    lengthens = lengthens or (isinstance(node, Join) and node.kind == "semi")
    return lengthens or any(touching(child) for child in node.inputs)


def linear_stream(node: Node) -> bool:
    """Whether a stream-valued edge is a scan under selections, projections and unions only."""
    if isinstance(node, Select | Project | UnionAll):
        return all(linear_stream(child) for child in node.inputs)
    return isinstance(node, StreamScan)


def cheap(node: Node) -> bool:
    """Whether computing an edge twice costs little: it is made of scans, selections, projections, unions and windows
    that look at one element at a time.
    """
    if isinstance(node, Window) and not isinstance(node.spec, TimeWindow):
        return False
    known = isinstance(node, StreamScan | RelationScan | Window | Select | Project | UnionAll)
    return known and all(cheap(child) for child in node.inputs)
