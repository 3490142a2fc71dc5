"""How a relation's table keeps its open rows, so that a slice writes few of them anew.

A row that ends has to leave the file where it lies, and the files are ordinary Parquet of an ordinary Delta table: what
else is in that file is written again. So open rows lie in many *leaves*: files of about ``LEAF_ROWS`` rows, in the
order of ``valid_from`` and then of a hash of the row, each with all rows of a range of that order, which its name tells
(the leaves of a B-tree: Bayer & McCreight 1972). Windows over time end their rows in that order, so that these lie
together (the FIFO pattern of Golab & Oezsu 2005, section 3.1); rows that end in any order touch a leaf each.

What a slice opens goes into a file of its own first, a *fresh* one. Rows that ended are taken out of the fresh files,
the others of them out of their leaves; a leaf that is written anyhow takes the fresh rows of its range in. When more
than ``FRESH_ROWS`` rows are fresh, all of them go into leaves, new ones mostly, behind the others. A slice that ends c
rows writes at most c leaves and the fresh rows. A file without such a name, of somebody's OPTIMIZE say, counts as
fresh.
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
from sweeparea.tables.files import QUICK, DataFile, filesystem, side_by_side, write_file, write_files

LEAF_ROWS = 1 << 11
"""About how many rows a leaf has; one with twice as many is split."""
MOST_LEAVES = 1 << 13
"""About so many leaves at most: beyond, they are larger."""
FRESH_ROWS = 16 * LEAF_ROWS
"""So many rows may be fresh."""
PART_ROWS = 1 << 21
"""About so many rows are in memory at a time."""
SAMPLE = 64
"""Where there are more, one of so many tells where to part them."""
_END = 1 << 128
_BIAS = 1 << 63
_OPTIONS = {"compression": QUICK}
_LEAF = re.compile(r"leaf-([0-9a-f]{32})-([0-9a-f]{32})\.parquet\Z")


@dataclass
class Exchange:
    """Files that a table gets and loses; ``unused``: staged ones whose rows went into others."""

    adds: list[DataFile] = field(default_factory=list)
    removes: list[DataFile] = field(default_factory=list)
    unused: list[DataFile] = field(default_factory=list)


@dataclass(frozen=True)
class _Range:
    """The keys from ``low`` to ``high``, both included; ``file``: the leaf that has them."""

    low: int
    high: int
    file: DataFile | None = None


@dataclass(frozen=True)
class _Keys:
    """Where rows lie in the order: ``start`` is ``valid_from`` as a number that is not negative."""

    start: np.ndarray
    hash: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def at(self, positions: np.ndarray | slice) -> _Keys:
        return _Keys(self.start[positions], self.hash[positions])

    def order(self) -> np.ndarray:
        return np.lexsort((self.hash, self.start))

    def number(self, position: int) -> int:
        return int(self.start[position]) << 64 | int(self.hash[position])

    @property
    def bytes(self) -> np.ndarray:
        """As texts of bytes, which are in the same order."""
        pairs = np.empty((len(self), 2), ">u8")
        pairs[:, 0], pairs[:, 1] = self.start, self.hash
        return pairs.view("S16").ravel()


def leaf_range(path: str) -> tuple[int, int] | None:
    """The keys that a leaf has, as 128 bits: ``valid_from`` with its sign bit turned, and the hash. None: no leaf.

    >>> leaf_range(f"data/17/leaf-{17:032x}-{255:032x}.parquet"), leaf_range("data/17/open-00000.parquet")
    ((17, 255), None)
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
        self._held = pa.schema([schema.field(name) for name in self.names])
        ranges: list[_Range] = []
        self.fresh: list[DataFile] = []
        self._open: dict[str, int] = {}
        self._mixed: set[str] = set()
        """Somebody else's files: those that hold other rows too, or may, since the log does not tell."""
        for file in files:
            found = stats.nulls(file.stats, "valid_to")
            if found != 0:
                self._open[file.path] = file.rows if found is None else found
                if found != file.rows:
                    self._mixed.add(file.path)
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
        come = fresh + sum(file.rows for file in opened)
        # rows that end may be fresh ones: what is left of these is what counts
        if come - min(fresh, ended.num_rows) > FRESH_ROWS:
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
            keys_, fresh_keys = self._keys(ended), self._keys(rows)
            owner = _owner(keys_, self.ranges)
            if (owner < 0).any():
                raise _missing(int((owner < 0).sum()))
            touched = [self.ranges[i] for i in np.unique(owner)]
            absorbed = np.zeros(rows.num_rows, np.bool_)
            for part in _parts(touched, lambda one: one.file.rows if one.file else 0):
                mine = _owner(fresh_keys, part) >= 0
                absorbed |= mine
                gone = ended.filter(pa.array(_owner(keys_, part) >= 0))
                self._rewrite(part, rows.filter(pa.array(mine)), gone, done)
            rows = rows.filter(pa.array(~absorbed))
        done.removes += self.fresh
        self._write(rows, "fresh", done)
        return done

    def _spilled(self, ended: pa.Table, opened: Sequence[DataFile]) -> Exchange:
        """All fresh rows go into leaves, those also that the slice has opened."""
        done = Exchange(removes=list(self.fresh), unused=list(opened))
        sources = [*self.fresh, *opened]
        gone = self._keys(ended)
        if sum(self._open.get(file.path, file.rows) for file in sources) <= PART_ROWS:
            self._spread(self._covering([]), self._read(sources, done), ended, gone, done)
            return done
        sampled = [self._keys(self._read([file], done)).at(slice(None, None, SAMPLE)) for file in sources]
        ranges = self._covering(sampled)
        counts = np.bincount(np.concatenate([_owner(keys_, ranges) for keys_ in sampled]), minlength=len(ranges))
        sizes = {one.low: int(count) * SAMPLE for one, count in zip(ranges, counts, strict=True)}
        for part in _parts(ranges, lambda one: sizes[one.low]):
            read = []
            for file in sources:  # what else it holds has been kept above
                rows = self._rows_of(file)
                read.append(rows.filter(pa.array(_owner(self._keys(rows), part) >= 0)))
            self._spread(part, pa.concat_tables([self._held.empty_table(), *read]), ended, gone, done)
        return done

    def _spread(self, ranges: Sequence[_Range], rows: pa.Table, ended: pa.Table, gone: _Keys, done: Exchange) -> None:
        """Fresh rows of some ranges into these, of which only those are read that get or lose any."""
        to, from_ = _owner(self._keys(rows), ranges), _owner(gone, ranges)
        touched = [ranges[i] for i in np.unique(np.append(to, from_[from_ >= 0]))]
        for part in _parts(touched, lambda one: one.file.rows if one.file else 0):
            mine, theirs = (_owner(keys_, part) >= 0 for keys_ in (self._keys(rows), gone))
            self._rewrite(part, rows.filter(pa.array(mine)), ended.filter(pa.array(theirs)), done)

    def _covering(self, sampled: Sequence[_Keys]) -> list[_Range]:
        """The leaves, and ranges between them, so that all keys are in one. A range without a leaf is cut so that it
        has no more than ``PART_ROWS`` fresh rows, of which some are given.
        """
        found: list[_Range] = []
        starts = np.concatenate([keys_.start for keys_ in sampled]) if sampled else np.zeros(0, np.uint64)
        hashes = np.concatenate([keys_.hash for keys_ in sampled]) if sampled else np.zeros(0, np.uint64)
        keys_ = _Keys(starts, hashes)
        keys_ = keys_.at(keys_.order())
        cuts = [keys_.number(i) for i in range(0, len(keys_), max(1, PART_ROWS // SAMPLE))][1:]
        end = 0
        for one in [*self.ranges, _Range(_END, _END)]:
            if one.low > end:
                inner = sorted({end, *(cut for cut in cuts if end < cut < one.low)})
                found += [_Range(a, b - 1) for a, b in pairwise([*inner, one.low])]
            if one.low < _END:
                found.append(one)
            end = one.high + 1
        return found

    # -- reading and writing -------------------------------------------------------------------------------------------

    def _rewrite(self, part: Sequence[_Range], fresh: pa.Table, gone: pa.Table, done: Exchange) -> None:
        """The leaves of ``part`` with fresh rows of theirs and without those that are ``gone``."""
        leaves = [one.file for one in part if one.file is not None]
        rows = pa.concat_tables([self._read(leaves, done), fresh])
        missing, left = self._without(gone, rows)
        if len(missing):
            raise _missing(len(missing))
        pieces: list[tuple[str, pa.Table]] = []
        if fresh.num_rows:
            rows = rows.take(pa.array(left))
            keys_ = self._keys(rows)
            order = keys_.order()
            rows, keys_ = rows.take(pa.array(order)), keys_.at(order)
            owner = _owner(keys_, part)
            for one, begin, end in _runs(part, owner):
                pieces += self._leaves(one, rows.slice(begin, end - begin), keys_.at(slice(begin, end)))
        else:
            owner = np.repeat(np.arange(len(part)), [0 if one.file is None else one.file.rows for one in part])[left]
            rows = rows.take(pa.array(left))
            pieces = [(_stem(one.low, one.high), rows.slice(a, b - a)) for one, a, b in _runs(part, owner)]
        done.removes += leaves
        encoded = [f.name for f in self.schema if not _is_plain(f.type)]
        stored = [(stem, self._stored(piece)) for stem, piece in pieces]
        done.adds += write_files(stored, self.root, self.attempt, {**_OPTIONS, "use_dictionary": encoded})

    def _leaves(self, one: _Range, rows: pa.Table, keys_: _Keys) -> Iterator[tuple[str, pa.Table]]:
        """The rows of a range, in order, as one leaf, or as several where they are many."""
        size, cuts = rows.num_rows, [0]
        if size > 2 * self.leaf_rows:
            same = (keys_.start[1:] == keys_.start[:-1]) & (keys_.hash[1:] == keys_.hash[:-1])
            between = np.flatnonzero(~same) + 1
            wanted = np.searchsorted(between, np.arange(self.leaf_rows, size - self.leaf_rows // 2, self.leaf_rows))
            cuts += np.unique(between[wanted[wanted < len(between)]]).tolist()
        lows = [one.low, *(keys_.number(cut) for cut in cuts[1:])]
        # behind the last leaf there is room for new ones
        last = one.high if one.file is not None else keys_.number(size - 1)
        for low, high, begin, end in zip(lows, [*lows[1:], last + 1], cuts, [*cuts[1:], size], strict=True):
            yield _stem(low, high - 1), rows.slice(begin, end - begin)

    def _read(self, files: Sequence[DataFile], done: Exchange) -> pa.Table:
        """The open rows of files. What else they hold, which only somebody else's files do, is kept in others."""
        found = [self._held.empty_table(), *side_by_side(self._rows_of, files)]
        for file, rows in zip(files, found[1:], strict=True):
            if rows.num_rows != file.rows:
                ended = scan.ScanPlan(self.schema, (f"{self.root}/{file.path}",), 0, 0)
                kept = ended.read(self.schema.names, pc.field("valid_to").is_valid())
                done.adds.append(write_file(kept, self.root, self.attempt, _unique("kept")))
        return pa.concat_tables(found)

    def _rows_of(self, file: DataFile) -> pa.Table:
        if file.path not in self._mixed:
            fs, path = filesystem(f"{self.root}/{file.path}")
            with fs.open_input_file(path) as source:
                whole = source.read_buffer()  # one read: a file of so few rows costs what is asked of it
            parquet = pq.ParquetFile(pa.BufferReader(whole), coerce_int96_timestamp_unit="us")
            return conform(parquet.read(self.names, use_threads=False), self._held)
        chosen = scan.ScanPlan(self.schema, (f"{self.root}/{file.path}",), file.size, file.rows)
        return chosen.read(self.names, pc.field("valid_to").is_null())

    def _write(self, rows: pa.Table, stem: str, done: Exchange) -> None:
        if rows.num_rows:
            done.adds.append(write_file(self._stored(rows), self.root, self.attempt, _unique(stem)))

    def _stored(self, rows: pa.Table) -> pa.Table:
        end = self.schema.field("valid_to")
        return rows.append_column(end, pa.nulls(rows.num_rows, end.type))

    def _keys(self, rows: pa.Table) -> _Keys:
        start = keys.int64_of(rows.column("valid_from").cast(pa.int64()))
        return _Keys(start.view(np.uint64) ^ np.uint64(_BIAS), self._hashes(rows))

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


def _stem(low: int, high: int) -> str:
    return f"leaf-{low:032x}-{high:032x}"


def _owner(keys_: _Keys, part: Sequence[_Range]) -> np.ndarray:
    """In which of some ranges, which are in order, each row is; -1: in none."""
    if not (part and len(keys_)):
        return np.full(len(keys_), -1)
    lows = np.array([one.low.to_bytes(16, "big") for one in part], "S16")
    highs = np.array([one.high.to_bytes(16, "big") for one in part], "S16")
    texts = keys_.bytes
    at = np.searchsorted(lows, texts, "right") - 1
    return np.where((at >= 0) & (texts <= highs[np.maximum(at, 0)]), at, -1)


def _runs(part: Sequence[_Range], owner: np.ndarray) -> Iterator[tuple[_Range, int, int]]:
    """Each range that owns rows, and where these begin and end; rows are in the order of their owners."""
    ends = np.searchsorted(owner, np.arange(len(part)), "right").tolist()
    for one, begin, end in zip(part, [0, *ends], ends, strict=False):
        if end > begin:
            yield one, begin, end


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
