"""How a keyed operator keeps its SweepArea between slices: a log of files, of which a slice reads and writes little.

Kraemer & Seeger 2005, section 4.3.1, name a SweepArea by what is asked of it: find what matches (here: by key), and
purge what has expired. A slice has to do with few keys of many: those that get new rows, and those at which something
happens by itself, an expiry say. So each slice appends one file (one a partition) with all rows that its keys have now,
and of each key only the rows of its latest file count: a log-structured merge tree (O'Neil et al. 1996). Files lie in
the order of ``key_hash``. Golab & Oezsu 2005, section 5.3, choose a state buffer by update pattern; this one serves
operators that look things up by key, whatever the pattern.

Columns on disk: those of the operator's rows; ``__hash``, that of the key; ``__due``, the first tick at which a slice
has to look at the row's key though nothing new has come (``Due``); NULL in a row that says that its key has no rows any
more; ``__seq``, the sequence number of the slice that wrote the row.

Files are merged when newer ones have grown to half of the next older one, so their number grows with the logarithm of
the rows; and all of them when ``_SPARE`` times the rows that count, and ``_SLACK``, lie there (``to_merge``). What has
expired or was replaced is gone with the merge. Bound: so many rows, whatever came and went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sweeparea.operators.time.ticks import INF, MAX_TICK, MIN_TICK
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS
from sweeparea.operators.values.columns import conform
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.tables.log import stats
from sweeparea.tables.log.files import DataFile, filesystem, quick, side_by_side, write_pieces

HASH, DUE, SEQ = "__hash", "__due", "__seq"
_LAYOUT = [pa.field(name, pa.int64()) for name in (HASH, DUE, SEQ)]
_GROUP = 1 << 11
"""Rows of a row group: the least that is read for one key."""
_TOGETHER = 1 << 6
"""So many row groups are one thread's, where many are read: half of the time goes into them one by one."""
_SLACK = 1 << 14
"""So many rows that do not count may always lie there."""
_PIECE = 1 << 19
"""About how many rows of a merge are in memory."""
_RUNS = 4
"""So many files at least are merged at a time."""
_RATIO = 2
_SPARE = 4
"""So many times the rows that count may lie in all files."""

Due = Callable[[pa.Table, int], np.ndarray]
"""(carried rows, h1) -> for each row the first tick after h1 at which its key needs a look; ``INF``: never."""


def bag_due(rows: pa.Table, h1: int) -> np.ndarray:
    """Rows of a signed temporal bag: where they begin, if that is still to come, else where they end."""
    start, end = keys.int64_of(rows.column(TS)), keys.int64_of(rows.column(TE))
    return np.where(start > h1, start, end)


def never(rows: pa.Table, h1: int) -> np.ndarray:
    """Rows of which only later rows of the same key can make anything."""
    return np.full(rows.num_rows, INF)


@dataclass(frozen=True)
class Later:
    """Rows that are looked at ``ticks`` after their instant, unless that lies behind."""

    ticks: int

    def __call__(self, rows: pa.Table, h1: int) -> np.ndarray:
        at = keys.int64_of(rows.column(TS))
        then = np.where(at > INF - self.ticks, INF, at + min(self.ticks, INF))
        return np.where(then > h1, then, INF)


@dataclass(frozen=True)
class Lazily:
    """``due``, for rows that nothing but their going is left to do for: looked at every ``interval`` ticks only.

    Golab & Oezsu 2005, section 2.1: expiration may be lazy where expired rows are skipped in processing.
    """

    due: Due
    interval: int

    def __call__(self, rows: pa.Table, h1: int) -> np.ndarray:
        at = self.due(rows, h1)
        late = -(-at // self.interval) * self.interval
        return np.where((at > MAX_TICK) | (late < at), at, late)


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


@dataclass(frozen=True)
class SweepArea:
    """A keyed operator's SweepArea as one slice finds it: what a worker needs to read its part and to leave the next.

    ``root``: the table's folder; ``op``: the stem of file names; ``schema``: the operator's rows; ``key_columns``: its
    keys, at least one; ``seq``: the number of this slice ``(h0, h1]``; ``files``: all files; ``merge``: those to be
    replaced by their merge. ``partitions``: how many workers share the keys.
    """

    root: str
    op: str
    schema: pa.Schema
    key_columns: tuple[str, ...]
    due: Due
    seq: int
    h0: int
    h1: int
    files: tuple[AreaFile, ...] = ()
    merge: tuple[AreaFile, ...] = ()
    partitions: int = 1
    storage_options: dict[str, str] | None = None

    @classmethod
    def beside(
        cls, root: str, op: str, stored: pa.Schema, keys_: Sequence[str], files: Sequence[DataFile], seq: int, h: int
    ) -> SweepArea:
        """A SweepArea as its query has left it at ``h``, for somebody who is no slice: nothing of it is due.

        ``stored``, ``files``: its table's.
        """
        schema = pa.schema([f for f in stored if f.name not in (HASH, DUE, SEQ)])
        described = tuple(AreaFile.of(root, file) for file in files)
        return cls(root, op, schema, tuple(keys_), bag_due, seq, h, h, files=described)

    @property
    def alone(self) -> bool:
        """Whether one worker has all keys."""
        return self.partitions == 1

    @property
    def stored(self) -> pa.Schema:
        """The schema on disk."""
        return pa.schema([*self.schema, *_LAYOUT])

    # -- reading -------------------------------------------------------------------------------------------------------

    def held(self, given: pa.Table) -> pa.Table:
        """The current rows (``stored``) of the keys that occur in ``given`` and, if ``alone``, of those that are due.

        Several workers must be given every key of theirs that is due (``AreaFile.due``).
        """
        if not self.files:
            return self.stored.empty_table()
        opened = [_Open(self, file) for file in self.files]
        wanted = [self._hashes(given)]
        if self.alone:
            wanted += [file.due_within(self.h0, self.h1) for file in opened]
        hashes = np.unique(np.concatenate(wanted))
        parts = [(file, groups) for file in opened for groups in file.groups_of(hashes)]
        found = [
            rows for rows in side_by_side(lambda part: part[0].rows_of(hashes, part[1]), parts) if rows is not None
        ]
        if not found:
            return self.stored.empty_table()
        rows = pa.concat_tables(found)
        code, newest, size = self._newest(rows, given)
        current = (_longs(rows, SEQ) == newest[code[:size]]) & _alive(rows)
        if not self.alone:
            present = np.zeros(len(newest), np.bool_)
            present[code[size:]] = True
            current &= present[code[:size]]
        return rows.filter(pa.array(current))

    def _hashes(self, rows: pa.Table) -> np.ndarray:
        return key_hash([rows.column(k) for k in self.key_columns], rows.num_rows)

    def _newest(self, rows: pa.Table, also: pa.Table | None = None) -> tuple[np.ndarray, np.ndarray, int]:
        """(codes of the keys of ``rows`` and then of ``also``, the last ``__seq`` of each code, length of ``rows``)."""
        code, count = self._codes(rows, *(() if also is None else (also,)))
        newest = np.full(count, MIN_TICK)
        np.maximum.at(newest, code[: rows.num_rows], _longs(rows, SEQ))
        return code, newest, rows.num_rows

    def _codes(self, *tables: pa.Table) -> tuple[np.ndarray, int]:
        columns = [
            pa.chunked_array([chunk for t in tables for chunk in t.column(k).chunks], self.schema.field(k).type)
            for k in self.key_columns
        ]
        return keys.codes(columns)

    # -- writing -------------------------------------------------------------------------------------------------------

    def stage(self, carry: pa.Table, held: pa.Table, attempt: str, partition: int) -> None:
        """Stages the next rows of the keys that a worker has had (``carry``; ``held`` were theirs before), and the
        worker's share of the merge.

        The first file is written also when it has no rows: it tells that the sweep has run. Its name ends with the
        number of rows that it replaces (``growth``).
        """
        rows = conform(carry.select(self.schema.names), self.schema)
        parts = [self._laid_out(rows, self.due(rows, self.h1))]
        if held.num_rows:
            code, count = self._codes(held, rows)
            left = np.ones(count, np.bool_)
            left[code[held.num_rows :]] = False
            first = keys.first_rows(code[: held.num_rows], count)
            gone = held.select(list(self.key_columns)).take(pa.array(first[left]))
            parts.append(self._laid_out(_widened(gone, self.schema), None))
        self._write([_by_hash(pa.concat_tables(parts))], attempt, f"{self.op}.c-{partition:05d}-{held.num_rows}")
        if self.merge:
            self._write(self._merged(partition), attempt, f"{self.op}.m-{partition:05d}")

    def _laid_out(self, rows: pa.Table, due: np.ndarray | None) -> pa.Table:
        size = rows.num_rows
        times = pa.nulls(size, pa.int64()) if due is None else pa.array(due, pa.int64())
        layout = [pa.array(self._hashes(rows)), times, pa.array(np.full(size, self.seq), pa.int64())]
        return pa.Table.from_arrays([*rows.columns, *layout], schema=self.stored)

    def _write(self, pieces: Sequence[pa.Table] | Iterator[pa.Table], attempt: str, stem: str) -> None:
        import uuid

        rest = iter(pieces)
        first = list(islice(rest, 1))
        encoded = _repeating(first[0]) if first else []
        options = {"row_group_size": _GROUP, **quick(self.stored, encoded)}
        name = f"{stem}-{uuid.uuid4().hex[:8]}"
        write_pieces(chain(first, rest), self.stored, self.root, attempt, name, self.storage_options, options)

    def _merged(self, partition: int) -> Iterator[pa.Table]:
        """The current rows of the files to merge whose hashes are in a worker's share of all hashes, range by range."""
        opened = [_Open(self, file) for file in self.merge]
        partitions, whole = self.partitions, len(self.merge) == len(self.files)
        steps = max(1, -(-sum(file.rows for file in self.merge) // (_PIECE * partitions)))
        cuts = [(i << 64) // (steps * partitions) - (1 << 63) for i in range(steps * partitions + 1)]
        for step in range(partition * steps, (partition + 1) * steps):
            found = [part for f in opened if (part := f.range(cuts[step], cuts[step + 1] - 1)) is not None]
            if found:
                yield self._resolved(_by_hash(pa.concat_tables(found)), whole)

    def _resolved(self, rows: pa.Table, whole: bool) -> pa.Table:
        """``rows`` (by hash) without those that later ones replace; if they are ``whole`` also without the keys that
        are gone.
        """
        hashes, seq = _longs(rows, HASH), _longs(rows, SEQ)
        first = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
        sizes = np.diff(np.append(first, len(hashes)))
        twice = np.repeat(np.maximum.reduceat(seq, first) != np.minimum.reduceat(seq, first), sizes)
        kept = np.ones(len(hashes), np.bool_)
        at = np.flatnonzero(twice)
        if len(at):
            code, newest, _ = self._newest(rows.take(pa.array(at)))
            kept[at] = seq[at] == newest[code]
        if whole:
            kept &= _alive(rows)
        return rows if kept.all() else rows.filter(pa.array(kept))


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
        return _longs(rows, HASH)[(due > h0) & (due <= h1)]


class _Open(_File):
    """One file of a SweepArea."""

    def __init__(self, area: SweepArea, file: AreaFile) -> None:
        super().__init__(file.path, area.storage_options)
        self.area, self.file = area, file
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
        mine = _longs(parquet.read_row_groups(groups.tolist(), [HASH], use_threads=False), HASH)
        at = keys.positions(mine, hashes)  # in order, unless somebody else has put files together
        return self._take(parquet, groups, at) if len(at) else None

    def range(self, low: int, high: int) -> pa.Table | None:
        """The rows with ``low <= hash <= high``."""
        if self._hash is None:
            self._hash = _longs(self.parquet.read([HASH]), HASH)
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
        return conform(rows.take(pa.array(place[group] + at - begin[group])), self.area.stored)


def _longs(rows: pa.Table, name: str) -> np.ndarray:
    return keys.int64_of(rows.column(name))


def _repeating(rows: pa.Table) -> list[str]:
    """Columns whose values come again within a row group; of others, as hashes are, a dictionary only costs.

    >>> _repeating(pa.table({"k": [1, 2, 3, 4], "n": [1, 1, 1, 2], "l": [[1], [1], [1], [1]]}))
    ['n']
    """
    some = rows.slice(0, _GROUP)
    flat = [field.name for field in rows.schema if not field.type.num_fields]
    return [name for name in flat if 2 * len(some.column(name).unique()) <= some.num_rows]


def _alive(rows: pa.Table) -> np.ndarray:
    return rows.column(DUE).is_valid().to_numpy()


def _by_hash(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array(np.argsort(_longs(rows, HASH), kind="stable")))


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    given, size = set(rows.column_names), rows.num_rows
    arrays = [rows.column(f.name) if f.name in given else pa.nulls(size, f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
