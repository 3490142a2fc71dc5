"""Process: a query catches up with its inputs' heartbeats, slice by slice.

The engine chooses the range, not its caller: from the query's committed instant to the minimum heartbeat of its
inputs, cut where it is long. A slice pins its inputs, evaluates the plan in one Spark job that stages every output,
has the staged rows judged, and commits to the ledger. A run that finds nothing to do says so; a run that was killed
anywhere is continued by the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.heartbeats.minimum import query_heartbeat
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators import bridge, relation_to_stream
from sweeparea.operators.bag import BAG
from sweeparea.operators.logical import Plan, TimeDomain
from sweeparea.quality import suites, verdict
from sweeparea.spark_jobs import frames
from sweeparea.spark_jobs.application import Application, fingerprint
from sweeparea.spark_jobs.errors import readable
from sweeparea.spark_jobs.evaluate import BAG_FIELDS, Evaluation, SweepAreas, fields
from sweeparea.spark_jobs.inputs import Input, InputReader
from sweeparea.tables import scan
from sweeparea.tables.delta_log import DeltaLog
from sweeparea.tables.faults import crash_point
from sweeparea.tables.files import DataFile, describe_file, write_file
from sweeparea.tables.ledger import LedgerRow
from sweeparea.tables.publish import Publication, recover

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MATERIALIZE = "materialize"
"""The name of the SweepArea that holds a result's open rows and pending ends."""
MAX_ROWS = 5_000_000
"""Default of ``slice.max_rows``: about how many new input rows one slice takes."""
ROWS_PER_PARTITION = 1_000_000
SMALL_SLICE = 50_000
AUDIT_ARROW_ROWS = verdict.PANDAS_ROWS


@dataclass
class Processed:
    """What one run of process did."""

    query: str
    committed: int | None = None
    slices: int = 0
    rows_in: int = 0
    rows_out: int = 0
    waits_for: str | None = None
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def process(
    application: Application,
    query: str,
    spark: SparkSession,
    until: int | None = None,
    cuts: list[int] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Processed:
    """Processes ``query`` up to the minimum heartbeat of its inputs, but not beyond tick ``until``.

    ``cuts`` are instants at which slices must end as well (law S2 makes any cut right). Raises SweepAreaError with
    nothing of the failing slice published; the slices before it stand.
    """
    started = time.monotonic()
    recover(str(application.data), application.ledger, [query])
    plan = application.plan(query)
    _refuse_unoffered(plan)
    head = application.ledger.head()
    row = head.get(query)
    application.registration(query, application.definition(query), row)
    heartbeats = application.heartbeats(plan, head)
    ready = query_heartbeat(query, heartbeats)
    done = row.committed if row is not None and row.committed is not None else plan.start - 1
    report = Processed(query, committed=row.committed if row else None)
    if ready is None:
        report.waits_for = ", ".join(sorted(n for n, h in heartbeats.items() if h is None))
        return report
    target = ready if until is None else min(ready, until)
    while done < target:
        h1 = min([target, *(c for c in cuts or () if c > done)])
        h1 = _cut(application, plan, done, h1)
        begun = time.monotonic()
        try:
            info = Slice(application, plan, spark, done, h1).run()
        except Exception as error:
            names = {c.id: c.label for node in plan.root.walk() for c in node.columns}
            raise readable(error, f"query {query}, slice {slice_text(plan.time, done, h1)}", names) from error
        report.slices += 1
        report.rows_in += info["rows_in"]
        report.rows_out += sum(info["rows"].values())
        for phase, seconds in info["seconds"].items():
            report.phases[phase] = round(report.phases.get(phase, 0.0) + seconds, 4)
        done = report.committed = h1
        left = _slices_left(application, plan, done, target)
        tell(
            f"{query}: slice {report.slices}{f' of about {report.slices + left}' if left else ''} up to "
            f"{instant_text(plan.time, h1)}: {info['rows_in']} rows in, {sum(info['rows'].values())} rows out, "
            f"{time.monotonic() - begun:.1f} s"
        )
    if not report.slices and ready <= done:
        waiting = [n for n, h in heartbeats.items() if h is not None and h <= done]
        report.waits_for = ", ".join(sorted(waiting))
    report.seconds = round(time.monotonic() - started, 3)
    return report


def _refuse_unoffered(plan: Plan) -> None:
    if "rstream" in plan.materialize or plan.stream == "rstream":
        raise SweepAreaError(f"query {plan.name}: RSTREAM is not offered by this version.")
    for constraint in plan.constraints:
        if constraint.on_violation == "quarantine":
            raise SweepAreaError(
                f"query {plan.name}: constraint {constraint.name}: ON VIOLATION QUARANTINE ROW on a query is not"
                " offered by this version. Use FAIL UPDATE or WARN, or put the condition into WHERE or HAVING."
            )


def new_rows(application: Application, plan: Plan, h0: int, h1: int) -> int:
    """About how many admitted rows have their tick in (h0, h1], from the statistics in the Delta logs."""
    total = 0.0
    for name in plan.inputs:
        if name in application.catalog.queries or application.is_static(name):
            continue
        for file in scan.prune(DeltaLog(application.layout.admitted(name)).files(), "__tick", h0 + 1, h1):
            least, greatest = scan.bounds(file, "__tick")
            if least is None or greatest is None:
                continue
            span = greatest - least + 1
            inside = min(h1, greatest) - max(h0 + 1, least) + 1
            total += file.rows * inside / span
    return round(total)


def _max_rows(plan: Plan) -> int:
    value = dict(plan.settings).get("slice.max_rows", str(MAX_ROWS)).strip("'\"").replace("_", "")
    if not value.isdigit() or int(value) == 0:
        raise SweepAreaError(
            f"query {plan.name}: the setting slice.max_rows is {value!r}, but must be a number of rows."
        )
    return int(value)


def _cut(application: Application, plan: Plan, h0: int, h1: int) -> int:
    """The end of a slice of at most about ``slice.max_rows`` new rows; a single instant is never cut."""
    limit = _max_rows(plan)
    while h1 > h0 + 1 and new_rows(application, plan, h0, h1) > limit:
        h1 = h0 + max(1, (h1 - h0) // 2)
    return h1


def _slices_left(application: Application, plan: Plan, done: int, target: int) -> int:
    return 0 if done >= target else max(1, round(new_rows(application, plan, done, target) / _max_rows(plan)))


def slice_text(time_: TimeDomain, h0: int, h1: int) -> str:
    return f"({instant_text(time_, h0)}, {instant_text(time_, h1)}]"


def instant_text(time_: TimeDomain, tick: int) -> str:
    """A tick as its author would write it."""
    value = as_instant(time_, tick)
    return str(value) if isinstance(value, int) else value.isoformat(sep=" ").replace("+00:00", "")


def as_instant(time_: TimeDomain, tick: int) -> Any:
    """A tick as a value of the result tables' instant columns: a datetime (UTC), or the tick."""
    import datetime as dt

    if time_.kind != "TIMESTAMP":
        return tick
    try:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=tick * time_.chronon)
    except OverflowError:
        return tick


class Slice:
    """One slice ``(h0, h1]`` of a query, from pinning its inputs to the commit."""

    def __init__(self, application: Application, plan: Plan, spark: SparkSession, h0: int, h1: int) -> None:
        self.application, self.plan, self.spark = application, plan, spark
        self.h0, self.h1 = h0, h1
        self.seconds: dict[str, float] = {}
        self._clock = time.monotonic()
        self._state_logs: dict[str, DeltaLog] = {}

    def run(self) -> dict[str, Any]:
        """Returns the ledger row's info."""
        application, plan = self.application, self.plan
        row = application.ledger.head().get(plan.name)
        definition = application.definition(plan.name)
        registration = application.registration(plan.name, definition, row)
        publication = Publication(str(application.data), application.ledger, plan.name, "query", registration)
        attempt = publication.begin()
        previous = publication.previous
        committed = previous.committed if previous is not None and previous.committed is not None else plan.start - 1
        if committed != self.h0:
            raise SweepAreaError(f"another run of {plan.name} committed up to {committed} meanwhile; run it again.")
        head = application.ledger.head()
        recover(str(application.data), application.ledger, plan.inputs)
        inputs = {name: self._input(name, head[name]) for name in plan.inputs}
        reader = InputReader(self.spark, inputs, plan.time, plan.start, self.h0, self.h1)
        state_rows = sum((previous.info.get("state_rows") or {}).values()) if previous else 0
        expected = new_rows(application, plan, self.h0, self.h1) + state_rows
        partitions = 1 if expected <= SMALL_SLICE else max(2, -(-expected // ROWS_PER_PARTITION))
        areas = SweepAreas(self._read_area, self._area_root)
        evaluation = Evaluation(self.spark, plan, reader, areas, attempt, partitions)
        self._lap("plan")
        lines, tables = self._materialize(evaluation, areas, attempt, partitions)
        self._lap("compute")
        crash_point("slice.staged_files")
        rows = self._stage(publication, attempt, areas, lines, tables)
        verdicts = self._audit(lines, tables)
        self._lap("quality")
        state = {op: sum(f.rows for f in self._carry_files(op, attempt, lines)) for op in areas.staged}
        info = {
            "definition": fingerprint(definition),
            "h0": self.h0,
            "rows_in": reader.rows_read,
            "rows": rows,
            "state_rows": state,
            "verdicts": verdicts,
            "seconds": self.seconds,
            "chronon": plan.time.chronon if plan.time.kind == "TIMESTAMP" else 0,
            "start": plan.start,
        }
        pins = {name: {"seq": head[name].seq, "heartbeat": head[name].committed} for name in plan.inputs}
        publication.commit(committed=self.h1, pins=pins, info=info)
        self._lap("publish")
        return info

    def _lap(self, phase: str) -> None:
        now = time.monotonic()
        self.seconds[phase] = round(now - self._clock, 4)
        self._clock = now

    # -- inputs and SweepAreas -----------------------------------------------------------------------------------------

    def _input(self, name: str, row: LedgerRow) -> Input:
        application = self.application
        if name in application.catalog.queries:
            stream = application.input_schema(name).kind == "stream"
            log = DeltaLog(application.layout.result(name))
            return Input(name, "query_stream" if stream else "query_relation", log, row.seq)
        kind = "stream" if name in application.catalog.streams else "relation"
        return Input(name, kind, DeltaLog(application.layout.admitted(name)), row.seq, application.is_static(name))

    def _area_log(self, op: str) -> DeltaLog:
        if op not in self._state_logs:
            self._state_logs[op] = DeltaLog(self.application.layout.state(self.plan.name, op))
        return self._state_logs[op]

    def _read_area(self, op: str) -> DataFrame | None:
        log = self._area_log(op)
        if not log.exists():
            return None
        chosen = scan.plan(log)
        return frames.read(self.spark, chosen, chosen.schema.names)

    def _area_root(self, op: str, schema: pa.Schema) -> str:
        path = self.application.layout.state(self.plan.name, op)
        description = f"SweepArea {op} of {self.plan.name}"
        self._area_log(op).create(schema, name=f"{self.plan.name}.{op}", description=description, configuration=None)
        return path

    # -- the one Spark job ---------------------------------------------------------------------------------------------

    def _materialize(
        self, evaluation: Evaluation, areas: SweepAreas, attempt: str, partitions: int
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Runs the slice. Returns one line per staged file, and the result tables it wrote (kind -> (path, schema))."""
        plan = self.plan
        ids = [c.id for c in plan.root.columns]
        checks = [suites.check_column(c.name) for c in suites.judged(plan.constraints)]
        top, state = evaluation.new(plan.root), areas.read(MATERIALIZE)
        shape = top if top is not None else evaluation.shape.bag(plan.root)
        record = fields(shape, ids)
        tables = self._result_tables(record)
        schema = pa.schema([*record, *(pa.field(c, pa.bool_()) for c in checks), *BAG_FIELDS])
        bags = []
        if top is not None:
            judged = [
                f"coalesce(({c.condition.sql}), TRUE) AS {suites.check_column(c.name)}"
                for c in suites.judged(plan.constraints)
            ]
            bags.append(top.selectExpr(*ids, *judged, *BAG))
        if state is not None:
            bags.append(state.selectExpr(*schema.names))
        targets = {"carry": areas.target(MATERIALIZE, schema)}
        for key, (path, table_schema) in tables.items():
            targets[key] = bridge.Target(path, table_schema, key)
        if not bags:
            return [], tables
        rows = bags[0] if len(bags) == 1 else bags[0].union(bags[1])
        kept = {key: key in tables for key in ("istream", "dstream")}
        spec = relation_to_stream.MaterializeSpec(
            columns=tuple(ids), checks=tuple(checks), relation="open" in tables, **kept
        )
        chronon = plan.time.chronon if plan.time.kind == "TIMESTAMP" else 0
        labels = {c.id: c.label for c in plan.root.columns}
        task = bridge.MaterializeTask(spec, self.h0, self.h1, chronon, schema, targets, labels, attempt)
        staged = bridge.run(rows, task, ids, partitions, bridge.FILES_DDL)
        return [r.asDict() for r in staged.collect()], tables

    def _result_tables(self, record: list[pa.Field]) -> dict[str, tuple[str, pa.Schema]]:
        """The result tables by what is written to them. A relation has two: rows that ended and rows that are open."""
        plan, layout = self.plan, self.application.layout
        labels = [pa.field(c.label, f.type) for c, f in zip(plan.root.columns, record, strict=True)]
        kind = pa.timestamp("us", tz="UTC") if plan.time.kind == "TIMESTAMP" else pa.int64()
        found: dict[str, tuple[str, pa.Schema]] = {}
        own = plan.stream or "relation"
        for what in plan.materialize:
            path = layout.result(plan.name if what == own else f"{plan.name}__{what}")
            if what == "relation":
                schema = pa.schema([*labels, pa.field("valid_from", kind), pa.field("valid_to", kind)])
                found["closed"] = found["open"] = (path, schema)
            else:
                schema = pa.schema([*labels, pa.field("ts", kind)])
                found[what] = (path, schema)
            title = f"{what} of continuous query {plan.name}"
            DeltaLog(path).create(schema, name=Path(path).name, description=title, configuration=None)
        return found

    # -- staging, quality ----------------------------------------------------------------------------------------------

    def _carry_files(self, op: str, attempt: str, lines: list[dict[str, Any]]) -> list[DataFile]:
        if op == MATERIALIZE:
            return [_file(line) for line in lines if line["target"] == MATERIALIZE]
        root = Path(self.application.layout.state(self.plan.name, op))
        folder = root / "data" / attempt
        names = [p.name for p in folder.glob("*.parquet")] if folder.is_dir() else []
        return [describe_file(str(root), f"data/{attempt}/{name}") for name in bridge.staged_carry(names)]

    def _stage(
        self,
        publication: Publication,
        attempt: str,
        areas: SweepAreas,
        lines: list[dict[str, Any]],
        tables: dict[str, Any],
    ) -> dict[str, int]:
        for op in areas.staged:
            log = self._area_log(op)
            publication.stage(log.uri, adds=self._carry_files(op, attempt, lines), removes=log.files())
        rows: dict[str, int] = {}
        for key, (path, _) in tables.items():
            adds = [_file(line) for line in lines if line["target"] == key]
            rows[key] = sum(f.rows for f in adds)
            removes: list[DataFile] = []
            if key == "open":
                removes, kept = _replaced(path, DeltaLog(path), attempt)
                adds += kept
            publication.stage(path, adds=adds, removes=removes)
        return rows

    def _audit(self, lines: list[dict[str, Any]], tables: dict[str, Any]) -> list[dict[str, Any]]:
        """Great Expectations' verdict over the staged rows of every table; a critical failure ends the slice."""
        plan, verdicts = self.plan, []
        labels = [c.label for c in plan.root.columns]
        instants = as_instant(plan.time, self.h0), as_instant(plan.time, self.h1)
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
            suite = (suites.relation_checks if relation else suites.stream_checks)(labels, *instants, plan.constraints)
            judged = verdict.audit(rows, Path(path).name, suite, row_count=count)
            verdict.require(judged, Path(path).name, slice_text(plan.time, self.h0, self.h1))
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
    size = Path(root, path).stat().st_size
    return scan.ScanPlan(schema, (f"{root}/{path}",), size, 0).read(schema.names)


def _file(line: dict[str, Any]) -> DataFile:
    return DataFile(line["path"], line["size"], line["rows"], line["stats"])


def _replaced(path: str, log: DeltaLog, attempt: str) -> tuple[list[DataFile], list[DataFile]]:
    """Files of a relation's table that hold open rows, which this slice writes anew, and files that keep what they
    also held.

    Open rows lie in files of their own, until a user's OPTIMIZE puts them together with rows that have ended: these
    are kept.
    """
    import json

    removes, adds = [], []
    for number, file in enumerate(log.files()):
        nulls = (json.loads(file.stats or "{}").get("nullCount") or {}).get("valid_to")
        if nulls == 0:
            continue
        removes.append(file)
        if nulls != file.rows:
            rows = scan.plan(log, [file]).read(log.schema().names, pc.field("valid_to").is_valid())
            if rows.num_rows:
                adds.append(write_file(rows, path, attempt, f"kept-{number}"))
    return removes, adds
