"""The leaves of a relation's open rows (``open_rows.py``): their order, their names, reading and writing them.

Taking ended rows out of leaves and putting fresh ones in is one piece of work a leaf. Shared among Spark's workers it
took as long on two cores as here (0.65 s for 850 leaves, 0.6 s here), for the job that it needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from sweeparea.operators.values import keys
from sweeparea.operators.values.columns import chosen, conform
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.tables.log.files import DataFile, quick, read_whole, write_files

_BIAS = 1 << 63
_LARGE = 1 << 20
"""Bytes of a file beyond which reading it is work for several threads."""
_LEAF = re.compile(r"leaf-([0-9a-f]{32})-([0-9a-f]{32})\.parquet\Z")


@dataclass(frozen=True)
class LeafRange:
    """The keys from ``low`` to ``high``, both included; ``file``: the leaf that has them."""

    low: int
    high: int
    file: DataFile | None = None

    @property
    def rows(self) -> int:
        """Those of the leaf."""
        return 0 if self.file is None else self.file.rows


@dataclass(frozen=True)
class Keys:
    """Where rows lie in the order: ``start`` is ``valid_from`` as a number that is not negative."""

    start: np.ndarray
    hash: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def at(self, positions: np.ndarray | slice) -> Keys:
        return Keys(self.start[positions], self.hash[positions])

    def and_(self, others: Keys) -> Keys:
        """Those of rows behind which others stand."""
        return Keys(np.append(self.start, others.start), np.append(self.hash, others.hash))

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


def starts(key: int) -> int:
    """``valid_from`` of a key, as a number.

    >>> starts((5 + (1 << 63)) << 64 | 255)
    5
    """
    return (key >> 64) - _BIAS


def leaf_stem(path: str) -> str | None:
    """The name that a file with some of a leaf's rows may have; None: the file is no leaf."""
    found = _LEAF.search(path)
    return found[0].removesuffix(".parquet") if found else None


@dataclass(frozen=True)
class Leaves:
    """A table's leaves, for whoever reads and writes them.

    ``root``: the table's folder; ``schema``: its columns, of which the last is ``valid_to``; ``attempt``: the run that
    writes; ``leaf_rows``: about how many rows a leaf has; one with twice as many is split.
    """

    root: str
    schema: pa.Schema
    attempt: str
    leaf_rows: int

    @property
    def names(self) -> list[str]:
        return self.schema.names[:-1]

    @property
    def held(self) -> pa.Schema:
        """The columns of open rows."""
        return pa.schema([self.schema.field(name) for name in self.names])

    def rewritten(self, part: Sequence[LeafRange], fresh: pa.Table, keys_: Keys, gone: pa.Table) -> list[DataFile]:
        """Leaves that are neighbours, or ranges that have none yet, with ``fresh`` rows of theirs, whose keys are
        given, and without those that are ``gone``: rows have the columns but ``valid_to``.

        Raises MissingRows if some of these are not there.
        """
        leaves = [one.file for one in part if one.file is not None]
        held = pa.concat_tables([self.held.empty_table(), *self.read(leaves)])
        rows = pa.concat_tables([held, fresh])
        missing, left = self.without(gone, rows)
        if len(missing):
            raise MissingRows(len(missing))
        rows = chosen(rows, left)
        pieces: list[tuple[str, pa.Table]] = []
        if fresh.num_rows:
            keys_ = self.keys(held).and_(keys_).at(left)
            order = keys_.order()
            rows, keys_ = rows.take(pa.array(order)), keys_.at(order)
            for one, begin, end in _runs(part, owner(keys_, part)):
                pieces += self._cut(one, rows.slice(begin, end - begin), keys_.at(slice(begin, end)))
        else:
            owners = np.repeat(np.arange(len(part)), [one.rows for one in part])[left]
            pieces = [(_stem(one.low, one.high), rows.slice(a, b - a)) for one, a, b in _runs(part, owners)]
        stored = [(stem, self.stored(piece)) for stem, piece in pieces]
        return write_files(stored, self.root, self.attempt, quick(self.schema, _repeating(self.schema)))

    def _cut(self, one: LeafRange, rows: pa.Table, keys_: Keys) -> Iterator[tuple[str, pa.Table]]:
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

    def read(self, files: Sequence[DataFile]) -> Iterator[pa.Table]:
        """The rows of files of open rows, file by file."""
        for whole in read_whole(self.root, [file.path for file in files]):
            parquet = pq.ParquetFile(pa.BufferReader(whole), coerce_int96_timestamp_unit="us")
            yield conform(parquet.read(self.names, use_threads=whole.size > _LARGE), self.held)

    def stored(self, rows: pa.Table) -> pa.Table:
        """Open rows as the table has them."""
        end = self.schema.field("valid_to")
        return rows.append_column(end, pa.nulls(rows.num_rows, end.type))

    def keys(self, rows: pa.Table) -> Keys:
        return Keys(_starts(rows).view(np.uint64) ^ np.uint64(_BIAS), self._hashes(rows))

    def _hashes(self, rows: pa.Table) -> np.ndarray:
        return key_hash([rows.column(name) for name in self.names], rows.num_rows).view(np.uint64)

    def without(self, gone: pa.Table, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Positions of those of ``gone`` that are not among ``rows``, and for each of ``rows`` whether it is left
        without those that are: the differences of two bags.
        """
        size, left = gone.num_rows, np.ones(rows.num_rows, np.bool_)
        if not (size and len(left)):
            return np.arange(size), left
        at = keys.positions(_starts(rows), np.unique(_starts(gone)))
        near = rows.take(pa.array(at))
        wanted, hashes = np.sort(self._hashes(gone)), self._hashes(near)
        same = wanted[np.minimum(np.searchsorted(wanted, hashes), size - 1)] == hashes
        at, near = at[same], near.filter(pa.array(same))
        both = pa.concat_tables([gone, near])
        code, count = keys.codes([both.column(name) for name in self.names])
        mine, theirs = code[:size], code[size:]
        missing = _rank(mine) >= np.bincount(theirs, minlength=count)[mine]
        left[at[_rank(theirs) < np.bincount(mine, minlength=count)[theirs]]] = False
        return np.flatnonzero(missing), left


class MissingRows(Exception):
    """Rows have ended that are in no leaf; the first argument: how many."""


def owner(keys_: Keys, part: Sequence[LeafRange]) -> np.ndarray:
    """In which of some ranges, which are in order, each row is; -1: in none."""
    if not (part and len(keys_)):
        return np.full(len(keys_), -1)
    lows = np.array([one.low.to_bytes(16, "big") for one in part], "S16")
    highs = np.array([one.high.to_bytes(16, "big") for one in part], "S16")
    texts = keys_.bytes
    at = np.searchsorted(lows, texts, "right") - 1
    return np.where((at >= 0) & (texts <= highs[np.maximum(at, 0)]), at, -1)


def _starts(rows: pa.Table) -> np.ndarray:
    return keys.int64_of(rows.column("valid_from").cast(pa.int64()))


def _stem(low: int, high: int) -> str:
    return f"leaf-{low:032x}-{high:032x}"


def _runs(part: Sequence[LeafRange], owner: np.ndarray) -> Iterator[tuple[LeafRange, int, int]]:
    """Each range that owns rows, and where these begin and end; rows are in the order of their owners."""
    ends = np.searchsorted(owner, np.arange(len(part)), "right").tolist()
    for one, begin, end in zip(part, [0, *ends], ends, strict=False):
        if end > begin:
            yield one, begin, end


def _repeating(schema: pa.Schema) -> list[str]:
    """Columns that may gain by a dictionary: values are longer than their numbers in it."""
    return [f.name for f in schema if not (f.type.num_fields or pt.is_primitive(f.type))]


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
