"""W-Expire: a window whose elements leave by negative tuples (Hammad et al., section 3.2.1).

Definition: an element valid in ``[ts, te)`` with n copies is told twice, n copies ``[ts, INF)`` in the slice that holds
ts and -n copies ``[te, INF)`` in the slice that holds te. Every instant has the same bag as before, and no row that
leaves carries an end that is still to come.

Columns in and out: the record, ``__ts``, ``__te``, ``__n``.

SweepArea: the rows whose end, or whose beginning, is still to come; equal records with equal instants are one row. It
holds no more than what the window holds and what it will show later.

>>> bag = pa.table({"k": [7], "__ts": [2], "__te": [9], "__n": [1]})
>>> told, waiting = sweep(bag, 0, 5)
>>> told.to_pylist() == [{"k": 7, "__ts": 2, "__te": INF, "__n": 1}]
True
>>> sweep(waiting, 5, 9)[0].to_pylist() == [{"k": 7, "__ts": 9, "__te": INF, "__n": -1}]
True
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.values.columns import with_columns
from sweeparea.operators.values.netting import compacted


def sweep(rows: pa.Table, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(what the slice ``(h0, h1]`` tells, carry). ``rows``: the carry of the last slice and the window's new rows.

    What begins at or before h0 is carried and has been told.
    """
    start, end, n = (keys.int64_of(rows.column(c)) for c in (TS, TE, N))
    valid = (end > start) & (n != 0)
    begins = np.flatnonzero(valid & (start > h0) & (start <= h1))
    ends = np.flatnonzero(valid & (end > h0) & (end <= h1))
    told = rows.take(pa.array(np.append(begins, ends)))
    columns = {
        TS: np.append(start[begins], end[ends]),
        TE: np.full(told.num_rows, INF),
        N: np.append(n[begins], -n[ends]),
    }
    waiting = np.flatnonzero(valid & (end > h1) & ((end != INF) | (start > h1)))
    kept = {TS: np.maximum(start[waiting], h1), TE: end[waiting], N: n[waiting]}  # what has been told begins at h1
    return with_columns(told, columns), compacted(with_columns(rows.take(pa.array(waiting)), kept), h1 - 1)
