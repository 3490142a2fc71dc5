"""Admit: what is new in a source Delta table becomes elements of a stream, version by version.

Each version of the source is judged on its own, in order: its rows get their tick, rows that cannot be elements go to
quarantine with a reason, late ones (at or below the heartbeat after the version before) as well, and the policy moves
the heartbeat. One version is one commit: stage, ledger, apply. A static relation is copied once and pinned.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.heartbeats import policies
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.logical import TimeDomain
from sweeparea.operators.ticks import MAX_TICK, MIN_TICK
from sweeparea.spark_jobs import frames, json_values
from sweeparea.spark_jobs.application import Application, refuse_reserved
from sweeparea.spark_jobs.errors import NotReadyError, readable
from sweeparea.spark_jobs.instants import instant_text
from sweeparea.tables.delta_log import DeltaLog
from sweeparea.tables.files import write_file
from sweeparea.tables.ledger import LedgerRow
from sweeparea.tables.publish import Publication, recover
from sweeparea.tables.source import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sweeparea.cql.statements import CreateStream

QUARANTINE_SCHEMA = pa.schema(
    [
        ("__stream", pa.string()),
        ("__version", pa.int64()),
        ("__seq", pa.int64()),
        ("__reason", pa.string()),
        ("__tick", pa.int64()),
        ("__row", pa.string()),
    ]
)
DAY_US = 86_400_000_000


@dataclass
class Admitted:
    """What one run of admit did."""

    name: str
    versions: int = 0
    rows: int = 0
    quarantined: dict[str, int] = field(default_factory=dict)
    warned: dict[str, int] = field(default_factory=dict)
    ignored: int = 0
    heartbeat: int | None = None
    source_version: int | None = None
    instant: int = 0
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def admit(
    application: Application, name: str, spark: SparkSession, tell: Callable[[str], None] = lambda text: None
) -> Admitted:
    """Admits all versions of a stream's source that are not admitted yet (a static relation: its snapshot, once)."""
    with application.analyzing(spark):
        return _admit(application, name, spark, tell)


def _admit(application: Application, name: str, spark: SparkSession, tell: Callable[[str], None]) -> Admitted:
    started = time.monotonic()
    recover(str(application.data), application.ledger, [name])
    application.source(name)  # there is one of this name
    row = application.ledger.head().get(name)
    registration = application.registration(name, row)
    if row is not None and not DeltaLog(application.layout.admitted(name)).exists():
        raise SweepAreaError(
            f"The admitted rows of {name} are missing, though {name} has been admitted before. Restore the data folder"
            f" {application.data} from a backup of one moment, or run `{application.command('drop', name)}` (after"
            " the queries that read it) and admit it anew."
        )
    if name in application.catalog.relations:
        report = _pin(application, name, registration, row is not None)
    else:
        report = Admitted(name, heartbeat=row.committed if row else None)
        report.instant = row.info.get("instant", 0) if row else 0
        source = application.source_table(name)
        last, newest = (row.info["source_version"] if row else -1), source.version()
        report.source_version = last
        application.source_expressions(name)
        _check_identity(name, source, row)
        _check_columns(application, name, source)
        for version in range(last + 1, newest + 1):
            try:
                _admit_version(application, name, registration, source, version, spark, report)
            except Exception as error:
                raise readable(error, f"stream {name}, version {version} of its source") from error
            tell(f"{name}: version {version} of {newest}: {report.rows} rows admitted, {_sum(report)} quarantined")
        _by_clock(application, name, registration, report)
    report.seconds = round(time.monotonic() - started, 3)
    return report


def advance(application: Application, name: str, heartbeat: int) -> int | None:
    """Moves the heartbeat of a stream declared HEARTBEAT MANUAL to a tick; returns what it was.

    Going back is an error, and so is a stream whose heartbeat moves by itself.
    """
    declared = application.stream(name)
    domain = application.input_schema(name).time
    policy = _policy(declared, domain)
    if not isinstance(policy, policies.Manual):
        raise SweepAreaError(
            f"Stream {name} ({declared.place}) moves its heartbeat by its own policy. Only a stream declared HEARTBEAT"
            " MANUAL is moved by hand."
        )
    recover(str(application.data), application.ledger, [name])
    row = application.ledger.head().get(name)
    if row is None:
        raise NotReadyError(f"Stream {name} has not been admitted yet. Run `{application.command('admit', name)}`.")
    decision = policy.set(name, row.committed, heartbeat)
    _commit_heartbeat(application, name, row.registration, decision.heartbeat)
    return row.committed


def _by_clock(application: Application, name: str, registration: str, report: Admitted) -> None:
    """A clock goes on also where the source brought nothing new."""
    declared = application.catalog.streams[name]
    domain = application.input_schema(name).time
    policy = _policy(declared, domain)
    row = application.ledger.head().get(name)
    if isinstance(policy, policies.FromClock) and row is not None:
        now = policies.VersionFacts(read_time=time.time_ns() // 1000)
        decision = policy.evaluate(row.committed, now)
        if decision.heartbeat != row.committed:
            _commit_heartbeat(application, name, registration, decision.heartbeat)
            report.heartbeat = decision.heartbeat


def _commit_heartbeat(application: Application, name: str, registration: str, heartbeat: int | None) -> None:
    publication = Publication(str(application.data), application.ledger, name, "stream", registration)
    publication.begin()
    info = dict(publication.previous.info) if publication.previous else {}
    publication.commit(committed=heartbeat, pins={}, info={**info, "rows": 0, "quarantined": 0})


def _sum(report: Admitted) -> int:
    return sum(report.quarantined.values())


def _check_identity(name: str, source: SourceTable, row: LedgerRow | None) -> None:
    """The source must be the very table that was admitted before: a new one under its path has versions of its own."""
    known = row.info.get("source_id") if row else None
    if known is not None and known != source.identity():
        raise SweepAreaError(
            f"{name}: its source {source.uri} is not the table that was admitted before: it was removed and made anew"
            " (its Delta table id has changed), so its versions do not go on where the old ones ended. Nothing was"
            " admitted. Restore the old table, or declare a new stream over this one."
        )


def _check_columns(application: Application, name: str, source: SourceTable) -> None:
    """The source must still have the columns and types that were admitted first, and those that the declaration
    names.
    """
    found = dict(source.spark_schema())
    application.stream_time(name, found)
    admitted = DeltaLog(application.layout.admitted(name))
    if not admitted.exists():
        return
    for field_ in admitted.schema():
        if field_.name.startswith("__"):
            continue
        kind = frames.spark_type(field_.type)
        if found.get(field_.name) != kind:
            raise SweepAreaError(
                f"Stream {name}: column {field_.name} was {kind} when the stream was first admitted and is"
                f" {found.get(field_.name, 'missing')} in its source now. Nothing was admitted. Restore the column in"
                " the source, or declare a new stream over the changed table."
            )
    added = [c for c in found if c not in admitted.schema().names]
    if added:
        raise SweepAreaError(
            f"Stream {name}: its source has gained the column(s) {', '.join(added)}. Nothing was admitted, so that no"
            " value is silently dropped. Declare a new stream over the changed table, or remove the columns again."
        )


def _admit_version(
    application: Application,
    name: str,
    registration: str,
    source: SourceTable,
    version: int,
    spark: SparkSession,
    report: Admitted,
) -> None:
    declared = application.catalog.streams[name]
    rows: pa.Table = source.snapshot(version) if version == 0 else source.changes(version)
    if "__n" not in rows.column_names:
        rows = rows.append_column("__n", pa.array([1] * rows.num_rows, pa.int64()))
    rows = _only_added(name, declared, rows, version, report)
    columns = list(source.schema())
    types = {f.name: frames.spark_type(f.type) for f in columns}
    domain = application.stream_time(name, dict(types))
    judged = _judge(spark, rows, declared, domain, *application.source_expressions(name))
    instant = _own_instant(source.commit_time(version), report, domain)
    kept, quarantine, facts = _split(judged, declared, domain, version, instant, report)
    policy = _policy(declared, domain)
    decision = policy.evaluate(report.heartbeat, facts)
    publication = Publication(str(application.data), application.ledger, name, "stream", registration)
    attempt = publication.begin()
    seq = next_seq(publication)
    admitted_schema = pa.schema([*columns, ("__tick", pa.int64()), ("__seq", pa.int64()), ("__n", pa.int64())])
    _stage(
        application.layout.admitted(name), admitted_schema, kept, seq, attempt, publication, f"admitted stream {name}"
    )
    _stage(
        application.layout.quarantine(name),
        QUARANTINE_SCHEMA,
        quarantine,
        seq,
        attempt,
        publication,
        f"quarantine of {name}",
    )
    report.versions += 1
    report.rows += kept.num_rows
    report.heartbeat, report.source_version = decision.heartbeat, version
    publication.commit(
        committed=decision.heartbeat,
        pins={},
        info={
            "definition": application.fingerprint(name),
            "source_version": version,
            "source_id": source.identity(),
            "instant": instant,
            "chronon": domain.chronon if domain.kind == "TIMESTAMP" else 0,
            "rows": kept.num_rows,
            "quarantined": quarantine.num_rows,
            "clamped": decision.clamped,
        },
    )


def _only_added(name: str, declared: CreateStream, rows: pa.Table, version: int, report: Admitted) -> pa.Table:
    """What a version adds. Rows that it takes back were elements: FAIL refuses the version, IGNORE keeps them."""
    added = rows.filter(pc.greater(rows.column("__n"), 0))
    removed = rows.num_rows - added.num_rows
    if removed and declared.on_source_change == "fail":
        raise SweepAreaError(
            f"Stream {name}: version {version} of its source removes or changes {removed} rows, and the stream is"
            " declared ON SOURCE CHANGE FAIL (the default): an element that was admitted is not taken back. Nothing of"
            " this version was admitted, and none after it will be. Ways out: declare ON SOURCE CHANGE IGNORE (removed"
            " rows stay elements, added ones are admitted; what was admitted so far stays as it is), or declare a new"
            " stream over a table that is only appended to."
        )
    report.ignored += removed
    return added


def next_seq(publication: Publication) -> int:
    """The sequence number that this publication's commit will have."""
    return (publication.previous.seq if publication.previous else 0) + 1


def _stage(
    path: str, schema: pa.Schema, rows: pa.Table, seq: int, attempt: str, publication: Publication, description: str
) -> None:
    log = DeltaLog(path)
    log.create(schema, name=path.rsplit("/", 1)[-1], description=description, configuration=None)
    if not rows.num_rows:
        return
    stamped = rows.set_column(rows.column_names.index("__seq"), "__seq", pa.array([seq] * rows.num_rows, pa.int64()))
    table = stamped.select(schema.names).cast(schema)
    if "__tick" in schema.names:
        table = table.sort_by("__tick")  # narrow ranges per row group, and files that prune
    publication.stage(path, adds=[write_file(table, path, attempt, f"seq-{seq}")], removes=[])


def _judge(
    spark: SparkSession,
    rows: pa.Table,
    declared: CreateStream,
    domain: TimeDomain,
    heartbeat: str | None,
    constraints: list[str],
) -> pa.Table:
    """Rows with what only Spark SQL can say of them: the instant, the policy's expression, each constraint."""
    instant = frames.quoted(declared.timestamp_by)
    extra = [f"{_ticks(instant, domain)} AS __tick", f"{_micros_or_tick(heartbeat, domain)} AS __heartbeat"]
    extra += [f"coalesce(({sql}), TRUE) AS __check_{i}" for i, sql in enumerate(constraints)]
    return frames.from_arrow(spark, rows).selectExpr("*", *extra).toArrow()


def _ticks(column: str, domain: TimeDomain) -> str:
    if domain.kind == "BIGINT":
        return column
    micros = f"unix_micros(CAST({column} AS TIMESTAMP))"
    c = domain.chronon
    return micros if c == 1 else f"(({micros} - pmod({micros}, {c}L)) DIV {c}L)"


def _micros_or_tick(sql: str | None, domain: TimeDomain) -> str:
    if sql is None:
        return "CAST(NULL AS BIGINT)"
    return f"CAST(({sql}) AS BIGINT)" if domain.kind == "BIGINT" else f"unix_micros(CAST(({sql}) AS TIMESTAMP))"


def _split(
    judged: pa.Table, declared: CreateStream, domain: TimeDomain, version: int, instant: int, report: Admitted
) -> tuple[pa.Table, pa.Table, policies.VersionFacts]:
    """Elements, quarantined rows with the first reason that applies, and what the policy is told."""
    tick = judged.column("__tick")
    tests: list[tuple[str, Any]] = [(f"timestamp column {declared.timestamp_by} is NULL", pc.is_null(tick))]
    outside = pc.or_(pc.less(tick, MIN_TICK), pc.greater(tick, MAX_TICK))
    tests.append(("timestamp is outside the time domain of [-2^62, 2^62] ticks", outside))
    if domain.kind == "TIMESTAMP":
        ahead = DAY_US if declared.max_ahead is None else declared.max_ahead
        latest = (instant + ahead) // domain.chronon
        tests.append(
            (
                f"timestamp lies more than MAX AHEAD ({dt.timedelta(microseconds=ahead)}) after its source's commit",
                pc.greater(tick, latest),
            )
        )
    for i, constraint in enumerate(declared.constraints):
        violated = pc.invert(judged.column(f"__check_{i}"))
        count = pc.sum(violated).as_py() or 0
        if not count:
            continue
        if constraint.on_violation == "fail":
            sample = (
                judged.filter(violated).slice(0, 1).select([c for c in judged.column_names if not c.startswith("__")])
            )
            raise SweepAreaError(
                f"Stream {declared.name}, version {version} of its source: constraint {constraint.name} EXPECT"
                f" ({constraint.expression.text}) is violated by {count} rows, and ON VIOLATION FAIL UPDATE admits"
                f" nothing of such a version. First row: {json.dumps(sample.to_pylist()[0], default=str)}. Correct the"
                " source, or change what happens on violation to QUARANTINE ROW or WARN."
            )
        if constraint.on_violation == "warn":
            report.warned[constraint.name] = report.warned.get(constraint.name, 0) + count
        else:
            tests.append((f"constraint {constraint.name} is violated: {constraint.expression.text}", violated))
    if report.heartbeat is not None:
        tests.append(
            (
                f"late: at or below the heartbeat {instant_text(domain, report.heartbeat)} (tick {report.heartbeat})",
                pc.less_equal(tick, report.heartbeat),
            )
        )
    reason: Any = pa.nulls(judged.num_rows, pa.string())
    for text, test in tests:
        holds = pc.and_(pc.is_null(reason), pc.fill_null(test, False))
        reason = pc.if_else(holds, text, reason)
    good = pc.is_null(reason)
    kept, bad, reasons = judged.filter(good), judged.filter(pc.invert(good)), pc.drop_null(reason)
    for text in reasons.to_pylist():
        key = "late: at or below the heartbeat" if text.startswith("late") else text
        report.quarantined[key] = report.quarantined.get(key, 0) + 1
    stamp = pa.array([0] * kept.num_rows, pa.int64())
    kept = kept.drop_columns([c for c in kept.column_names if c.startswith("__check_")]).append_column("__seq", stamp)
    facts = policies.VersionFacts(
        max_tick=pc.max(kept.column("__tick")).as_py(),
        max_expression_tick=_expression_tick(pc.max(kept.column("__heartbeat")).as_py(), domain),
        commit_time=instant,
        read_time=time.time_ns() // 1000,
    )
    return kept, _quarantined(bad, reasons, declared.name, version), facts


def _expression_tick(value: int | None, domain: TimeDomain) -> int | None:
    if value is None or domain.kind == "BIGINT":
        return value
    return policies.last_tick_at(value, domain.chronon)


def _quarantined(bad: pa.Table, reasons: Any, stream: str, version: int) -> pa.Table:
    columns = [c for c in bad.column_names if not c.startswith("__")]
    shown = json_values.rows(bad.select(columns), range(len(columns)))
    texts = [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, allow_nan=False) for row in shown]
    count = bad.num_rows
    return pa.table(
        [
            pa.array([stream] * count, pa.string()),
            pa.array([version] * count, pa.int64()),
            pa.array([0] * count, pa.int64()),
            reasons,
            bad.column("__tick"),
            pa.array(texts, pa.string()),
        ],
        schema=QUARANTINE_SCHEMA,
    )


def _own_instant(commit_time: int, report: Admitted, domain: TimeDomain) -> int:
    """c(v), a version's own instant in microseconds: clocks may go back, the order of versions and heartbeats does
    not.
    """
    candidates = [commit_time, report.instant]
    if domain.kind == "TIMESTAMP" and report.heartbeat is not None:
        candidates.append((report.heartbeat + 1) * domain.chronon)
    report.instant = max(candidates)
    return report.instant


def _policy(declared: CreateStream, domain: TimeDomain) -> policies.Policy:
    spec = declared.heartbeat
    if spec is not None:
        return policies.make_policy(spec.kind, lag=spec.lag, chronon=domain.chronon)
    raise SweepAreaError(
        f"Stream {declared.name} ({declared.place}) declares no HEARTBEAT, so no query over it would ever be woken. Add"
        f" one, for example HEARTBEAT FOR {declared.timestamp_by} AS {declared.timestamp_by} - INTERVAL 10 MINUTES."
    )


def _pin(application: Application, name: str, registration: str, pinned: bool) -> Admitted:
    """Copies a static relation's snapshot. It stays pinned: what the source becomes later does not change results."""
    row = application.ledger.head().get(name)
    if pinned and row is not None:
        return Admitted(name, heartbeat=row.committed, source_version=row.info["source_version"])
    source = application.source_table(name)
    refuse_reserved(name, [column for column, _ in source.spark_schema()])
    version = source.version()
    rows = source.snapshot(version)
    names = [c for c in rows.column_names if c != "__n"]
    count = rows.num_rows
    rows = rows.select(names)
    for column, value in (("__tick", MIN_TICK), ("__seq", 0), ("__n", 1)):
        rows = rows.append_column(column, pa.array([value] * count, pa.int64()))
    publication = Publication(str(application.data), application.ledger, name, "relation", registration)
    attempt = publication.begin()
    _stage(
        application.layout.admitted(name),
        rows.schema,
        rows,
        next_seq(publication),
        attempt,
        publication,
        f"relation {name}",
    )
    info = {
        "definition": application.fingerprint(name),
        "source_version": version,
        "source_id": source.identity(),
        "rows": count,
    }
    publication.commit(committed=MAX_TICK, pins={}, info=info)
    return Admitted(name, 1, count, heartbeat=MAX_TICK, source_version=version)
