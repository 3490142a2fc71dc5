"""One slice of a query, from pinning its inputs to the commit.

One Spark job stages every output as files that no log knows, after one for each side that is read twice, drained, or
sent to several workers as Arrow (``evaluation/evaluate.py``); the staged rows are judged by Great Expectations; then
one ledger commit publishes results and SweepAreas together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.cql.binding.scope.inputs import SchemaKind
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.deep_stack import deep
from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.plan_identity import state_identity
from sweeparea.quality.records import Entry
from sweeparea.quality.verdict_tables import refused
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.input_sizes import new_rows
from sweeparea.spark_jobs.deployment.planned import readers_of
from sweeparea.spark_jobs.deployment.stale import columns_hash
from sweeparea.spark_jobs.evaluation.areas import LAZY_PERCENT, SweepAreas
from sweeparea.spark_jobs.evaluation.evaluate import Evaluation
from sweeparea.spark_jobs.evaluation.inputs import Input, InputKind, InputReader
from sweeparea.spark_jobs.evaluation.long_expressions import has_many_levels, room_for_expressions
from sweeparea.spark_jobs.evaluation.only import Only
from sweeparea.spark_jobs.slices import units
from sweeparea.spark_jobs.slices.acceptance import accepted, relaxed
from sweeparea.spark_jobs.slices.audit import audit
from sweeparea.spark_jobs.slices.beginning import Beginning
from sweeparea.spark_jobs.slices.catch_up import SliceTooLong, number_setting
from sweeparea.spark_jobs.slices.corrections import Corrected, pending
from sweeparea.spark_jobs.slices.long_tasks import telling
from sweeparea.spark_jobs.slices.materialize import Materialization
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.spark_jobs.slices.result_tables import Line, ResultTables
from sweeparea.spark_jobs.slices.staged_areas import stage_areas
from sweeparea.spark_jobs.spark import zone_guards
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.errors import LostRace
from sweeparea.tables.faults import crash_point
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.folders import remove_file, remove_folder
from sweeparea.tables.publication.info import AreasInfo, QueryInfo
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover
from sweeparea.tables.publication.snapshot import version_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_PER_PARTITION = 1_000_000
SMALL_SLICE = 50_000
"""Slices of up to so many rows run in one partition: a shuffle would cost more than it spreads."""
RSTREAM_ROWS = 10_000_000
"""Default of ``rstream.max_rows_per_slice``."""


class Slice:
    """One slice ``(h0, h1]`` of a query, from pinning its inputs to the commit.

    ``place``: where its results and SweepAreas go, the query's own tables if not given. ``pins``: the sequence numbers
    up to which inputs are read, what the ledger says now if not given. ``beginning``: where results start that are
    computed beside others; ``only``: for some keys.
    ``tell`` gets a line on a task that takes long.
    """

    def __init__(  # ten parameters: four are given only where results are computed beside others
        self,
        application: Application,
        plan: Plan,
        spark: SparkSession,
        h0: int,
        h1: int,
        *,
        place: SlicePlace | None = None,
        pins: Mapping[str, int] | None = None,
        beginning: Beginning | None = None,
        only: Only | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.application, self.plan, self.spark = application, lowered(plan), spark
        self._declared = plan
        self.h0, self.h1 = h0, h1
        self.pins, self.beginning, self.only, self._tell = pins, beginning, only, tell
        self.place = place or SlicePlace.of(application, plan.name)
        self.since = h0 if beginning is None else beginning.since
        self.seconds: dict[str, float] = {}
        self._clock = time.monotonic()
        self._state_logs: dict[str, DeltaLog] = {}

    def run(self) -> QueryInfo:
        """Returns what the ledger says of the slice."""
        place = self.place
        publication = Publication(place.data, place.ledger, self.plan.name, NameKind.QUERY, place.registration)
        try:
            with room_for_expressions(self.spark, self.plan):
                return self._deeply(publication) if has_many_levels(self.plan) else self._run(publication)
        except LostRace:
            raise
        except Exception:
            publication.refuse_overtaken()
            raise

    def _deeply(self, publication: Publication) -> QueryInfo:
        """``_run`` with room for a plan of many levels, in a thread that has the tags of this one."""
        tags = self.spark.getTags()

        def run() -> QueryInfo:
            for tag in tags:
                self.spark.addTag(tag)
            return self._run(publication)

        return deep(run)()

    def _run(self, publication: Publication) -> QueryInfo:
        application, plan = self.application, self.plan
        attempt = publication.begin()
        previous = publication.previous
        self._require_previous(previous)
        head = application.ledger.head()
        plan = self.plan = relaxed(plan, accepted(head.get(plan.name)), self.since, self.h1)
        owners = {name: application.owner(name) for name in plan.inputs}
        pins = {name: head[owner].seq for name, owner in owners.items()} if self.pins is None else dict(self.pins)
        recover(str(application.data), application.ledger, owners.values())
        if self.pins is None and previous is not None and pending(application, plan, previous, head, pins, self.h0):
            raise Corrected(f"Inputs of {plan.name} were corrected meanwhile. Run it again: it repairs them first.")
        inputs = {name: self._input(name, head[owner], pins[name]) for name, owner in owners.items()}
        arrived = new_rows(application.plans, plan, self.h0, self.h1)
        areas = self._areas(previous, attempt, arrived)
        zone_guards.require_zones_of(self.spark, self._declared)
        evaluation = self._evaluation(inputs, areas, attempt)
        self._lap("plan")
        try:
            with telling(areas.notes, plan.name, self._tell):
                lines, results = self._materialize(evaluation, areas, attempt)
            self._refuse_too_long(evaluation)
        finally:
            remove_folder(areas.spill, quietly=True)
        self._lap("compute")
        crash_point("slice.staged_files")
        rows = results.stage(publication, lines)
        state = stage_areas(publication, attempt, areas)
        self._lap("stage")
        refuse = partial(self._refuse, previous, attempt)
        verdicts = audit(
            self.spark, plan, self.since, self.h1, results.tables, lines, refuse, self._by_name(results.tables, lines)
        )
        for uri in results.unused:
            remove_file(uri)
        self._lap("quality")
        told = QueryInfo(
            rows_in=arrived,
            rows=rows,
            areas=state,
            verdicts=verdicts,
            judged=attempt,
            columns={n: columns_hash(i.log) for n, i in inputs.items() if i.kind.is_result},
        )
        info = self._info(told, previous)
        read = {name: {"seq": pins[name], "heartbeat": head[owner].committed} for name, owner in owners.items()}
        publication.commit(committed=self.h1, pins=read, info=info.to_json())
        self._lap("publish")
        return info

    def _by_name(
        self, tables: Mapping[str, tuple[str, pa.Schema]], lines: list[Line]
    ) -> tuple[str, list[dict[str, Any]]] | None:
        """The folder of the result that expectations over several rows judge, and what they find."""
        if not self.plan.expectations:
            return None
        judged = units.JudgedSlice(
            self.application, self.plan, self.place, self.since, self.h1, tables, lines, whole=self.only is None
        )
        return judged.table[0], judged.judged()

    def _refuse(self, previous: LedgerRow | None, attempt: str, entries: list[Entry]) -> None:
        """Keeps the verdict of this slice, which is not committed, in the application's own table of verdicts."""
        place, plan = self.place, self.plan
        beside = place.data != str(self.application.data)
        refused(
            self.application.ledger, plan.name, NameKind.QUERY, entries,
            registration=place.registration, seq=(previous.seq if previous is not None else 0) + 1, attempt=attempt,
            since=self.since, upto=self.h1, chronon=plan.time.clock, cause="computed again" if beside else None,
        )  # fmt: skip

    def _require_previous(self, previous: LedgerRow | None) -> None:
        """The slice follows what was committed, and its tables are there. LostRace: another run has gone on."""
        plan = self.plan
        committed = previous.committed if previous is not None and previous.committed is not None else plan.start - 1
        if committed != self.h0:
            raise LostRace(f"another run of {plan.name} committed up to {committed} meanwhile; run it again.")
        if previous is not None:
            self._require_tables(previous)

    def _areas(self, previous: LedgerRow | None, attempt: str, arrived: int) -> SweepAreas:
        """The SweepAreas, in as many partitions as the rows to be expected are worth."""
        plan, place = self.plan, self.place
        held = previous.of_query.state if previous is not None else AreasInfo()
        # what the last slice carried on tells how many held rows this one will have to do with
        expected = arrived + sum(held.touched.values())
        partitions = 1 if expected <= SMALL_SLICE else max(2, -(-expected // ROWS_PER_PARTITION))
        spill = f"{place.data}/_sweeparea/spill/{attempt}"
        seq = place.first_seq + (previous.seq if previous is not None else 0)
        return SweepAreas(
            self.spark, self._area_log, self._create_area, spill, seq, self.h0, self.h1, partitions,
            number_setting(plan, "state.expiry_partitions", 0),
            number_setting(plan, "state.lazy_percent", LAZY_PERCENT),
            held.live,
        )  # fmt: skip

    def _evaluation(self, inputs: dict[str, Input], areas: SweepAreas, attempt: str) -> Evaluation:
        """The plan over its inputs, as this machine runs it."""
        plan = self.plan
        reader = InputReader(self.spark, inputs, plan.time, plan.start, self.h0, self.h1, self.only)
        most = number_setting(plan, "rstream.max_rows_per_slice", RSTREAM_ROWS)
        running = replace(plan, root=zone_guards.guarded(self.spark, plan.root))
        return Evaluation(self.spark, running, reader, areas, attempt, areas.partitions, most)

    def _materialize(self, evaluation: Evaluation, areas: SweepAreas, attempt: str) -> tuple[list[Line], ResultTables]:
        """Runs the Spark job that stages all outputs. Returns one line per staged file, and the result tables."""
        return Materialization(
            self.spark, self.plan, self.place, self.since, self.h1, attempt, evaluation, areas, self.beginning
        ).run()

    def _info(self, told: QueryInfo, previous: LedgerRow | None) -> QueryInfo:
        """What the ledger says of the slice: what it has ``told``, and what was changed afterwards stays told."""
        plan = self.plan
        before = QueryInfo() if previous is None else previous.of_query
        return replace(
            told,
            definition=self.application.registry.fingerprint(plan.name),
            plan=state_identity(plan),
            h0=self.h0,
            seconds=self.seconds,
            chronon=plan.time.clock,
            start=plan.start,
            zones=zone_guards.rules(zone_guards.zones_of(self._declared), before.zones or {}) or None,
            correction_seq=before.correction_seq,
            rewrite=before.rewrite,
            built=before.built,
            accepted=before.accepted,
        )

    def _lap(self, phase: str) -> None:
        now = time.monotonic()
        self.seconds[phase] = round(now - self._clock, 4)
        self._clock = now

    def _require_tables(self, previous: LedgerRow) -> None:
        """What earlier slices wrote must still be there: a SweepArea that lost rows would give wrong answers in
        silence.
        """
        application, name = self.application, self.plan.name
        # a hidden query goes with its readers
        drops = readers_of(application.registry.deployed.rows(), name) if is_hidden(name) else (name,)
        commands = " and ".join(f"`{application.command('drop', n)}`" for n in drops)
        way_out = (
            f"Run `{application.command('check', name, '--rebuild')}`, which computes it again from its inputs, or"
            f" restore the data folder {application.data} from a backup of one moment, or run {commands} and process"
            f" {'it' if len(drops) == 1 else 'them'} anew."
        )
        for table in previous.actions:
            if not DeltaLog(self.place.layout.absolute(table)).exists():
                raise SweepAreaError(
                    f"The table {table} of {name} is missing, though {name} has committed to it. {way_out}"
                )
        for op, rows in previous.of_query.state.rows.items():
            log = self._area_log(op)
            found = sum(f.rows for f in log.files()) if log.exists() else 0
            if found != rows:
                raise SweepAreaError(
                    f"The SweepArea {op} of {name} holds {found} rows, but its last slice left {rows}. {way_out}"
                )

    def _refuse_too_long(self, evaluation: Evaluation) -> None:
        """Refuses a slice with too many Rstream rows, and says where a shorter one should end."""
        for count, every in evaluation.rstreams:
            rows, most = count.total(), evaluation.slice.most_rows
            if rows <= most:
                continue
            before, instants = int(every.up_to(self.since)), int(every.up_to(self.h1) - every.up_to(self.since))
            if instants > 1:
                cut = every.anchor + (before + instants // 2) * every.every
                raise SliceTooLong(f"{self.plan.name}: the Rstream of a slice has {rows} rows, more than {most}.", cut)
            at = instant_text(self.plan.time, every.anchor + (before + 1) * every.every)
            raise DataError(
                f"The Rstream of {self.plan.name} has {rows} rows at the single instant {at}, more than the"
                f" {most} that rstream.max_rows_per_slice allows. Set it higher, put a smaller window or an aggregate"
                " below RSTREAM, or use ISTREAM, which holds only what changes, or the relation itself."
            )

    # -- inputs and SweepAreas -----------------------------------------------------------------------------------------

    def _input(self, name: str, row: LedgerRow, pin: int) -> Input:
        application = self.application
        if application.is_query(application.owner(name)):
            is_stream = application.plans.input_schema(name).kind == SchemaKind.STREAM
            kind = InputKind.QUERY_STREAM if is_stream else InputKind.QUERY_RELATION
            log = application.ledger.log(application.plans.result_table(name))
            log.refuse_foreign(application.owner(name))
            # what was computed anew stands for the results that were pinned before: these were damaged, or are gone
            version = version_at(log, row.app, max(pin, row.of_query.built or 0))
            if version is None:
                raise SweepAreaError(
                    f"{self.plan.name}: the table {log.uri} no longer tells what {name} had committed up to number"
                    f" {pin}: its log was cleaned meanwhile. Run again; keep delta.logRetentionDuration above the"
                    " longest run."
                )
            return Input(name, kind, log, pin, version=version)
        kind = InputKind.STREAM if name in application.catalog.streams else InputKind.RELATION
        log = application.ledger.log(application.layout.admitted(name))
        log.refuse_foreign(name)
        return Input(
            name, kind, log, pin,
            static=application.never_changes(name, row),
            scale=application.scale(name, self.plan.time),
            taken_back=kind is InputKind.STREAM and bool(row.of_source.taken_back),
        )  # fmt: skip

    def _area_log(self, op: str) -> DeltaLog:
        if op not in self._state_logs:
            self._state_logs[op] = self.place.ledger.log(self.place.layout.state(self.plan.name, op))
        return self._state_logs[op]

    def _create_area(self, op: str, schema: pa.Schema) -> None:
        description = f"SweepArea {op} of {self.plan.name}"
        self._area_log(op).create(schema, name=f"{self.plan.name}.{op}", description=description, configuration=None)
