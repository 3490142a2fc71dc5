"""Rows of a stream's files as a bag, read by whoever sweeps them: what needs no Spark SQL takes no way through it.

Spark makes a row of each of Parquet's, and an Arrow column of all rows, which costs more than most sweeps. A plan asks
for Spark SQL where it computes: expressions, conditions, joins. Columns as they are, instants and windows of time
(``TimeWindow.intervals``) are Arrow arrays already; ``BagOf`` puts them together.

Spark says which worker reads what: the tasks here are run by ``mapInArrow`` over the numbers of their shares.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.values.bag import BAG, TE, TS
from sweeparea.operators.values.keys import int64_of
from sweeparea.operators.windows import BucketWindow, TimeWindow
from sweeparea.tables.log import scan

T = TypeVar("T")
Range = tuple[str, int | None, int | None]
"""A column and its least and greatest value, None: open; BIGINT, or microseconds of a TIMESTAMP."""


@dataclass(frozen=True)
class BagOf:
    """Elements of a stream as a table has them -> a bag of the columns ``columns`` (id, name in the table).

    ``tick``: the column of instants, in ticks or as TIMESTAMP; ``copies``: that of copies, None: one each. ``clock``:
    microseconds a tick lasts, 0: time is BIGINT. ``instant``: the id of a column that shows the instant itself.
    ``window``: None: elements stay elements ``[s, s+1)``; what is never valid is left out. ``bounds``: as of
    ``through``.
    """

    columns: tuple[tuple[str, str], ...]
    tick: str
    copies: str | None
    clock: int
    instant: str | None = None
    window: TimeWindow | None = None
    bounds: tuple[str, str] | None = None

    @property
    def names(self) -> list[str]:
        """The columns of the table that are read."""
        return list(dict.fromkeys([*(name for _, name in self.columns), self.tick, *filter(None, [self.copies])]))

    def of(self, rows: pa.Table) -> pa.Table:
        """The bag; columns: those asked for, the instant's, ``__ts``, ``__te``, ``__n``."""
        tick = int64_of(rows.column(self.tick))
        if pa.types.is_timestamp(rows.schema.field(self.tick).type):
            tick = tick // self.clock
        found: list[pa.ChunkedArray] = [rows.column(name) for _, name in self.columns]
        ids = [id_ for id_, _ in self.columns]
        if self.instant is not None:
            found.append(pa.chunked_array([instants(tick, self.clock)]))
            ids.append(self.instant)
        copies = np.ones(len(tick), np.int64) if self.copies is None else int64_of(rows.column(self.copies))
        found += [pa.chunked_array([pa.array(values)]) for values in (tick, tick + 1, copies)]
        bag = pa.Table.from_arrays(found, names=[*ids, *BAG])
        return bag if self.window is None else through(bag, self.window, self.bounds, self.clock)

    def schema(self, table: pa.Schema) -> pa.Schema:
        """The bag's schema, from that of the table."""
        return self.of(table.empty_table()).schema


def instants(ticks: np.ndarray, clock: int) -> pa.Array:
    """Ticks as values of the query's time: TIMESTAMP by a ``clock`` of so many microseconds, BIGINT by none."""
    if not clock:
        return pa.array(ticks)
    return pc.multiply_checked(pa.array(ticks), pa.scalar(clock, pa.int64())).cast(pa.timestamp("us", "UTC"))


def seen_by(window: TimeWindow, bounds: bool) -> bool:
    """Whether ``through`` knows a window; ``bounds``: those of buckets, too."""
    nothing = np.zeros(0, np.int64)
    if bounds:
        return isinstance(window, BucketWindow) and window.one_bucket(nothing) is not None
    return window.intervals(nothing) is not None


def through(elements: pa.Table, window: TimeWindow, bounds: tuple[str, str] | None = None, clock: int = 0) -> pa.Table:
    """Elements ``[s, s+1)`` as a window of which each instant tells the interval has them (``seen_by``); what is never
    valid is left out. ``bounds``: columns for the bounds of the bucket, as ``instants`` of the ``clock``.
    """
    s = int64_of(elements.column(TS))
    if bounds is None:
        found = window.intervals(s)
    else:
        assert isinstance(window, BucketWindow)
        buckets = window.one_bucket(s)
        assert buckets is not None
        for name, values in zip(bounds, buckets[:2], strict=True):
            elements = elements.append_column(name, instants(values, clock))
        found = buckets[2:]
    assert found is not None  # else nobody asks
    for name, values in zip((TS, TE), found, strict=True):
        elements = elements.set_column(elements.schema.get_field_index(name), name, pa.array(values))
    return elements.filter(pc.less(elements.column(TS), elements.column(TE)))


@dataclass(frozen=True)
class FilePart:
    """Part ``part`` of ``parts`` of a file: so many of its row groups."""

    path: str
    part: int = 0
    parts: int = 1


@dataclass(frozen=True)
class GivenTask:
    """Rows that travel with the task: few, which the driver has read."""

    rows: pa.Table

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if sum(batch.num_rows for batch in batches):
            yield from self.rows.to_batches()


@dataclass(frozen=True)
class ReadTask:
    """Reads files of ``schema``: of each number that comes the pieces of that share, rows in all ``ranges``."""

    shares: tuple[tuple[FilePart, ...], ...]
    schema: pa.Schema
    ranges: tuple[Range, ...]
    bag: BagOf

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in mine(self.shares, batches):
            yield from self._read(piece)

    def _read(self, piece: FilePart) -> Iterator[pa.RecordBatch]:
        read = scan.pieces(piece.path, self.schema, self.bag.names, scan.within(self.schema, self.ranges))
        for rows in read(piece.part, piece.parts):
            yield from (found for found in self.bag.of(rows).to_batches() if found.num_rows)


def mine(shares: Sequence[Sequence[T]], batches: Iterator[pa.RecordBatch]) -> Iterator[T]:
    """What is in the shares of a worker, whose numbers come in the first column of ``batches``."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from shares[number]


def shares(files: Sequence[tuple[str, int]], number: int) -> tuple[tuple[FilePart, ...], ...]:
    """``number`` shares of about equal size of files (path, bytes); a large file is in several of them.

    >>> [[(p.path, p.part, p.parts) for p in share] for share in shares([("a", 10), ("b", 60)], 2)]
    [[('b', 0, 2), ('a', 0, 1)], [('b', 1, 2)]]
    """
    most = max(1, -(-sum(size for _, size in files) // number))
    parts = [max(1, round(size / most)) for _, size in files]
    pieces = [
        (size / count, FilePart(path, part, count))
        for (path, size), count in zip(files, parts, strict=True)
        for part in range(count)
    ]
    sizes, found = [0.0] * number, [[] for _ in range(number)]
    for size, piece in sorted(pieces, key=lambda sized: -sized[0]):
        least = sizes.index(min(sizes))
        sizes[least] += size
        found[least].append(piece)
    return tuple(map(tuple, found))
