"""Leaves out columns that nothing reads, so that scans read few and shuffles carry little. The bags stay the same, by
count (Patroumpas & Sellis 2006, section 4.2: projection commutes with windows and, with the columns of its condition
kept, with joins).

Below a relation-to-stream operator, a difference, an intersection and a DISTINCT every column matters, since values are
compared whole; below a window that counts elements those that order its ties.
"""

from __future__ import annotations

from sweeparea.operators.plan.node import Ids, Node, ids_of
from sweeparea.operators.plan.sharing import nodes


def prune(root: Node) -> Node:
    """The plan with scans, projections and unread aggregates cut down to what is read above them. A node that is used
    twice stays one node, with what either use reads.
    """
    order = [*nodes(root)]
    needed: dict[int, Ids] = {id(node): frozenset() for node in order}
    needed[id(root)] = ids_of(root)
    for node in reversed(order):  # every use before what it uses
        for child, ids in zip(node.inputs, node.needs(needed[id(node)]), strict=True):
            needed[id(child)] |= ids
    done: dict[int, Node] = {}
    for node in order:
        inputs = tuple(done[id(child)] for child in node.inputs)
        done[id(node)] = node.cut(inputs, needed[id(node)])
    return done[id(root)]
