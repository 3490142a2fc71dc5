"""ORDER BY .. LIMIT k of each group, kept up to date: the rows numbered ``offset`` to ``offset + limit - 1`` at every
instant.

Beyond the papers; by update pattern strict non-monotonic, since an arrival can drive any shown row out. The rows of a
group stand in an order-statistics tree, and only its first rows are looked at, at those ticks of the slice at which a
row comes or goes among them: O(log n) for a change and for each row shown, instead of the whole group
(``snapshot.py``).

Columns in: keys, columns, ``__ts``, ``__te``, ``__n``. Out: the columns, ``__ts``, ``__te`` (INF), ``__n``: +n where
copies of a record come into the result, -n where they leave it.

SweepArea: the rows alive after h1, netted: any of them may become one of the first. Bound: the live elements.

>>> spec = TopKSpec(SnapshotSpec((), ("v",), ((OrderKey("v", descending=True),),)), limit=1)
>>> rows = pa.table({"v": [7, 9], "__ts": [1, 3], "__te": [INF, 5], "__n": [1, 1]})
>>> [tuple(row.values()) for row in sweep(rows, 0, 9, spec)[0].to_pylist()] == [
...     (7, 1, INF, 1), (9, 3, INF, 1), (7, 3, INF, -1), (9, 5, INF, -1), (7, 5, INF, 1)]
True
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.kernels.top_k import changes
from sweeparea.operators.sweeps.snapshot import OrderKey, Snapshots, SnapshotSpec
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TE, TS, N

__all__ = ["OrderKey", "SnapshotSpec", "TopKSpec", "sweep"]


@dataclass(frozen=True)
class TopKSpec:
    """Which rows to keep: ``rows.orders[0]`` is their order, complete with its ties; ``limit`` None: all from
    ``offset`` on.
    """

    rows: SnapshotSpec
    limit: int | None
    offset: int = 0


def sweep(rows: pa.Table, h0: int, h1: int, spec: TopKSpec) -> tuple[pa.Table, pa.Table]:
    """(what the slice ``(h0, h1]`` adds to the result, carry). ``rows`` in any order: carry and new rows.

    Errors (DataError): a net number of copies below zero.
    """
    snapshots = Snapshots(rows, spec.rows, h0, h1)
    return _result(snapshots, spec), snapshots.carry()


def _result(at: Snapshots, spec: TopKSpec) -> pa.Table:
    # records in their order, those of equal rank in any: they are equal in every column of the order
    order = np.argsort(at.ranks(0), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    end = at.first + at.covers
    by_begin, by_end = sorted_order((at.first,)), sorted_order((end,))
    limit = -1 if spec.limit is None else spec.limit
    places, segment, n = changes(
        place[at.interval], at.first, end, at.copies, by_begin, by_end, at.opens, spec.offset, limit
    )
    record, tick = order[places], at.ts[segment]
    table = at.records.select(list(spec.rows.columns)).take(pa.array(record))
    for name, values in ((TS, tick), (TE, np.full(len(tick), INF)), (N, n)):
        table = table.append_column(name, pa.array(values))
    return table
