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

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.state.area_files import to_merge
from sweeparea.operators.state.leaves import Keys, LeafRange, Leaves, MissingRows, leaf_range, owner, starts
from sweeparea.operators.values.columns import chosen
from sweeparea.tables.log import scan, stats
from sweeparea.tables.log.files import DataFile, write_file

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


EndedRows = Callable[[int, int], pa.Table]
"""Reads the rows that have ended (the columns but ``valid_to``) whose ``valid_from``, as a number, lies from the first
to the second one, both included; others may be among them."""


@dataclass
class Exchange:
    """Files that a table gets and loses; ``unused``: staged ones whose rows went into others."""

    adds: list[DataFile] = field(default_factory=list)
    removes: list[DataFile] = field(default_factory=list)
    unused: list[DataFile] = field(default_factory=list)


def holds_open(file: DataFile) -> bool:
    """Whether a file of a relation's table may hold open rows."""
    return stats.nulls(file.stats, "valid_to") != 0


class OpenRows:
    """The open rows of a relation's table, as one slice finds them.

    ``root``: the table's folder; ``schema``: its columns, of which the last is ``valid_to``; ``files``: its files, of
    which those without open rows do not matter; ``attempt``: the run that writes.
    """

    def __init__(self, root: str, schema: pa.Schema, files: Sequence[DataFile], attempt: str) -> None:
        self.root, self.schema, self.attempt = root, schema, attempt
        ranges: list[LeafRange] = []
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
                    ranges.append(LeafRange(*hashes, file))
        self.rows = sum(self._open.values())
        self.leaves = Leaves(root, schema, attempt, max(LEAF_ROWS, self.rows // MOST_LEAVES))
        ranges.sort(key=lambda one: one.low)
        apart = all(a.high < b.low for a, b in pairwise(ranges))
        # leaves that have become much too small are put together
        if not apart or self.rows < len(ranges) * self.leaves.leaf_rows // 4:
            self.fresh += [one.file for one in ranges if one.file is not None]
            ranges = []
        self.ranges = ranges

    def exchange(self, ended: pa.Table | EndedRows, opened: Sequence[DataFile]) -> Exchange:
        """What a slice changes. ``ended``: rows that were open and have ended: the columns but ``valid_to``; where they
        are many, a function that reads them. ``opened``: staged files with rows that have been opened.

        Raises SweepAreaError if a row is not there that has ended.
        """
        fresh = sum(self._open[file.path] for file in self.fresh)
        come = fresh + sum(file.rows for file in opened)
        try:
            if not isinstance(ended, pa.Table):
                return self._spilled_in_parts(ended, opened)
            # rows that end may be fresh ones: what is left of these is what counts
            if come - min(fresh, ended.num_rows) > FRESH_ROWS:
                return self._spilled(ended, opened)
            return self._kept_fresh(ended, opened)
        except MissingRows as missing:
            raise SweepAreaError(
                f"{missing.args[0]} rows or more that were open have ended, but the result table does not hold them: it"
                " was changed by somebody else, or files of it were lost. `sweeparea check` with --rebuild computes the"
                " query's tables again from its inputs."
            ) from None

    def _kept_fresh(self, ended: pa.Table, opened: Sequence[DataFile]) -> Exchange:
        """What has come stays fresh, what has ended goes."""
        done = Exchange(adds=list(opened))
        if not ended.num_rows:
            sizes = sorted(file.rows for file in self.fresh)
            if count := to_merge(sizes):
                smallest = sorted(self.fresh, key=lambda file: (file.rows, file.path))[:count]
                done.removes += smallest
                self._write(self._read(smallest, done), done)
            return done
        rows = self._read(self.fresh, done)
        missing, left = self.leaves.without(ended, rows)
        ended, rows = ended.take(pa.array(missing)), rows.filter(pa.array(left))
        if ended.num_rows:
            gone_from = owner(self.leaves.keys(ended), self.ranges)
            if (gone_from < 0).any():
                raise MissingRows(int((gone_from < 0).sum()))
            touched = [self.ranges[i] for i in np.unique(gone_from)]
            keys_ = self.leaves.keys(rows)
            absorbed = owner(keys_, touched) >= 0
            self._rewrite(touched, chosen(rows, absorbed), keys_.at(absorbed), ended, done)
            rows = chosen(rows, ~absorbed)
        done.removes += self.fresh
        self._write(rows, done)
        return done

    def _spilled(self, ended: pa.Table, opened: Sequence[DataFile]) -> Exchange:
        """All fresh rows go into leaves, those also that the slice has opened."""
        sources = [*self.fresh, *opened]
        if sum(self._open.get(file.path, file.rows) for file in sources) <= PART_ROWS:
            done = Exchange(removes=list(self.fresh), unused=list(opened))
            self._spread(self._covering([]), self._read(sources, done), ended, done)
            return done
        return self._spilled_in_parts(lambda low, high: ended, opened)

    def _spilled_in_parts(self, ended: EndedRows, opened: Sequence[DataFile]) -> Exchange:
        """As ``_spilled``, range by range: no more is in memory than what is open in some of them."""
        done = Exchange(removes=list(self.fresh), unused=list(opened))
        sources = [*self.fresh, *opened]
        sampled = [self.leaves.keys(self._read([file], done)).at(slice(None, None, SAMPLE)) for file in sources]
        ranges = self._covering(sampled)
        owners = [np.zeros(0, np.int64), *(owner(keys_, ranges) for keys_ in sampled)]
        counts = np.bincount(np.concatenate(owners), minlength=len(ranges))
        # what ends is among the fresh rows of a range and those of its leaf
        sizes = {one.low: int(count) * SAMPLE + one.rows for one, count in zip(ranges, counts, strict=True)}
        for part in _parts(ranges, lambda one: sizes[one.low]):
            read = []
            for file in sources:  # what else it holds has been kept above
                rows = self._rows_of(file)
                read.append(chosen(rows, owner(self.leaves.keys(rows), part) >= 0))
            begin, end = (starts(key) for key in (part[0].low, part[-1].high))
            self._spread(part, pa.concat_tables([self.leaves.held.empty_table(), *read]), ended(begin, end), done)
        return done

    def _spread(self, ranges: Sequence[LeafRange], rows: pa.Table, ended: pa.Table, done: Exchange) -> None:
        """Fresh rows of some ranges into these, of which only those are read that get or lose any."""
        keys_ = self.leaves.keys(rows)
        to, from_ = owner(keys_, ranges), owner(self.leaves.keys(ended), ranges)
        touched = [ranges[i] for i in np.unique(np.append(to, from_[from_ >= 0]))]
        self._rewrite(touched, rows, keys_, chosen(ended, from_ >= 0), done)

    def _covering(self, sampled: Sequence[Keys]) -> list[LeafRange]:
        """The leaves, and ranges between them, so that all keys are in one. A range without a leaf is cut so that it
        has no more than ``PART_ROWS`` fresh rows, of which some are given.
        """
        found: list[LeafRange] = []
        starts = np.concatenate([keys_.start for keys_ in sampled]) if sampled else np.zeros(0, np.uint64)
        hashes = np.concatenate([keys_.hash for keys_ in sampled]) if sampled else np.zeros(0, np.uint64)
        keys_ = Keys(starts, hashes)
        keys_ = keys_.at(keys_.order())
        cuts = [keys_.number(i) for i in range(0, len(keys_), max(1, PART_ROWS // SAMPLE))][1:]
        end = 0
        for one in [*self.ranges, LeafRange(_END, _END)]:
            if one.low > end:
                inner = sorted({end, *(cut for cut in cuts if end < cut < one.low)})
                found += [LeafRange(a, b - 1) for a, b in pairwise([*inner, one.low])]
            if one.low < _END:
                found.append(one)
            end = one.high + 1
        return found

    # -- reading and writing -------------------------------------------------------------------------------------------

    def _rewrite(
        self, touched: Sequence[LeafRange], fresh: pa.Table, fresh_keys: Keys, gone: pa.Table, done: Exchange
    ) -> None:
        """Some ranges, which are in order, with fresh rows of theirs, and their keys, without those that are gone."""
        gone_keys = self.leaves.keys(gone)
        for part in _parts(touched, lambda one: one.rows):
            come, go = (owner(keys_, part) >= 0 for keys_ in (fresh_keys, gone_keys))
            done.adds += self.leaves.rewritten(part, chosen(fresh, come), fresh_keys.at(come), chosen(gone, go))
        done.removes += [one.file for one in touched if one.file is not None]

    def _read(self, files: Sequence[DataFile], done: Exchange) -> pa.Table:
        """The open rows of files. What else they hold, which only somebody else's files do, is kept in others."""
        plain = [file for file in files if file.path not in self._mixed]
        found = dict(zip((file.path for file in plain), self.leaves.read(plain), strict=True))
        found |= {file.path: self._open_rows_of(file) for file in files if file.path in self._mixed}
        for file in files:
            rows = found[file.path]
            if rows.num_rows != file.rows:
                ended = scan.ScanPlan(self.schema, (f"{self.root}/{file.path}",), 0, 0)
                kept = ended.read(self.schema.names, pc.field("valid_to").is_valid())
                done.adds.append(write_file(kept, self.root, self.attempt, _unique("kept")))
        return pa.concat_tables([self.leaves.held.empty_table(), *(found[file.path] for file in files)])

    def _rows_of(self, file: DataFile) -> pa.Table:
        return self._open_rows_of(file) if file.path in self._mixed else next(self.leaves.read([file]))

    def _open_rows_of(self, file: DataFile) -> pa.Table:
        whole = scan.ScanPlan(self.schema, (f"{self.root}/{file.path}",), file.size, file.rows)
        return whole.read(self.leaves.names, pc.field("valid_to").is_null())

    def _write(self, rows: pa.Table, done: Exchange) -> None:
        if rows.num_rows:
            done.adds.append(write_file(self.leaves.stored(rows), self.root, self.attempt, _unique("fresh")))


def _parts(ranges: Sequence[LeafRange], rows: Callable[[LeafRange], int]) -> Iterator[list[LeafRange]]:
    """Neighbours together, of about ``PART_ROWS`` rows at most."""
    part: list[LeafRange] = []
    size = 0
    for one in ranges:
        if part and size + rows(one) > PART_ROWS:
            yield part
            part, size = [], 0
        part.append(one)
        size += rows(one)
    if part:
        yield part


def _unique(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:8]}"
