"""An application: a folder of ``.cql`` files and a data folder. What the jobs know about both, without Spark."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sweeparea.cql.binding.binder import InputSchema, bind
from sweeparea.cql.binding.source_expressions import CONDITION, INSTANTS, bind_source_expression
from sweeparea.cql.declarations.catalog import Catalog, base_name
from sweeparea.cql.functions.column_types import Analyze
from sweeparea.cql.rewrites import Input, hidden_query, take
from sweeparea.cql.syntax.source_formats import columns_of
from sweeparea.cql.text.errors import BindError, TypeError_, raise_all
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra import environments, locations, settings, storage
from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.operators.plan.plan import Plan, UserFunction
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.user_code.user_modules import Modules
from sweeparea.spark_jobs.admission.judging.rules import clause_faults
from sweeparea.spark_jobs.declarations.relation_source import (
    TIME_TYPES,
    RelationSource,
    expressions_of,
    no_column,
    source_of,
)
from sweeparea.spark_jobs.declarations.user_code import registered
from sweeparea.spark_jobs.deployment.registry import Registry
from sweeparea.spark_jobs.spark.errors import ReservedNameError
from sweeparea.tables.layout import Layout
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.schema import spark_type
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.sources.char_columns import CHARS
from sweeparea.tables.sources.landing import LandingTable
from sweeparea.tables.sources.source import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sweeparea.cql.syntax.statements import CreateQuery, CreateRelation, CreateStream

ENGINE_COLUMNS = ("__tick", "__seq", "__n", "__came")
CHANGES = "changes"
"""The name of the table in which a relation's changes are kept as its source tells them (``change_table.py``)."""


@dataclass
class Application:
    """``catalog`` is what the ``.cql`` files say, ``layout`` where the tables are, ``ledger`` what has been
    committed, ``registry`` what is deployed.

    ``name`` is what reports call it (``shop``, ``shop@dev``), ``given`` and ``options`` how its user named it on the
    command line, where that is known. ``faults`` are the errors of its files where it was
    opened leniently. ``analyze`` tells types that only Spark knows, where there is one to ask.
    """

    name: str
    catalog: Catalog
    data: locations.Folder
    folder: Path | None = None
    faults: tuple[SweepAreaError, ...] = ()
    analyze: Analyze | None = None
    given: str = ""
    options: tuple[str, ...] = ()
    layout: Layout = field(init=False)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.layout = Layout(str(self.data))
        self.ledger = Ledger(str(self.data))

    @classmethod
    def open(
        cls, application: str | Path, data: str | Path | None = None, env: str | None = None, lenient: bool = False
    ) -> Application:
        """``application`` is a folder of ``.cql`` files, or the name of one under ``queries/``.

        ``env`` is an environment of its ``sweeparea.toml``, also written ``shop@dev``. ``lenient`` keeps errors of the
        files in ``faults`` instead of raising them.
        """
        given = str(application)
        options = (*(("--data", str(data)) if data else ()), *(("--env", env) if env else ()))
        folder = Path(application)
        if not folder.is_dir():
            application, named = environments.split_name(str(application))
            env = env or named
            folder = Path(application)
        if not folder.is_dir():
            folder = settings.application(str(application))
        if not folder.is_dir():
            known = sorted(p.parent.name for p in settings.applications_folder().glob("*/*.cql"))
            listed = ", ".join(dict.fromkeys(known)) or "none"
            raise UsageError(
                f"There is no application {application}: neither {Path(application).absolute()} nor {folder} is a"
                f" folder. Give a folder of .cql files or one of the names under {settings.applications_folder()}:"
                f" {listed}."
            )
        folder = folder.resolve()
        environment = environments.chosen(folder, env)
        catalog, faults = Catalog.load_leniently(folder, environment)
        if not lenient:
            raise_all(faults)
        name = f"{folder.name}@{env}" if env else folder.name
        storage.use(environment.storage)
        where = locations.folder(data) if data else environment.data or default_data(folder)
        return cls(name, catalog, where, folder, tuple(faults), given=given, options=options)

    def command(self, verb: str, *arguments: str) -> str:
        """What to type to run a command on this application, as its user has named it."""
        return shlex.join(["sweeparea", *verb.split(), self.given or self.name, *arguments, *self.options])

    @functools.cached_property
    def registry(self) -> Registry:
        return Registry(self)

    # -- what is declared ----------------------------------------------------------------------------------------------

    def source(self, name: str) -> CreateStream | CreateRelation:
        """The declaration of a stream or relation."""
        declared = {**self.catalog.streams, **self.catalog.relations}
        if name not in declared:
            raise _unknown("stream or relation", name, declared)
        return declared[name]

    def stream(self, name: str) -> CreateStream:
        if name not in self.catalog.streams:
            raise _unknown("stream", name, self.catalog.streams)
        return self.catalog.streams[name]

    def query(self, name: str) -> CreateQuery:
        if name not in self.catalog.queries:
            raise _unknown("continuous query", name, self.catalog.queries)
        return self.catalog.queries[name]

    def is_query(self, name: str) -> bool:
        """Whether a name is a continuous query, declared or hidden."""
        return name in self.catalog.queries or is_hidden(name)

    def is_static(self, name: str) -> bool:
        """Whether an input is a snapshot, whose heartbeat is infinity."""
        return name in self.catalog.relations and self.catalog.relations[name].contents == "static"

    def never_changes(self, name: str, row: LedgerRow | None) -> bool:
        """Whether an input, whose ledger row is ``row``, has one and the same contents at all instants: a snapshot that
        was not refreshed.
        """
        return self.is_static(name) and not (row is not None and row.info.get("refreshed"))

    def unchanging(self) -> tuple[str, ...]:
        """The relations that never change."""
        head = self.ledger.head()
        return tuple(name for name in self.catalog.relations if self.never_changes(name, head.get(name)))

    def scale(self, name: str, time: TimeDomain) -> int:
        """How many of an admitted input's own ticks make one of a query's: relations count in microseconds and take the
        query's chronon.
        """
        return time.chronon if name in self.catalog.relations and time.kind == "TIMESTAMP" else 1

    def source_table(self, name: str) -> SourceTable:
        """The user's own Delta table behind a stream or relation, or the table in which its FORMAT is landed. Relative
        paths start at the data folder.
        """
        source = self.source(name).source
        if source.kind == "format":
            return LandingTable(self.layout.landing(name), columns_of(source), name)
        table = SourceTable(self.located(source.uri))
        row = self.ledger.head().get(name)
        if row is not None:
            table.padded = row.info.get(CHARS) or {}
        return table

    def char_columns(self, name: str) -> dict[str, str]:
        """The columns of a source that are read as Spark reads CHAR(n), padded, with their declared types: those that
        were first admitted so, else all that the source has. What an earlier version admitted was never padded.
        """
        row = self.ledger.head().get(name)
        return self.source_table(name).char_columns() if row is None else dict(row.info.get(CHARS) or {})

    def chars_of(self, name: str) -> tuple[tuple[str, str], ...]:
        """The columns of a source that hold CHAR values, with their declared types."""
        return tuple(self.char_columns(name).items())

    def source_text(self, name: str) -> str:
        """Where a stream or relation comes from, for people."""
        source = self.source(name).source
        where = self.located(source.uri) if source.uri else ""
        return where if source.kind == "delta" else f"{source.format} {where}".rstrip()

    def located(self, uri: str) -> str:
        """A path of a declaration: an address or absolute as it is, else from the data folder on."""
        return uri if "://" in uri or uri.startswith("/") else str(self.data / uri)

    @functools.cached_property
    def _schemas(self) -> dict[str, InputSchema]:
        return {}

    def forget_schemas(self) -> None:
        """Schemas are read anew: an input has changed its columns."""
        self._schemas.clear()

    def input_schema(self, name: str) -> InputSchema:
        """Columns, types and time of an input, from what was admitted, else from its source or its query's plan."""
        # one after the other, since a chain of queries may be longer than Python's calls may nest
        for each in (*self._queries_under(name), name):
            if each not in self._schemas:
                owner = self.owner(each)
                if owner != each:
                    self._schemas[each] = self._materialization_schema(each, owner)
                elif self.is_query(each):
                    self._schemas[each] = self._query_schema(each)
                else:
                    self._schemas[each] = self._source_schema(each)
        return self._schemas[name]

    def _queries_under(self, name: str) -> list[str]:
        """The queries that an input rests on, as it reads them and as far as their schemas are not known; each after
        what it reads.
        """
        found: dict[str, None] = {}
        open_ = [(name, False)]
        while open_:
            each, seen = open_.pop()
            if seen:
                found[each] = None
            elif each not in self._schemas and each not in found:
                owner = self.owner(each)
                if owner in self.catalog.queries and owner not in self.catalog.cycles:
                    open_.append((each, True))
                    open_ += [(read, False) for read in reversed(self.catalog.inputs(owner))]
        return list(found)

    def _source_schema(self, name: str) -> InputSchema:
        if name in self.catalog.relations:
            return self._relation_schema(name)
        admitted = DeltaLog(self.layout.admitted(name))
        if admitted.exists():
            fields = [f for f in admitted.schema() if f.name not in ENGINE_COLUMNS]
            columns = tuple((f.name, spark_type(f.type)) for f in fields)
        else:
            columns = tuple(self.source_table(name).spark_schema())
            refuse_reserved(name, [column for column, _ in columns])
        sequence = self.catalog.streams[name].sequence_by
        time = self.stream_time(name, dict(columns))
        return InputSchema(name, "stream", columns, time, sequence_by=sequence, chars=self.chars_of(name))

    def _relation_schema(self, name: str) -> InputSchema:
        source = self.relation_source(name)
        declared = self.catalog.relations[name]
        return InputSchema(
            name,
            "relation",
            source.record_columns,
            source.time,
            retroactive=declared.retroactive,
            static=self.is_static(name),
            chars=self.chars_of(name),
        )

    def relation_source(self, name: str) -> RelationSource:
        """How the source of a relation is read: as it was first admitted, else as it is now."""
        declared, log = self.catalog.relations[name], DeltaLog(self.layout.state(name, CHANGES))
        # a log of changes beside a static relation was left by another definition
        static = declared.contents == "static" and not log.exists()
        kept = DeltaLog(self.layout.admitted(name)) if static else log
        if kept.exists() and (static or declared.contents != "static"):
            columns = [(f.name, spark_type(f.type)) for f in kept.schema() if not f.name.startswith("__")]
        else:
            columns = self.source_table(name).spark_schema()
            refuse_reserved(name, [column for column, _ in columns])
        return replace(source_of(declared, columns), chars=self.chars_of(name))

    def stream_time(self, name: str, types: Mapping[str, str | None]) -> TimeDomain:
        """The time domain of a stream; refuses a TIMESTAMP BY column that is missing or no time."""
        declared = self.catalog.streams[name]
        column, place = declared.timestamp_by, declared.places.get("timestamp_by", declared.place)
        if column not in types:
            raise no_column("TIMESTAMP BY", column, types, place)
        kind = TIME_TYPES.get(types[column] or "")
        if kind is None:
            times = [c for c, t in types.items() if t in TIME_TYPES]
            raise TypeError_(
                f"TIMESTAMP BY {column} of stream {name} is of type {types[column]}, which is no time. It must be"
                " TIMESTAMP, TIMESTAMP_NTZ, DATE or BIGINT; columns of such a type here:"
                f" {', '.join(times) or 'none'}",
                place,
                "Convert the column in the source table, or name another",
            )
        chronon = declared.chronon_us
        if kind == "BIGINT" and chronon not in (None, 1):
            raise TypeError_(
                f"CHRONON of stream {name} is a length of time, but TIMESTAMP BY {column} is a BIGINT sequence number,"
                " whose tick is 1",
                declared.places.get("chronon_us", place),
                "Remove CHRONON, or use a TIMESTAMP column",
            )
        return TimeDomain(kind, chronon or 1)

    def source_expressions(self, name: str) -> tuple[str | None, list[str]]:
        """Spark SQL of a stream's heartbeat and of its constraints, over its columns. All of their faults are raised:
        BindError for an unknown column, TypeError_ for a heartbeat that is no time of the stream, or a constraint that
        is no condition.
        """
        declared, schema = self.stream(name), self.input_schema(name)
        faults: list[SweepAreaError] = []
        heartbeat: str | None = None
        try:
            heartbeat = self.heartbeat_of(declared, schema)
        except SweepAreaError as error:
            faults.append(error)
        faults += clause_faults(declared, schema, self.modules)
        constraints: list[str] = []
        for spec in declared.constraints:
            what = f"constraint {spec.name}"
            try:
                bound = bind_source_expression(spec.expression, schema, what, CONDITION, self.analyze)
                constraints.append(bound.sql)
            except SweepAreaError as error:
                faults.append(error)
        raise_all(faults)
        return heartbeat, constraints

    def check_source(self, name: str) -> None:
        """Raises all faults of what a stream or relation says of its source: of the columns that its clauses name, of
        its heartbeat and its constraints.
        """
        if name in self.catalog.streams:
            self.source_expressions(name)
        else:
            expressions_of(self, self.relation_source(name))

    def heartbeat_of(self, declared: CreateStream | CreateRelation, schema: InputSchema) -> str | None:
        """Spark SQL of the instants that a source's heartbeat is taken from; None where it comes from elsewhere."""
        spec, wanted = declared.heartbeat, INSTANTS[schema.time.kind]
        if spec is None:
            return None
        types = {column.lower(): (column, kind) for column, kind in schema.columns}
        column, kind = (None, None) if spec.column is None else types.get(spec.column.lower(), (None, None))
        if spec.column is not None and column is None:
            known = [name for name, _ in schema.columns]
            raise no_column("HEARTBEAT", spec.column, known, spec.place or declared.place)
        if spec.kind in ("for", "per") and spec.expression is not None:
            return bind_source_expression(spec.expression, schema, "HEARTBEAT", wanted, self.analyze).sql
        if spec.kind != "column" or column is None:
            return None
        if kind is not None and kind not in wanted.types:
            times = ", ".join(name for name, other in schema.columns if other in wanted.types)
            raise TypeError_(
                f"HEARTBEAT FROM COLUMN {column} needs {wanted.words}, but it is of type {kind.upper()}",
                spec.place or declared.place,
                f"Columns of such a type: {times or 'none'}",
            )
        return "`" + column.replace("`", "``") + "`"

    def _query_schema(self, name: str) -> InputSchema:
        plan = self.plan(name) if is_hidden(name) else self.whole(name)
        columns = [(c.label, c.type) for c in plan.root.columns]
        result = DeltaLog(self.layout.result(name))
        if result.exists():
            types = {f.name: spark_type(f.type) for f in result.schema()}
            columns = [(label, types.get(label, kind)) for label, kind in columns]
        kind = "stream" if plan.stream else "relation"
        return InputSchema(name, kind, tuple(columns), plan.time, derived=True, chars=plan.chars)

    def _materialization_schema(self, name: str, query: str) -> InputSchema:
        """The schema of ``q__istream`` and its like: the query's columns under another kind of table."""
        plan, kind = self.whole(query), name.rpartition("__")[2]
        if kind not in (plan.kind, *plan.materialize):
            kept = ", ".join(k.upper() for k in plan.materialize)
            declared = self.catalog.queries.get(query)
            raise BindError(
                f"{name} is not kept: {query} materializes {kept}",
                getattr(declared, "place", None),
                f"Write MATERIALIZE {kept}, {kind.upper()} in {query}, or read {query} itself",
            )
        own = self.input_schema(query)
        return replace(own, name=name, kind="relation" if kind == "relation" else "stream")

    def owner(self, name: str) -> str:
        """The query whose materialization an input is; any other name as it is."""
        base = base_name(name)
        return base if base != name and base in self.catalog.queries else name

    def result_table(self, name: str) -> str:
        """The folder of a query's result, or of one of its materializations."""
        owner = self.owner(name)
        kind = name.rpartition("__")[2]
        return self.layout.result(owner if owner != name and kind == self.plan(owner).kind else name)

    def fingerprint(self, name: str) -> str:
        """The identity of a name's definition."""
        return self.registry.wanted(name).fingerprint

    def plan(self, name: str) -> Plan:
        """The plan of a query as it is run: over the hidden queries that it shares, or a hidden query's own."""
        if is_hidden(name):
            return self._hidden_plan(name)
        plan = self.whole(name)
        return take(plan, self.registry.planned(name).shared)

    def whole(self, name: str, measured: Mapping[str, Input] | None = None) -> Plan:
        """The plan of a query over its declared inputs, whatever it shares with others. ``measured`` stands in for the
        rates of inputs that it was registered with.
        """
        if name in self.catalog.cycles:
            raise self.catalog.cycles[name]
        if is_hidden(name):
            return self._hidden_plan(name)
        query = self.query(name)
        known = self.registry.rates_of(name) if measured is None else measured
        return self.bind(query, self.catalog.settings, known, self.registry.columns_of(name))

    def _hidden_plan(self, name: str) -> Plan:
        """Made from any query that reads it: all give the same."""
        for query in self.catalog.queries:
            try:
                plan = hidden_query(self.whole(query), name) if name in self.registry.planned(query).shared else None
            except SweepAreaError:
                continue  # a reader that cannot be bound; there may be others
            if plan is not None:
                return plan
        raise SweepAreaError(
            f"{name} computes a subplan that queries shared, but no query of the files has that subplan any more, so it"
            f" is not run. Declare its readers again, or let `{self.command('apply', '--prune')}` drop them and it."
        )

    def hidden(self, name: str) -> tuple[str, ...]:
        """The hidden queries that a query reads; they have to be processed before it."""
        return () if is_hidden(name) else tuple(n for n in self.plan(name).inputs if is_hidden(n))

    def bind(
        self,
        query: CreateQuery,
        settings: Mapping[str, str],
        measured: Mapping[str, Input] | None = None,
        columns: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Plan:
        """The plan of a query over this application's streams, relations and queries. ``measured`` are rates of its
        inputs, ``columns`` those that it knows of inputs which have gained others.
        """
        self.catalog.check_names(query)
        inputs = {i: self.input_schema(i) for i in self.catalog.inputs(query)}
        for name, known in (columns or {}).items():
            if name in inputs:
                kept = tuple((column, kind) for column, kind in inputs[name].columns if column in known)
                inputs[name] = replace(inputs[name], columns=kept)
        return bind(query, inputs, settings, self.functions, self.analyze, measured)

    @functools.cached_property
    def modules(self) -> Modules | None:
        """The Python sources beside the ``.cql`` files, as they were when they were first needed."""
        if self.folder is None:
            return None
        sources = (*self.catalog.streams.values(), *self.catalog.relations.values())
        policies = (s.heartbeat.policy for s in sources if s.heartbeat is not None and s.heartbeat.policy)
        return Modules.of(self.folder, *(f.target for f in self.catalog.functions.values()), *policies)

    @functools.cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        """The user's own functions, aggregates and windows, imported."""
        return registered(self.catalog.functions.values(), self.modules)

    # -- what has happened ---------------------------------------------------------------------------------------------

    def heartbeats(self, plan: Plan, head: dict[str, LedgerRow]) -> dict[str, int | None]:
        """Per input the instant up to which it is known (``INF`` for static relations)."""
        from sweeparea.heartbeats.minimum import INFINITE
        from sweeparea.heartbeats.policies import last_tick_at

        found: dict[str, int | None] = {}
        for name in plan.inputs:
            row = head.get(self.owner(name))
            if self.is_static(name):
                found[name] = INFINITE if row else None
            elif row is None or row.committed is None:
                found[name] = None
            else:
                found[name] = last_tick_at(row.committed, self.scale(name, plan.time))
        return found

    def registration(self, name: str, row: LedgerRow | None) -> str:
        """The registration id of a name, which is registered now if it never was; a definition that would give other
        results than the deployed one is refused. ``row`` is the name's ledger row.
        """
        return self.registry.registration(name, row)

    def rests_on(self, query: str) -> tuple[str, ...]:
        """A query and the names whose definitions its results rest on: what it reads, and the functions it calls."""
        plan = self.plan(query)
        functions = [f.name for f in plan.functions if f.name in self.catalog.functions]
        return tuple(dict.fromkeys((query, *map(self.owner, plan.inputs), *functions)))

    def settle(self, query: str) -> None:
        """Fixes what a query's plan is chosen by, before its first slice."""
        self.registry.settle(query)

    @contextmanager
    def analyzing(self, spark: SparkSession) -> Iterator[None]:
        """While inside, types are asked of a session."""
        from sweeparea.spark_jobs.declarations.analysis import analyzer

        with self.asking(analyzer(spark)):
            yield

    @contextmanager
    def asking(self, analyze: Analyze | None) -> Iterator[None]:
        """While inside, types are asked of ``analyze``; None: of what they were asked of before."""
        before, self.analyze = self.analyze, analyze or self.analyze
        try:
            yield
        finally:
            self.analyze = before

    def check_state(self, plan: Plan, row: LedgerRow | None) -> None:
        """Refuses to continue SweepAreas that another plan has left. ``row`` is the query's ledger row."""
        self.registry.check_state(plan, row)

    def paused(self, name: str) -> bool:
        """Whether a query was paused (PAUSE CONTINUOUS QUERY)."""
        row = self.registry.deployed.rows().get(name)
        return row is not None and row.paused


def refuse_reserved(name: str, columns: Iterable[str]) -> None:
    """Refuses a source with columns in the engine's own name space: its tables add ``__tick``, ``__seq``, ``__n``."""
    taken = [c for c in columns if c.startswith("__")]
    if taken:
        raise ReservedNameError(
            f"{name}: its source has the column(s) {', '.join(taken)}. Names that begin with two underscores are"
            " SweepArea's own. Rename them in the source table."
        )


def default_data(folder: Path) -> Path:
    """The data folder of an application: ``.data/<name>`` for those under ``queries/``, else ``.data`` in its own
    folder.

    Two folders of one name in different places must not share tables.
    """
    installed = folder.parent == settings.applications_folder().resolve()
    return settings.data(folder.name) if installed else folder / ".data"


def _unknown(what: str, name: str, known: object) -> SweepAreaError:
    import difflib

    names = sorted(str(n) for n in known)  # type: ignore[attr-defined]
    near = difflib.get_close_matches(name, names, 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return UsageError(f"There is no {what} named {name}.{hint} Known: {', '.join(names) or 'none'}.")
