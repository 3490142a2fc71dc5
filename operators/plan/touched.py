"""Which instants of a result a change of its inputs can touch, and how much of the past a result's instant rests on.

A correction of an element at s changes what windows hold at the instants in which it is valid and no other, and every
operator above works instant by instant (Kraemer & Seeger 2005, Definition 5.2: snapshot-reducibility). So a late
element is repaired by computing a stretch of time anew: from its instant to the last that it can touch, with the
inputs read back as far as the windows' reach.

>>> from sweeparea.operators.nodes import Column, StreamScan, Window
>>> from sweeparea.operators.windows import Range
>>> scan = StreamScan("S", ((Column("c0", "v"), "v"),))
>>> touched(Window(scan, Range(10)), {"S": Stretch(5, 7)})
Stretch(first=5, last=17)
"""

from __future__ import annotations

from collections.abc import Mapping

from sweeparea.operators.plan.node import Node, longer
from sweeparea.operators.plan.stretch import Stretch
from sweeparea.operators.time.ticks import INF


def touched(node: Node, inputs: Mapping[str, Stretch]) -> Stretch | None:
    """The instants at which a node's relation (or stream) can differ, if its inputs differ at those of ``inputs`` only.

    Of a stream these are its elements' instants. None: nowhere.
    """
    seen: dict[int, Stretch | None] = {}

    def of(node: Node) -> Stretch | None:
        if id(node) not in seen:
            seen[id(node)] = node.touched([of(child) for child in node.inputs], inputs)
        return seen[id(node)]

    return of(node)


def memory(node: Node) -> int:
    """How many ticks before an instant the inputs of a node have to be read from, to know it at that instant, where
    nothing before is known but the contents of relations. ``INF``: from START.
    """
    seen: dict[int, int] = {}

    def of(node: Node) -> int:
        if id(node) not in seen:
            below = max((of(child) for child in node.inputs), default=0)
            seen[id(node)] = longer(below, node.looks_back) if node.inputs else 0
        return seen[id(node)]

    return of(node)


def warm_from(root: Node, start: int, since: int) -> int:
    """The tick from which inputs are read, so that a query with this START is known at ``since`` and after."""
    back = memory(root)
    return start if back >= INF else max(start, since - back)
