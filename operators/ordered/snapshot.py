"""Snapshot expansion: what has no incremental operator, evaluated with the instant as an extra key (Law S1, literally).

A relation is constant between two instants at which it changes. So the rows of each changed key are cut at the ticks of
the slice ``(h0, h1]`` at which one of them starts or ends, each row is laid into every segment that it covers, and the
SQL is evaluated once over all of them with ``(key, segment)`` as its grouping: exact for any SQL of one input. Rows are
netted per record first, so an instant at which nothing changes in the end is no cut.

A segment is named by the row that its result becomes: ``(__ts, __te, __n)`` is ``[t1, t2) +1`` for a segment inside
the slice, ``[t, INF) +1`` for the last one, which stays open, and ``[t, INF) -1`` for the one that holds at h0 and ends
at t: its result has been emitted by an earlier slice, and evaluating it anew must give the same row.

Columns in: keys, columns, ``__ts``, ``__te``, ``__n``. Out: keys, columns, ``__r0``.. (where each row stands in the
orders asked for), ``__present`` (global only), ``__ts``, ``__te``, ``__n``; a record of n copies n times.

SweepArea: the rows alive after h1, netted: never more than the live (and pending) elements. Cost: a row once for each
segment that it covers, so a key with r live rows and k changes takes r x k rows; they are made piece by piece.

>>> spec = SnapshotSpec(keys=("k",), columns=("v",))
>>> rows = pa.table({"k": ["a", "a"], "v": [7, 8], "__ts": [1, 3], "__te": [5, INF], "__n": [1, 1]})
>>> parts, carry = expand(rows, spec, 2, 9)
>>> sorted(tuple(row.values()) for part in parts for row in part.to_pylist()) == [
...     ("a", 7, 3, 5, 1), ("a", 7, 3, INF, -1), ("a", 8, 3, 5, 1), ("a", 8, 5, INF, 1)]
True
>>> [tuple(row.values()) for row in carry.to_pylist()] == [("a", 8, 9, INF, 1)]
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys as key_codes
from sweeparea.operators.values import shared_rows
from sweeparea.operators.values.bag import BAG, below_zero
from sweeparea.operators.values.columns import BAG_FIELDS, as_bag, chosen
from sweeparea.operators.values.netting import netted
from sweeparea.operators.values.order import OrderKey, ranks

PRESENT = "__present"
"""BOOLEAN: FALSE in the one row that stands for a segment of an empty global group."""
_PIECE = 1 << 16
"""Rows made at a time."""


def rank_column(i: int) -> str:
    """The column (BIGINT) that says where a row stands in order number ``i``; equal in the order, equal numbers."""
    return f"__r{i}"


@dataclass(frozen=True)
class SnapshotSpec:
    """What to expand. ``keys`` and ``columns`` are column ids; ``orders`` those asked for.

    ``global_``: no keys, and the one group has a result also while it is empty. ``start``: the query's first instant;
    what starts earlier counts from there.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    orders: tuple[tuple[OrderKey, ...], ...] = ()
    global_: bool = False
    start: int = 0


def expanded_schema(rows: pa.Schema, spec: SnapshotSpec) -> pa.Schema:
    """The schema of the expanded rows, from that of the rows."""
    found = [rows.field(name) for name in (*spec.keys, *spec.columns)]
    found += [pa.field(rank_column(i), pa.int64()) for i in range(len(spec.orders))]
    found += [pa.field(PRESENT, pa.bool_())] if spec.global_ else []
    return pa.schema([*found, *BAG_FIELDS])


def expand(rows: pa.Table, spec: SnapshotSpec, h0: int, h1: int) -> tuple[Iterator[pa.Table], pa.Table]:
    """(expanded rows, carry) of the slice ``(h0, h1]``.

    ``rows`` (order immaterial): the carry of the previous slice and the new rows. What starts at or before h0 is state
    that has been evaluated, what starts after h1 waits in the carry.

    Errors (DataError): a net number of copies below zero.
    """
    snapshots = Snapshots(rows, spec, h0, h1)
    return snapshots.pieces(), snapshots.carry()


class Snapshots:
    """The rows of a slice as distinct records, the segments of each changed group, and what covers them.

    ``records``: keys and columns. Interval i says that record ``interval[i]`` has ``copies[i]`` copies in ``covers[i]``
    segments from number ``first[i]`` on. A segment's result becomes the row ``[ts, te) sign`` (see the module's
    text); ``opens`` tells the first segment of each group, which ends the result of earlier slices.
    """

    def __init__(self, rows: pa.Table, spec: SnapshotSpec, h0: int, h1: int) -> None:
        self.spec, self.h0, self.h1 = spec, h0, h1
        self.published = h0 >= spec.start
        start, end, n = (key_codes.int64_of(rows.column(c)) for c in BAG)
        start = np.maximum(start, h0 if self.published else spec.start)
        used = (n != 0) & (end > start)
        rows, self.start, self.end, self.n = chosen(rows, used), start[used], end[used], n[used]
        self.record, count = _codes(rows, (*spec.keys, *spec.columns))
        group, self.groups = _codes(rows, spec.keys)
        row = np.zeros(count, np.int64)
        row[self.record] = np.arange(len(self.record))
        shown = rows.select([*spec.keys, *spec.columns])
        # most often no record comes twice
        self.records = key_codes.canonical(shown if count == rows.num_rows else shown.take(pa.array(row)))
        self.group = group[row]
        self._cut(*self._changes())

    def _changes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(record, tick, copies from then on) for every change of a record's number of copies up to h1."""
        begins, ends = np.flatnonzero(self.start <= self.h1), np.flatnonzero(self.end <= self.h1)
        record = np.append(self.record[begins], self.record[ends])
        tick = np.append(self.start[begins], self.end[ends])
        n = np.append(self.n[begins], -self.n[ends])
        record, tick, n = netted(record, tick, n)
        copies = np.cumsum(n)
        first = np.flatnonzero(np.append(True, record[1:] != record[:-1])) if len(record) else record
        sizes = np.diff(np.append(first, len(record)))
        copies -= np.repeat(copies[first] - n[first], sizes)
        if np.any(copies < 0):
            self._refuse(int(np.flatnonzero(copies < 0)[0]), record, tick)
        return record, tick, copies

    def _refuse(self, at: int, record: np.ndarray, tick: np.ndarray) -> None:
        shown = {k: v[0] for k, v in self.records.slice(int(record[at]), 1).to_pydict().items()}
        raise below_zero(shown, tick[at])

    def _cut(self, record: np.ndarray, tick: np.ndarray, copies: np.ndarray) -> None:
        """Segments of every group, and for each interval of a record the segments that it covers."""
        spec = self.spec
        inside = tick > self.h0
        ticks = _distinct(np.append(tick[inside], spec.start))  # START too: there the global group begins
        width, group = len(ticks) + 1, self.group[record]
        place = np.searchsorted(ticks, tick)
        cuts = _distinct((group * width + place)[inside])
        groups = self.groups
        if spec.global_:
            groups = 1
            if not self.published and spec.start <= self.h1:
                cuts = _distinct(np.append(cuts, np.searchsorted(ticks, spec.start)))
        # segment j of a group lies before its cut j: one more than it has cuts
        number = np.bincount(cuts // width, minlength=groups) if groups else np.zeros(0, np.int64)
        begin = np.cumsum(number) - number
        base = begin + np.arange(groups)
        self._name_segments(ticks[cuts % width], number, base)
        until = np.append(tick[1:], INF) if len(tick) else tick
        same = np.append(record[1:] == record[:-1], False) if len(record) else np.zeros(0, np.bool_)
        code = group * width + np.where(inside, place, -1)
        low = np.searchsorted(cuts, code, side="right") - begin[group]
        low = np.where(inside, low, 0)
        high = np.where(same & (until <= self.h1), np.append(low[1:], 0) if len(low) else low, number[group] + 1)
        used = (copies > 0) & (number[group] > 0) & (high > low)
        self.interval = record[used]
        self.copies = copies[used]
        self.first = (base[group] + low)[used]
        self.covers = (high - low)[used]
        if spec.global_:
            self._mark(number)

    def _name_segments(self, cut: np.ndarray, number: np.ndarray, base: np.ndarray) -> None:
        """The row that each segment's result becomes."""
        segments = len(cut) + len(number)
        self.ts, self.te = np.zeros(segments, np.int64), np.full(segments, INF)
        self.sign, self.opens = np.ones(segments, np.int64), np.zeros(segments, np.bool_)
        self.opens[base] = True
        own = np.repeat(base - (np.cumsum(number) - number), number) + np.arange(len(cut))  # the one that ends there
        self.te[own], self.ts[own + 1] = cut, cut
        oldest = base[number > 0]
        self.ts[oldest], self.te[oldest], self.sign[oldest] = self.te[oldest], INF, -1

    def _mark(self, number: np.ndarray) -> None:
        """A row without values in every segment of the global group."""
        skipped = 0 if self.published else 1
        if number[0] == 0:
            return
        self.interval = np.append(self.interval, self.records.num_rows)
        self.copies = np.append(self.copies, 1)
        self.covers = np.append(self.covers, int(number[0]) + 1 - skipped)
        self.first = np.append(self.first, skipped)

    def ranks(self, i: int) -> np.ndarray:
        """Where each record stands in order number ``i``."""
        return ranks(self.records, self.spec.orders[i])

    def pieces(self) -> Iterator[pa.Table]:
        """The expanded rows, so many at a time."""
        table = self._table()
        size = self.covers * self.copies
        last = np.cumsum(size)
        total = int(last[-1]) if len(last) else 0
        for begin in range(0, total, _PIECE):
            at = np.arange(begin, min(begin + _PIECE, total))
            interval = np.searchsorted(last, at, side="right")
            segment = self.first[interval] + (at - (last - size)[interval]) // self.copies[interval]
            piece = table.take(pa.array(self.interval[interval]))
            yield as_bag(piece, self.ts[segment], self.te[segment], self.sign[segment])

    def _table(self) -> pa.Table:
        """The records with their ranks; last, where there is a global group, the row that stands for its absence."""
        table = self.records
        for i in range(len(self.spec.orders)):
            table = table.append_column(rank_column(i), pa.array(self.ranks(i)))
        if not self.spec.global_:
            return table
        table = table.append_column(PRESENT, pa.array(np.ones(table.num_rows, np.bool_)))
        nothing = [pa.array([False]) if f.name == PRESENT else pa.nulls(1, f.type) for f in table.schema]
        return pa.concat_tables([table, pa.Table.from_arrays(nothing, schema=table.schema)])

    def told(self, rows: pa.Table, segment: np.ndarray, n: np.ndarray) -> pa.Table:
        """``rows`` as changes: so many copies more from where their segments begin."""
        return as_bag(rows, self.ts[segment], np.full(len(segment), INF), n)

    def carry(self, kept: Callable[[Alive], np.ndarray] | None = None) -> pa.Table:
        """The rows alive after h1, one for each record, start and end; of these those that are ``kept``."""
        return shared_rows.plain(self.shared_carry(kept))

    def shared_carry(self, kept: Callable[[Alive], np.ndarray] | None = None) -> pa.Table:
        """``carry``, which shares its records (``shared_rows.py``)."""
        alive = np.flatnonzero(self.end > self.h1)
        record, start, end = self.record[alive], np.maximum(self.start[alive], self.h1), self.end[alive]
        span, spans = key_codes.codes([pa.array(start), pa.array(end)]) if len(alive) else (start, 0)
        row = np.zeros(spans, np.int64)
        row[span] = np.arange(len(span))
        record, span, n = netted(record, span, self.n[alive])
        found = Alive(record, start[row[span]], end[row[span]], n)
        if kept is not None:
            mask = kept(found)
            found = Alive(record[mask], found.start[mask], found.end[mask], n[mask])
        return as_bag(shared_rows.shared(self.records, found.record), found.start, found.end, found.n)


@dataclass(frozen=True)
class Alive:
    """Rows that are valid after h1, or begin there: number of the record, from when, until when, copies."""

    record: np.ndarray
    start: np.ndarray
    end: np.ndarray
    n: np.ndarray


def _distinct(values: np.ndarray) -> np.ndarray:
    # np.unique hashes first, which is several times slower
    values = np.sort(values)
    return values[np.append(True, values[1:] != values[:-1])] if len(values) else values


def _codes(rows: pa.Table, names: tuple[str, ...]) -> tuple[np.ndarray, int]:
    if not names:
        return np.zeros(rows.num_rows, np.int64), min(1, rows.num_rows)
    return key_codes.codes([rows.column(c) for c in names])
