"""What can be said of an edge before anything runs: whether expiry is known, whether it can still change, how it is
re-read.

*Known* expiry (Golab & Oezsu 2005, section 3) means that a row's te is final when the row is emitted: no negative
tuple will follow. It decides which SweepAreas may forget dominated rows.
"""

from __future__ import annotations

from collections.abc import Container

from sweeparea.operators.logical import (
    Aggregate,
    Node,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    UnionAll,
    Window,
)


def expiry_known(node: Node, static: Container[str]) -> bool:
    """Whether every row of this edge carries its final end. ``static`` names the relations that never change."""
    if isinstance(node, Window | StreamScan | RelationToStream):
        return True
    if isinstance(node, RelationScan):
        return node.name in static
    if isinstance(node, Aggregate):
        return False  # results are emitted as deltas: a group's row ends when the group changes
    return all(expiry_known(child, static) for child in node.inputs)


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
    if isinstance(node, Aggregate | RelationToStream):
        return False
    if isinstance(node, StreamScan | RelationScan):
        return True
    return all(readable_again(child) for child in node.inputs)


def linear_stream(node: Node) -> bool:
    """Whether a stream-valued edge is a scan under selections, projections and unions only."""
    if isinstance(node, Select | Project | UnionAll):
        return all(linear_stream(child) for child in node.inputs)
    return isinstance(node, StreamScan)
