"""SweepAreas of an earlier instant, from which a query can be computed on instead of from START.

A SweepArea's table keeps its former files until they are vacuumed, so each slice that a query has committed is a
checkpoint for as long. It serves where nothing was corrected since at or below its instant.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.plan_identity import state_identity
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.state.area_files import SEQ
from sweeparea.operators.state.leaves import leaf_stem
from sweeparea.operators.state.open_rows import holds_open
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.slices.corrections import pending
from sweeparea.spark_jobs.slices.place import BESIDE, SlicePlace
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, copy_staged, is_file, write_pieces
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.publication.info import without
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import TABLES, Publication
from sweeparea.tables.publication.snapshot import version_at

TRIES = 5


def latest(application: Application, plan: Plan, since: int, pins: Mapping[str, int]) -> LedgerRow | None:
    """The last commit of a query at or before ``since`` whose SweepAreas are all there and as they would be with what
    its inputs hold up to ``pins``; None: there is none.
    """
    head = application.ledger.head()
    row = head.get(plan.name)
    identity = state_identity(lowered(plan))
    for _ in range(TRIES):
        found = None if row is None else application.ledger.last_before(plan.name, row.registration, since)
        if found is None or found.committed is None or row is None or found.seq < (row.of_query.built or 0):
            return None
        if (found.of_query.plan, found.of_query.start) != (identity, plan.start):
            return None
        corrected = pending(application, plan, found, head, pins, found.committed)
        if not corrected:
            return found if _is_whole(application, plan, found) else None
        since = min(stretch.first for stretch in corrected.values()) - 1
    return None


def _areas(application: Application, row: LedgerRow) -> Iterator[tuple[str, DeltaLog, list[DataFile] | None]]:
    """Per operator its SweepArea's table and the files that it had at a commit; None: the log does not tell."""
    for op, rows in row.of_query.state.rows.items():
        log = DeltaLog(application.layout.state(row.name, op))
        version = log.version_tagged(row.app, row.seq) if log.exists() else None
        files = None if version is None else log.files(version)
        yield op, log, files if files is not None and sum(f.rows for f in files) == rows else None


def _open_rows(
    application: Application, plan: Plan, row: LedgerRow
) -> Iterator[tuple[ResultKind, DeltaLog, list[DataFile] | None]]:
    """The tables of histories (the relation, the quarantine) and their files with rows that were open at a commit;
    None: the log does not tell.
    """
    for kind in plan.materialize:
        if kind.is_history:
            log = DeltaLog(application.layout.result(plan.table(kind)))
            version = version_at(log, row.app, row.seq) if log.exists() else None
            yield kind, log, None if version is None else [file for file in log.files(version) if holds_open(file)]


def _is_whole(application: Application, plan: Plan, row: LedgerRow) -> bool:
    tables = [(log, files) for _, log, files in _areas(application, row)]
    tables += [(log, files) for _, log, files in _open_rows(application, plan, row)]
    return all(files is not None and all(is_file(f"{log.uri}/{file.path}") for file in files) for log, files in tables)


def seed(application: Application, plan: Plan, row: LedgerRow, place: SlicePlace) -> None:
    """Puts the SweepAreas of a commit into a place, and the rows that were open then, as its first commit.

    Rows that say which slice has written them say an earlier one than any of the place.
    """
    publication = Publication(place.data, place.ledger, row.name, NameKind.QUERY, place.registration)
    attempt = publication.begin()
    for op, log, files in _areas(application, row):
        there = DeltaLog(place.layout.state(row.name, op))
        there.create(log.schema(), name=f"{row.name}.{op}", description=f"SweepArea {op} of {row.name}")
        adds = [_earlier(log, file, there, attempt, f"{op}-{i}") for i, file in enumerate(files or ())]
        publication.stage(there.uri, adds=adds)
    for kind, log, files in _open_rows(application, plan, row):
        there = DeltaLog(place.layout.result(plan.table(kind)))
        there.create(log.schema(), name=plan.table(kind), description=f"{kind} of continuous query {row.name}")
        adds = [
            copy_staged(log.uri, file, there.uri, attempt)
            if leaf_stem(file.path)  # what it holds: no two have the same name, as others of several attempts may
            else _earlier(log, file, there, attempt, f"open-{i}")
            for i, file in enumerate(files or ())
        ]
        publication.stage(there.uri, adds=adds)
    info = without(row.info, [TABLES])
    publication.commit(committed=row.committed, pins=row.pins, info=info)


def _earlier(log: DeltaLog, file: DataFile, there: DeltaLog, attempt: str, stem: str) -> DataFile:
    """A copy of a file whose rows, where they say their slice, were written before any of a place beside."""
    schema = log.schema()
    fs, path = filesystem(f"{log.uri}/{file.path}", log.storage_options)

    def pieces() -> Iterator[pa.Table]:
        parquet = pq.ParquetFile(fs.open_input_file(path), coerce_int96_timestamp_unit="us")
        for group in range(parquet.num_row_groups):
            rows = parquet.read_row_group(group).select(schema.names).cast(schema)
            if SEQ in schema.names:
                shifted = pc.add(rows.column(SEQ), 2 * BESIDE)
                rows = rows.set_column(schema.names.index(SEQ), schema.field(SEQ), shifted)
            yield rows

    return write_pieces(pieces(), schema, there.uri, attempt, stem)
