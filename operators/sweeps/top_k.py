"""ORDER BY .. LIMIT k of each group, kept up to date: the rows numbered ``offset`` to ``offset + limit - 1`` at every
instant.

Beyond the papers; by update pattern strict non-monotonic, since an arrival can drive any shown row out. The rows of a
group stand in an order-statistics tree, and only its first rows are looked at, at those ticks of the slice at which a
row comes or goes among them: O(log n) for a change and for each row shown, instead of the whole group
(``snapshot.py``).

Columns in: keys, columns, ``__ts``, ``__te``, ``__n``. Out: the columns, ``__ts``, ``__te`` (INF), ``__n``: +n where
copies of a record come into the result, -n where they leave it.

SweepArea: the rows alive after h1, netted: any of them may become one of the first. Bound: the live elements.

>>> from sweeparea.operators.sweeps.snapshot import SnapshotSpec
>>> from sweeparea.operators.values.order import OrderKey
>>> spec = TopKSpec(SnapshotSpec((), ("v",), ((OrderKey("v", descending=True),),)), limit=1)
>>> rows = pa.table({"v": [7, 9], "__ts": [1, 3], "__te": [INF, 5], "__n": [1, 1]})
>>> [tuple(row.values()) for row in sweep(rows, spec, 0, 9)[0].to_pylist()] == [
...     (7, 1, INF, 1), (9, 3, INF, 1), (7, 3, INF, -1), (9, 5, INF, -1), (7, 5, INF, 1)]
True
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.carriers import Carriers, only
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.plan.expressions import Column, Expr, SortKey
from sweeparea.operators.plan.node import Evaluated, Ids, Node, ids_of, plain
from sweeparea.operators.plan.words import listed, order_text
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TE, TS, N

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sweeparea.operators.kernels import sorting
    from sweeparea.operators.kernels import top_k as kernel
    from sweeparea.operators.sweeps import snapshot
    from sweeparea.operators.sweeps.snapshot import Snapshots, SnapshotSpec
else:
    np, pa, sorting, kernel, snapshot = later(
        "numpy",
        "pyarrow",
        "sweeparea.operators.kernels.sorting",
        "sweeparea.operators.kernels.top_k",
        "sweeparea.operators.sweeps.snapshot",
    )


@stored("TopK", "input", "order", "limit", "offset", "keys")
@dataclass(frozen=True)
class TopK(Node):
    """ORDER BY .. LIMIT: of each group of equal ``keys`` (none: of all) the rows from ``offset`` on, at most ``limit``.

    ``order`` ends with the record's own columns, so that ties are broken by the total order.
    """

    input: Node
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    keys: tuple[Expr, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def words(self, time: TimeDomain) -> str:
        keys = f" of each {listed(self.keys)}" if self.keys else ""
        limit = "all" if self.limit is None else f"first {self.limit:,}"
        skipped = f" after {self.offset:,}" if self.offset else ""
        return f"Top {limit}{skipped}{keys} by {order_text(self.order)}"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        """Rule 5: an arrival drives shown rows out."""
        return STRICT

    @property
    def replaces(self) -> bool:
        return True

    @property
    def readable_again(self) -> bool:
        return False

    def needs(self, needed: Ids) -> Iterator[Ids]:
        yield (needed | self.reads) & ids_of(self.input)

    def evaluated(self) -> Iterator[Evaluated]:
        return plain(*self.keys, *(key.expr for key in self.order), remembered=True)

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        return only(below[0], self.keys)


@dataclass(frozen=True)
class TopKSpec:
    """Which rows to keep: ``rows.orders[0]`` is their order, complete with its ties; ``limit`` None: all from
    ``offset`` on.
    """

    rows: SnapshotSpec
    limit: int | None
    offset: int = 0


def sweep(rows: pa.Table, spec: TopKSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(what the slice ``(h0, h1]`` adds to the result, carry). ``rows`` in any order: carry and new rows.

    Errors (DataError): a net number of copies below zero.
    """
    snapshots = snapshot.Snapshots(rows, spec.rows, h0, h1)
    return _result(snapshots, spec), snapshots.carry()


def _result(at: Snapshots, spec: TopKSpec) -> pa.Table:
    # records in their order, those of equal rank in any: they are equal in every column of the order
    order = np.argsort(at.ranks(0), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    end = at.first + at.covers
    by_begin, by_end = sorting.sorted_order((at.first,)), sorting.sorted_order((end,))
    limit = -1 if spec.limit is None else spec.limit
    places, segment, n = kernel.changes(
        place[at.interval], at.first, end, at.copies, by_begin, by_end, at.opens, spec.offset, limit
    )
    record, tick = order[places], at.ts[segment]
    table = at.records.select(list(spec.rows.columns)).take(pa.array(record))
    for name, values in ((TS, tick), (TE, np.full(len(tick), INF)), (N, n)):
        table = table.append_column(name, pa.array(values))
    return table
