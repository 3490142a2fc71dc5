"""The files of a SweepArea: which are due, which are merged, and how the rows of some keys are found in one.

Files lie in the order of ``__hash``, in small row groups, whose bounds (at the end of a Parquet file) say which may
hold a key, or a row that is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sweeparea.operators.time.ticks import INF, MIN_TICK
from sweeparea.operators.values import keys
from sweeparea.operators.values.columns import conform
from sweeparea.tables.log import stats
from sweeparea.tables.log.files import DataFile
from sweeparea.tables.log.folders import filesystem

HASH, DUE, SEQ = "__hash", "__due", "__seq"
_TOGETHER = 1 << 6
"""So many row groups are one thread's, where many are read: half of the time goes into them one by one."""
_SLACK = 1 << 14
"""So many rows that do not count may always lie there."""
_RUNS = 4
"""So many files at least are merged at a time."""
_RATIO = 2
_SPARE = 4
"""So many times the rows that count may lie in all files."""


@dataclass(frozen=True)
class AreaFile:
    """A file of a SweepArea: ``path`` in its file system, ``due`` the least of its ``__due``, INF if it has none."""

    path: str
    rows: int
    due: int

    @classmethod
    def of(cls, root: str, file: DataFile) -> AreaFile:
        """The file that a table's log describes; what its statistics leave open counts as due."""
        due = stats.bounds(file.stats, DUE)[0]
        if due is None:
            due = INF if stats.nulls(file.stats, DUE) == file.rows else MIN_TICK
        return cls(f"{root}/{file.path}", file.rows, due)

    def is_due(self, h0: int, h1: int, storage_options: dict[str, str] | None = None) -> bool:
        """Whether a row has its ``__due`` in (h0, h1], one that has been replaced perhaps."""
        if self.due > h0:
            return self.due <= h1
        # the least of the file lies behind, others need not
        return len(_File(self.path, storage_options).due_within(h0, h1)) > 0


def to_merge(rows: Sequence[int], live: int | None = None) -> int:
    """How many of the newest files to merge, given their sizes, newest first; ``live``: how many of their rows count.

    >>> to_merge([10, 10, 10]), to_merge([10, 10, 10, 10, 1000]), to_merge([300, 300, 300, 100, 1000])
    (0, 4, 5)
    >>> to_merge([10, 100_000], live=5), to_merge([10, 100_000], live=60_000)
    (2, 0)
    """
    if live is not None and sum(rows) > _SPARE * live + _SLACK:
        return len(rows)
    total = count = 0
    for size in rows:
        if count and size > _RATIO * total:
            break
        total, count = total + size, count + 1
    return count if count >= _RUNS else 0


def growth(file: DataFile) -> int:
    """How many rows more count since a slice has left this file: those in it, less those that they replace."""
    gone = stats.nulls(file.stats, DUE) or 0
    return file.rows - gone - int(file.path.rsplit("/", 1)[-1].split("-")[2])


class _Footer:
    """What the end of a Parquet file tells of its row groups."""

    def __init__(self, path: str, storage_options: dict[str, str] | None) -> None:
        fs, inner = filesystem(path, storage_options)
        with fs.open_input_file(inner) as source:
            self.metadata = pq.read_metadata(source)
        columns = self.metadata.num_columns
        self.columns = {self.metadata.schema.column(i).path: i for i in range(columns)}
        groups = (self.metadata.row_group(group) for group in range(self.metadata.num_row_groups))
        self.sizes = np.array([group.num_rows for group in groups], np.int64)
        self._bounds: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def bounds(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest value of a BIGINT column by row group, as far apart as can be where statistics do not
        tell; of NULLs only both are the least of all.
        """
        if name not in self._bounds:
            self._bounds[name] = self._read_bounds(name)
        return self._bounds[name]

    def _read_bounds(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        whole = np.iinfo(np.int64)
        low, high = np.full(len(self.sizes), whole.min), np.full(len(self.sizes), whole.max)
        for group, size in enumerate(self.sizes):
            told = self.metadata.row_group(group).column(self.columns[name]).statistics
            if told is not None and told.has_min_max:
                low[group], high[group] = told.min, told.max
            elif told is not None and told.has_null_count and told.null_count == size:
                high[group] = whole.min
        return low, high


@lru_cache(maxsize=32)
def _footer(path: str, storage_options: tuple[tuple[str, str], ...]) -> _Footer:
    """Kept for the next slices of this worker: no file ever gets the name of another, and large ones stay for long."""
    return _Footer(path, dict(storage_options) or None)


class _File:
    """A Parquet file in the layout of a SweepArea, of which row groups are read as they are needed."""

    def __init__(self, path: str, storage_options: dict[str, str] | None) -> None:
        self._footer = _footer(path, tuple(sorted((storage_options or {}).items())))
        self.sizes, self.bounds = self._footer.sizes, self._footer.bounds
        self._place = filesystem(path, storage_options)

    def opened(self) -> pq.ParquetFile:
        """For one thread."""
        fs, inner = self._place
        return pq.ParquetFile(fs.open_input_file(inner), metadata=self._footer.metadata)

    @cached_property
    def parquet(self) -> pq.ParquetFile:
        return self.opened()

    def read(self, groups: np.ndarray, columns: list[str] | None = None) -> pa.Table:
        """Row groups, one after the other."""
        return self.parquet.read_row_groups(groups.tolist(), columns, use_threads=True)

    def due_within(self, h0: int, h1: int) -> np.ndarray:
        """The hashes of rows due in (h0, h1]; of replaced rows too. What was due before has been seen to."""
        low, high = self.bounds(DUE)
        groups = np.flatnonzero((low <= h1) & (high > h0))
        if not len(groups):
            return np.zeros(0, np.int64)
        rows = self.read(groups, [HASH, DUE])
        due = keys.numpy_of(keys.one_array(rows.column(DUE)), INF)
        return longs(rows, HASH)[(due > h0) & (due <= h1)]


class OpenFile(_File):
    """One file of a SweepArea, of which rows are wanted with the columns ``stored``."""

    def __init__(self, file: AreaFile, stored: pa.Schema, storage_options: dict[str, str] | None) -> None:
        super().__init__(file.path, storage_options)
        self.file, self.stored = file, stored
        self._hash: np.ndarray | None = None

    def due_within(self, h0: int, h1: int) -> np.ndarray:
        return np.zeros(0, np.int64) if self.file.due > h1 else super().due_within(h0, h1)

    def groups_of(self, hashes: np.ndarray) -> Iterator[np.ndarray]:
        """The row groups that may hold one of ``hashes``, which are sorted, some at a time."""
        if len(hashes) and self.file.rows:
            low, high = self.bounds(HASH)
            may = np.searchsorted(hashes, high, "right") > np.searchsorted(hashes, low, "left")
            groups = np.flatnonzero(may)
            yield from (groups[i : i + _TOGETHER] for i in range(0, len(groups), _TOGETHER))

    def rows_of(self, hashes: np.ndarray, groups: np.ndarray) -> pa.Table | None:
        """The rows of some row groups whose hash is one of ``hashes``, which are sorted. Several threads may ask."""
        parquet = self.opened()
        mine = longs(parquet.read_row_groups(groups.tolist(), [HASH], use_threads=False), HASH)
        at = keys.positions(mine, hashes)  # in order, unless somebody else has put files together
        return self._take(parquet, groups, at) if len(at) else None

    def range(self, low: int, high: int) -> pa.Table | None:
        """The rows with ``low <= hash <= high``."""
        if self._hash is None:
            self._hash = longs(self.parquet.read([HASH]), HASH)
        at = np.flatnonzero((self._hash >= low) & (self._hash <= high))
        return self._take(self.parquet, np.arange(len(self.sizes)), at) if len(at) else None

    def _take(self, parquet: pq.ParquetFile, groups: np.ndarray, at: np.ndarray) -> pa.Table:
        """Rows by their positions in some row groups."""
        sizes = self.sizes[groups]
        begin = np.cumsum(sizes) - sizes
        group = np.searchsorted(begin, at, "right") - 1
        used = np.unique(group)
        place = np.zeros(len(sizes), np.int64)
        place[used] = np.cumsum(sizes[used]) - sizes[used]
        rows = parquet.read_row_groups(groups[used].tolist(), use_threads=len(used) > _TOGETHER)
        return conform(rows.take(pa.array(place[group] + at - begin[group])), self.stored)


def longs(rows: pa.Table, name: str) -> np.ndarray:
    """A BIGINT column."""
    return keys.int64_of(rows.column(name))
