"""Admitting a relation that changes: HISTORY BY, CHANGES BY, CHANGE DATA FEED. A version of the source is one commit.

A version's changes go into the relation's log of changes (``change_table.py``). What the heartbeat behind the version
makes of the log (``change_log.py``) is admitted: rows of the record, signed, each at its instant. So a query that reads
up to the heartbeat sees contents that are settled, and what comes later at or below it is a correction.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
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
from sweeparea.spark_jobs.admission.judging import quarantine, units
from sweeparea.spark_jobs.admission.judging.checks import check_identity
from sweeparea.spark_jobs.admission.judging.copies import added_and_removed, copies
from sweeparea.spark_jobs.admission.judging.judge import condition_sql, evaluated, heartbeat_sql
from sweeparea.spark_jobs.admission.judging.outcome import Outcome
from sweeparea.spark_jobs.admission.judging.parts import by_keys, shelves
from sweeparea.spark_jobs.admission.judging.policy import policy_of, set_back
from sweeparea.spark_jobs.admission.judging.progress import Progress, counted
from sweeparea.spark_jobs.admission.judging.report import Admitted
from sweeparea.spark_jobs.admission.judging.stage import quarantine_rows
from sweeparea.spark_jobs.admission.judging.state import StreamState
from sweeparea.spark_jobs.admission.judging.verdicts import accepting, judged, keep_refused
from sweeparea.spark_jobs.admission.relation import change_log
from sweeparea.spark_jobs.admission.relation.change_log import BELOW_ZERO, NO_ROW
from sweeparea.spark_jobs.admission.relation.change_table import VERSION, Leaving, RelationStage
from sweeparea.spark_jobs.admission.relation.history_events import FROM, TICK, TO
from sweeparea.spark_jobs.admission.relation.log_parts import in_parts
from sweeparea.spark_jobs.admission.relation.relation_version import Known, VersionReader, log_rows, ticks_of
from sweeparea.spark_jobs.admission.sources.source_rows import signed_rows
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
from sweeparea.tables.publication.ledger import now_micros
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
        self.scratch = f"{application.data}/_sweeparea/spill"
        self.declared = application.catalog.relations[name]
        self.table: SourceTable = application.sources.table(name)
        self.report = Admitted(name)
        self.progress = Progress(name, tell)

    def run(self) -> Admitted:
        """Takes the versions in order, one commit each, and then the heartbeat of what was read."""
        application, name, report = self.application, self.name, self.report
        read_time = now_micros()
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
                    rows = signed_rows(self.spark, self.table, version, self.scratch)
                    self._version(publication, attempt, state, version, newest, rows)
                except VersionGone:
                    # nothing was committed; what a first run cannot read any more is in the table or gone for good
                    if publication.previous is not None and not self.baseline:
                        raise
                    self.tell(f"{name}: versions {version} to {newest} are gone in part: taken as one, by difference")
                    attempt, state = publication.begin(), StreamState.of(publication.previous)
                    rows = self.table.snapshot(newest)
                    rows = rows.append_column("__n", pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
                    known = None if publication.previous is None else self._known(publication, attempt)
                    self._version(publication, attempt, state, newest, newest, [rows], known)
            except Exception as error:
                publication.refuse_overtaken()
                keep_refused(publication, attempt, version, error)
                raise readable(error, f"relation {name}, version {version} of its source") from error
        decision = self._read_up_to(state, read_time)
        if decision is not None and (back := set_back(self.source.time, decision.heartbeat, read_time, self._lag())):
            self.tell(f"{name}: {back}")
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
        before = publication.previous
        # a row without a version says no more than what was accepted before the first
        known = before is not None and before.of_source.source_version is not None
        if known and not DeltaLog(application.layout.state(self.name, CHANGES)).exists():
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
        rows: Iterable[pa.Table],
        known: Known | None = None,
    ) -> None:
        """One version, or with ``known`` all that the source holds as one table: what it tells becomes one commit."""
        report = self.report
        commit_time = self.table.commit_time(version)
        state.commit_time = max(commit_time, state.commit_time)
        state.instant = state.next_instant(commit_time, self.source.time)
        keyed, outcome = self.source.keyed, Outcome()
        constraints = accepting(publication.previous, version)(self.declared.constraints)
        reader = replace(self.reader, declared=replace(self.declared, constraints=constraints))
        parts = rows
        if known is None:
            group = self.source.record if keyed is None else keyed.key
            parts = by_keys(self._appended(rows, version), group, self.scratch)
        with shelves(self.scratch, 3) as (changes, kept_out, withdrawn):
            for part in parts:
                told = reader.read(part, version, state.heartbeat, state.instant, state.commit_time, known)
                number = pa.repeat(pa.scalar(version, pa.int64()), told.changes.num_rows)
                changes.put(told.changes.append_column(VERSION, number))
                for table in told.kept_out:
                    kept_out.put(table)
                if told.withdrawn is not None:
                    withdrawn.put(told.withdrawn)
                outcome.add(told.outcome)
            decision = self._decision(outcome, state, version)
            stage = self.stage(publication, attempt)
            counts: Counter[str] = Counter(outcome.counts)
            for table in kept_out:
                stage.keep_out(table)
            counts += self.settle(stage, state, changes, decision.heartbeat, withdrawn)
        state.source_version = version
        self.commit(stage, state, decision, counts, outcome)
        report.versions += 1
        report.rows += counts["rows"]
        report.late += counts["repaired"]
        report.quarantined += outcome.reasons
        report.warned += outcome.warned
        what = f"{counted(report.rows, 'change')} admitted, {report.quarantined.total():,} quarantined"
        self.progress.taken(version, newest, what)

    def _appended(self, rows: Iterable[pa.Table], version: int) -> Iterator[pa.Table]:
        """The rows of a version; an error where it takes rows away from a log, which is only appended to."""
        gone = 0
        for table in rows:
            if self.source.contents == "changes":
                gone += copies(added_and_removed(table)[1])
            yield table
        if gone:
            raise self.reader.changed_log(version, gone)

    def _decision(self, outcome: Outcome, state: StreamState, version: int) -> HeartbeatDecision:
        if self.source.contents == "feed":
            return HeartbeatDecision(state.heartbeat)
        elements = pa.concat_tables(outcome.elements) if outcome.elements else None
        policy = policy_of(self.application, cast(Any, self.declared), self.source.time, version, elements)
        return policy.evaluate(state.heartbeat, outcome.facts(state, state.instant))

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

    def _lag(self) -> int:
        return self.declared.heartbeat.lag if self.declared.heartbeat is not None else 0

    def _move(self, publication: Publication, attempt: str, state: StreamState, decision: HeartbeatDecision) -> None:
        stage = self.stage(publication, attempt)
        refused = self.settle(stage, state, (), decision.heartbeat)
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
        new: Iterable[pa.Table],
        heartbeat: int | None,
        withdrawn: Iterable[pa.Table] = (),
        released: Mapping[str, np.ndarray] | None = None,
    ) -> Counter[str]:
        """Stages what the log with the ``new`` changes comes to at a heartbeat; returns counts of what is refused and
        of what leaves the quarantine. ``withdrawn``: rows of the source that are gone, kept out before; ``released``:
        as of ``RelationStage.release``.
        """
        source, counts = self.source, Counter[str]()
        reason = BELOW_ZERO if source.keyed is None else NO_ROW
        h0 = NEVER if state.heartbeat is None else state.heartbeat
        h1 = NEVER if heartbeat is None else heartbeat
        if released:
            stage.release(released)
        for arrived, log in in_parts(stage.changes, self._noted(stage, new), h0, h1, source.keyed, self.scratch):
            done = change_log.advance(log, arrived, source.record, h0, h1, source.keyed)
            stage.admit(done.changes)
            if done.changes.num_rows:
                state.corrected(stage.seq, pc.min(done.changes.column(TICK)).as_py())
            if done.refused.num_rows:
                refused = copies(done.refused)
                counts["quarantined"] += refused
                self.report.quarantined[reason] += refused
                stage.keep_out(self._refused(done.refused, reason))
            if done.revived.num_rows:
                counts["cancelled"] += stage.let_go(Leaving(self._refused(done.revived, reason), True))
        for rows in withdrawn:
            counts["cancelled"] += stage.let_go(Leaving(self._shown(rows, ""), False, source.contents == "feed"))
        self.report.cancelled += counts["cancelled"]
        return counts

    def _noted(self, stage: RelationStage, new: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """New changes as the log has them; they are staged for it."""
        names = [c for c in stage.changes.schema.names if c != "__seq"]
        schema = pa.schema([stage.changes.schema.field(name) for name in names])
        for rows in new:
            noted = change_log.hashed(rows, self.source.record, self.source.keyed).select(names).cast(schema)
            stage.note(noted)
            yield noted

    def _shown(self, rows: pa.Table, reason: str) -> pa.Table:
        """Rows as the quarantine holds them."""
        names = [name for name, _ in self.source.columns]
        shown = log_rows(rows.select([*names, TICK, "__n"]), self.source)
        return quarantine_rows(shown, pa.repeat(reason, rows.num_rows), self.name, None)

    def _refused(self, rows: pa.Table, reason: str) -> pa.Table:
        table = self._shown(rows, reason)
        return table.set_column(table.column_names.index(VERSION), VERSION, rows.column(VERSION))

    def commit(
        self,
        stage: RelationStage,
        state: StreamState,
        decision: HeartbeatDecision,
        counts: Counter[str],
        outcome: Outcome | None = None,
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
        if outcome is not None:
            reasons, warned = outcome.reasons, outcome.warned
            looked_at = counts["rows"] + reasons.total()
            more = judged(more, stage.attempt, self.name, self.declared.constraints, looked_at, reasons, warned)
        if self.declared.expectations:
            columns = [name for name, _ in self.source.columns]
            judging = units.StagedCommit(
                self.application, stage, columns, self.source.time, NameKind.RELATION, state.source_version
            )
            more = judging.judge(self.application.sources.expectations(self.name), more)
        stage.commit(decision.heartbeat, state.as_info(counts, more))
        self.report.heartbeat, self.report.source_version = decision.heartbeat, state.source_version


class _Evaluator:
    """What Spark SQL has to say of a source's rows; Spark is asked only where there is more to say than a column."""

    def __init__(self, run: RelationAdmission, heartbeat: str | None) -> None:
        self.spark, self.source, self.scratch = run.spark, run.source, run.scratch
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
            rows = evaluated(self.spark, rows, self.expressions, self.scratch)
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
