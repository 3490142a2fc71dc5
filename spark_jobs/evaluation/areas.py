"""Where a slice finds the SweepAreas of its operators and stages the next ones.

Three layouts. *Keyed*: a log of which a slice touches the keys that it has to do with
(``operators/state/sweep_area.py``). *Whole*: one snapshot, read and replaced by every slice, for operators without a
key and for those that look at every row at every instant. *Held*: the live rows of a join's side, a log by the time of
expiry (``operators/state/expiry_log.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators import bridge
from sweeparea.operators.state import expiry_log
from sweeparea.operators.state.area_files import DUE, SEQ, AreaFile, to_merge
from sweeparea.operators.state.due import Due, Lazily
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TE
from sweeparea.operators.worker_memory import Watch
from sweeparea.spark_jobs.spark import frames
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


LAZY_PERCENT = 5
"""Default of the lazy expiration interval (Golab & Oezsu 2005, section 6.1)."""


@dataclass
class SweepAreas:
    """The SweepAreas of one slice.

    ``log(op)`` gives an operator's table, ``create(op, schema)`` makes it unless it is there. ``expiry_partitions``:
    into how many parts the log of a join's side divides its window; 0: by its rows (``expiry_log.partitions_for``).
    ``lazy_percent``: how late rows may go of which nothing but their going is left to do, in hundredths of the window
    (Golab & Oezsu 2005, sections 5.3.2 and 6.1). ``counts``: how many of the rows in the files of a keyed operator
    count, where it is known. Noted by the slice: ``staged``, the files that it replaces, by operator that it has run;
    ``workers``, ``keys``, how many workers share a keyed operator, and its keys; ``may_be_silent``, operators that
    leave nothing when nothing came; ``twice``, those whose workers have left some of it in a job before;
    ``versions``, at which the tables were read.
    """

    spark: SparkSession
    log: Callable[[str], DeltaLog]
    create: Callable[[str, pa.Schema], None]
    spill: str
    seq: int
    h0: int
    h1: int
    partitions: int
    expiry_partitions: int = 0
    lazy_percent: int = LAZY_PERCENT
    counts: dict[str, int] = field(default_factory=dict)
    staged: dict[str, list[DataFile]] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    may_be_silent: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)
    versions: dict[str, int] = field(default_factory=dict)
    _files: dict[str, list[DataFile]] = field(default_factory=dict)

    def files(self, op: str) -> list[DataFile]:
        """The files that the last slice left."""
        if op not in self._files:
            log = self.log(op)
            if log.exists():
                self.versions[op] = log.version()
            self._files[op] = log.files(self.versions[op]) if op in self.versions else []
        return self._files[op]

    @property
    def notes(self) -> str:
        """The folder where tasks of many rows leave notes while they run."""
        return f"{self.spill}/tasks"

    def watch(self, op: str, keys: Sequence[str]) -> Watch:
        """How a task of the operator ``op`` is watched, whose rows meet by ``keys``."""
        return Watch(op, tuple(keys), self.notes)

    # -- whole ---------------------------------------------------------------------------------------------------------

    def read(self, op: str) -> DataFrame | None:
        """All rows of a whole SweepArea; None: no rows."""
        if not self.files(op):
            return None
        chosen = scan.plan(self.log(op), self.files(op))
        return frames.read(self.spark, chosen, chosen.schema.names)

    def target(self, op: str, schema: pa.Schema) -> bridge.Target:
        """Where the next snapshot goes."""
        self.create(op, schema)
        self.staged[op] = self.files(op)
        return bridge.Target(self.log(op).uri, schema, op)

    # -- keyed ---------------------------------------------------------------------------------------------------------

    def quiet(self, op: str) -> bool:
        """Whether no key of a keyed SweepArea needs a look in this slice."""
        root = self.log(op).uri
        return not any(AreaFile.of(root, file).is_due(self.h0, self.h1) for file in self.files(op))

    def keyed(self, op: str, schema: pa.Schema, keys: Sequence[str], due: Due, workers: int) -> SweepArea:
        """The SweepArea of an operator that sweeps ``keys``, for the task of each of its ``workers``."""
        root, files = self.log(op).uri, self.files(op)
        area = SweepArea(root, op, schema, tuple(keys), due, self.seq, self.h0, self.h1, partitions=workers)
        if files and not set(area.stored.names) <= set(self.log(op).schema().names):
            raise SweepAreaError(
                f"The SweepArea {root} has the layout of another version of SweepArea. `sweeparea check` with --rebuild"
                " computes it again from the query's inputs."
            )
        self.create(op, area.stored)
        self.workers[op], self.keys[op] = workers, tuple(keys)
        merge = self.staged[op] = _to_merge(files, self.counts.get(op))
        described = {file.path: AreaFile.of(root, file) for file in files}
        return replace(area, files=tuple(described.values()), merge=tuple(described[file.path] for file in merge))

    def due(self, area: SweepArea) -> list[AreaFile]:
        """The files of a SweepArea with keys that need a look in this slice."""
        return [file for file in area.files if file.due <= self.h1]

    def lazily(self, due: Due, reach: int) -> Due:
        """``due`` of rows that hold no result back, which windows of this reach brought."""
        interval = reach * self.lazy_percent // 100
        return due if reach >= INF or interval < 2 else Lazily(due, interval)

    def given(self, area: SweepArea, rows: DataFrame | None) -> DataFrame:
        """What the task of a keyed sweep is given: new rows, and rows with NULL copies that only name a key.

        There is at least one of these, so that the task runs; where there are several workers, those of the keys that
        are due: each worker looks after the keys that it is given. Columns that ``rows`` lack are not sent.
        """
        sent = set(area.schema.names if rows is None else rows.columns)
        columns = [f for f in area.schema if f.name in sent]
        nothing = (f"CAST(NULL AS {frames.spark_type(f.type)}) AS `{f.name}`" for f in columns)
        parts = [] if rows is None else [rows]
        parts.append(self.spark.range(1).selectExpr(*nothing))
        due = self.due(area)
        if due and not area.alone:
            stored = frames.of_files(self.spark, frames.ddl(area.stored), *(file.path for file in due))
            keys = set(area.key_columns)
            named = (
                f"`{f.name}`" if f.name in keys else f"CAST(NULL AS {frames.spark_type(f.type)}) AS `{f.name}`"
                for f in columns
            )
            of_keys = stored.where(f"{DUE} > {self.h0}L AND {DUE} <= {self.h1}L").selectExpr(*named)
            alike = len(bridge.comparable(of_keys, of_keys.columns)) == len(columns)
            parts.append(of_keys.distinct() if alike else of_keys)
        return frames.concatenated(parts)

    # -- held ----------------------------------------------------------------------------------------------------------

    def live(self, op: str, h: int, among: frames.Among) -> DataFrame | None:
        """The logged rows that are valid after ``h``; those that are not ``among`` some values may be left out."""
        files = [file for file in self.files(op) if _logged(file).last > h + 1]
        return self._valid(op, files, h, among)

    def logged(self, op: str, schema: pa.Schema, reach: int) -> tuple[Log, DataFrame | None]:
        """Where a slice logs rows, and the rows of the files that it should merge."""
        files = {file.path: file for file in self.files(op)}
        partitions = self.expiry_partitions or expiry_log.partitions_for(sum(file.rows for file in files.values()))
        division = expiry_log.Division.of(reach, partitions)
        described = [_logged(file) for file in files.values()]
        gone = expiry_log.expired(described, self.h1)
        merged = expiry_log.merges([file for file in described if file not in gone], division)
        log = Log(self.target(op, schema), division)
        self.staged[op] = [files[file.path] for file in (*gone, *merged)]
        self.may_be_silent.add(op)
        return log, self._valid(op, [files[file.path] for file in merged], self.h1)

    def _valid(self, op: str, files: Sequence[DataFile], h: int, among: frames.Among | None = None) -> DataFrame | None:
        if not files:
            return None
        chosen = scan.plan(self.log(op), files)
        return frames.read(self.spark, chosen, chosen.schema.names, [(TE, h + 2, None)], among)


@dataclass(frozen=True)
class Log:
    """Where a join's side is logged: the table, and how its expiry times are divided."""

    target: bridge.Target
    division: expiry_log.Division


def _logged(file: DataFile) -> expiry_log.LoggedFile:
    last = scan.bounds(file, TE)[1]
    return expiry_log.LoggedFile(file.path, file.rows, INF if last is None else last)


def _to_merge(files: Sequence[DataFile], live: int | None) -> list[DataFile]:
    newest_first = sorted(files, key=lambda file: scan.bounds(file, SEQ)[1] or 0, reverse=True)
    return newest_first[: to_merge([file.rows for file in newest_first], live)]
