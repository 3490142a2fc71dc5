"""Negation: the anti join, NOT IN and NOT EXISTS.

Definition, at every instant: each copy of a left record that no right record matches (Golab & Oezsu 2005, section 2.1:
negation; Hammad et al., section 4.3, W-MINUS, is the case of equal records, ``difference.py``). An arrival on the right
takes a reported record back, and when the right's copy expires the left's is reported at that instant: rule 5, strict
non-monotonic. Which matches are looked up, and where ``L anti R = L - L join D`` will do: ``semi_join.py``.

Columns in: of both bags the left record, ``__ts``, ``__te``, ``__n``; the right bag are the matches. Columns out: the
left record, ``__ts``, ``__te``, ``__n``. SweepArea (``two_counts.py``): the counts of live records and of their
matches.

>>> bag = pa.table({"v": ["A", "B"], "__ts": [1, 1], "__te": [9, 9], "__n": [2, 1]})
>>> matches = pa.table({"v": ["A"], "__ts": [4], "__te": [6], "__n": [1]})
>>> [tuple(row.values()) for row in whole(bag, matches, ["v"]).to_pylist()]
[('A', 1, 4, 2), ('A', 6, 9, 2), ('B', 1, 9, 1)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later

if TYPE_CHECKING:
    import pyarrow as pa

    from sweeparea.operators.sweeps import two_counts
else:
    pa, two_counts = later("pyarrow", "sweeparea.operators.sweeps.two_counts")


def operation() -> two_counts.Operation:
    """What the sweep makes of the counts of a left record and of its matches."""
    return two_counts.STRICT_DIFFERENCE


def whole(left: pa.Table, matches: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The left records without a match, of bags that are known to the end of time."""
    return two_counts.whole(left, matches, columns, two_counts.STRICT_DIFFERENCE)
