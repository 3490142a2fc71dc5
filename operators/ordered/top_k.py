"""The first rows of each group in an order, kept up to date: ORDER BY .. LIMIT, and rows cut by ROW_NUMBER, RANK or
DENSE_RANK, with or without these numbers beside them.

Beyond the papers; by update pattern strict non-monotonic, since an arrival can drive any shown row out. The rows of a
group stand in order-statistics trees. At each tick at which one comes or goes only those are looked at that are shown
otherwise than before: O(log n) for a change, and for each row that enters, leaves or, where numbers are shown, gets
another one. So a group of any size costs what it changes, not what it holds (``snapshot.py`` would lay it out anew).

Columns in: keys, columns, ``__ts``, ``__te``, ``__n``. Out: the columns, the numbers asked for (INT, from 1), ``__ts``,
``__te`` (INF), ``__n``: +n where copies of a record come into the result, -n where they leave it.

SweepArea: the rows alive after h1, netted: any of them may become one of the first. Where all ends are known and the
number of rows (of ranks) is limited, only those that are not dominated, by as many better ones that stay as long.
Bound: the live elements; with known ends that are all the same (an unbounded window) the rows that are shown.

>>> from sweeparea.operators.ordered.snapshot import SnapshotSpec
>>> from sweeparea.operators.time.ticks import INF
>>> from sweeparea.operators.values.order import OrderKey
>>> spec = TopKSpec(SnapshotSpec((), ("v",), ((OrderKey("v", descending=True),),)), limit=1)
>>> rows = pa.table({"v": [7, 9], "__ts": [1, 3], "__te": [INF, 5], "__n": [1, 1]})
>>> found = [tuple(row.values()) for row in sweep(rows, spec, 0, 9)[0].to_pylist()]
>>> sorted(found) == [(7, 1, INF, 1), (7, 3, INF, -1), (7, 5, INF, 1), (9, 3, INF, 1), (9, 5, INF, -1)]
True
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.ordered.window_function import WindowFunction
from sweeparea.operators.plan.carriers import Carriers, only
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.plan.influence import Influence, Made, read_by
from sweeparea.operators.plan.node import Ends, Evaluated, Ids, Node, ids_of, plain
from sweeparea.operators.plan.numbers import ALL, COUNTED, DENSE_RANK, NUMBERINGS, RANK, ROW_NUMBER, UP_TO_PEERS
from sweeparea.operators.plan.words import BY_TIME, listed, order_text
from sweeparea.operators.sql.expressions import Column, Expr, SortKey
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.windows.definitions import all_in_buckets

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sweeparea.operators.kernels import moves, sorting
    from sweeparea.operators.kernels import top_k as kernel
    from sweeparea.operators.ordered import snapshot
    from sweeparea.operators.ordered.snapshot import Alive, SnapshotSpec
    from sweeparea.operators.values import columns, shared_rows
    from sweeparea.operators.values import keys as key_codes
    from sweeparea.operators.values import order as order_of
else:
    np, pa, moves, sorting, kernel, snapshot, columns, shared_rows, key_codes, order_of = later(
        "numpy",
        "pyarrow",
        "sweeparea.operators.kernels.moves",
        "sweeparea.operators.kernels.sorting",
        "sweeparea.operators.kernels.top_k",
        "sweeparea.operators.ordered.snapshot",
        "sweeparea.operators.values.columns",
        "sweeparea.operators.values.shared_rows",
        "sweeparea.operators.values.keys",
        "sweeparea.operators.values.order",
    )


@stored("TopK", "input", "order", "limit", "offset", "keys", later=("by", "peers", "numbers"))
@dataclass(frozen=True)
class TopK(Node):
    """Of each group of equal ``keys`` (none: of all) the rows from number ``offset`` + 1 on, at most ``limit`` numbers.

    ``by`` says which number: ROW_NUMBER tells all rows apart, so ``order`` ends with the record's own columns and ties
    are broken by the total order; RANK and DENSE_RANK are the same of all rows that are equal in the first ``peers``
    keys of ``order`` (None: in all), and keep or drop these together. ``numbers``: columns that are added (INT), each
    with which one of ``COUNTED`` it holds; it counts all rows of the group.
    """

    input: Node
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    keys: tuple[Expr, ...] = ()
    by: str = ROW_NUMBER
    peers: int | None = None
    numbers: tuple[tuple[Column, str], ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + tuple(column for column, _ in self.numbers)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def words(self, time: TimeDomain) -> str:
        keys = f" of each {listed(self.keys)}" if self.keys else ""
        limit = "all" if self.limit is None else f"first {self.limit:,}"
        skipped = f" after {self.offset:,}" if self.offset else ""
        by = {ROW_NUMBER: "", RANK: " ranks", DENSE_RANK: " dense ranks"}[self.by]
        shown = f", with {', '.join(function for _, function in self.numbers)}" if self.numbers else ""
        return f"Top {limit}{by}{skipped}{keys} by {order_text(self.order)}{shown}"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        """Rule 5: an arrival drives shown rows out."""
        return STRICT

    @property
    def replaces(self) -> bool:
        return True

    @property
    def looks_back(self) -> int:
        return 0

    def needs(self, needed: Ids) -> Iterator[Ids]:
        yield (needed | self.reads) & ids_of(self.input)

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        numbers = tuple((column, function) for column, function in self.numbers if column.id in needed)
        if not numbers and self.numbers and self.limit is None and not self.offset:
            return inputs[0]
        return replace(self, input=inputs[0], numbers=numbers)

    def evaluated(self) -> Iterator[Evaluated]:
        return plain(*self.keys, *(key.expr for key in self.order), remembered=True)

    def made(self) -> Iterator[Made]:
        yield from (Made(c.id, frozenset(), beside=((Influence.WINDOW, self.reads),)) for c, _ in self.numbers)

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        if self.limit is not None or self.offset:
            yield Influence.SORT, read_by(key.expr for key in self.order)
            yield Influence.GROUP_BY, read_by(self.keys)

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        return only(below[0], self.keys)

    def combines(self, ends: Ends) -> bool:
        """Whether workers leave out what others of their rows outdo: of a bucket, whose rows have one interval."""
        buckets = all_in_buckets(self.input.ends)
        return buckets and self.shortens and ends.expiry_known(self.input)

    def divides(self, ends: Ends) -> str | None:
        return BY_TIME if self.shortens and ends.expiry_known(self.input) else None

    @property
    def shortens(self) -> bool:
        """Whether ``shortened`` may be asked."""
        return is_cut(self.limit, self.by, self.numbers)

    def kept(self, ends: Ends) -> str | None:
        if self.limit is None or not self.shortens or not ends.expiry_known(self.input):
            return "the input's rows that are valid after h1"
        most = self.limit + self.offset
        what = {ROW_NUMBER: "rows", RANK: "rows before them", DENSE_RANK: "ranks before them"}[self.by]
        group = "for each group" if self.keys else ""
        return " ".join(f"{group} the live rows but those that {most:,} better {what} outlive".split())

    @staticmethod
    def of_calls(
        input_: Node, calls: Sequence[tuple[Column, WindowFunction]], of: Column
    ) -> tuple[TopK, tuple[tuple[Column, WindowFunction], ...]]:
        """A top-k of all rows that has the number ``of`` and those that one order gives with it; the other calls.

        RANK and DENSE_RANK stand by the order as written, ROW_NUMBER by the same one completed with the record, so that
        of one window's numbers the longest order serves all.
        """
        chosen = next(call for column, call in calls if column == of)
        mine = [call for _, call in calls if call.function in COUNTED and call.partition == chosen.partition]

        def order_of(functions: Sequence[str]) -> tuple[SortKey, ...] | None:
            if chosen.function in functions:
                return chosen.order
            return next((call.order for call in mine if call.function in functions and _fits(call, chosen)), None)

        complete, written = order_of((ROW_NUMBER,)), order_of(_BY_PEERS)
        numbers, rest = [], []
        for column, call in calls:
            own = complete if call.function == ROW_NUMBER else written
            if call in mine and (call.function == ALL or call.order == own):
                numbers.append((column, call.function))
            else:
                rest.append((column, call))
        order = complete if complete is not None else written or ()
        peers = None if written is None or written == order else len(written)
        by = chosen.function if chosen.function in NUMBERINGS else ROW_NUMBER
        return TopK(input_, order, None, 0, chosen.partition, by, peers, tuple(numbers)), tuple(rest)


_BY_PEERS = (RANK, DENSE_RANK, UP_TO_PEERS)


def _fits(call: WindowFunction, chosen: WindowFunction) -> bool:
    """Whether the shorter of two orders is how the longer one begins."""
    if chosen.function == ALL:
        return False
    if (call.function == ROW_NUMBER) == (chosen.function == ROW_NUMBER):
        return call.order == chosen.order
    complete, written = (call, chosen) if call.function == ROW_NUMBER else (chosen, call)
    return complete.order[: len(written.order)] == written.order


def is_cut(limit: int | None, by: str, numbers: Iterable[tuple[object, str]]) -> bool:
    """Whether of rows behind the last place nothing is told."""
    return limit is not None and not counts_behind(by, (function for _, function in numbers))


def counts_behind(by: str, numbers: Iterable[str]) -> bool:
    """Whether a number beside a row counts rows that may never be shown themselves: all of the group, or peers behind
    it that ROW_NUMBER tells from it.
    """
    return any(function == ALL or (function == UP_TO_PEERS and by == ROW_NUMBER) for function in numbers)


@dataclass(frozen=True)
class TopKSpec:
    """Which rows to keep: ``rows.orders[0]`` is their order, complete with its ties; ``limit`` None: all from
    ``offset`` on. ``by``, ``peers``, ``numbers``: as of ``TopK``, the columns by name. ``expiry_known``: no row is
    taken away other than at its own end.
    """

    rows: SnapshotSpec
    limit: int | None
    offset: int = 0
    by: str = ROW_NUMBER
    peers: int | None = None
    numbers: tuple[tuple[str, str], ...] = ()
    expiry_known: bool = False

    @property
    def limited(self) -> bool:
        """Whether only rows are kept that may be shown some day."""
        return self.expiry_known and is_cut(self.limit, self.by, self.numbers)


def sweep(rows: pa.Table, spec: TopKSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(what the slice ``(h0, h1]`` adds to the result, carry). ``rows`` in any order: carry and new rows.

    Errors (DataError): a net number of copies below zero.
    """
    changes, carry = shared_sweep(rows, spec, h0, h1)
    return shared_rows.plain(changes), shared_rows.plain(carry)


def shared_sweep(rows: pa.Table, spec: TopKSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """``sweep``, of which both share their records (``shared_rows.py``)."""
    return _Swept(rows, spec, h0, h1).run()


def carried(rows: pa.Table, h: int, spec: TopKSpec) -> pa.Table:
    """Rows that began by ``h`` as a slice after h needs them, where what is kept is ``limited``: those that may be
    shown.
    """
    return shared_rows.plain(_Swept(rows, spec, h, h).carry())


def shortened(rows: pa.Table, spec: TopKSpec, until: int) -> pa.Table:
    """What may be shown some day of rows that a worker has: not one before which there are enough others of its group
    and its very interval. They are told apart before rows of a group meet, so that fewer travel.

    Rows that end after ``until`` may be taken away before, and stay; all others have their final end. Only of what
    ``is_cut``.
    """
    start, end, n = (key_codes.int64_of(rows.column(c)) for c in BAG)
    sure = np.flatnonzero((n > 0) & (end <= until) & (end > start))
    order = spec.rows.orders[0]
    some = rows.select(list(dict.fromkeys([*spec.rows.keys, *(key.column for key in order)]))).take(pa.array(sure))
    ends = [pa.array(start[sure]), pa.array(end[sure])]
    group, _ = key_codes.codes([*(some.column(key) for key in spec.rows.keys), *ends])
    peers = len(order) if spec.peers is None else spec.peers
    positions, peer = order_of.sorted_groups(some, group, order, peers)
    before = _before(group[positions], peer, n[sure][positions], spec.by)
    assert spec.limit is not None
    left = np.ones(rows.num_rows, np.bool_)
    left[sure[positions[before >= spec.offset + spec.limit]]] = False
    return columns.chosen(rows, left)


def _before(group: np.ndarray, peer: np.ndarray, n: np.ndarray, by: str) -> np.ndarray:
    """How many copies, copies before its peers, or classes of peers are before each row of its group, in order."""
    begins = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(group) else group
    sizes = np.diff(np.append(begins, len(group)))
    if by == DENSE_RANK:
        return peer - np.repeat(peer[begins], sizes)
    before = np.cumsum(n) - n
    if by == RANK:
        first = np.flatnonzero(np.append(True, peer[1:] != peer[:-1])) if len(peer) else peer
        before = np.repeat(before[first], np.diff(np.append(first, len(peer))))
    return before - np.repeat(before[begins], sizes)


class _Swept:
    """One slice: the records in their order, and what the kernel makes of it."""

    def __init__(self, rows: pa.Table, spec: TopKSpec, h0: int, h1: int) -> None:
        self.spec = spec
        self.at = at = snapshot.Snapshots(rows, spec.rows, h0, h1)
        order = spec.rows.orders[0]
        peers = len(order) if spec.peers is None else spec.peers
        # records of one place of the order are equal in every column of it, so that none comes before the other
        self.order, self.peer = order_of.sorted_groups(at.records, at.group, order, peers)
        self.place = np.empty(len(self.order), np.int64)
        self.place[self.order] = np.arange(len(self.order))
        self.by = NUMBERINGS.index(spec.by)

    def run(self) -> tuple[pa.Table, pa.Table]:
        return self._changes(), self.carry()

    def carry(self) -> pa.Table:
        return self.at.shared_carry(self._undominated if self.spec.limited else None)

    def _changes(self) -> pa.Table:
        at, spec = self.at, self.spec
        first = np.append(0, np.cumsum(np.bincount(at.group, minlength=at.groups)))
        shown = sum({1 << COUNTED.index(function) for _, function in spec.numbers})
        asked = kernel.CutBy(self.by, spec.offset, -1 if spec.limit is None else spec.limit, shown)
        intervals = moves.intervals_of(self.place[at.interval], at.first, at.covers, at.copies)
        places, segment, n, *numbers = kernel.changes(intervals, at.opens, first, self.peer, asked)
        table = shared_rows.shared(at.records.select(list(spec.rows.columns)), self.order[places])
        for name, function in spec.numbers:
            number = numbers[COUNTED.index(function)] + 1
            table = table.append_column(name, pa.array(number.astype(np.int32)))
        return at.told(table, segment, n)

    def _undominated(self, alive: Alive) -> np.ndarray:
        """Of the rows that could be carried those that may be shown some day."""
        if np.any(alive.n < 0):
            return np.ones(len(alive.n), np.bool_)
        place = self.place[alive.record]
        order = sorting.sorted_order((place, np.negative(alive.end)))
        now = alive.start <= self.at.h1
        most = self.spec.offset + (self.spec.limit or 0)
        group = self.at.group[alive.record]
        return kernel.undominated(
            order, kernel.LiveRows(group, self.peer[place], alive.end, alive.n, now), most, self.by
        )
