"""Difference: EXCEPT ALL and EXCEPT.

Definition, at every instant: a record has max(0, n1 - n2) copies (Kraemer & Seeger 2005, section 3.2.5, eq. 5, and
Algorithm 7; Golab & Oezsu 2005, section 2.1, eq. 1; Patroumpas & Sellis 2006, section 4.1); of EXCEPT without ALL one
copy where the left has it and the right has not (SQL). NULL equals NULL, NaN equals NaN. Columns in and out: the
record, ``__ts``, ``__te``, ``__n``.

SweepArea (``two_counts``): per record and side the number of its live copies, and one row for each future instant at
which that is known to change; of EXCEPT over known expiry one interval a record and side, beside pending ones that a
gap parts from it. Expiry of the result is unknown, whatever the inputs know: an arrival on the right takes a reported
record back, and when the right's copy expires the left's is reported at that instant (Hammad et al., section 4.3,
W-MINUS).

>>> bag = {"v": ["A", "E"], "__ts": [1, 5], "__te": [11, 15], "__n": [1, 1]}
>>> right = {"v": ["E"], "__ts": [2], "__te": [8], "__n": [1]}
>>> [tuple(r.values()) for r in whole(pa.table(bag), pa.table(right), ["v"]).to_pylist()]
[('A', 1, 11, 1), ('E', 8, 15, 1)]
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.plan.words import columns_text
from sweeparea.operators.sweeps.set_operation import SetOperation
from sweeparea.operators.time.domain import TimeDomain

if TYPE_CHECKING:
    import pyarrow as pa

    from sweeparea.operators.sweeps import two_counts
else:
    pa, two_counts = later("pyarrow", "sweeparea.operators.sweeps.two_counts")


@stored("Difference", "left", "right", "outputs", "all")
@dataclass(frozen=True)
class Difference(SetOperation):
    """EXCEPT ALL: max(0, n1 - n2) copies of a record (Kraemer eq. 5); ``all`` False: EXCEPT, one copy of what the left
    has and the right has not.
    """

    def words(self, time: TimeDomain) -> str:
        return f"Except{' all' if self.all else ''} ({columns_text(self.columns)})"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        return STRICT

    @property
    def compares(self) -> bool:
        return True

    @property
    def operation(self) -> two_counts.Operation:
        return two_counts.DIFFERENCE if self.all else two_counts.EXCEPT


def whole(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> pa.Table:
    """EXCEPT ALL of two bags that are known to the end of time."""
    return two_counts.whole(left, right, columns, two_counts.DIFFERENCE)
