"""Intersection: INTERSECT ALL and INTERSECT.

Definition, at every instant: a record has min(n1, n2) copies, which is Kraemer's S1 - (S1 - S2) (Kraemer & Seeger
2005, section 3.6, eq. 13); of INTERSECT without ALL one copy where both have it. NULL equals NULL. Columns in and
out: the record, ``__ts``, ``__te``, ``__n``.

SweepArea (``two_counts``): as of the difference. Over known expiry the result's is known too: it lasts as long as
both sides do, and a later arrival can only make it last longer (Golab & Oezsu 2005, section 5.2).

>>> left = {"v": ["A", "A"], "__ts": [1, 1], "__te": [9, 6], "__n": [1, 1]}
>>> right = {"v": ["A"], "__ts": [4], "__te": [8], "__n": [5]}
>>> [tuple(r.values()) for r in whole(pa.table(left), pa.table(right), ["v"]).to_pylist()]
[('A', 4, 6, 1), ('A', 4, 8, 1)]
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.edge import Edge, weak
from sweeparea.operators.plan.words import columns_text
from sweeparea.operators.sweeps.set_operation import SetOperation
from sweeparea.operators.time.domain import TimeDomain

if TYPE_CHECKING:
    import pyarrow as pa

    from sweeparea.operators.sweeps import two_counts
else:
    pa, two_counts = later("pyarrow", "sweeparea.operators.sweeps.two_counts")


@stored("Intersect", "left", "right", "outputs", "all")
@dataclass(frozen=True)
class Intersect(SetOperation):
    """INTERSECT ALL: min(n1, n2) copies of a record; ``all`` False: one copy of what both have."""

    def words(self, time: TimeDomain) -> str:
        return f"Intersect{' all' if self.all else ''} ({columns_text(self.columns)})"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        """Rule 3: a record ends with the first of its sides."""
        return weak(below)

    @property
    def monotonic(self) -> bool:
        return self.left.monotonic and self.right.monotonic

    @property
    def lengthens(self) -> bool:
        return True

    @property
    def operation(self) -> two_counts.Operation:
        return two_counts.INTERSECT_ALL if self.all else two_counts.INTERSECT


def whole(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> pa.Table:
    """INTERSECT ALL of two bags that are known to the end of time."""
    return two_counts.whole(left, right, columns, two_counts.INTERSECT_ALL)
