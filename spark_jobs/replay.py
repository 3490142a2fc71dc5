"""Replay: small cases through the real engine, from JSON lines to JSON lines. For trying the language, and for tests.

A case names streams and relations with their rows, a query and the heartbeats. It gets a data folder of its own; each
heartbeat admits the rows that its slice brings and processes the queries: parser, planner, slices, SweepAreas, ledger
and Delta tables are those of production. Only the source tables and Airflow are left out.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.binder import InputSchema, bind_select
from sweeparea.cql.errors import listing
from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.operators.logical import Plan, TimeDomain
from sweeparea.operators.order import record_sort_indices
from sweeparea.spark_jobs import json_values
from sweeparea.spark_jobs.admission.admit_stage import next_seq
from sweeparea.spark_jobs.deployment.analysis import analyzer
from sweeparea.spark_jobs.deployment.application import Application, refuse_reserved
from sweeparea.spark_jobs.errors import readable
from sweeparea.spark_jobs.slices.process import process
from sweeparea.tables.delta_log import DeltaLog
from sweeparea.tables.files import write_file
from sweeparea.tables.ledger import CORRECTION, LedgerRow
from sweeparea.tables.publish import Publication
from sweeparea.tables.schema import arrow_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MICROSECOND = TimeDomain("TIMESTAMP", 1)
RESULT = "query"
"""The name of a case's last query, unless its input or another query has that name."""


def replay(lines: Iterable[str], spark: SparkSession) -> Iterator[dict[str, Any]]:
    """One result per case line, in order. A failing case gives its error and does not stop the others.

    Cases run side by side on the one session, one a core: a small case leaves Spark idle half of its time.
    """
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        ahead: collections.deque[Future[dict[str, Any]]] = collections.deque()
        for line in lines:
            if not line.strip():
                continue
            ahead.append(pool.submit(_outcome, line, spark))
            if len(ahead) > 2 * (os.cpu_count() or 1):  # so that a long file is read as it is needed
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _outcome(line: str, spark: SparkSession) -> dict[str, Any]:
    name = None
    try:
        case = json.loads(line)
        if not isinstance(case, dict):
            raise DataError("A case is a JSON object, one a line.")
        name = case.get("name")
        folder = Path(tempfile.mkdtemp(prefix="sweeparea-replay-"))
        try:
            return {"name": name, **Case(case, folder, spark).run()}
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except json.JSONDecodeError as error:
        return _failure(None, DataError(f"The line is no JSON: {error}."))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return _failure(name, DataError(f"The case is malformed: {type(error).__name__}: {error}."))
    except Exception as error:
        return _failure(name, readable(error, "replay"))


def _failure(name: Any, error: SweepAreaError) -> dict[str, Any]:
    return {"name": name, "error": {"type": error.type, "message": str(error)}}


def _member(given: dict[str, Any], member: str, what: str) -> Any:
    """A member that a case, or a part of it, must have."""
    if isinstance(given, dict) and member in given:
        return given[member]
    has = f"it has {listing(given) or 'none at all'}" if isinstance(given, dict) else f"it is {given!r}"
    raise DataError(f'{what} needs a member "{member}", but {has}. {_SHOWN}')


def _shaped(value: Any, kind: type[dict[str, Any]] | type[list[Any]], what: str) -> Any:
    """A part of a case that is an object or a list; empty where it is left out."""
    if value is None or isinstance(value, kind):
        return value or kind()
    raise DataError(f"{what} is {'an object' if kind is dict else 'a list'}, not {value!r}. {_SHOWN}")


_SHOWN = "docs/running.md shows what a case holds."
_TABLES = ("relation", "istream", "dstream")


def _type(source: str, column: str, ddl: Any) -> pa.DataType:
    try:
        return arrow_type(ddl)
    except SweepAreaError as error:
        raise DataError(f"{source}.{column}: {error}") from None


def _key(value: Any) -> str:
    """One text for all values that are equal in the total order of records: -0.0 is 0.0, maps have no order."""
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, dict):
        return ",".join(f"{name!r}:{_key(v)}" for name, v in value.items())
    if isinstance(value, list):
        entries = [f"({','.join(map(_key, v))})" if isinstance(v, tuple) else _key(v) for v in value]
        return f"[{','.join(sorted(entries) if value and isinstance(value[0], tuple) else entries)}]"
    return repr(value)


class _Source:
    """One input of a case: its rows as Arrow columns, in order of tick, and how far they have been admitted."""

    def __init__(self, name: str, kind: str, spec: dict[str, Any], rows: list[list[Any]], time: TimeDomain) -> None:
        self.name, self.kind, self.time = name, kind, time
        columns = _shaped(_member(spec, "columns", f"{kind.capitalize()} {name}"), dict, f"The columns of {name}")
        self.types = {column: _type(name, column, ddl) for column, ddl in columns.items()}
        refuse_reserved(name, self.types)
        self.late = spec.get("late") or "reject"
        if self.late not in ("reject", "repair"):
            raise DataError(f"{name}: late is 'reject' or 'repair', not {self.late!r}.")
        self.retroactive = bool(spec.get("retroactive", True))
        self.sequence_by = self._sequence_by(spec.get("sequence_by"))
        self.schema = pa.schema(
            [*self.types.items(), ("__tick", pa.int64()), ("__seq", pa.int64()), ("__n", pa.int64())]
        )
        self.heartbeat: int | None = None
        self.quarantine: list[list[Any]] = []
        self.pending: list[tuple[int, int, list[Any]]] = []  # (tick, sign, values)
        self.arrivals: list[tuple[int, Any, list[Any]]] = []
        for row in _shaped(rows, list, f"What {kind} {name} holds"):
            self._receive(row)
        for after, tick, values in spec.get("arrivals", ()):
            self.arrivals.append((int(after), tick, values))

    def _sequence_by(self, given: Any) -> str | None:
        """The column that orders elements of one instant."""
        if given is None or str(given).lower() in (column.lower() for column in self.types):
            return given
        raise DataError(f"{self.name}: sequence_by names {given}, which is no column of it.")

    def tick(self, given: Any) -> int | None:
        """A tick of the case: a number, or an ISO string where time is TIMESTAMP."""
        if given is None or (isinstance(given, int) and not isinstance(given, bool)):
            return given
        if isinstance(given, str) and self.time.kind == "TIMESTAMP":
            return json_values.micros_of(given)
        if isinstance(given, str) and given.lstrip("-").isdigit():
            return int(given)
        raise DataError(f"{self.name}: {given!r} is no tick.")

    def _receive(self, row: list[Any]) -> None:
        if not isinstance(row, list) or len(row) < 2 or not isinstance(row[-1], list):
            shape = "[tick, [values]]" if self.kind == "stream" else '[tick, "+" or "-", [values]]'
            raise DataError(f"{self.name}: a row is {shape}, not {row!r}.")
        tick, values = self.tick(row[0]), row[-1]
        if len(values) != len(self.types):
            raise DataError(f"{self.name}: a row has {len(values)} values for {len(self.types)} columns: {values!r}.")
        if tick is None:
            self.quarantine.append([self.name, None, values, "timestamp is NULL"])
        elif abs(tick) > 1 << 62:
            self.quarantine.append(
                [self.name, tick, values, "timestamp is outside the time domain of [-2^62, 2^62] ticks"]
            )
        elif self.late == "reject" and self.kind == "stream" and self.is_late(tick):
            self.quarantine.append(
                [self.name, self._shown(tick), values, f"late: at or below the heartbeat (tick {self.heartbeat})"]
            )
        else:
            self.pending.append((tick, self._sign(row), values))

    def _sign(self, row: list[Any]) -> int:
        if self.kind == "stream":
            return 1
        if row[1] not in ("+", "-"):
            raise DataError(f"relation {self.name}: a change is '+' or '-', not {row[1]!r}.")
        return 1 if row[1] == "+" else -1

    def _shown(self, tick: int) -> Any:
        return json_values.iso(tick) if self.time.kind == "TIMESTAMP" else tick

    def is_late(self, tick: int) -> bool:
        """Whether an element of this instant comes at or below the heartbeat."""
        return self.heartbeat is not None and tick <= self.heartbeat

    @property
    def has_late(self) -> bool:
        """Whether late elements are waiting to be admitted."""
        return any(self.is_late(tick) for tick, _, _ in self.pending)

    def check_arrivals(self, heartbeats: int) -> None:
        """DataError for a row that would never arrive."""
        for after, *_ in self.arrivals:
            if not 0 <= after <= heartbeats:
                raise DataError(
                    f"{self.name}: a row of arrivals comes after heartbeat {after}, but the case has {heartbeats}."
                    " Count from 1; 0 is before the first one."
                )

    def deliver(self, after: int) -> None:
        """The arrivals that come after the ``after``-th heartbeat."""
        for when, tick, values in self.arrivals:
            if when == after:
                self._receive([tick, values])

    def advance(self, heartbeat: int) -> pa.Table:
        """Moves the heartbeat; the rows whose tick the slice covers."""
        if self.heartbeat is not None and heartbeat < self.heartbeat:
            raise DataError(f"{self.name}: the heartbeat stands at {self.heartbeat} and cannot go back to {heartbeat}.")
        self.heartbeat = heartbeat
        ripe = [p for p in self.pending if p[0] <= heartbeat]
        self.pending = [p for p in self.pending if p[0] > heartbeat]
        columns = [
            json_values.column([values[i] for _, _, values in ripe], kind, f"{self.name}.{column}")
            for i, (column, kind) in enumerate(self.types.items())
        ]
        ticks = pa.array([tick for tick, _, _ in ripe], pa.int64())
        signs = pa.array([sign for _, sign, _ in ripe], pa.int64())
        return pa.table([*columns, ticks, pa.nulls(len(ripe), pa.int64()), signs], schema=self.schema)


class Case:
    """One case: its inputs, its application and its result."""

    def __init__(self, case: dict[str, Any], folder: Path, spark: SparkSession) -> None:
        self.spark, self.folder, self.case = spark, folder, case
        self.time = MICROSECOND if str(case.get("time", "BIGINT")).upper() == "TIMESTAMP" else TimeDomain()
        self.sources = {
            name: _Source(name, kind, spec, spec.get(member, []) if isinstance(spec, dict) else [], self.time)
            for kind, member, group in (("stream", "rows", "streams"), ("relation", "changes", "relations"))
            for name, spec in _shaped(case.get(group), dict, f"The member {group}").items()
        }
        self.totals: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        queries = [
            tuple(_member(q, member, f"Number {i} of queries") for member in ("name", "query"))
            for i, q in enumerate(_shaped(case.get("queries"), list, "The member queries"), start=1)
        ]
        taken = {*self.sources, *(name for name, _ in queries)}
        self.name = next(n for n in (RESULT, *(f"{RESULT}_{i}" for i in range(len(taken) + 1))) if n not in taken)
        self.queries = [*queries, (self.name, _member(case, "query", "The case"))]
        self.start = self._tick(case.get("start_at", 0))
        self.rstream = self._rstream(case.get("rstream"))
        self.sampled: str | None = None

    def _tick(self, given: Any) -> int:
        if isinstance(given, str) and self.time.kind == "TIMESTAMP":
            return json_values.micros_of(given)
        if isinstance(given, bool) or not isinstance(given, int):
            raise DataError(f"{given!r} is no tick.")
        return given

    def _rstream(self, given: Any) -> tuple[int, int] | None:
        """Every and anchor, in ticks, of the Rstream that the result shows beside the query's own type."""
        if given is None:
            return None
        every, anchor = self._tick(given.get("every", 1)), self._tick(given.get("anchor", 0))
        if every < 1:
            raise DataError(f"rstream: every is {every}, but must be a positive number of ticks.")
        return every, anchor

    def run(self) -> dict[str, Any]:
        application = self._application()
        heartbeats = self._heartbeats()
        for source in self.sources.values():
            source.check_arrivals(len(heartbeats))
        plan = application.plan(self.name)  # errors of the text before anything runs
        if self.rstream is not None:
            if plan.stream == "rstream" and self.rstream != (plan.every or 1, plan.anchor):
                # the query's own RSTREAM has other instants: the same query once more
                self.sampled = f"{self.name}_sampled"
                self.queries.append((self.sampled, self.case["query"]))
            application = self._application({self.sampled or self.name: self.rstream})
            plan = application.plan(self.name)
        for source in self.sources.values():
            source.deliver(0)
        for k, step in enumerate(heartbeats, start=1):
            for name, heartbeat in step.items():
                if heartbeat is not None:
                    self._admit(application, self.sources[name], heartbeat)
            for name, _ in self.queries:
                process(application, name, self.spark)
            for source in self.sources.values():
                source.deliver(k)
        late = [source for source in self.sources.values() if source.has_late]
        for source in late:
            assert source.heartbeat is not None
            self._admit(application, source, source.heartbeat)
        for name, _ in self.queries if late else ():
            process(application, name, self.spark)
        return self._result(application, plan)

    def _heartbeats(self) -> list[dict[str, int | None]]:
        given = _member(self.case, "heartbeats", "The case")
        if isinstance(given, dict):
            unknown = [n for n in given if n not in self.sources]
            if unknown:
                raise DataError(f"heartbeats are given for {', '.join(unknown)}, which the case does not declare.")
            length = max((len(v) for v in given.values()), default=0)
            return [
                {name: None if k >= len(v) or v[k] is None else self._tick(v[k]) for name, v in given.items()}
                for k in range(length)
            ]
        return [dict.fromkeys(self.sources, self._tick(h)) for h in given]

    def _application(self, rstreams: dict[str, tuple[int, int]] | None = None) -> Application:
        application = ReplayApplication(
            self.folder, self.sources, self.queries, self.start, self.case, self.time, rstreams
        )
        application.analyze = analyzer(self.spark)
        return application

    def _admit(self, application: Application, source: _Source, heartbeat: int) -> None:
        before = source.heartbeat
        rows = source.advance(heartbeat)
        if source.kind == "relation":
            self._check_net(source, rows)
        registration = application.registration(source.name, application.ledger.head().get(source.name))
        publication = Publication(str(self.folder), application.ledger, source.name, source.kind, registration)
        attempt = publication.begin()
        path = application.layout.admitted(source.name)
        DeltaLog(path).create(
            source.schema, name=source.name, description=f"{source.kind} of a case", configuration=None
        )
        if rows.num_rows:
            seq = next_seq(publication)
            stamped = rows.set_column(rows.num_columns - 2, "__seq", pa.array([seq] * rows.num_rows, pa.int64()))
            publication.stage(
                path, adds=[write_file(stamped.cast(source.schema), path, attempt, f"seq-{seq}")], removes=[]
            )
        info = dict(publication.previous.info) if publication.previous else {}
        ticks = rows.column("__tick").to_pylist()
        first = min(ticks, default=None)
        if before is not None and first is not None and first <= before:
            info[CORRECTION] = next_seq(publication)
        publication.commit(committed=heartbeat, pins={}, info=info)

    def _check_net(self, source: _Source, rows: pa.Table) -> None:
        """A relation never holds fewer than no copies of a record (semantics: judged when the heartbeat passes)."""
        counts = self.totals[source.name]
        records = rows.select(list(source.types)).to_pylist()
        changes = sorted(
            zip(rows.column("__tick").to_pylist(), rows.column("__n").to_pylist(), map(_key, records), strict=True)
        )
        for i, (tick, n, record) in enumerate(changes):
            counts[record] += n
            if i + 1 == len(changes) or changes[i + 1][0] != tick:
                below = [r for r, count in counts.items() if count < 0]
                if below:
                    raise DataError(
                        f"relation {source.name}: at tick {tick} more copies of {below[0]} have been removed than were"
                        " ever added."
                    )

    # -- the result ----------------------------------------------------------------------------------------------------

    def _result(self, application: Application, plan: Plan) -> dict[str, Any]:
        labels = [c.label for c in plan.root.columns]
        found: dict[str, Any] = {"columns": labels}

        def rows(name: str) -> list[list[Any]]:
            table = DeltaLog(application.layout.result(name))
            return _sorted_rows(table.read(), len(labels), self.time) if table.exists() else []

        for what in plan.materialize:
            found[what] = rows(plan.table(what))
        if plan.stream:
            found["stream"] = found[plan.stream]
        if self.sampled is not None:
            found["rstream"] = rows(self.sampled)
        if self.rstream is None:
            found.pop("rstream", None)
        quarantined = [row for source in self.sources.values() for row in source.quarantine]
        if quarantined:
            found["quarantine"] = quarantined
        return found


def _sorted_rows(table: pa.Table, width: int, time: TimeDomain) -> list[list[Any]]:
    """Rows as ``[tick, values]`` or ``[ts, te, values]``, sorted by instants and the total order of records."""
    names = [f"c{i}" for i in range(table.num_columns)]
    table = table.rename_columns(names)
    instants, record = names[width:], names[:width]
    if time.kind == "TIMESTAMP":
        for name in instants:
            at = names.index(name)
            table = table.set_column(at, name, table.column(name).cast(pa.timestamp("us")).cast(pa.int64()))
    keyed = table
    if len(instants) > 1:
        last = pc.fill_null(table.column(instants[1]), (1 << 63) - 1)
        keyed = keyed.set_column(width + 1, instants[1], last)
    table = table.take(pa.array(record_sort_indices(keyed, [*instants, *record])))
    shown = [_instants(table.column(name).to_pylist(), time) for name in instants]
    values = json_values.rows(table, range(width))
    return [[*moments, row] for *moments, row in zip(*shown, values, strict=True)]


def _instants(ticks: list[int | None], time: TimeDomain) -> list[Any]:
    return [json_values.iso(t) if t is not None and time.kind == "TIMESTAMP" else t for t in ticks]


@dataclass
class _Declared:
    """What stands in for a catalog: the names a case declares, and each query's text."""

    streams: list[str]
    relations: list[str]
    queries: dict[str, str]


class ReplayApplication(Application):
    """An application that a case describes: no source tables, no ``.cql`` files."""

    def __init__(
        self,
        folder: Path,
        sources: dict[str, _Source],
        queries: list[tuple[str, str]],
        start: int,
        case: dict[str, Any],
        time: TimeDomain,
        rstreams: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        self._sources, self._time, self._start, self._rstreams = sources, time, start, rstreams or {}
        settings = {"strategy": case.get("strategy"), **(case.get("settings") or {})}
        self._settings = {
            k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in settings.items() if v is not None
        }
        # all that a result shows, or what the case says; the stream itself is always kept
        self._kept: tuple[str, ...] = tuple(case.get("materialize") or _TABLES)
        self._plans: dict[str, Plan] = {}
        declared = _Declared(
            [n for n, s in sources.items() if s.kind == "stream"],
            [n for n, s in sources.items() if s.kind == "relation"],
            dict(queries),
        )
        super().__init__("replay", declared, folder)  # type: ignore[arg-type]

    def is_static(self, name: str) -> bool:
        return False

    def registration(self, name: str, row: LedgerRow | None) -> str:
        """A case lives for one run, so nothing of it is registered."""
        return str(uuid.uuid4()) if row is None else row.registration

    def fingerprint(self, name: str) -> str:
        return "replay"

    def whole(self, name: str, measured: object = None) -> Plan:
        """A case's queries share nothing with each other."""
        return self.plan(name)

    def rests_on(self, query: str) -> tuple[str, ...]:
        """Nothing of a case is registered."""
        return ()

    def settle(self, query: str) -> None:
        """A case's plans are made once."""

    def check_state(self, plan: Plan, row: LedgerRow | None) -> None:
        """A case's plans are made once."""

    def paused(self, name: str) -> bool:
        return False

    def plan(self, name: str) -> Plan:
        """Binds the query over the inputs and the queries before it; all of its tables are kept, since the result
        shows them.
        """
        if name not in self._plans:
            texts: dict[str, str] = self.catalog.queries  # type: ignore[assignment]
            before = list(texts)[: list(texts).index(name)]
            kept = [f"{n}__{kind}" for n in before for kind in self.plan(n).materialize]
            names = [*self._sources, *before, *(n for n in kept if n not in self._sources)]
            inputs = {n: self.input_schema(n) for n in names}
            # others read what comes before the last, so it is kept whole
            kinds = _TABLES if name in self._rstreams or name != list(texts)[-1] else self._kept
            plan = bind_select(
                texts[name],
                inputs,
                self._settings,
                name=name,
                start=self._start,
                analyze=self.analyze,
                materialize=kinds,
            )
            kinds = plan.materialize
            if name in self._rstreams:
                every, anchor = self._rstreams[name]
                plan = replace(plan, every=every, anchor=anchor)
            if name in self._rstreams or plan.stream == "rstream":
                kinds = (*(k for k in kinds if k != "rstream"), "rstream")
            self._plans[name] = replace(plan, materialize=kinds)
        return self._plans[name]

    def _source_schema(self, name: str) -> InputSchema:
        source = self._sources[name]
        columns = tuple((column, spark_type(kind)) for column, kind in source.types.items())
        return InputSchema(
            name, source.kind, columns, self._time, retroactive=source.retroactive, sequence_by=source.sequence_by
        )
