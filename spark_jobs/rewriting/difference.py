"""What a stretch that was computed anew changes in one result table, in pieces that memory holds.

Rows are compared record by record, so a table is read as often as it has parts of records by their hash; one part, and
one read, unless there are many rows.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sweeparea.operators.state import splice
from sweeparea.operators.state.splice import Changed
from sweeparea.operators.sweeps.quarantine import CONSTRAINT, REASON
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF, MIN_TICK
from sweeparea.operators.values import keys
from sweeparea.operators.values.key_hash import in_part
from sweeparea.operators.values.netting import netted
from sweeparea.spark_jobs.evaluation.only import Only
from sweeparea.spark_jobs.slices import corrections
from sweeparea.spark_jobs.slices.history import History
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile

PART_ROWS = 4_000_000
"""About how many rows of a table are looked at at a time; it is read once for each such part of its records."""


@dataclass(frozen=True)
class TableDifference:
    """``removed``: per file the positions of its rows that go; ``come``: the rows that come, as the table holds them.

    ``told``: the signed difference, as of ``corrections.schema`` without cause and sequence. ``opened``: all open
    levels, with ``__from`` in ticks, of the records of which one that is open has another start than before.
    """

    kind: str
    old: History
    files: tuple[DataFile, ...]
    removed: tuple[np.ndarray, ...]
    come: pa.Table
    told: pa.Table
    opened: pa.Table | None

    @property
    def out(self) -> int:
        return sum(map(len, self.removed))


@dataclass(frozen=True)
class _StoredRows:
    """Rows of a table: in which file, where in it, valid from and to (ticks)."""

    table: pa.Table
    file: np.ndarray
    place: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @property
    def ticks(self) -> tuple[np.ndarray, np.ndarray]:
        return self.start, self.end


class Comparison:
    """A published table against one computed beside it, from after ``since`` to ``upto``.

    ``closed``: what is published after ``upto`` stands. ``whole``: all rows are compared, whatever their instants.
    ``only``: rows with some values of a column are.
    """

    def __init__(  # eight parameters: two tables, a stretch, and what of both is compared
        self,
        kind: str,
        old: History,
        new: DeltaLog,
        since: int,
        upto: int,
        closed: bool,
        whole: bool = False,
        only: tuple[str, Only] | None = None,
    ) -> None:
        self.kind, self.old, self.only = kind, old, only
        self.since, self.upto = (MIN_TICK - 1, INF) if whole else (since, upto)
        self.closed = closed and old.relation
        self.files = tuple(old.log.files(old.version) if whole else old.files(since, upto))
        self.new = History.of(new, old.time) if new.exists() else None
        self.new_files = tuple(new.files()) if new.exists() else ()

    def difference(self) -> TableDifference | None:
        """What differs; None if nothing does. NotMet (``splice``): the contents at a closed stretch's end do."""
        rows = sum(f.rows for f in (*self.files, *self.new_files))
        parts = max(1, -(-rows // PART_ROWS))
        found = [one for part in range(parts) if (one := self._part(part, parts)) is not None]
        if not found:
            return None
        opened = [one.opened for one in found if one.opened is not None]
        return TableDifference(
            self.kind,
            self.old,
            self.files,
            tuple(np.sort(np.concatenate(each)) for each in zip(*(one.removed for one in found), strict=True)),
            pa.concat_tables([one.come for one in found]),
            pa.concat_tables([one.told for one in found]),
            pa.concat_tables(opened) if opened else None,
        )

    def _part(self, part: int, parts: int) -> TableDifference | None:
        old = self._read(self.old, self.files, part, parts, lambda start, end: self._concerned(start, end, self.upto))
        if self.new is None:
            new = _StoredRows(old.table.slice(0, 0), *(np.zeros(0, np.int64) for _ in range(4)))
        else:
            new = self._read(self.new, self.new_files, part, parts, lambda start, end: self._concerned(start, end, INF))
        codes, new_codes = splice.record_codes(old.table, new.table, self.old.record)
        olds, news = (codes, *old.ticks), (new_codes, *new.ticks)
        changed, ends = splice.levels(olds, news, self.upto if self.closed else None)
        if not changed:
            return None
        come = new.table.take(pa.array(changed.added))
        if self.old.relation:
            come = ended(come, ends[changed.added], self.old.time)
        gone = old.file[changed.removed]
        return TableDifference(
            self.kind,
            self.old,
            self.files,
            tuple(old.place[changed.removed][gone == i] for i in range(len(self.files))),
            come,
            self._told(old.table, come, olds, (*news[:2], ends), changed),
            self._opened(old, new, changed, ends, part, parts) if self.closed else None,
        )

    def _concerned(self, start: np.ndarray, end: np.ndarray, upto: int) -> np.ndarray:
        """Which rows are valid somewhere after ``since`` and up to ``upto``, or end there (a stream's: lie there)."""
        return (start <= upto) & (end > self.since) if self.old.relation else (start > self.since) & (start <= upto)

    def _read(
        self,
        history: History,
        files: Sequence[DataFile],
        part: int,
        parts: int,
        concerned: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> _StoredRows:
        """The rows that are concerned, by their (from, to), of one part of the records, in the published table's
        columns.
        """
        schema = self.old.log.schema()
        tables, columns = [schema.empty_table()], []
        for number, file in enumerate(files):
            rows = history.read(file).select(schema.names).cast(schema)
            start, end = history.ticks(rows)
            chosen = concerned(start, end)
            if self.only is not None:
                chosen &= self.only[1].where(rows.column(self.only[0]))
            if parts > 1:
                chosen &= in_part([rows.column(c) for c in self.old.record], rows.num_rows, part, parts)
            at = np.flatnonzero(chosen)
            tables.append(rows.take(pa.array(at)))
            columns.append((np.full(len(at), number), at, start[at], end[at]))
        found = (
            [np.concatenate(each) for each in zip(*columns, strict=True)] if columns else [np.zeros(0, np.int64)] * 4
        )
        return _StoredRows(pa.concat_tables(tables), *found)

    def _opened(
        self, old: _StoredRows, new: _StoredRows, changed: Changed, ends: np.ndarray, part: int, parts: int
    ) -> pa.Table | None:
        record = self.old.record
        gone = changed.removed[old.end[changed.removed] == INF]
        if not len(gone):
            return None
        restarted = old.table.select(record).take(pa.array(gone))
        levels = []
        # a record with several copies has levels that began behind the stretch, too
        for rows, end in ((new, ends), ((later := self._begun_later(part, parts)), later.end)):
            codes, concerned = splice.record_codes(rows.table, restarted, record)
            at = np.flatnonzero(np.isin(codes, concerned) & (end == INF))
            found = rows.table.select(record).take(pa.array(at))
            levels.append(found.append_column("__from", pa.array(rows.start[at], pa.int64())))
        opened = pa.concat_tables(levels)
        return opened if opened.num_rows else None

    def _begun_later(self, part: int, parts: int) -> _StoredRows:
        """The published rows that begin after the stretch and are open."""
        return self._read(
            self.old, self.old.open_after(self.upto), part, parts, lambda start, end: (start > self.upto) & (end == INF)
        )

    def _told(
        self,
        before: pa.Table,
        come: pa.Table,
        olds: tuple[np.ndarray, ...],
        news: tuple[np.ndarray, ...],
        changed: Changed,
    ) -> pa.Table:
        out = before.take(pa.array(changed.removed))
        codes, start, end = (np.append(a[changed.removed], b[changed.added]) for a, b in zip(olds, news, strict=True))
        signs = np.append(np.full(out.num_rows, -1), np.full(come.num_rows, 1))
        net = splice.events(codes, start, end, signs) if self.old.relation else netted(codes, start, signs)
        row_of = keys.first_rows(codes, int(codes.max()) + 1)
        record = [name for name in self.old.record if name not in (CONSTRAINT, REASON)]
        both = pa.concat_tables([out, come]).select(record).combine_chunks()
        records = both.take(pa.array(row_of[net[0]])).combine_chunks()
        return corrections.rows(records, net[1], net[2], self.kind, self.old.time)


def ended(rows: pa.Table, ends: np.ndarray, time: TimeDomain) -> pa.Table:
    """Rows of a relation's table with other ends: ticks, ``INF`` for a row that is open."""
    kind = rows.schema.field("valid_to").type
    stored = pa.array(np.where(ends == INF, 0, ends) * time.stored_scale, pa.int64(), mask=ends == INF)
    return rows.set_column(rows.column_names.index("valid_to"), rows.schema.field("valid_to"), stored.cast(kind))
