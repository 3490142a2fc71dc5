"""Which instants of a result a change of its inputs can touch, and how much of the past a result's instant rests on.

A correction of an element at s changes what windows hold at the instants in which it is valid and no other, and every
operator above works instant by instant (Kraemer & Seeger 2005, Definition 5.2: snapshot-reducibility). So a late
element is repaired by computing a stretch of time anew: from its instant to the last that it can touch, with the
inputs read back as far as the windows' reach.

>>> from sweeparea.operators.plan.logical import Column, StreamScan, Window
>>> from sweeparea.operators.windows.definitions import Range
>>> scan = StreamScan("S", ((Column("c0", "v"), "v"),))
>>> touched(Window(scan, Range(10)), {"S": Stretch(5, 7)})
Stretch(first=5, last=17)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sweeparea.operators.plan.logical import Enrich, Node, OneRow, RelationScan, RelationToStream, StreamScan, Window
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.windows.definitions import Rows, TimeWindow


@dataclass(frozen=True)
class Stretch:
    """The instants ``first`` to ``last`` (ticks, both included; ``INF``: for ever after)."""

    first: int
    last: int

    def longer(self, ticks: int) -> Stretch:
        """With so many instants more."""
        return Stretch(self.first, INF if ticks >= INF - self.last else self.last + ticks)

    def __or__(self, other: Stretch) -> Stretch:
        return Stretch(min(self.first, other.first), max(self.last, other.last))


def hull(parts: list[Stretch | None]) -> Stretch | None:
    """The least stretch that covers all of them; None if there is none."""
    found = None
    for part in parts:
        if part is not None:
            found = part if found is None else found | part
    return found


def touched(node: Node, inputs: Mapping[str, Stretch]) -> Stretch | None:
    """The instants at which a node's relation (or stream) can differ, if its inputs differ at those of ``inputs`` only.

    Of a stream these are its elements' instants. None: nowhere.
    """
    seen: dict[int, Stretch | None] = {}

    def of(node: Node) -> Stretch | None:
        if id(node) not in seen:
            seen[id(node)] = step(node)
        return seen[id(node)]

    def step(node: Node) -> Stretch | None:
        if isinstance(node, StreamScan | RelationScan):
            return inputs.get(node.name)
        below = hull([of(child) for child in node.inputs])
        if below is None:
            return None
        if isinstance(node, Window):
            return below.longer(_holds(node))
        # Istream and Dstream compare with the instant before; an element is enriched with what was before it
        return below.longer(1) if isinstance(node, RelationToStream | Enrich) else below

    return of(node)


def memory(node: Node) -> int:
    """How many ticks before an instant the inputs of a node have to be read from, to know it at that instant, where
    nothing before is known but the contents of relations. ``INF``: from START.
    """
    seen: dict[int, int] = {}

    def of(node: Node) -> int:
        if id(node) not in seen:
            seen[id(node)] = step(node)
        return seen[id(node)]

    def step(node: Node) -> int:
        if isinstance(node, StreamScan | RelationScan | OneRow):
            return 0
        below = max((of(child) for child in node.inputs), default=0)
        more = _holds(node) if isinstance(node, Window) else int(isinstance(node, RelationToStream | Enrich))
        return INF if below >= INF - more else below + more

    return of(node)


def warm_from(root: Node, start: int, since: int) -> int:
    """The tick from which inputs are read, so that a query with this START is known at ``since`` and after."""
    back = memory(root)
    return start if back >= INF else max(start, since - back)


def _holds(window: Window) -> int:
    """For how many ticks an element can make a difference to a window's contents."""
    spec = window.spec
    counted = isinstance(spec, Rows) and spec.slide != 1  # arrivals are counted from START on
    return spec.reach if isinstance(spec, TimeWindow | Rows) and not counted else INF
