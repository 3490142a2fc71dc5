"""A static relation: the snapshot of its source, copied once and pinned. What the source becomes later does not change
results, until a person says so (REFRESH RELATION).

Its rows are one copy each, from the beginning of time. A refresh is a change: at the instant behind the last one that
any query reading the relation has committed, what differs between the old snapshot and the new one goes and comes.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.text.errors import RefusedError
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.time.ticks import MAX_TICK, MIN_TICK
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging import units
from sweeparea.spark_jobs.admission.judging.checks import check_identity
from sweeparea.spark_jobs.admission.judging.copies import copies, sized
from sweeparea.spark_jobs.admission.judging.judge import (
    condition_sql,
    constraint_rules,
    evaluated,
    judged_by,
    malformed_rules,
)
from sweeparea.spark_jobs.admission.judging.parts import by_keys
from sweeparea.spark_jobs.admission.judging.report import Admitted
from sweeparea.spark_jobs.admission.judging.stage import Stage, quarantine_rows
from sweeparea.spark_jobs.admission.judging.verdicts import VersionRefused, accepting, judged, keep_refused
from sweeparea.spark_jobs.admission.relation.change_relation import check_relation_columns
from sweeparea.spark_jobs.admission.relation.history_events import representatives
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.declarations.source_columns import refuse_reserved
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.log import scan
from sweeparea.tables.publication.info import SourceInfo, laid_over
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

"""In the ledger row's info of a static relation: how often it was refreshed. Then it is one that changes."""


def pin(application: Application, name: str, registration: str, spark: SparkSession) -> Admitted:
    """Copies a static relation's snapshot, unless it is pinned already."""
    publication = Publication(str(application.data), application.ledger, name, NameKind.RELATION, registration)
    attempt, previous = publication.begin(), publication.previous
    if previous is not None and previous.of_source.source_version is not None:
        return Admitted(name, heartbeat=previous.committed, source_version=previous.of_source.source_version)
    source = application.sources.table(name)
    version, report = source.version(), Admitted(name, 1, heartbeat=MAX_TICK)
    refuse_reserved(name, [column for column, _ in source.spark_schema()])
    stage = Stage(publication, attempt, source.schema(), NameKind.RELATION)
    for rows in _rows(application, name, version, spark, stage, report):
        stage.admit(_at(rows, MIN_TICK))
        report.rows += copies(rows)
    _commit(application, stage, version, report, {} if previous is None else dict(previous.info))
    return report


def refresh(application: Application, name: str, spark: SparkSession) -> str:
    """Takes a static relation's source as it is now; returns what came of it, in words."""
    recover(str(application.data), application.ledger, [name])
    registration = application.registry.registration(name, application.ledger.head().get(name))
    publication = Publication(str(application.data), application.ledger, name, NameKind.RELATION, registration)
    attempt, previous = publication.begin(), publication.previous
    if previous is None or previous.of_source.source_version is None:
        report = pin(application, name, registration, spark)
        return f"{name}: {report.rows} rows of version {report.source_version} of its source copied and pinned"
    source = application.sources.table(name)
    version = source.version()
    check_identity(name, source, previous)
    check_relation_columns(application, name, source)
    stage, report = (
        Stage(publication, attempt, source.schema(), NameKind.RELATION),
        Admitted(name, 1, heartbeat=MAX_TICK),
    )
    fresh = _rows(application, name, version, spark, stage, report)
    scratch = f"{application.data}/_sweeparea/spill"
    tick: int | None = None
    clock = False
    for changed in _difference(scan.plan(stage.admitted), fresh, [f.name for f in source.schema()], scratch):
        if tick is None:
            tick, clock = next_instant(application, name)
        report.rows += copies(changed)
        stage.admit(_at(changed, tick))
    if tick is None:
        _commit(application, stage, version, report, dict(previous.info))
        return f"{name}: nothing differs between what was pinned and version {version} of its source"
    refreshed = SourceInfo(refreshed=(previous.of_source.refreshed or 0) + 1)
    more = laid_over(previous.info, refreshed, SourceInfo(correction_seq=stage.seq))
    _commit(application, stage, version, report, more)
    readers = application.catalog.readers(name)
    kind = TimeKind.TIMESTAMP if clock else TimeKind.BIGINT
    since = "the beginning" if tick == MIN_TICK else instant_text(TimeDomain(kind), tick)
    told = f"; {', '.join(readers)} {'take' if len(readers) > 1 else 'takes'} it over with the next run"
    return (
        f"{name}: {report.rows} rows come or go from {since} on, as version {version} of its source has them"
        f"{told if readers else ''}"
    )


def next_instant(application: Application, name: str) -> tuple[int, bool]:
    """The tick at which a refresh happens, and whether it is microseconds of the clock: 1 + the greatest committed
    instant of the queries that read the relation; their START where none has committed anything.
    """
    head = application.ledger.head()
    ran = {row.name: row for row in head.values() if name in row.pins and row.committed is not None}
    kinds = {query: bool(row.of_query.chronon) for query, row in ran.items()}
    starts: list[int] = []
    for query in application.catalog.readers(name):
        if query not in ran:
            time = (plan := application.plans.plan(query)).time
            kinds[query] = time.kind == TimeKind.TIMESTAMP
            starts.append(plan.start * (time.chronon if kinds[query] else 1))
    if len(set(kinds.values())) > 1:
        clock, count = (next(q for q, kind in kinds.items() if kind is wanted) for wanted in (True, False))
        raise RefusedError(
            f"relation {name} is read by {clock}, which counts time by the clock, and by {count}, which counts BIGINT"
            " ticks, so no one instant is the next for both",
            application.catalog.relations[name].place,
            "Declare the table twice, as a relation for each kind of query, and refresh both",
        )
    after = [_end(row) + 1 for row in ran.values()]
    return max(after, default=min(starts, default=MIN_TICK)), True in kinds.values()


def _end(row: LedgerRow) -> int:
    """The last instant that a query has committed, in microseconds where its time is the clock's."""
    assert row.committed is not None
    chronon = row.of_query.chronon or 0
    return (row.committed + 1) * chronon - 1 if chronon else row.committed


def _rows(
    application: Application, name: str, version: int, spark: SparkSession, stage: Stage, report: Admitted
) -> Iterator[pa.Table]:
    """The rows of a version that no constraint keeps out, piece by piece; the others are staged for the quarantine."""
    declared, source = application.catalog.relations[name], application.sources.relation(name)
    checks = {
        f"__check_{i}": condition_sql(expression.sql)
        for i, expression in enumerate(application.sources.relation_expressions(source).constraints)
    }
    what = f"Relation {name}, version {version} of its source"
    constraints = accepting(stage.publication.previous, version)(declared.constraints)
    scratch = f"{application.data}/_sweeparea/spill"
    for piece in sized(application.sources.table(name).snapshot_pieces(version)):
        rows = piece.append_column("__n", pa.repeat(pa.scalar(1, pa.int64()), piece.num_rows))
        unread = malformed_rules(rows)
        if checks or unread:
            judged = evaluated(spark, rows, checks, scratch) if checks else rows
            try:
                rules = [*unread, *constraint_rules(judged, constraints, what, report.warned)]
            except VersionRefused as error:
                keep_refused(stage.publication, stage.attempt, version, error)
                raise
            judgement = judged_by(judged, rules)
            bad, rows = judgement.bad.select(rows.column_names), judgement.good.select(rows.column_names)
            if bad.num_rows:
                bad = bad.append_column("__tick", pa.nulls(bad.num_rows, pa.int64()))
                stage.keep_out(quarantine_rows(bad, judgement.reasons, name, version))
                report.quarantined += judgement.counts
        yield keys.canonical(rows)


def _difference(
    pinned: scan.ScanPlan, fresh: Iterable[pa.Table], columns: list[str], scratch: str
) -> Iterator[pa.Table]:
    """What has come and (negative) gone, one row a record: its columns and ``__n``. Both are gone through in pieces,
    and records compared in parts.
    """
    names = [*columns, "__n"]
    schema = pa.schema([pinned.schema.field(name) for name in names])
    before = (rows.set_column(len(columns), "__n", pc.negate(rows.column("__n"))) for rows in pinned.batches(names))
    after = (rows.select(names).cast(schema) for rows in fresh)
    for rows in by_keys(chain(before, after), columns, scratch):
        n = keys.int64_of(rows.column("__n"))
        code = keys.codes([rows.column(c) for c in columns])[0]
        at, _, net = representatives(code, np.zeros(len(n), np.int64), n)
        if len(at):
            yield rows.select(columns).take(pa.array(at)).append_column("__n", pa.array(net))


def _at(rows: pa.Table, tick: int) -> pa.Table:
    return rows.append_column("__tick", pa.repeat(pa.scalar(tick, pa.int64()), rows.num_rows))


def _commit(application: Application, stage: Stage, version: int, report: Admitted, previous: dict[str, Any]) -> None:
    kept_out: Counter[str] = report.quarantined
    name = stage.publication.name
    table = application.sources.table(name)
    told = judged(
        SourceInfo(rows=report.rows, quarantined=kept_out.total()),
        stage.attempt,
        name,
        application.catalog.relations[name].constraints,
        report.rows + kept_out.total(),
        kept_out,
        report.warned,
    )
    if application.catalog.relations[name].expectations:
        columns = [column for column, _ in application.sources.relation(name).columns]
        judging = units.StagedCommit(application, stage, columns, TimeDomain(), NameKind.RELATION, version)
        told = judging.judge(application.sources.expectations(name), told)
    info = laid_over(
        previous,
        SourceInfo(definition=application.registry.fingerprint(name)),
        SourceInfo(source_version=version),
        SourceInfo(source_id=table.identity(), chars=application.sources.char_columns(name) or None),
        told,
    )
    report.source_version = version
    stage.commit(MAX_TICK, info)
