"""Split: intervals become pieces of one length, the inverse of coalesce (Kraemer & Seeger 2005, section 4.3.2.11,
Algorithm 11).

Definition: ``[ts, te)`` becomes ``[ts, ts + length)``, ``[ts + length, ts + 2 length)``, .. and what remains. Snapshots
stay as they are. What an operator keeps of a piece expires earlier, for more rows. An interval without end has no last
piece: it stays whole.

Columns in and out: the record, ``__ts``, ``__te``, ``__n``. SweepArea: none; a piece that is still to begin is pending.

>>> bag = pa.table({"k": [7, 8], "__ts": [1, 2], "__te": [8, INF], "__n": [1, 1]})
>>> [tuple(row.values())[:3] for row in split(bag, 3).to_pylist()] == [(7, 1, 4), (7, 4, 7), (7, 7, 8), (8, 2, INF)]
True
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sweeparea.infra.errors import DataError
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS
from sweeparea.operators.values.columns import with_columns


def split(bag: pa.Table, length: int) -> pa.Table:
    """The bag in pieces of ``length`` ticks, each row's in order. DataError: a length of no tick."""
    if length < 1:
        raise DataError(f"Intervals cannot be split into pieces of {length} ticks: a piece has at least one.")
    start, end = (keys.int64_of(bag.column(c)) for c in (TS, TE))
    whole = (end == INF) | (end <= start)
    pieces = np.where(whole, 1, -(-(end - start) // length))
    row = np.repeat(np.arange(len(start)), pieces)
    number = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    ts = start[row] + number * length
    te = np.where(whole[row], end[row], np.minimum(ts + length, end[row]))
    return with_columns(bag.take(pa.array(row)), {TS: ts, TE: te})
