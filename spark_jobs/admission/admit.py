"""Admit: what is new in a source table becomes elements of a stream, version by version; a relation has its own way.

A version of the source is one commit: stage, ledger, apply; of a source that commits often, several small ones that
only add rows are one (``stream/several.py``). What it starts from stands in the ledger row before it, so a run that
dies, or that takes many versions at once, leaves the same tables (law S3).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.cql.syntax.statements import SourceKind
from sweeparea.heartbeats.policies import HeartbeatDecision
from sweeparea.spark_jobs.admission.heartbeat import advance, publish_clock
from sweeparea.spark_jobs.admission.judging import duplicates, units
from sweeparea.spark_jobs.admission.judging.checks import check_identity, check_tables
from sweeparea.spark_jobs.admission.judging.copies import copies, sized
from sweeparea.spark_jobs.admission.judging.judge import evaluated
from sweeparea.spark_jobs.admission.judging.outcome import Outcome
from sweeparea.spark_jobs.admission.judging.parts import by_keys
from sweeparea.spark_jobs.admission.judging.policy import policy_of
from sweeparea.spark_jobs.admission.judging.progress import Progress, counted
from sweeparea.spark_jobs.admission.judging.report import Admitted
from sweeparea.spark_jobs.admission.judging.rules import Rules, expressions
from sweeparea.spark_jobs.admission.judging.stage import Stage
from sweeparea.spark_jobs.admission.judging.state import StreamState
from sweeparea.spark_jobs.admission.judging.verdicts import accepting, judged, keep_refused
from sweeparea.spark_jobs.admission.relation.admit_relation import admit_relation
from sweeparea.spark_jobs.admission.sources import format_source
from sweeparea.spark_jobs.admission.sources.source_baseline import difference
from sweeparea.spark_jobs.admission.sources.source_rows import added_and_removed, apart
from sweeparea.spark_jobs.admission.sources.source_schema import chars_after, check_columns
from sweeparea.spark_jobs.admission.stream import taken_back
from sweeparea.spark_jobs.admission.stream.several import brought, evaluated_each
from sweeparea.spark_jobs.admission.stream.version import Judging, judge_version, saw_reinstated, take_back
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark.errors import readable
from sweeparea.tables.errors import VersionGone
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.info import SourceInfo
from sweeparea.tables.publication.ledger import now_micros
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover
from sweeparea.tables.sources.source import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]


def admit(
    application: Application,
    name: str,
    spark: SparkSession,
    tell: Tell = lambda text: None,
    take_columns: bool = False,
    baseline: bool = False,
) -> Admitted:
    """Admits all versions of a stream's source that are not admitted yet (a static relation: its snapshot, once).

    ``take_columns`` takes over columns that the source has gained; ``baseline`` goes on from the source as it is now
    where versions are gone.
    """
    started = time.monotonic()
    with application.analyzing(spark):
        recover(str(application.data), application.ledger, [name])
        application.source(name)  # there is one of this name
        row = application.ledger.head().get(name)
        registration = application.registry.registration(name, row)
        check_tables(application, name, row)
        if application.source(name).source.kind == SourceKind.FORMAT:
            format_source.land(application, name, spark, tell)
        if name in application.catalog.relations:
            report = admit_relation(application, name, registration, spark, tell, baseline)
        else:
            report = StreamAdmission(application, name, registration, spark, tell, take_columns, baseline).run()
    report.seconds = round(time.monotonic() - started, 3)
    return report


class StreamAdmission:
    """One run of admit over a stream: all versions of its source that the ledger does not have yet."""

    def __init__(
        self,
        application: Application,
        name: str,
        registration: str,
        spark: SparkSession,
        tell: Tell,
        take_columns: bool = False,
        baseline: bool = False,
    ) -> None:
        self.application, self.name, self.registration = application, name, registration
        self.spark, self.tell = spark, tell
        self.take_columns, self.baseline = take_columns, baseline
        self.scratch = f"{application.data}/_sweeparea/spill"
        self.declared = application.stream(name)
        self.source: SourceTable = application.sources.table(name)
        self.report = Admitted(name)
        self.progress = Progress(name, tell)

    def run(self) -> Admitted:
        """Takes the versions in order, one commit each."""
        application, name, report = self.application, self.name, self.report
        self.read_time = now_micros()
        newest = self.source.version()
        check_identity(name, self.source, application.ledger.head().get(name))
        application.sources.stream_time(name, dict(self.source.spark_schema()))
        taken = check_columns(application, name, self.source, self.take_columns)
        if taken:
            self.tell(f"{name}: took over the column(s) {', '.join(taken)}; they are NULL in what was admitted before")
        self.chars = self.source.padded = chars_after(application, name, self.source, taken)
        heartbeat, constraints = application.sources.stream_expressions(name)
        self.expectations = application.sources.expectations(name)
        self.columns = list(self.source.schema())
        domain = application.sources.stream_time(name, dict(self.source.spark_schema()))
        self.rules = Rules.of(self.declared, domain, [f.name for f in self.columns])
        self.expressions = expressions(self.rules, heartbeat, constraints)
        one_by_one = -1  # up to this version: what several of them failed by is told by one of them
        while True:
            publication = Publication(
                str(application.data), application.ledger, name, NameKind.STREAM, self.registration
            )
            attempt = publication.begin()
            state = StreamState.of(publication.previous)
            report.heartbeat, report.source_version = state.heartbeat, state.source_version
            version = state.source_version + 1
            if version > newest:
                break
            self.progress.begins(version)
            # expectations over several rows judge a commit, so that each version has to be one
            together = self.rules.apart is None and not self.expectations
            if version > one_by_one and together and version < newest:
                taken, one_by_one = self._several(publication, attempt, state, newest)
                if taken:
                    continue
            try:
                try:
                    by = self.rules.timestamp
                    with added_and_removed(self.spark, self.source, version, self.scratch, by) as rows:
                        self._version(publication, attempt, state, version, newest, *rows)
                except VersionGone:
                    # nothing was committed; what a first run cannot read any more is in the table or gone for good
                    if publication.previous is not None and not self.baseline:
                        raise
                    self.tell(f"{name}: versions {version} to {newest} are gone in part: taken as one, by difference")
                    attempt, state = publication.begin(), StreamState.of(publication.previous)
                    with self._difference(newest) as signed:
                        self._version(publication, attempt, state, newest, newest, *apart(signed))
            except Exception as error:
                publication.refuse_overtaken()
                keep_refused(publication, attempt, version, error)
                raise readable(error, f"stream {name}, version {version} of its source") from error
        report.heartbeat = publish_clock(application, name, self.registration, self.read_time, self.tell)
        return report

    def _difference(self, version: int) -> AbstractContextManager[Callable[[], Iterator[pa.Table]]]:
        layout = self.application.layout
        admitted, kept_out = DeltaLog(layout.admitted(self.name)), DeltaLog(layout.quarantine(self.name))
        return difference(self.spark, self.source, version, admitted, kept_out, self.scratch, self.rules.timestamp)

    def _several(self, publication: Publication, attempt: str, state: StreamState, newest: int) -> tuple[int, int]:
        """The versions after ``state`` that can be one commit, if they are at least two. Returns how many it took, and
        up to which version they have to be taken one by one: from one that fails on, which then says why.
        """
        begun = state.source_version + 1
        several = brought(self.source, begun, newest)
        if len(several) < 2:
            return 0, begun
        last = several[-1].version
        total, done = Counter[str](), list[tuple[Counter[str], Outcome]]()
        stage = Stage(publication, attempt, self.columns, gathers=True)
        failed = -1
        try:
            judged_rows = evaluated_each(several, self._evaluate)
        except Exception:
            return 0, last
        for each, rows in zip(several, judged_rows, strict=True):
            after, good, bad = state.copy(), list[pa.Table](), list[pa.Table]()
            seq = stage.seq + 1 if done else stage.seq
            try:
                after.follow(each.commit_time, self.rules.domain)
                rules = self.rules.with_constraints(accepting(publication.previous, each.version))
                judging = Judging(rules, after, each.version, after.commit_time, lambda evaluated: evaluated)
                outcome = judge_version(judging, [rows] if rows.num_rows else [], good.append, bad.append)
                counts = self._moved(after, each.version, seq, outcome, Counter(outcome.counts))
            except Exception:
                failed = each.version
                break
            stage.seq, state = seq, after
            for part in good:
                stage.admit(part)
            for part in bad:
                stage.keep_out(part)
            total.update(counts)
            done.append((counts, outcome))
        if not done:
            return 0, failed
        together = Outcome()
        for _, outcome in done:
            together.add(outcome)
        self._commit(stage, attempt, state, total, together)
        for counts, outcome in done:
            self._count(counts, outcome)
        self._taken(state.source_version, newest, len(done))
        return len(done), failed

    def _version(
        self, publication: Publication, attempt: str, state: StreamState, version: int, newest: int,
        added: Iterable[pa.Table], removed: Iterable[pa.Table],
    ) -> None:  # fmt: skip
        """One version, or all up to it as one: the rows that it added and those that it removed become one commit."""
        rules, before = self.rules.with_constraints(accepting(publication.previous, version)), state.heartbeat
        state.follow(self.source.commit_time(version), rules.domain)
        # rows of different keys make each other no duplicates
        added = sized(added) if rules.apart is None else by_keys(added, rules.duplicate_by, self.scratch)
        stage = Stage(publication, attempt, self.columns, came=rules.remembers)
        counts: Counter[str] = Counter()
        lookup = None
        if rules.apart is not None:
            lookup = partial(duplicates.kept_rows, stage, rules.duplicate_by, within=rules.apart)
        judging = Judging(rules, state, version, state.commit_time, self._evaluate, lookup)
        outcome = Outcome()
        self._removed(stage, judging, removed, counts, outcome)
        judging = replace(judging, corrects=counts["taken_back"] > 0)
        told = partial(self.progress.reading, version, newest)
        judge_version(judging, added, stage.admit, stage.keep_out, told, outcome=outcome)
        counts.update(outcome.counts)
        counts = self._moved(state, version, stage.seq, outcome, counts)
        judge = self._expected(stage, state, version, outcome, before)
        self._commit(stage, attempt, state, counts, outcome, judge)
        self._count(counts, outcome)
        self._taken(version, newest, 1)

    def _moved(
        self, state: StreamState, version: int, seq: int, outcome: Outcome, counts: Counter[str]
    ) -> Counter[str]:
        """The state after a version whose rows came to ``outcome``: its heartbeat, by the policy. Returns ``counts``
        with the heartbeat's.
        """
        decision = self._decision(outcome, state, version)
        counts["clamped"] = decision.clamped
        state.corrected(seq, outcome.least_tick)
        state.source_version, state.policy, state.heartbeat = version, dict(decision.state), decision.heartbeat
        return counts

    def _commit(
        self, stage: Stage, attempt: str, state: StreamState, counts: Counter[str], outcome: Outcome,
        judge: Callable[[SourceInfo], SourceInfo] = lambda info: info,
    ) -> None:  # fmt: skip
        """One commit of what is staged, with the verdict on what its rows came to; ``judge`` adds that of expectations
        over several rows.
        """
        more = SourceInfo(
            definition=self.application.registry.fingerprint(self.name),
            source_id=self.source.identity(),
            chronon=self.rules.domain.clock,
            chars=self.chars or None,
        )
        looked_at, constraints = counts["rows"] + outcome.reasons.total(), self.declared.constraints
        more = judged(more, attempt, self.name, constraints, looked_at, outcome.reasons, outcome.warned)
        stage.commit(state.heartbeat, state.as_info(counts, judge(more)))

    def _expected(
        self, stage: Stage, state: StreamState, version: int, outcome: Outcome, before: int | None
    ) -> Callable[[SourceInfo], SourceInfo]:
        """Judges expectations over several rows of a version, after a heartbeat ``before``."""

        def judge(info: SourceInfo) -> SourceInfo:
            if not self.expectations:
                return info
            return units.StagedCommit(
                self.application, stage, list(self.rules.columns), self.rules.domain, NameKind.STREAM, version,
                state.instant, outcome.max_tick, before, state.heartbeat,
            ).judge(self.expectations, info)  # fmt: skip

        return judge

    def _taken(self, version: int, newest: int, versions: int) -> None:
        report = self.report
        report.versions += versions
        what = f"{counted(report.rows, 'row')} admitted, {report.quarantined.total():,} quarantined"
        self.progress.taken(version, newest, what)

    def _removed(
        self, stage: Stage, judging: Judging, removed: Iterable[pa.Table], counts: Counter[str], outcome: Outcome
    ) -> None:
        """What becomes of rows that a version removed; the duplicates that come in for them join ``outcome``."""
        if self.declared.on_source_change != "correct":
            counts["ignored"] = sum(map(copies, removed))
            if counts["ignored"] and self.declared.on_source_change == "fail":
                raise taken_back.refuse(self.name, judging.version, counts["ignored"])
            return
        rules, only_tick = self.rules, {"__tick": self.expressions["__tick"]}
        for part in by_keys(removed, rules.duplicate_by, self.scratch) if rules.remembers else sized(removed):
            ticked = evaluated(self.spark, part, only_tick, self.scratch)
            came_in = take_back(stage, rules, ticked, judging.state, judging.version, counts)
            if came_in is not None:
                saw_reinstated(outcome, judging, came_in)

    def _decision(self, outcome: Outcome, state: StreamState, version: int) -> HeartbeatDecision:
        elements = pa.concat_tables(outcome.elements) if outcome.elements else None
        policy = policy_of(self.application, self.declared, self.rules.domain, version, elements)
        return policy.evaluate(state.heartbeat, outcome.facts(state, self.read_time))

    def _evaluate(self, rows: pa.Table) -> pa.Table:
        return evaluated(self.spark, rows, self.expressions, self.scratch)

    def _count(self, counts: Counter[str], outcome: Outcome) -> None:
        report = self.report
        report.rows += counts["rows"]
        report.ignored += counts["ignored"]
        report.taken_back += counts["taken_back"]
        report.cancelled += counts["cancelled"]
        report.deduplicated += counts["deduplicated"]
        report.reinstated += counts["reinstated"]
        report.displaced += counts["displaced"]
        report.late += counts["repaired"]
        report.clamped += counts["clamped"]
        report.quarantined += outcome.reasons
        report.warned += outcome.warned
        unmatched = counts["quarantined"] - outcome.reasons.total()
        if unmatched:
            report.quarantined[taken_back.UNMATCHED] += unmatched


__all__ = ["Admitted", "StreamAdmission", "admit", "advance"]
