"""Base of the operators that compare two bags record by record (``difference.py``, ``intersect.py``)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sweeparea.operators.linear.project import narrowed
from sweeparea.operators.plan.carriers import Carriers, by_position
from sweeparea.operators.plan.influence import Influence, Made
from sweeparea.operators.plan.node import Ends, Evaluated, Ids, Node, ids_of
from sweeparea.operators.sql.expressions import Column

if TYPE_CHECKING:
    from sweeparea.operators.sweeps.two_counts import Operation


@dataclass(frozen=True)
class SetOperation(Node):
    """Columns as in ``UnionAll``: the inputs' columns fill ``outputs`` by position. ``all``: copies count."""

    left: Node
    right: Node
    outputs: tuple[Column, ...]
    all: bool = True

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.outputs

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    @abstractmethod
    def operation(self) -> Operation:
        """What the sweep makes of the two counts (``two_counts.py``)."""

    @property
    def replaces(self) -> bool:
        return True

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        left, right = (narrowed(new, old.columns) for old, new in zip(self.inputs, inputs, strict=True))
        return replace(self, left=left, right=right)

    def evaluated(self) -> Iterator[Evaluated]:
        for side in self.inputs:
            yield from (Evaluated(f"`{c.id}`", [c.label], remembered=True, columns=(c,)) for c in side.columns)

    @property
    def by_position(self) -> bool:
        return True

    def made(self) -> Iterator[Made]:
        """The right side's values are compared with the left one's, which are those of the result."""
        pairs = zip(self.outputs, self.left.columns, strict=True)
        yield from (Made(out.id, frozenset({left.id}), Influence.IDENTITY) for out, left in pairs)

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        yield Influence.FILTER, ids_of(self.left) | ids_of(self.right)

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        return by_position(self.outputs, [side.columns for side in self.inputs], below, lambda carry: carry[0])

    @property
    def looks_back(self) -> int:
        return 0

    def kept(self, ends: Ends) -> str | None:
        known = all(ends.expiry_known(side) for side in self.inputs)
        return "the counts of each value that is valid after h1, on both sides" + (
            ", and their known ends" if known else ""
        )
