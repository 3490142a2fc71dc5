"""Admitting a relation that changes: HISTORY BY, CHANGES BY, CHANGE DATA FEED. A version of the source is one commit.

A version's changes go into the relation's log of changes (``change_table.py``). What the heartbeat behind the version
makes of the log (``change_log.py``) is admitted: rows of the record, signed, each at its instant. So a query that reads
up to the heartbeat sees contents that are settled, and what comes later at or below it is a correction.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.syntax.statements import HeartbeatKind
from sweeparea.heartbeats import policies
from sweeparea.heartbeats.policies import HeartbeatDecision
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.ticks import MIN_TICK
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging import quarantine
from sweeparea.spark_jobs.admission.judging.checks import check_identity
from sweeparea.spark_jobs.admission.judging.copies import copies
from sweeparea.spark_jobs.admission.judging.judge import condition_sql, evaluated, heartbeat_sql
from sweeparea.spark_jobs.admission.judging.policy import policy_of
from sweeparea.spark_jobs.admission.judging.progress import Progress, counted
from sweeparea.spark_jobs.admission.judging.report import Admitted
from sweeparea.spark_jobs.admission.judging.stage import quarantine_rows
from sweeparea.spark_jobs.admission.judging.state import StreamState
from sweeparea.spark_jobs.admission.relation import change_log
from sweeparea.spark_jobs.admission.relation.change_log import BELOW_ZERO, NO_ROW
from sweeparea.spark_jobs.admission.relation.change_table import VERSION, Leaving, RelationStage
from sweeparea.spark_jobs.admission.relation.history_events import FROM, TICK, TO
from sweeparea.spark_jobs.admission.relation.relation_version import Known, Told, VersionReader, log_rows, ticks_of
from sweeparea.spark_jobs.admission.sources.source_schema import check_chars
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.declarations.relation_source import RelationSource
from sweeparea.spark_jobs.declarations.sources import CHANGES
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.errors import readable
from sweeparea.tables.errors import VersionGone
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.info import SourceInfo
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from sweeparea.tables.sources.source import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]
NEVER = MIN_TICK - 1
"""The heartbeat of a relation that has none yet, where a tick is needed."""


class RelationAdmission:
    """One run of admit over a relation that changes: all versions of its source that the ledger does not have yet."""

    def __init__(
        self,
        application: Application,
        name: str,
        registration: str,
        spark: SparkSession | None = None,
        tell: Tell = lambda text: None,
        baseline: bool = False,
    ) -> None:
        self.application, self.name, self.registration = application, name, registration
        self.spark, self.tell, self.baseline = spark, tell, baseline
        self.declared = application.catalog.relations[name]
        self.table: SourceTable = application.sources.table(name)
        self.report = Admitted(name)
        self.progress = Progress(name, tell)

    def run(self) -> Admitted:
        """Takes the versions in order, one commit each, and then the heartbeat of what was read."""
        application, name, report = self.application, self.name, self.report
        read_time = time.time_ns() // 1000
        newest = self.table.version()
        self.reader = self.reading()
        check_identity(name, self.table, application.ledger.head().get(name))
        check_relation_columns(application, name, self.table)
        while True:
            publication, attempt, state = self.begin()
            report.heartbeat, report.source_version = state.heartbeat, state.source_version
            version = state.source_version + 1
            if version > newest:
                break
            self.progress.begins(version)
            try:
                try:
                    self._version(publication, attempt, state, version, newest, self.table.changes(version))
                except VersionGone:
                    # nothing was committed; what a first run cannot read any more is in the table or gone for good
                    if publication.previous is not None and not self.baseline:
                        raise
                    self.tell(f"{name}: versions {version} to {newest} are gone in part: taken as one, by difference")
                    attempt, state = publication.begin(), StreamState.of(publication.previous)
                    rows = self.table.snapshot(newest)
                    rows = rows.append_column("__n", pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
                    known = None if publication.previous is None else self._known(publication, attempt)
                    self._version(publication, attempt, state, newest, newest, rows, known)
            except Exception as error:
                publication.refuse_overtaken()
                raise readable(error, f"relation {name}, version {version} of its source") from error
        decision = self._read_up_to(state, read_time)
        if decision is not None and (decision.heartbeat, decision.clamped) != (state.heartbeat, 0):
            self._move(publication, attempt, state, decision)
        return report

    def reading(self) -> VersionReader:
        """How rows of the source are read; raises all faults of the declaration."""
        self.source: RelationSource = self.application.sources.relation(self.name)
        expressions = self.application.sources.relation_expressions(self.source)
        evaluate = _Evaluator(self, expressions.heartbeat)
        return VersionReader(self.declared, self.source, expressions.constraints, evaluate)

    def move(self, decide: Callable[[int | None], HeartbeatDecision]) -> int | None:
        """Moves the heartbeat without a version, to what ``decide`` makes of the one before; returns that."""
        self.source = self.application.sources.relation(self.name)
        publication, attempt, state = self.begin()
        before = state.heartbeat
        self._move(publication, attempt, state, decide(before))
        return before

    def begin(self) -> tuple[Publication, str, StreamState]:
        """A new commit, and what it starts from."""
        application = self.application
        publication = Publication(
            str(application.data), application.ledger, self.name, NameKind.RELATION, self.registration
        )
        attempt = publication.begin()
        if publication.previous is not None and not DeltaLog(application.layout.state(self.name, CHANGES)).exists():
            raise SweepAreaError(
                f"The log of changes of {self.name} ({application.layout.state(self.name, CHANGES)}) is missing, though"
                f" {self.name} has been admitted before. Restore the data folder {application.data} from a backup of"
                f" one moment, or run `{application.command('drop', self.name)}` (after the queries that read it) and"
                " admit it anew."
            )
        return publication, attempt, StreamState.of(publication.previous)

    # -- a version -----------------------------------------------------------------------------------------------------

    def _known(self, publication: Publication, attempt: str) -> Known:
        """All that the log and the quarantine have."""
        stage = self.stage(publication, attempt)
        columns = [f for f in stage.changes.schema if not f.name.startswith("__")]
        held = quarantine.held(self.application, self.name, stage.quarantine_version).rows
        late = held.filter(pc.starts_with(held.column("__reason"), "late:"))
        rows = keys.canonical(quarantine.typed(late, columns, self.name))
        for name in (TICK, "__n"):
            rows = rows.append_column(name, late.column(name))
        log = scan.plan(stage.changes.log).read([*(f.name for f in columns), TICK, "__n"])
        return Known(pa.concat_tables([log, rows.cast(log.schema)]), held.column("__row").combine_chunks())

    def _version(
        self,
        publication: Publication,
        attempt: str,
        state: StreamState,
        version: int,
        newest: int,
        rows: pa.Table,
        known: Known | None = None,
    ) -> None:
        """One version, or with ``known`` all that the source holds as one: what it tells becomes one commit."""
        report = self.report
        commit_time = self.table.commit_time(version)
        state.commit_time = max(commit_time, state.commit_time)
        state.instant = state.next_instant(commit_time, self.source.time)
        told = self.reader.read(rows, version, state.heartbeat, state.instant, state.commit_time, known)
        decision = self._decision(told, state, version)
        stage = self.stage(publication, attempt)
        counts: Counter[str] = Counter(told.outcome.counts)
        for rows in told.kept_out:
            stage.keep_out(rows)
        new = told.changes.append_column(VERSION, pa.repeat(pa.scalar(version, pa.int64()), told.changes.num_rows))
        counts += self.settle(stage, state, new, decision.heartbeat, told.withdrawn)
        state.source_version = version
        self.commit(stage, state, decision, counts)
        report.versions += 1
        report.rows += counts["rows"]
        report.late += counts["repaired"]
        report.quarantined += told.outcome.reasons
        report.warned += told.outcome.warned
        what = f"{counted(report.rows, 'change')} admitted, {report.quarantined.total():,} quarantined"
        self.progress.taken(version, newest, what)

    def _decision(self, told: Told, state: StreamState, version: int) -> HeartbeatDecision:
        if self.source.contents == "feed":
            return HeartbeatDecision(state.heartbeat)
        elements = pa.concat_tables(told.outcome.elements) if told.outcome.elements else None
        policy = policy_of(self.application, cast(Any, self.declared), self.source.time, version, elements)
        return policy.evaluate(state.heartbeat, told.outcome.facts(state, state.instant))

    def _read_up_to(self, state: StreamState, read_time: int) -> HeartbeatDecision | None:
        """The heartbeat when all that the source had at ``read_time`` has been taken: of a feed the time at which its
        log was read, of a clock that less the lag.
        """
        spec = self.declared.heartbeat
        if self.source.contents == "feed":
            return policies.advance(state.heartbeat, read_time)
        if spec is not None and spec.kind == HeartbeatKind.CLOCK:
            return policies.FromClock(spec.lag, self.source.time.chronon).published(state.heartbeat, read_time)
        return None

    def _move(self, publication: Publication, attempt: str, state: StreamState, decision: HeartbeatDecision) -> None:
        stage = self.stage(publication, attempt)
        none = stage.changes.schema.empty_table().drop_columns([change_log.HASH, "__seq"])
        refused = self.settle(stage, state, none, decision.heartbeat)
        self.commit(stage, state, HeartbeatDecision(decision.heartbeat, decision.clamped, state.policy), refused)

    # -- what it comes to ----------------------------------------------------------------------------------------------

    def stage(self, publication: Publication, attempt: str) -> RelationStage:
        """Where a commit's rows go."""
        kept = DeltaLog(publication.layout.state(self.name, CHANGES))
        columns = kept.schema() if kept.exists() else self.table.schema()
        fields = [pa.field(f.name, f.type) for f in columns if not f.name.startswith("__")]
        record = [f for f in fields if f.name in self.source.record]
        return RelationStage(publication, attempt, record, fields)

    def settle(
        self,
        stage: RelationStage,
        state: StreamState,
        new: pa.Table,
        heartbeat: int | None,
        withdrawn: pa.Table | None = None,
        released: Mapping[str, np.ndarray] | None = None,
    ) -> Counter[str]:
        """Stages what the log with the ``new`` changes comes to at a heartbeat; returns counts of what is refused and
        of what leaves the quarantine. ``withdrawn``: rows of the source that are gone, kept out before; ``released``:
        as of ``RelationStage.let_go``.
        """
        source, names = self.source, [c for c in stage.changes.schema.names if c != "__seq"]
        new = change_log.hashed(new, source.record, source.keyed).select(names)
        new = new.cast(pa.schema([stage.changes.schema.field(name) for name in names]))
        h0 = NEVER if state.heartbeat is None else state.heartbeat
        h1 = NEVER if heartbeat is None else heartbeat
        done = change_log.advance(stage.changes, new, source.record, h0, h1, source.keyed)
        stage.admit(done.changes)
        stage.note(new)
        if done.changes.num_rows:
            state.corrected(stage.seq, pc.min(done.changes.column(TICK)).as_py())
        counts: Counter[str] = Counter()
        reason = BELOW_ZERO if source.keyed is None else NO_ROW
        if done.refused.num_rows:
            counts["quarantined"] = copies(done.refused)
            self.report.quarantined[reason] += counts["quarantined"]
            stage.keep_out(self._refused(done.refused, reason))
        leaving = [Leaving(self._refused(done.revived, reason), True)] if done.revived.num_rows else []
        if withdrawn is not None and withdrawn.num_rows:
            leaving.append(Leaving(self._shown(withdrawn, ""), False, self.source.contents == "feed"))
        counts["cancelled"] = stage.let_go(leaving, released)
        self.report.cancelled += counts["cancelled"]
        return counts

    def _shown(self, rows: pa.Table, reason: str) -> pa.Table:
        """Rows as the quarantine holds them."""
        names = [name for name, _ in self.source.columns]
        shown = log_rows(rows.select([*names, TICK, "__n"]), self.source)
        return quarantine_rows(shown, pa.repeat(reason, rows.num_rows), self.name, None)

    def _refused(self, rows: pa.Table, reason: str) -> pa.Table:
        table = self._shown(rows, reason)
        return table.set_column(table.column_names.index(VERSION), VERSION, rows.column(VERSION))

    def commit(
        self, stage: RelationStage, state: StreamState, decision: HeartbeatDecision, counts: Counter[str]
    ) -> None:
        """The commit, with the heartbeat that was decided."""
        counts["clamped"] = decision.clamped
        self.report.clamped += decision.clamped
        state.policy = dict(decision.state)
        more = SourceInfo(
            definition=self.application.registry.fingerprint(self.name),
            source_id=SourceInfo.of(state.info).source_id or self.table.identity(),
            chronon=self.source.time.clock,
            chars=self.application.sources.char_columns(self.name) or None,
        )
        stage.commit(decision.heartbeat, state.as_info(counts, more))
        self.report.heartbeat, self.report.source_version = decision.heartbeat, state.source_version


class _Evaluator:
    """What Spark SQL has to say of a source's rows; Spark is asked only where there is more to say than a column."""

    def __init__(self, run: RelationAdmission, heartbeat: str | None) -> None:
        self.spark, self.source = run.spark, run.source
        self.instants = (FROM, TO) if self.source.contents == "history" else (TICK,)
        plain = {frames.quoted(name): name for name, _ in self.source.columns}
        self.column = None if heartbeat is None else plain.get(heartbeat)
        self.expressions = {
            f"__check_{i}": condition_sql(e.sql)
            for i, e in enumerate(run.application.sources.relation_expressions(self.source).constraints)
        }
        if heartbeat is not None and self.column is None:
            self.expressions["__heartbeat"] = heartbeat_sql(heartbeat, self.source.time)

    def __call__(self, rows: pa.Table) -> pa.Table:
        if self.expressions:
            assert self.spark is not None, "only plain columns can be read without Spark"
            rows = evaluated(self.spark, rows, self.expressions)
        for name, column in zip(self.instants, self.source.instants, strict=False):
            rows = rows.append_column(name, ticks_of(rows.column(column), self.source.time))
        if self.column is not None:
            return rows.append_column("__heartbeat", ticks_of(rows.column(self.column), self.source.time))
        if "__heartbeat" not in rows.column_names:
            rows = rows.append_column("__heartbeat", pa.nulls(rows.num_rows, pa.int64()))
        return rows


def check_relation_columns(application: Application, name: str, source: SourceTable) -> None:
    """The source must still have the columns and types with which it was first admitted."""
    known, found = dict(application.sources.relation(name).columns), dict(source.spark_schema())
    for column, kind in known.items():
        if found.get(column) != kind:
            raise SweepAreaError(
                f"Relation {name}: column {column} was {kind} when the relation was first admitted and is"
                f" {found.get(column, 'missing')} in its source now. Nothing was admitted. Restore the column in the"
                " source, or declare a new relation over the changed table."
            )
    check_chars(application, name, source)
    added = [c for c in found if c not in known]
    if added:
        raise SweepAreaError(
            f"Relation {name}: its source has gained the column(s) {', '.join(added)}. Nothing was admitted, so that no"
            " value is silently dropped. Declare a new relation over the changed table, or remove the columns again."
        )
