"""The result tables of a slice, and what it adds to and removes from them."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.state.open_rows import EndedRows, Exchange, OpenRows
from sweeparea.operators.sweeps.quarantine import CONSTRAINT, REASON
from sweeparea.quality import suites
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.deferred import types_of
from sweeparea.spark_jobs.spark.errors import ArgumentTypeError
from sweeparea.spark_jobs.spark.instants import stored_type
from sweeparea.tables.log import scan
from sweeparea.tables.log.files import DataFile
from sweeparea.tables.publication.publish import Publication

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENDED_ROWS = 2_000_000
"""Rows that ended in a slice, as the files say that may hold them, which the driver has in memory."""
HISTORIES = {
    ResultKind.RELATION: ("closed", "open"),
    ResultKind.QUARANTINE: ("quarantine_closed", "quarantine_open"),
}
"""By tables that hold rows with their validity what is written to them: rows that ended, and rows that are open."""
Line = dict[str, Any]
"""A staged file as a worker tells of it (``bridge.FILES_SCHEMA``)."""


def result_columns(plan: Plan, shape: DataFrame) -> list[pa.Field]:
    """The result's columns; a type that a table cannot hold is refused by the column's name."""
    types = types_of(shape)
    for column in plan.root.columns:
        found = types[column.id]
        if not isinstance(found, str) and not frames.storable(found):
            kind = found.simpleString()
            raise ArgumentTypeError(
                f"query {plan.name}: its column {column.label} is of type {kind.upper()}, which a result table"
                f" cannot hold. CAST it to a type that can be stored, for example CAST({column.label} AS STRING)."
            )
    return frames.fields(shape, [c.id for c in plan.root.columns])


class ResultTables:
    """By what is written to them (``closed``, ``open``, ``istream``, ..) the tables' folders and schemas; a relation
    has two in one: rows that ended and rows that are open, and so has the quarantine (``quarantine_closed``,
    ``quarantine_open``). They are made where they are not there.

    ``since``: where the slice's results begin; ``anew``: nothing that is open there was written before. ``unused`` are
    staged files whose rows went into others: they are judged, and then they go.
    """

    def __init__(
        self, plan: Plan, place: SlicePlace, record: list[pa.Field], since: int, attempt: str, anew: bool = False
    ) -> None:
        self.plan, self.place, self.since, self.attempt, self.anew = plan, place, since, attempt, anew
        self.tables = self._created(record)
        self.unused: list[str] = []
        self.quarantine = suites.quarantine(plan.constraints)
        self._held: dict[str, Future[tuple[int, OpenRows]]] = {}

    def _created(self, record: list[pa.Field]) -> dict[str, tuple[str, pa.Schema]]:
        """The result tables by what is written to them."""
        plan, layout = self.plan, self.place.layout
        labels = [pa.field(c.label, f.type) for c, f in zip(plan.root.columns, record, strict=True)]
        kind = stored_type(plan.time)
        found: dict[str, tuple[str, pa.Schema]] = {}
        for what in plan.materialize:
            path = layout.result(plan.table(what))
            if what.is_history:
                why = [pa.field(name, pa.string()) for name in (CONSTRAINT, REASON)]
                own = labels if what == ResultKind.RELATION else [*labels, *why]
                schema = pa.schema([*own, pa.field("valid_from", kind), pa.field("valid_to", kind)])
                for key in HISTORIES[what]:
                    found[key] = path, schema
            else:
                schema = pa.schema([*labels, pa.field("ts", kind)])
                found[what] = (path, schema)
            title = f"{what} of continuous query {plan.name}"
            self.place.ledger.log(path).create(schema, name=Path(path).name, description=title, configuration=None)
        return found

    @contextmanager
    def listing_open_rows(self) -> Iterator[None]:
        """While inside, what the tables of histories hold open is listed, beside what Spark's workers do."""
        with ThreadPoolExecutor(1) as beside:
            self._held = {
                opened: beside.submit(self._open_rows, opened)
                for _, opened in HISTORIES.values()
                if opened in self.tables
            }
            yield

    def _open_rows(self, opened: str) -> tuple[int, OpenRows]:
        """What a history's table holds open, and the version of the table that says so."""
        path, schema = self.tables[opened]
        log = self.place.ledger.log(path)
        version = log.version()
        return version, OpenRows(path, schema, log.files(version, ["valid_to"]), self.attempt)

    def stage(self, publication: Publication, lines: list[Line]) -> dict[str, int]:
        """Stages what lies in the files; returns how many rows by what is written."""
        rows: dict[str, int] = {}
        versions = {path: self.place.ledger.log(path).version() for path, _ in self.tables.values()}
        open_rows: dict[str, OpenRows] = {}
        for _, opened in HISTORIES.values():
            if opened in self.tables:
                held = self._held[opened].result() if opened in self._held else self._open_rows(opened)
                versions[self.tables[opened][0]], open_rows[opened] = held
        for key, (path, schema) in self.tables.items():
            files = [file_of(line) for line in lines if line["target"] == key]
            rows[key] = sum(f.rows for f in files)
            change = Exchange(adds=files)
            if key in open_rows:
                closed = next(closed for closed, opened in HISTORIES.values() if opened == key)
                ended = self._ended(path, schema, [file_of(line) for line in lines if line["target"] == closed])
                change = open_rows[key].exchange(ended, files)
            publication.stage(path, adds=change.adds, removes=change.removes, base_version=versions[path])
            self.unused += [f"{path}/{file.path}" for file in change.unused]
        return rows

    def _ended(self, path: str, schema: pa.Schema, closed: list[DataFile]) -> pa.Table | EndedRows:
        """The rows of staged files that the table holds as open ones: those that began before the slice. Where they
        are more than ``ENDED_ROWS``, a function that reads some of them.
        """
        stored = self.since * self.plan.time.stored_scale
        files = [] if self.anew else scan.prune(closed, "valid_from", None, stored)

        def read(low: int | None, high: int) -> pa.Table:
            chosen = scan.prune(files, "valid_from", low, high)
            plan = scan.ScanPlan(schema, tuple(f"{path}/{file.path}" for file in chosen), 0, 0)
            within = scan.within(schema, [("valid_from", low, min(high, stored))])
            return plan.read(schema.names[:-1], within)

        if sum(file.rows for file in files) > ENDED_ROWS:
            return read
        return read(None, stored)


def file_of(line: Line) -> DataFile:
    """A staged file, as its worker told of it."""
    return DataFile(line["path"], line["size"], line["rows"], line["stats"])
