"""How a relation's table keeps its open rows, so that a slice writes few of them anew.

A row that ends has to leave the file where it lies, and the files are ordinary Parquet of an ordinary Delta table: what
else is in that file is written again. So open rows lie in many *leaves*: files of about ``LEAF_ROWS`` rows, each with
all rows of a range of hashes, which its name tells. What a slice opens goes into a file of its own first, a *fresh*
one.
Rows that ended are taken out of the fresh files, the others of them out of the leaves of their hashes; a leaf that is
written anyhow takes the fresh rows of its range in. When fresh rows are more than a share of all, all of them go into
leaves (the buffers of a buffer tree: Arge 2003, section 2, with two levels).

With n open rows a slice that ends c of them writes at most c leaves; what the spilling of fresh rows costs is a
constant times the rows that were opened since. The hash is that of the whole row, ``valid_from`` included, so that
copies of one record spread too. A file without such a name, of somebody's OPTIMIZE say, counts as fresh.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators import keys
from sweeparea.operators.columns import conform
from sweeparea.operators.key_hash import key_hash
from sweeparea.operators.sweep_area import to_merge
from sweeparea.tables import scan, stats
from sweeparea.tables.files import DataFile, filesystem, side_by_side, write_file, write_files

LEAF_ROWS = 1 << 11
"""About how many rows a leaf has; one with twice as many is split."""
MOST_LEAVES = 1 << 13
"""About so many leaves at most: beyond, they are larger."""
FRESH_ROWS = 16 * LEAF_ROWS
"""So many rows may be fresh, however few there are in all."""
FRESH_SHARE = 16
"""Beyond that, one row of so many may be."""
PART_ROWS = 1 << 21
"""About so many rows are in memory at a time."""
SPACE = 1 << 64
_OPTIONS = {"compression": "lz4"}
_LEAF = re.compile(r"leaf-([0-9a-f]{16})-([0-9a-f]{16})\.parquet\Z")


@dataclass
class Exchange:
    """Files that a table gets and loses; ``unused``: staged ones whose rows went into others."""

    adds: list[DataFile] = field(default_factory=list)
    removes: list[DataFile] = field(default_factory=list)
    unused: list[DataFile] = field(default_factory=list)


@dataclass(frozen=True)
class _Range:
    """The hashes from ``low`` to ``high``, both included, as unsigned numbers; ``file``: the leaf that has them."""

    low: int
    high: int
    file: DataFile | None = None

    def cut(self, parts: int) -> Iterator[_Range]:
        """Equal parts."""
        width = self.high - self.low + 1
        for i in range(parts):
            low, end = self.low + width * i // parts, self.low + width * (i + 1) // parts
            if end > low:
                yield _Range(low, end - 1)


def leaf_range(path: str) -> tuple[int, int] | None:
    """The hashes that a leaf has; None: the file is no leaf.

    >>> leaf_range("data/17/leaf-0000000000000000-00000000000000ff.parquet"), leaf_range("data/17/open-00000.parquet")
    ((0, 255), None)
    """
    found = _LEAF.search(path)
    return (int(found[1], 16), int(found[2], 16)) if found else None


def leaf_stem(path: str) -> str | None:
    """The name that a file with some of a leaf's rows may have; None: the file is no leaf."""
    found = _LEAF.search(path)
    return found[0].removesuffix(".parquet") if found else None


def holds_open(file: DataFile) -> bool:
    """Whether a file of a relation's table may hold open rows."""
    return stats.nulls(file.stats, "valid_to") != 0


def _unique(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:8]}"


class OpenRows:
    """The open rows of a relation's table, as one slice finds them.

    ``root``: the table's folder; ``schema``: its columns, of which the last is ``valid_to``; ``files``: its files, of
    which those without open rows do not matter; ``attempt``: the run that writes.
    """

    def __init__(self, root: str, schema: pa.Schema, files: Sequence[DataFile], attempt: str) -> None:
        self.root, self.schema, self.attempt = root, schema, attempt
        self.names = schema.names[:-1]
        ranges: list[_Range] = []
        self.fresh: list[DataFile] = []
        self._open: dict[str, int] = {}
        for file in files:
            found = stats.nulls(file.stats, "valid_to")
            if found != 0:
                self._open[file.path] = file.rows if found is None else found
                hashes = leaf_range(file.path) if found == file.rows else None
                if hashes is None:
                    self.fresh.append(file)
                else:
                    ranges.append(_Range(*hashes, file))
        self.rows = sum(self._open.values())
        self.leaf_rows = max(LEAF_ROWS, self.rows // MOST_LEAVES)
        ranges.sort(key=lambda one: one.low)
        apart = all(a.high < b.low for a, b in pairwise(ranges))
        # leaves that have become much too small are put together
        if not apart or self.rows < len(ranges) * self.leaf_rows // 4:
            self.fresh += [one.file for one in ranges if one.file is not None]
            ranges = []
        self.ranges = ranges

    def exchange(self, ended: pa.Table, opened: Sequence[DataFile]) -> Exchange:
        """What a slice changes. ``ended``: rows that were open and have ended: the columns but ``valid_to``.
        ``opened``: staged files with rows that have been opened.

        Raises SweepAreaError if a row is not there that has ended.
        """
        fresh = sum(self._open[file.path] for file in self.fresh)
        all_ = self.rows - ended.num_rows + sum(file.rows for file in opened)
        come = fresh + sum(file.rows for file in opened)
        # rows that end may be fresh ones: what is left of these is what counts, and they are not more than that
        if come - min(fresh, ended.num_rows) > max(FRESH_ROWS, all_ // FRESH_SHARE):
            return self._spilled(ended, opened)
        done = Exchange(adds=list(opened))
        if not ended.num_rows:
            sizes = sorted(file.rows for file in self.fresh)
            if count := to_merge(sizes):
                chosen = sorted(self.fresh, key=lambda file: (file.rows, file.path))[:count]
                done.removes += chosen
                self._write(self._read(chosen, done), "fresh", done)
            return done
        rows = self._read(self.fresh, done)
        missing, left = self._without(ended, rows)
        ended, rows = ended.take(pa.array(missing)), rows.take(pa.array(left))
        if ended.num_rows:
            hashes, fresh_hashes = self._hashes(ended), self._hashes(rows)
            touched = self._touched(hashes)
            absorbed = np.zeros(rows.num_rows, np.bool_)
            for part in _parts(touched, lambda one: one.file.rows if one.file else 0):
                mine = _owner(fresh_hashes, part) >= 0
                absorbed |= mine
                gone = ended.filter(pa.array(_owner(hashes, part) >= 0))
                self._rewrite(part, rows.filter(pa.array(mine)), gone, done)
            rows = rows.filter(pa.array(~absorbed))
        done.removes += self.fresh
        self._write(rows, "fresh", done)
        return done

    def _touched(self, hashes: np.ndarray) -> list[_Range]:
        lows = np.array([one.low for one in self.ranges], np.uint64)
        at = np.searchsorted(lows, hashes, "right") - 1
        if not len(lows) or (at < 0).any():
            raise _missing(len(hashes))
        return [self.ranges[i] for i in np.unique(at)]

    def _spilled(self, ended: pa.Table, opened: Sequence[DataFile]) -> Exchange:
        """All fresh rows go into leaves, those also that the slice has opened."""
        done = Exchange(removes=list(self.fresh), unused=list(opened))
        sources = [*self.fresh, *opened]
        total = sum(self._open.get(file.path, file.rows) for file in sources)
        hashes = self._hashes(ended)
        ranges = list(self._covering(total))

        def expected(one: _Range) -> int:
            return (one.file.rows if one.file else 0) + total * (one.high - one.low + 1) // SPACE

        parts = list(_parts(ranges, expected))
        once = self._read(sources, done) if len(parts) == 1 else None
        for number, part in enumerate(parts):
            if once is not None:
                rows = once
            else:
                read = [self._part_of(file, part, done if number == 0 else Exchange()) for file in sources]
                rows = pa.concat_tables([self._empty(), *read])
            self._rewrite(part, rows, ended.filter(pa.array(_owner(hashes, part) >= 0)), done)
        return done

    def _part_of(self, file: DataFile, part: Sequence[_Range], done: Exchange) -> pa.Table:
        rows = self._read([file], done)
        return rows.filter(pa.array(_owner(self._hashes(rows), part) >= 0))

    def _covering(self, fresh: int) -> Iterator[_Range]:
        """The leaves, and ranges between them, for ``fresh`` rows, so that all hashes are in one."""
        end = 0
        for one in [*self.ranges, _Range(SPACE, SPACE)]:
            if one.low > end:
                gap = _Range(end, one.low - 1)
                yield from gap.cut(max(1, -(-fresh * (one.low - end) // (SPACE * self.leaf_rows))))
            if one.low < SPACE:
                yield one
            end = one.high + 1

    # -- reading and writing -------------------------------------------------------------------------------------------

    def _rewrite(self, part: Sequence[_Range], fresh: pa.Table, gone: pa.Table, done: Exchange) -> None:
        """The leaves of ``part`` with fresh rows of theirs and without those that are ``gone``."""
        if not (fresh.num_rows or gone.num_rows):
            return
        leaves = [one.file for one in part if one.file is not None]
        rows = pa.concat_tables([self._read(leaves, done), fresh])
        owner = np.append(
            np.repeat(np.arange(len(part)), [0 if one.file is None else one.file.rows for one in part]),
            _owner(self._hashes(fresh), part),
        )
        missing, left = self._without(gone, rows)
        if len(missing):
            raise _missing(len(missing))
        order = left[np.argsort(owner[left], kind="stable")]
        if len(fresh) or len(order) < len(rows):
            rows = rows.take(pa.array(order))
        ends = np.searchsorted(owner[order], np.arange(len(part)), "right").tolist()
        pieces: list[tuple[str, pa.Table]] = []
        for one, begin, end in zip(part, [0, *ends], ends, strict=False):
            pieces += self._leaves(one, rows.slice(begin, end - begin))
        done.removes += leaves
        encoded = [f.name for f in self.schema if not _is_plain(f.type)]
        done.adds += write_files(pieces, self.root, self.attempt, {**_OPTIONS, "use_dictionary": encoded})

    def _leaves(self, one: _Range, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The rows of a range as one leaf, or as several where they are many."""
        if rows.num_rows <= 2 * self.leaf_rows:
            cuts, owner = [one], np.zeros(rows.num_rows, np.int64)
        else:
            cuts = list(one.cut(-(-rows.num_rows // self.leaf_rows)))
            owner = _owner(self._hashes(rows), cuts)
        for number, cut in enumerate(cuts):
            mine = rows if len(cuts) == 1 else rows.take(pa.array(np.flatnonzero(owner == number)))
            if mine.num_rows:
                yield f"leaf-{cut.low:016x}-{cut.high:016x}", self._stored(mine)

    def _read(self, files: Sequence[DataFile], done: Exchange) -> pa.Table:
        """The open rows of files. What else they hold, which only somebody else's files do, is kept in others."""
        found = [self._empty(), *side_by_side(self._rows_of, files)]
        for file, rows in zip(files, found[1:], strict=True):
            if rows.num_rows != file.rows:
                ended = scan.ScanPlan(self.schema, (f"{self.root}/{file.path}",), 0, 0)
                kept = ended.read(self.schema.names, pc.field("valid_to").is_valid())
                done.adds.append(write_file(kept, self.root, self.attempt, _unique("kept")))
        return pa.concat_tables(found)

    def _rows_of(self, file: DataFile) -> pa.Table:
        if self._open.get(file.path, file.rows) == file.rows:
            fs, path = filesystem(f"{self.root}/{file.path}")
            with fs.open_input_file(path) as source:
                rows = pq.ParquetFile(source).read(self.names, use_threads=False)
            return conform(rows, self._empty().schema)
        chosen = scan.ScanPlan(self.schema, (f"{self.root}/{file.path}",), file.size, file.rows)
        return chosen.read(self.names, pc.field("valid_to").is_null())

    def _write(self, rows: pa.Table, stem: str, done: Exchange) -> None:
        if rows.num_rows:
            done.adds.append(write_file(self._stored(rows), self.root, self.attempt, _unique(stem)))

    def _stored(self, rows: pa.Table) -> pa.Table:
        end = self.schema.field("valid_to")
        return rows.append_column(end, pa.nulls(rows.num_rows, end.type))

    def _empty(self) -> pa.Table:
        return pa.schema([self.schema.field(name) for name in self.names]).empty_table()

    def _hashes(self, rows: pa.Table) -> np.ndarray:
        return key_hash([rows.column(name) for name in self.names], rows.num_rows).view(np.uint64)

    def _without(self, gone: pa.Table, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Positions of those of ``gone`` that are not among ``rows``, and of ``rows`` without those that are: the
        differences of two bags.
        """
        size, all_ = gone.num_rows, np.arange(rows.num_rows)
        if not (size and len(all_)):
            return np.arange(size), all_
        wanted, hashes = np.sort(self._hashes(gone)), self._hashes(rows)
        at = np.flatnonzero(wanted[np.minimum(np.searchsorted(wanted, hashes), size - 1)] == hashes)
        both = pa.concat_tables([gone, rows.take(pa.array(at))])
        code, count = keys.codes([both.column(name) for name in self.names])
        mine, theirs = code[:size], code[size:]
        missing = _rank(mine) >= np.bincount(theirs, minlength=count)[mine]
        taken = _rank(theirs) < np.bincount(mine, minlength=count)[theirs]
        return np.flatnonzero(missing), np.delete(all_, at[taken])


def _parts(ranges: Sequence[_Range], rows: Callable[[_Range], int]) -> Iterator[list[_Range]]:
    """Neighbours together, of about ``PART_ROWS`` rows at most."""
    part: list[_Range] = []
    size = 0
    for one in ranges:
        if part and size + rows(one) > PART_ROWS:
            yield part
            part, size = [], 0
        part.append(one)
        size += rows(one)
    if part:
        yield part


def _owner(hashes: np.ndarray, part: Sequence[_Range]) -> np.ndarray:
    """In which of some ranges, which are in order, each hash is; -1: in none."""
    lows = np.array([one.low for one in part], np.uint64)
    highs = np.array([one.high for one in part], np.uint64)
    at = np.searchsorted(lows, hashes, "right") - 1
    return np.where((at >= 0) & (hashes <= highs[np.maximum(at, 0)]), at, -1)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values are as short as their numbers in a dictionary."""
    return bool(kind.num_fields) or pa.types.is_primitive(kind)


def _rank(code: np.ndarray) -> np.ndarray:
    """The how manieth of its code each is, from 0.

    >>> _rank(np.array([7, 8, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(code, kind="stable")
    sorted_ = code[order]
    first = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1])) if len(code) else order
    sizes = np.diff(np.append(first, len(code)))
    rank = np.empty(len(code), np.int64)
    rank[order] = np.arange(len(code)) - np.repeat(first, sizes)
    return rank


def _missing(rows: int) -> SweepAreaError:
    return SweepAreaError(
        f"{rows} rows that were open have ended, but the result table does not hold them: it was changed by somebody"
        " else, or files of it were lost. `sweeparea check` with --rebuild computes the query's tables again from its"
        " inputs."
    )
