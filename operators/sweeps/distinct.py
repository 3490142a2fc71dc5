"""Duplicate elimination: DISTINCT, GROUP BY without aggregates, UNION.

Definition, at every instant: one copy of each record of which there is any (Kraemer & Seeger 2005, section 3.2.4, eq. 6
and Algorithm 6; Golab & Oezsu 2005, section 5.3.1, the operator delta*; Hammad et al., section 4.2, W-DISTINCT: what
expires is replaced by a younger copy). It has no node of its own: in a plan it is ``Aggregate`` without calls
(``Aggregate.is_distinct``), which asks ``edge`` and ``kept`` here. Over known expiry it is the sweep of two counts
(``two_counts.py``) over one bag: it gives intervals, a later copy only lengthens what has been given, no negative tuple
ever leaves. Else it is the aggregation's sweep (``aggregate.py``), which counts elements.

Columns in and out: the record, ``__ts``, ``__te``, ``__n``. SweepArea: over known expiry one interval a record, beside
pending ones that a gap parts from it; else net counts: one a record, or where ends travel with rows one a record and
end.

>>> bag = pa.table({"v": ["A", "A"], "__ts": [1, 4], "__te": [5, 9], "__n": [1, 3]})
>>> [tuple(row.values()) for row in whole(bag, ["v"]).to_pylist()]
[('A', 1, 9, 1)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.plan.edge import Edge, weak

if TYPE_CHECKING:
    import pyarrow as pa

    from sweeparea.operators.sweeps import two_counts
else:
    pa, two_counts = later("pyarrow", "sweeparea.operators.sweeps.two_counts")


def edge(below: Sequence[Edge]) -> Edge:
    """Rule 3 of Golab & Oezsu 2005, section 5.2."""
    return weak(below)


def kept(known: bool) -> str:
    """The SweepArea, for explain."""
    return "one interval a value, and pending ones that a gap parts from it" if known else "one net count a value"


def operation() -> two_counts.Operation:
    """What the sweep over known expiry makes of its two counts, of which the second is nought."""
    return two_counts.DISTINCT


def whole(bag: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The distinct records of a bag that is known to the end of time."""
    return two_counts.whole(bag, bag.slice(0, 0), columns, two_counts.DISTINCT)
