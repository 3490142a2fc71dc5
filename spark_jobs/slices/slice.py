"""One slice of a query, from pinning its inputs to the commit.

The plan is evaluated in one Spark job that stages every output as files that no log knows; the staged rows are judged
by Great Expectations; then one ledger commit publishes results and SweepAreas together.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.operators import bridge
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.plan_identity import state_identity
from sweeparea.operators.state.open_rows import Exchange, OpenRows
from sweeparea.operators.state.sweep_area import SweepArea, bag_due, growth
from sweeparea.operators.sweeps import relation_to_stream
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.quality import suites, verdict
from sweeparea.spark_jobs.declarations.application import Application
from sweeparea.spark_jobs.declarations.input_sizes import new_rows
from sweeparea.spark_jobs.deployment.planning import readers_of
from sweeparea.spark_jobs.deployment.registry import COLUMNS, columns_hash
from sweeparea.spark_jobs.evaluation.areas import LAZY_PERCENT, SweepAreas
from sweeparea.spark_jobs.evaluation.evaluate import Evaluation
from sweeparea.spark_jobs.evaluation.inputs import Input, InputReader
from sweeparea.spark_jobs.evaluation.long_expressions import room_for_expressions
from sweeparea.spark_jobs.evaluation.only import Only
from sweeparea.spark_jobs.slices.beginning import Beginning
from sweeparea.spark_jobs.slices.catch_up import SliceTooLong, number_setting
from sweeparea.spark_jobs.slices.corrections import Corrected, pending
from sweeparea.spark_jobs.slices.place import BUILT, REWRITE, Place
from sweeparea.spark_jobs.spark import frames, machine_probe
from sweeparea.spark_jobs.spark.errors import ArgumentTypeError
from sweeparea.spark_jobs.spark.instants import as_instant, instant_text, slice_text
from sweeparea.tables.errors import LostRace
from sweeparea.tables.faults import crash_point
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, describe_file, files_in, remove_file, remove_folder
from sweeparea.tables.publication.ledger import CORRECTION, ZONES, LedgerRow
from sweeparea.tables.publication.publish import Publication, recover
from sweeparea.tables.publication.snapshot import version_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MATERIALIZE = "materialize"
"""The name of the SweepArea that holds a result's open rows and pending ends."""
ROWS_PER_PARTITION = 1_000_000
SMALL_SLICE = 50_000
"""Slices of up to so many rows run in one partition: a shuffle would cost more than it spreads."""
AUDIT_ARROW_ROWS = verdict.PANDAS_ROWS
RSTREAM_ROWS = 10_000_000
"""Default of ``rstream.max_rows_per_slice``."""


class Slice:
    """One slice ``(h0, h1]`` of a query, from pinning its inputs to the commit.

    ``place``: where its results and SweepAreas go, the query's own tables if not given. ``pins``: the sequence numbers
    up to which inputs are read, what the ledger says now if not given. ``beginning``: where results start that are
    computed beside others; ``only``: for some keys.
    """

    def __init__(
        self,
        application: Application,
        plan: Plan,
        spark: SparkSession,
        h0: int,
        h1: int,
        *,
        place: Place | None = None,
        pins: Mapping[str, int] | None = None,
        beginning: Beginning | None = None,
        only: Only | None = None,
    ) -> None:
        self.application, self.plan, self.spark = application, lowered(plan), spark
        self._declared = plan
        self.h0, self.h1 = h0, h1
        self.pins, self.beginning, self.only = pins, beginning, only
        self.place = place or Place.of(application, plan.name)
        self.since = h0 if beginning is None else beginning.since
        self.seconds: dict[str, float] = {}
        self._clock = time.monotonic()
        self._state_logs: dict[str, DeltaLog] = {}
        self._held: Future[tuple[int, OpenRows]] | None = None
        """The open rows of the result, which the driver lists while Spark's workers sweep."""
        self._unused: list[str] = []
        """Staged files whose rows went into others: they are judged, and then they go."""

    def run(self) -> dict[str, Any]:
        """Returns the ledger row's info."""
        place = self.place
        publication = Publication(place.data, place.ledger, self.plan.name, "query", place.registration)
        try:
            with room_for_expressions(self.spark, self.plan):
                return self._run(publication)
        except LostRace:
            raise
        except Exception:
            publication.refuse_overtaken()
            raise

    def _run(self, publication: Publication) -> dict[str, Any]:
        application, plan, place = self.application, self.plan, self.place
        attempt = publication.begin()
        previous = publication.previous
        committed = previous.committed if previous is not None and previous.committed is not None else plan.start - 1
        if committed != self.h0:
            raise LostRace(f"another run of {plan.name} committed up to {committed} meanwhile; run it again.")
        if previous is not None:
            self._require_tables(previous)
        head = application.ledger.head()
        owners = {name: application.owner(name) for name in plan.inputs}
        pins = {name: head[owner].seq for name, owner in owners.items()} if self.pins is None else dict(self.pins)
        recover(str(application.data), application.ledger, owners.values())
        if self.pins is None and previous is not None and pending(application, plan, previous, head, pins, self.h0):
            raise Corrected(f"Inputs of {plan.name} were corrected meanwhile. Run it again: it repairs them first.")
        inputs = {name: self._input(name, head[owner], pins[name]) for name, owner in owners.items()}
        reader = InputReader(self.spark, inputs, plan.time, plan.start, self.h0, self.h1, self.only)
        # what the last slice carried on tells how many held rows this one will have to do with
        touched = sum((previous.info.get("state_touched") or {}).values()) if previous else 0
        arrived = new_rows(application, plan, self.h0, self.h1)
        expected = arrived + touched
        partitions = 1 if expected <= SMALL_SLICE else max(2, -(-expected // ROWS_PER_PARTITION))
        spill = f"{place.data}/_sweeparea/spill/{attempt}"
        seq = place.first_seq + (previous.seq if previous is not None else 0)
        areas = SweepAreas(
            self.spark, self._area_log, self._create_area, spill, seq, self.h0, self.h1, partitions,
            number_setting(plan, "state.expiry_partitions", 0),
            number_setting(plan, "state.lazy_percent", LAZY_PERCENT),
            dict((previous.info.get("state_live") or {}) if previous else {}),
        )  # fmt: skip
        most = number_setting(plan, "rstream.max_rows_per_slice", RSTREAM_ROWS)
        machine_probe.require_zones_of(self.spark, self._declared)
        running = replace(plan, root=machine_probe.guarded(self.spark, plan.root))
        evaluation = Evaluation(self.spark, running, reader, areas, attempt, partitions, most)
        self._lap("plan")
        try:
            lines, tables = self._materialize(evaluation, areas, attempt, partitions)
            self._refuse_too_long(evaluation)
        finally:
            remove_folder(spill, quietly=True)
        self._lap("compute")
        crash_point("slice.staged_files")
        rows = self._stage(publication, attempt, lines, tables)
        state = self._stage_areas(publication, attempt, areas, previous)
        verdicts = self._audit(lines, tables)
        for uri in self._unused:
            remove_file(uri)
        self._lap("quality")
        info = {
            "definition": application.fingerprint(plan.name),
            "plan": state_identity(plan),
            "h0": self.h0,
            "rows_in": arrived,
            "rows": rows,
            **state,
            "verdicts": verdicts,
            "seconds": self.seconds,
            "chronon": plan.time.chronon if plan.time.kind == "TIMESTAMP" else 0,
            "start": plan.start,
            COLUMNS: {n: columns_hash(i.log) for n, i in inputs.items() if i.kind.startswith("query_")},
        }
        zones = machine_probe.zones_of(self._declared)
        if rules := machine_probe.rules(zones, {} if previous is None else previous.info.get(ZONES, {})):
            info[ZONES] = rules
        read = {name: {"seq": pins[name], "heartbeat": head[owner].committed} for name, owner in owners.items()}
        if previous is not None:  # what was changed afterwards stays told
            info |= {key: previous.info[key] for key in (CORRECTION, REWRITE, BUILT) if key in previous.info}
        publication.commit(committed=self.h1, pins=read, info=info)
        self._lap("publish")
        return info

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
        drops = readers_of(application, name) if is_hidden(name) else (name,)
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
        for op, rows in (previous.info.get("state_rows") or {}).items():
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
            kind = "query_stream" if application.input_schema(name).kind == "stream" else "query_relation"
            log = DeltaLog(application.result_table(name))
            log.refuse_foreign(application.owner(name))
            # what was computed anew stands for the results that were pinned before: these were damaged, or are gone
            version = version_at(log, row.app, max(pin, row.info.get(BUILT, 0)))
            if version is None:
                raise SweepAreaError(
                    f"{self.plan.name}: the table {log.uri} no longer tells what {name} had committed up to number"
                    f" {pin}: its log was cleaned meanwhile. Run again; keep delta.logRetentionDuration above the"
                    " longest run."
                )
            return Input(name, kind, log, pin, version=version)
        kind = "stream" if name in application.catalog.streams else "relation"
        log = DeltaLog(application.layout.admitted(name))
        log.refuse_foreign(name)
        return Input(
            name, kind, log, pin,
            static=application.never_changes(name, row),
            scale=application.scale(name, self.plan.time),
            taken_back=kind == "stream" and bool(row.info.get("taken_back")),
        )  # fmt: skip

    def _area_log(self, op: str) -> DeltaLog:
        if op not in self._state_logs:
            self._state_logs[op] = self.place.ledger.log(self.place.layout.state(self.plan.name, op))
        return self._state_logs[op]

    def _create_area(self, op: str, schema: pa.Schema) -> None:
        description = f"SweepArea {op} of {self.plan.name}"
        self._area_log(op).create(schema, name=f"{self.plan.name}.{op}", description=description, configuration=None)

    # -- the one Spark job ---------------------------------------------------------------------------------------------

    def _materialize(
        self, evaluation: Evaluation, areas: SweepAreas, attempt: str, partitions: int
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Runs the slice. Returns one line per staged file, and the result tables it wrote (kind -> (path, schema))."""
        plan = evaluation.slice.plan
        ids = [c.id for c in plan.root.columns]
        checks = [suites.check_column(c.name) for c in suites.judged(plan.constraints)]
        top = evaluation.new(plan.root)
        shape = top if top is not None else evaluation.empty(plan.root)
        record = self._record(shape, ids)
        if self.beginning is not None:
            top = self.beginning.of(self.spark, plan, top)
        tables = self._result_tables(record)
        # repetitions are looked at in every slice; what only comes and goes is left alone meanwhile
        keyed = ids and not ("rstream" in tables or plan.emits_each)
        of = plan.root if self.beginning is None else None
        net = of is not None and keyed and "open" not in tables and not areas.files(MATERIALIZE) and evaluation.net(of)
        if top is None and (areas.quiet(MATERIALIZE) if keyed else plan.emits_each or not areas.files(MATERIALIZE)):
            return [], tables
        schema = pa.schema([*record, *(pa.field(c, pa.bool_()) for c in checks), *BAG_FIELDS])
        if top is not None:
            judged = [
                f"coalesce(({c.condition.sql}), TRUE) AS {suites.check_column(c.name)}"
                for c in suites.judged(plan.constraints)
            ]
            top = top.selectExpr(*ids, *judged, *BAG)
        targets = {key: bridge.Target(path, table, key) for key, (path, table) in tables.items()}
        kept = {key: key in tables for key in ("istream", "dstream")}
        count = evaluation.streams.row_count(MATERIALIZE, plan.every, plan.anchor) if "rstream" in tables else None
        spec = relation_to_stream.MaterializeSpec(
            columns=tuple(ids),
            checks=tuple(checks),
            relation="open" in tables,
            rstream=None if count is None else evaluation.rstreams[-1][1],
            most=evaluation.slice.most_rows,
            each=plan.emits_each,
            net=bool(net),
            **kept,
        )
        chronon = plan.time.chronon if plan.time.kind == "TIMESTAMP" else 0
        labels = {c.id: c.label for c in plan.root.columns}

        def task(area: bridge.Target | SweepArea | None) -> bridge.MaterializeTask:
            return bridge.MaterializeTask(
                spec, self.since, self.h1, chronon, schema, targets, labels, attempt, area, count,
                anew=self.beginning is not None,
            )  # fmt: skip

        if plan.emits_each or net:  # no row has to meet another
            assert top is not None
            staged = evaluation.sweeps.passed(of, top, schema, task(None), bridge.FILES_DDL)
        elif keyed:
            staged = evaluation.sweeps.through(MATERIALIZE, top, schema, ids, bag_due, task, bridge.FILES_DDL, of)
        else:
            staged = evaluation.sweeps.through_whole(MATERIALIZE, top, schema, ids, task, bridge.FILES_DDL)
        with ThreadPoolExecutor(1) as beside:
            if "open" in tables:
                path, schema = tables["open"]
                self._held = beside.submit(self._open_rows, path, schema, attempt)
            return [r.asDict() for r in staged.collect()], tables

    def _record(self, shape: DataFrame, ids: list[str]) -> list[pa.Field]:
        """The result's columns; a type that a table cannot hold is refused by the column's name."""
        types = {f.name: f.dataType for f in shape.schema}
        for column in self.plan.root.columns:
            if not frames.storable(types[column.id]):
                kind = types[column.id].simpleString()
                raise ArgumentTypeError(
                    f"query {self.plan.name}: its column {column.label} is of type {kind.upper()}, which a result table"
                    f" cannot hold. CAST it to a type that can be stored, for example CAST({column.label} AS STRING)."
                )
        return frames.fields(shape, ids)

    def _result_tables(self, record: list[pa.Field]) -> dict[str, tuple[str, pa.Schema]]:
        """The result tables by what is written to them. A relation has two: rows that ended and rows that are open."""
        plan, layout = self.plan, self.place.layout
        labels = [pa.field(c.label, f.type) for c, f in zip(plan.root.columns, record, strict=True)]
        kind = pa.timestamp("us", tz="UTC") if plan.time.kind == "TIMESTAMP" else pa.int64()
        found: dict[str, tuple[str, pa.Schema]] = {}
        for what in plan.materialize:
            path = layout.result(plan.table(what))
            if what == "relation":
                schema = pa.schema([*labels, pa.field("valid_from", kind), pa.field("valid_to", kind)])
                found["closed"] = found["open"] = (path, schema)
            else:
                schema = pa.schema([*labels, pa.field("ts", kind)])
                found[what] = (path, schema)
            title = f"{what} of continuous query {plan.name}"
            self.place.ledger.log(path).create(schema, name=Path(path).name, description=title, configuration=None)
        return found

    # -- staging, quality ----------------------------------------------------------------------------------------------

    def _carried(self, op: str, attempt: str, areas: SweepAreas) -> list[DataFile]:
        """The files that the sweep of ``op`` has staged: of a keyed one each worker has left one at least."""
        root = self.place.layout.state(self.plan.name, op)
        names = [f.base_name for f in files_in(f"{root}/data/{attempt}") if f.extension == "parquet"]
        complete = bool(names) or op in areas.may_be_silent or not areas.files(op)
        if op in areas.workers:
            complete = len({n.split("-")[1] for n in names if n.startswith(f"{op}.c-")}) == areas.workers[op]
        elif op not in areas.may_be_silent:  # a partition more is one whose sweep has run twice
            complete = complete and len({n.split("-")[1] for n in names}) <= areas.partitions
        if not complete:
            raise SweepAreaError(
                f"{self.plan.name}: the sweep of {op} did not run, or not for every key. Nothing was"
                " published. This is a defect of the engine: please report the query."
            )
        files = (describe_file(root, f"data/{attempt}/{name}") for name in bridge.staged_carry(names))
        return [file for file in files if file.rows]

    def _stage_areas(
        self, publication: Publication, attempt: str, areas: SweepAreas, previous: LedgerRow | None
    ) -> dict[str, Any]:
        """Stages the SweepAreas; returns what the ledger says of them: rows, bytes and keys by operator."""
        info = previous.info if previous is not None else {}
        rows, size = (dict(info.get(key) or {}) for key in ("state_rows", "state_bytes"))
        touched = {}
        for op, removes in areas.staged.items():
            adds = self._carried(op, attempt, areas)
            publication.stage(areas.log(op).uri, adds=adds, removes=removes, base_version=areas.versions.get(op))
            replaced = {file.path for file in removes}
            left = [*(file for file in areas.files(op) if file.path not in replaced), *adds]
            rows[op], size[op] = sum(file.rows for file in left), sum(file.size for file in left)
            own = [file for file in adds if f"{op}.m-" not in file.path]  # the others are merged ones
            touched[op] = sum(file.rows for file in own)
            if op in areas.workers and (op in areas.counts or not areas.files(op)):
                areas.counts[op] = areas.counts.get(op, 0) + sum(growth(file) for file in own)
        keys = {**(info.get("state_keys") or {}), **areas.keys}
        live = areas.counts
        return {
            "state_rows": rows, "state_bytes": size, "state_touched": touched, "state_live": live, "state_keys": keys
        }  # fmt: skip

    def _stage(
        self, publication: Publication, attempt: str, lines: list[dict[str, Any]], tables: dict[str, Any]
    ) -> dict[str, int]:
        rows: dict[str, int] = {}
        versions = {path: self.place.ledger.log(path).version() for path, _ in tables.values()}
        open_rows = None
        if "open" in tables:
            path, schema = tables["open"]
            held = self._held.result() if self._held else self._open_rows(path, schema, attempt)
            versions[path], open_rows = held
        for key, (path, schema) in tables.items():
            files = [_file(line) for line in lines if line["target"] == key]
            rows[key] = sum(f.rows for f in files)
            change = Exchange(adds=files)
            if key == "open" and open_rows is not None:
                ended = self._ended(path, schema, [_file(line) for line in lines if line["target"] == "closed"])
                change = open_rows.exchange(ended, files)
            publication.stage(path, adds=change.adds, removes=change.removes, base_version=versions[path])
            self._unused += [f"{path}/{file.path}" for file in change.unused]
        return rows

    def _open_rows(self, path: str, schema: pa.Schema, attempt: str) -> tuple[int, OpenRows]:
        """What a relation's table holds open, and the version of the table that says so."""
        log = self.place.ledger.log(path)
        version = log.version()
        return version, OpenRows(path, schema, log.files(version, ["valid_to"]), attempt)

    def _ended(self, path: str, schema: pa.Schema, closed: list[DataFile]) -> pa.Table:
        """The rows of staged files that the table holds as open ones: those that began before the slice."""
        time, names = self.plan.time, schema.names[:-1]
        stored = self.since * time.chronon if time.kind == "TIMESTAMP" else self.since
        bound = scan.comparable(stored, schema.field("valid_from").type)
        files = [] if self.beginning is not None else scan.prune(closed, "valid_from", None, stored)
        chosen = scan.ScanPlan(schema, tuple(f"{path}/{file.path}" for file in files), 0, 0)
        return chosen.read(names, pc.field("valid_from") <= bound)

    def _audit(self, lines: list[dict[str, Any]], tables: dict[str, Any]) -> list[dict[str, Any]]:
        """Great Expectations' verdict over the staged rows of every table; a critical failure ends the slice."""
        plan, verdicts = self.plan, []
        labels = [c.label for c in plan.root.columns]
        h0, h1 = (as_instant(plan.time, tick) for tick in (self.since, self.h1))
        if plan.time.kind == "TIMESTAMP":  # START may be the first instant that there is
            h0, h1 = (None if isinstance(at, int) else at for at in (h0, h1))
        checks = [suites.check_column(c.name) for c in suites.judged(plan.constraints)]
        for path, schema in dict.fromkeys(tables.values()):
            keys = [key for key, value in tables.items() if value == (path, schema)]
            relation = "open" in keys
            files = [_file(line) for line in lines if line["target"] in keys]
            if not files:
                continue
            truths = {line["stats"]: line["path"] for line in lines if line["target"] == bridge.AUDIT}
            rows = self._audited(path, schema, files, truths, checks)
            count = sum(f.rows for f in files)
            suite = (suites.relation_checks if relation else suites.stream_checks)(labels, h0, h1, plan.constraints)
            judged = verdict.audit(rows, Path(path).name, suite, row_count=count)
            verdict.require(judged, Path(path).name, slice_text(plan.time, self.since, self.h1))
            verdicts.append(
                {
                    "table": Path(path).name,
                    "rows": judged.rows,
                    "checks": len(judged.results),
                    "warnings": {r["id"]: r["unexpected"] for r in judged.warnings},
                }
            )
        return verdicts

    def _audited(
        self, path: str, schema: pa.Schema, files: list[DataFile], truths: dict[str, str], checks: list[str]
    ) -> Any:
        """The staged rows and the truths of the constraints: as Arrow where they are few, else as a DataFrame."""
        if sum(f.rows for f in files) <= AUDIT_ARROW_ROWS:
            parts = []
            for file in files:
                part = _staged(path, file.path, schema)
                if checks:
                    beside = _staged(path, truths[file.path], pa.schema([(c, pa.bool_()) for c in checks]))
                    for name in checks:
                        part = part.append_column(name, beside.column(name))
                parts.append(part)
            return pa.concat_tables(parts)
        frame = self.spark.read.schema(frames.ddl(schema)).parquet(*(f"{path}/{f.path}" for f in files))
        names = {c.id: frames.quoted(c.label) for c in self.plan.root.columns}
        constraints = suites.judged(self.plan.constraints)
        inner = frame.selectExpr("*", *(f"{label} AS {id_}" for id_, label in names.items()))
        judged = (f"coalesce(({c.condition.sql}), TRUE) AS {suites.check_column(c.name)}" for c in constraints)
        return inner.selectExpr(*(frames.quoted(n) for n in schema.names), *judged)


def _staged(root: str, path: str, schema: pa.Schema) -> pa.Table:
    return scan.ScanPlan(schema, (f"{root}/{path}",), 0, 0).read(schema.names)


def _file(line: dict[str, Any]) -> DataFile:
    return DataFile(line["path"], line["size"], line["rows"], line["stats"])
