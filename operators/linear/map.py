"""Base of the operators that map each row alone: selection, projection, generators.

Unary and linear: signs and intervals stay, so they keep the input's update pattern (Golab & Oezsu 2005, section 5.2,
rule 1), the order in which rows end, and all that is said of keys and time.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from sweeparea.operators.plan.carriers import Carriers
from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.plan.node import Node


@dataclass(frozen=True)
class Map(Node):
    """One input, each row of which gives rows of its own interval."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        return below[0]

    @property
    def ends(self) -> frozenset[object]:
        return self.input.ends

    @property
    def monotonic(self) -> bool:
        return self.input.monotonic

    @property
    def is_stream(self) -> bool:
        return self.input.is_stream

    @property
    def readable_again(self) -> bool:
        return self.input.readable_again

    @property
    def looks_back(self) -> int:
        return 0

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        return below[0]
