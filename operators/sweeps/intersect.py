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

from collections.abc import Sequence

import pyarrow as pa

from sweeparea.operators.plan.logical import Intersect
from sweeparea.operators.sweeps import two_counts


def operation(node: Intersect) -> two_counts.Operation:
    """What the sweep makes of the two counts."""
    return two_counts.INTERSECT_ALL if node.all else two_counts.INTERSECT


def whole(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> pa.Table:
    """INTERSECT ALL of two bags that are known to the end of time."""
    return two_counts.whole(left, right, columns, two_counts.INTERSECT_ALL)
