"""How a keyed operator keeps its SweepArea between slices: a log of files, of which a slice reads and writes little.

Kraemer & Seeger 2005, section 4.3.1, name a SweepArea by what is asked of it: find what matches (here: by key), and
purge what has expired. A slice has to do with few keys of many: those that get new rows, and those at which something
happens by itself, an expiry say. So each slice appends one file (one a partition) with all rows that its keys have now,
and of each key only the rows of its latest file count: a log-structured merge tree (O'Neil et al. 1996). Files lie in
the order of ``key_hash``. Golab & Oezsu 2005, section 5.3, choose a state buffer by update pattern; this one serves
operators that look things up by key, whatever the pattern.

Columns on disk: those of the operator's rows; ``__hash``, that of the key; ``__due``, the first tick at which a slice
has to look at the row's key though nothing new has come (``due.py``); NULL in a row that says that its key has no rows
any more; ``__seq``, the sequence number of the slice that wrote the row.

Files are merged when newer ones have grown to half of the next older one, so their number grows with the logarithm of
the rows; and all of them when ``_SPARE`` times the rows that count, and ``_SLACK``, lie there (``to_merge``). What has
expired or was replaced is gone with the merge. Bound: so many rows, whatever came and went. ``area_files.py`` has the
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from sweeparea.operators.state.area_files import DUE, HASH, SEQ, AreaFile, OpenFile, longs
from sweeparea.operators.state.due import Due, bag_due
from sweeparea.operators.time.ticks import MIN_TICK
from sweeparea.operators.values import keys, shared_rows
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.tables.log.files import DataFile, quick, side_by_side, write_pieces

_LAYOUT = [pa.field(name, pa.int64()) for name in (HASH, DUE, SEQ)]
_GROUP = 1 << 11
"""Rows of a row group: the least that is read for one key."""
_PIECE = 1 << 19
"""About how many rows of a merge are in memory."""


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
        opened = [OpenFile(file, self.stored, self.storage_options) for file in self.files]
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
        current = (longs(rows, SEQ) == newest[code[:size]]) & _alive(rows)
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
        np.maximum.at(newest, code[: rows.num_rows], longs(rows, SEQ))
        return code, newest, rows.num_rows

    def _codes(self, *tables: pa.Table) -> tuple[np.ndarray, int]:
        named = [shared_rows.plain(table.select(list(self.key_columns))) for table in tables]
        columns = [
            pa.chunked_array([chunk for t in named for chunk in t.column(k).chunks], self.schema.field(k).type)
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
        rows = shared_rows.conform(carry.select(self.schema.names), self.schema)
        parts = [self._laid_out(rows, self.due(rows, self.h1))]
        if held.num_rows:
            code, count = self._codes(held, rows)
            left = np.ones(count, np.bool_)
            left[code[held.num_rows :]] = False
            first = keys.first_rows(code[: held.num_rows], count)
            gone = held.select(list(self.key_columns)).take(pa.array(first[left]))
            parts = [shared_rows.plain(parts[0]), self._laid_out(_widened(gone, self.schema), None)]
        self._write([_by_hash(pa.concat_tables(parts))], attempt, f"{self.op}.c-{partition:05d}-{held.num_rows}")
        if self.merge:
            self._write(self._merged(partition), attempt, f"{self.op}.m-{partition:05d}")

    def _laid_out(self, rows: pa.Table, due: np.ndarray | None) -> pa.Table:
        size = rows.num_rows
        times = pa.nulls(size, pa.int64()) if due is None else pa.array(due, pa.int64())
        layout = [pa.array(self._hashes(rows)), times, pa.array(np.full(size, self.seq), pa.int64())]
        return pa.table([*rows.columns, *layout], names=self.stored.names)

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
        # behind a union other inputs' tasks may come first: those of these workers follow each other, from any number
        partition %= self.partitions
        opened = [OpenFile(file, self.stored, self.storage_options) for file in self.merge]
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
        hashes, seq = longs(rows, HASH), longs(rows, SEQ)
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
    return shared_rows.taken(rows, np.argsort(longs(rows, HASH), kind="stable"))


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    given, size = set(rows.column_names), rows.num_rows
    arrays = [rows.column(f.name) if f.name in given else pa.nulls(size, f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
