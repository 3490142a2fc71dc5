"""Aggregates over frames, kept up to date: SUM, AVG, COUNT, MIN, MAX, MIN_BY, MAX_BY and the statistics of powers over
ROWS and RANGE frames and whole partitions; with IGNORE NULLS or FILTER also LAG, LEAD, FIRST, LAST and NTH_VALUE.

Beyond the papers; by update pattern strict non-monotonic. The rows of a group stand in order in trees of sums and of
least ranks; where one comes or goes only those are looked at whose frames hold it: O(log n) each. Where a frame reaches
from the beginning to the row itself (from it to the end) these are the rows from there on, until one still has the
value that it had; of a whole partition all, if their value changes. Sums are exact, as those of a group.

Columns in: keys, columns, ``__ts``, ``__te``, ``__n``. Out: the columns, the calls' values, ``__ts``, ``__te`` (INF),
``__n``.

SweepArea: the rows alive after h1, netted. Bound: the live elements.

>>> from sweeparea.operators.aggregates.calls import BaseCall
>>> from sweeparea.operators.ordered.snapshot import SnapshotSpec
>>> from sweeparea.operators.time.ticks import INF
>>> from sweeparea.operators.values.order import OrderKey
>>> rows = SnapshotSpec((), ("v",), ((OrderKey("v"),),))
>>> table = pa.table({"v": [7, 9], "__ts": [1, 3], "__te": [INF, 5], "__n": [1, 1]})
>>> total = FramedCall("s", PlacedFrame(True, None, 0), BaseCall("s", "SUM", pa.int64(), "v", pa.int64()), "v")
>>> found = [tuple(row.values()) for row in sweep(table, FramedSpec(rows, ("v",), (total,)), 0, 9)[0].to_pylist()]
>>> sorted(found, key=lambda row: row[2]) == [(7, 7, 1, INF, 1), (9, 16, 3, INF, 1), (9, 16, 5, INF, -1)]
True
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sweeparea.infra.errors import DataError
from sweeparea.operators.aggregates.names import SUMS_OF_POWERS, TOTALS
from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.ordered.window_function import Windowed, WindowFunction, whole_number
from sweeparea.operators.plan.node import Ends
from sweeparea.operators.plan.words import cut
from sweeparea.operators.sql.expressions import Column, SortKey
from sweeparea.operators.time.domain import TimeDomain

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sweeparea.operators.aggregates import framed as values_of
    from sweeparea.operators.aggregates import user_values
    from sweeparea.operators.aggregates.calls import BaseCall
    from sweeparea.operators.aggregates.framed import FramedValue
    from sweeparea.operators.aggregates.instants import Result
    from sweeparea.operators.kernels import framed as kernel
    from sweeparea.operators.kernels import moves, sorting
    from sweeparea.operators.kernels.sums import digits
    from sweeparea.operators.ordered import snapshot
    from sweeparea.operators.ordered.snapshot import SnapshotSpec
    from sweeparea.operators.user_code.user_aggregate import UserAggregate
    from sweeparea.operators.values import arrays, netting
    from sweeparea.operators.values import order as order_of
else:
    np, pa, values_of, user_values, digits, moves, sorting, kernel, snapshot, arrays, netting, order_of = later(
        "numpy",
        "pyarrow",
        "sweeparea.operators.aggregates.framed",
        "sweeparea.operators.aggregates.user_values",
        "sweeparea.operators.kernels.sums.digits",
        "sweeparea.operators.kernels.moves",
        "sweeparea.operators.kernels.sorting",
        "sweeparea.operators.kernels.framed",
        "sweeparea.operators.ordered.snapshot",
        "sweeparea.operators.values.arrays",
        "sweeparea.operators.values.netting",
        "sweeparea.operators.values.order",
    )

_AGGREGATES = TOTALS | SUMS_OF_POWERS | {"COUNT", "AVG", "TRY_AVG", "MIN", "MAX"}
_BY = ("MAX_BY", "MIN_BY")
OF_ROWS = ("FIRST", "LAST", "NTH_VALUE", "LAG", "LEAD")
_EDGE = r"(CURRENT ROW|.+ (?:PRECEDING|FOLLOWING))"
_FRAME = re.compile(f"(ROWS|RANGE) BETWEEN {_EDGE.replace('.+', '.+?')} AND {_EDGE}", re.DOTALL)
_NUMBER = re.compile(r"\(*(\d{1,9})\)*")
_BLOCK = 1 << 18
"""How many rows are told at a time."""


# -- which calls -------------------------------------------------------------------------------------------------------


class FrameEdge(NamedTuple):
    """Where a frame begins or ends: ``offset`` (SQL), empty at the current row, before it (``preceding``) or behind."""

    offset: str
    preceding: bool = False


@dataclass(frozen=True)
class WrittenFrame:
    """A frame as it is written: of ``rows`` or of a RANGE of keys, from ``low`` to ``high``; None: to the end of the
    partition.
    """

    rows: bool
    low: FrameEdge | None
    high: FrameEdge | None

    @property
    def whole(self) -> bool:
        return self.low is None and self.high is None

    @property
    def offsets(self) -> bool:
        return any(edge is not None and bool(edge.offset) for edge in (self.low, self.high))


def frame_of(call: WindowFunction) -> WrittenFrame | None:
    """The frame of a call; None if it is not understood."""
    if not call.frame:
        return WrittenFrame(False, None, FrameEdge("") if call.order else None)
    found = _FRAME.fullmatch(call.frame)
    if found is None:
        return None
    frame = WrittenFrame(found[1] == "ROWS", _edge(found[2]), _edge(found[3]))
    if frame.rows and any(rows_behind(edge) is None for edge in (frame.low, frame.high) if edge is not None):
        return None
    return frame


def _edge(text: str) -> FrameEdge | None:
    if text == "CURRENT ROW":
        return FrameEdge("")
    offset, side = text.rsplit(" ", 1)
    return None if offset == "UNBOUNDED" else FrameEdge(offset, side == "PRECEDING")


def rows_behind(edge: FrameEdge) -> int | None:
    """How many rows behind the row itself an edge of ROWS lies; None if that is not a plain number."""
    if not edge.offset:
        return 0
    found = _NUMBER.fullmatch(edge.offset.replace(" ", ""))
    return None if found is None else -int(found[1]) if edge.preceding else int(found[1])


def is_framed(call: WindowFunction) -> bool:
    """Whether a call is kept up to date over its frame."""
    frame = frame_of(call)
    if call.distinct or frame is None or (frame.rows and not frame.whole and not call.order):
        return False
    if not frame.rows and frame.offsets and len(call.order) != 1:
        return False
    if call.running:
        return True
    if call.function in OF_ROWS:
        return _picks(call, frame)
    return call.function in _AGGREGATES or (call.function in _BY and len(call.arguments) == 2)


def _picks(call: WindowFunction, frame: WrittenFrame) -> bool:
    if not call.order:
        return False
    if call.function in ("LAG", "LEAD"):
        offset = 1 if len(call.arguments) < 2 else whole_number(call.arguments[1])
        return call.ignore_nulls and offset not in (None, 0)
    if call.function == "NTH_VALUE" and (whole_number(call.arguments[1]) or 0) < 1:
        return False
    return (frame.rows or frame.whole) and (call.ignore_nulls or call.filter is not None)


def ordered(call: WindowFunction) -> tuple[SortKey, ...]:
    """The order that a call needs."""
    frame = frame_of(call)
    indifferent = frame is not None and frame.whole and call.function not in OF_ROWS
    return () if indifferent else call.order


@stored("Framed", "input", "calls")
@dataclass(frozen=True)
class Framed(Windowed):
    """Aggregates over frames of one PARTITION BY and one ORDER BY, with which the orders of all calls begin."""

    @property
    def order(self) -> tuple[SortKey, ...]:
        return max((ordered(call) for _, call in self.calls), key=len)

    def words(self, time: TimeDomain) -> str:
        return f"Aggregates of frames {cut(', '.join(call.words for _, call in self.calls))}"

    def kept(self, ends: Ends) -> str | None:
        functions = dict.fromkeys(call.function for _, call in self.calls)
        return f"the input's rows that are valid after h1, in order for {', '.join(functions)} of frames"


Calls = tuple[tuple[Column, WindowFunction], ...]


def together(calls: Calls) -> list[Calls]:
    """The calls that one node computes: of one PARTITION BY, each order the beginning of the longest."""
    made: list[list[tuple[Column, WindowFunction]]] = []
    for entry in sorted(calls, key=lambda entry: -len(ordered(entry[1]))):
        own = ordered(entry[1])
        for node in made:
            first = node[0][1]
            if first.partition == entry[1].partition and ordered(first)[: len(own)] == own:
                node.append(entry)
                break
        else:
            made.append([entry])
    return [tuple(entry for entry in calls if entry in node) for node in made]


# -- the sweep ---------------------------------------------------------------------------------------------------------


class FrameBound(NamedTuple):
    """The column of the keys at which frames begin or end, and whether these lie before the row (``preceding``)."""

    column: str
    preceding: bool


@dataclass(frozen=True)
class PlacedFrame:
    """A frame of ``rows`` from so many behind the row itself, or one from a key on: 0 is that of the row, the first
    ``peers`` columns of the order. None: to the end of the group.
    """

    rows: bool
    low: int | FrameBound | None
    high: int | FrameBound | None
    peers: int = 0


@dataclass(frozen=True)
class Pick:
    """The value ``value`` of the row number ``skip`` from the first of a frame on (``last``: from the last one) of
    those with ``counted``; of no row that of ``default``, if there is one. All are columns.
    """

    value: str
    counted: str
    skip: int = 0
    last: bool = False
    default: str | None = None


@dataclass(frozen=True)
class FramedCall:
    """A base aggregate over the column ``argument`` (None: of rows), a row that is picked, or a user's aggregate with a
    state, of a frame.
    """

    name: str
    frame: PlacedFrame
    what: BaseCall | Pick | UserAggregate
    argument: str | None = None


@dataclass(frozen=True)
class FramedSpec:
    """``rows.orders[0]``: the order, complete with its ties where a frame is one of rows; ``columns``: those that are
    put out, before the calls.
    """

    rows: SnapshotSpec
    columns: tuple[str, ...]
    calls: tuple[FramedCall, ...]


def sweep(rows: pa.Table, spec: FramedSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(what the slice ``(h0, h1]`` adds to the result, carry). ``rows`` in any order: carry and new rows.

    Errors (DataError): a net number of copies below zero; more than 2**30 copies; SUM beyond its result type.
    """
    swept = _FramedSlice(rows, spec, h0, h1)
    return pa.concat_tables(swept.changes()), swept.at.carry()


class _FramedSlice:
    """One slice: the records in their order, each copy at a place of its own where rows are counted."""

    def __init__(self, rows: pa.Table, spec: FramedSpec, h0: int, h1: int) -> None:
        self.spec = spec
        self.at = at = snapshot.Snapshots(rows, spec.rows, h0, h1)
        copies = np.zeros(at.records.num_rows, np.int64)
        np.add.at(copies, at.interval, at.copies)
        if float(copies.sum()) != float(copies.astype(np.float64).sum()) or copies.sum() > digits.COPIES:
            raise DataError("The input of window functions has more than 2^30 copies of its rows in one slice.")
        self.order, _ = order_of.sorted_groups(at.records, at.group, spec.rows.orders[0], 0)
        most = np.ones(len(copies), np.int64)
        self.units = any(call.frame.rows for call in spec.calls)
        if self.units:
            np.maximum.at(most, at.interval, at.copies)
        self.record = np.repeat(self.order, most[self.order])
        self.begins = np.append(0, np.cumsum(most[self.order]))  # the place of each record, in their order
        self.first = np.append(0, np.cumsum(np.bincount(at.group, most, at.groups).astype(np.int64)))
        self.base = self.first[at.group[self.record]]
        self.end = self.first[at.group[self.record] + 1]
        columns = values_of.FrameColumns()
        self.values = [self._value(call, copies, columns) for call in spec.calls]
        self.columns = columns
        self.fixed: list[tuple[np.ndarray, np.ndarray]] = []
        self.trees: dict[int, _States] = {}
        self.intervals = self._intervals()

    def _value(self, call: FramedCall, copies: np.ndarray, columns: values_of.FrameColumns) -> FramedValue:
        records, what = self.at.records, call.what
        if isinstance(what, user_values.UserAggregate):
            assert call.argument is not None
            return values_of.UserFrames(what, call.argument, records, columns)
        if not isinstance(what, Pick):
            return values_of.value_of(what, call.argument, records, copies, columns)
        kind = kernel.LAST if what.last else kernel.FIRST
        return values_of.Picked(records, what.value, what.counted, kind, what.skip, what.default, columns)

    def changes(self) -> Iterator[pa.Table]:
        at = self.at
        asked, shown = self._asked()
        intervals = self.intervals
        kept = kernel.nothing_kept(len(self.record), shown, asked)
        cursor = moves.cursor_of(intervals, len(at.opens))
        begin = (np.int64(0), np.int64(-1))
        yield self._told(np.zeros((0, 3 + shown), np.int64), asked)
        while begin[0] < len(at.opens):
            found, begin = kernel.changes(intervals, at.opens, self.first, asked, kept, cursor, begin, _BLOCK)
            if len(found):
                yield self._told(found, asked)

    def _intervals(self) -> moves.Intervals:
        at = self.at
        place = np.empty(len(self.order), np.int64)
        place[self.order] = self.begins[:-1]
        interval, first, covers, copies = place[at.interval], at.first, at.covers, at.copies
        if self.units:
            each = np.repeat(np.arange(len(copies)), copies)
            nth = np.arange(len(each)) - np.repeat(np.cumsum(copies) - copies, copies)
            interval, first, covers, copies = interval[each] + nth, first[each], covers[each], np.ones_like(each)
        return moves.intervals_of(interval, first, covers, copies)

    def _asked(self) -> tuple[kernel.AskedFrames, int]:
        calls, shown = np.zeros((len(self.values), 10), np.int64), 0
        for i, (call, value) in enumerate(zip(self.spec.calls, self.values, strict=True)):
            low, high, fixed = self._frame(call.frame)
            reaches = call.frame.low is None, call.frame.high is None
            calls[i] = (value.kind, value.source, value.width, shown, value.skip, fixed, low, high, *reaches)
            shown += value.width
        terms, ranks = (self._of_places(blocks) for blocks in (self.columns.terms, self.columns.ranks))
        bounds = [np.empty((len(self.record), len(self.fixed)), np.int64) for _ in range(2)]
        for f, edges in enumerate(self.fixed):
            for bound, edge in zip(bounds, edges, strict=True):
                bound[:, f] = edge - self.base
        return kernel.AskedFrames(calls, terms, ranks, *bounds), shown

    def _of_places(self, blocks: Sequence[np.ndarray]) -> np.ndarray:
        if not blocks:
            return np.zeros((len(self.record), 0), np.int64)
        return np.ascontiguousarray(np.column_stack(blocks)[self.record])

    # -- frames --------------------------------------------------------------------------------------------------------

    def _frame(self, frame: PlacedFrame) -> tuple[int, int, int]:
        """(from and up to how many rows behind the row itself, number of the fixed frame or -1)."""
        if frame.rows and {frame.low, frame.high} - {0, None}:
            low = -kernel.UNBOUNDED if frame.low is None else frame.low
            high = kernel.UNBOUNDED if frame.high is None else frame.high
            assert isinstance(low, int)
            assert isinstance(high, int)
            return low, high, -1
        own = np.arange(len(self.record))
        low, high = self.base, self.end
        if frame.rows:
            low, high = low if frame.low is None else own, high if frame.high is None else own + 1
        else:
            if frame.low is not None:
                low = self._edges(frame, frame.low, 0)
            if frame.high is not None:
                high = self._edges(frame, frame.high, 1)
        self.fixed.append((low, high))
        return 0, 0, len(self.fixed) - 1

    def _edges(self, frame: PlacedFrame, edge: int | FrameBound, after: int) -> np.ndarray:
        """The places where frames of a RANGE begin, or end (``after``)."""
        if isinstance(edge, FrameBound):
            at = self._keys_reach(edge, after)
        else:
            order = self.spec.rows.orders[0]
            _, peer = order_of.sorted_groups(self.at.records, self.at.group, order, frame.peers)
            at = np.searchsorted(peer, peer, "right" if after else "left")
        return np.repeat(self.begins[at], np.diff(self.begins))

    def _keys_reach(self, edge: FrameBound, after: int) -> np.ndarray:
        """For each record, in their order, how many lie before its edge."""
        records, key = self.at.records, self.spec.rows.orders[0][0]
        size = len(self.order)
        own, bound = (arrays.one_array(records.column(name)) for name in (key.column, edge.column))
        rank = order_of.key_ranks(pa.concat_arrays([own, bound]), key)
        rank, bounds = 2 * rank[:size], 2 * rank[size:]
        beyond = (own.is_valid().to_numpy(zero_copy_only=False)) & bound.is_null().to_numpy(zero_copy_only=False)
        if beyond.any():  # past what the type holds: before or behind all keys but NULL
            there = own.is_valid().to_numpy(zero_copy_only=False)
            bounds[beyond] = rank[there].min() - 1 if edge.preceding else rank[there].max() + 1
        width = 2 * size + int(max(rank.max(initial=0), bounds.max(initial=0))) + 3
        group = np.empty(size, np.int64)  # as groups lie in the order
        group[self.order] = np.searchsorted(self.first, self.begins[:-1], "right")
        keys, wanted = group * width + rank + 2, group * width + bounds + 2
        return np.searchsorted(keys[self.order], wanted[self.order], "right" if after else "left")

    def _states(self, value: values_of.UserFrames) -> _States:
        if id(value) not in self.trees:
            self.trees[id(value)] = _States(self, value)
        return self.trees[id(value)]

    # -- what is told --------------------------------------------------------------------------------------------------

    def _told(self, found: np.ndarray, asked: kernel.AskedFrames) -> pa.Table:
        at, (place, segment, n) = self.at, found[:, :3].T
        record = self.record[place]

        def named(i: int) -> str:
            keys = {k: at.records.column(k)[int(record[i])].as_py() for k in self.spec.rows.keys}
            group = f" in partition ({', '.join(repr(v) for v in keys.values())})" if keys else ""
            return f"tick {at.ts[segment[i]]}{group}"

        told = values_of.ToldFrames(n > 0, named)
        results: list[Result] = []
        for value, (_, _, width, shown, *_) in zip(self.values, asked.calls.tolist(), strict=True):
            held = found[:, 3 + shown : 3 + shown + width]
            if isinstance(value, values_of.UserFrames):
                states = self._states(value)
                value.values = lambda held, states=states: states.values(held, place, segment, n)
            if isinstance(value, values_of.Picked):
                other = np.where(held[:, 0] >= 0, self.record[held[:, 0]], -1) if len(held) else held[:, 0]
                held = np.column_stack([other, record])
            results.append(value.result(held, told))
        # what is told as it was and as it is, with equal values, has not changed
        kept, n = netting.netted_rows((segment, record, *(part for r in results for part in r.parts)), n)
        table = at.records.select(list(self.spec.columns)).take(pa.array(record[kept]))
        for call, value, result in zip(self.spec.calls, self.values, results, strict=True):
            table = table.append_column(call.name, result.array(kept, value.type))
        return at.told(table, segment[kept], n)


class _States:
    """The states of a user's aggregate, segment after segment."""

    def __init__(self, swept: _FramedSlice, value: values_of.UserFrames) -> None:
        self.swept, self.value = swept, value
        intervals = swept.intervals
        segment = np.append(intervals.begin, intervals.end)
        order = sorting.sorted_order((segment,))
        self.place = np.append(intervals.place, intervals.place)[order]
        self.n = np.append(intervals.copies, -intervals.copies)[order]
        self.ends = np.searchsorted(segment[order], np.arange(len(swept.at.opens) + 1), "left")
        self.group_of = np.cumsum(swept.at.opens) - 1  # of each segment
        self.segment, self.group, self.base = -1, -1, 0
        self.tree = user_values.StateTree(value.user, lambda p: None, 0)

    def values(self, held: np.ndarray, place: np.ndarray, segment: np.ndarray, n: np.ndarray) -> list[Any]:
        """The values of frames that are told: as they were before the segment where ``n`` is negative."""
        found = []
        for (a, b), s, was in zip(held[:, :2].tolist(), segment.tolist(), (n < 0).tolist(), strict=True):
            self._reach(s - 1 if was else s)
            found.append(self.tree.value(a, b))
        return found

    def _reach(self, segment: int) -> None:
        group = int(self.group_of[segment])
        if group != self.group:
            self.group, self.base = group, int(self.swept.first[group])
            base, record = self.base, self.swept.record
            rows, size = self.value.rows, int(self.swept.first[group + 1]) - base
            self.tree = user_values.StateTree(self.value.user, lambda p: rows[record[base + p]], size)
            self.segment = int(np.searchsorted(self.group_of, group)) - 1
        while self.segment < segment:
            self.segment += 1
            at = slice(int(self.ends[self.segment]), int(self.ends[self.segment + 1]))
            moves = zip((self.place[at] - self.base).tolist(), self.n[at].tolist(), strict=True)
            # where a group begins the rows of the one before end
            self.tree.change([(p, k) for p, k in moves if 0 <= p < self.tree.places])
