"""What a run read and wrote, for a catalog of lineage: tables, columns and what they are made of, rows, verdicts.

Said of tables as they lie in folders or object stores, by their addresses; ``dags/lineage.py`` makes OpenLineage's
facets of it. No Spark: it is asked of the files, the ledger and the query's plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sweeparea.operators.plan.influence import Influence
from sweeparea.operators.plan.origins import Origins, origins
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.quality import suites
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.status_json import warnings_of
from sweeparea.spark_jobs.declarations.sources import ENGINE_COLUMNS
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.schema import spark_type
from sweeparea.tables.publication.ledger import LedgerRow

COMMITS_COUNTED = 100
"""Of a run that committed more often, such as a backfill in many slices, the rows of its last commits are counted."""

Field = tuple[str, str]
"""A column: the address of its table, its name."""
Fields = dict[Field, frozenset[Influence]]


@dataclass(frozen=True)
class Table:
    """A table: its address or absolute path, and its columns, each with its Spark type where that is known."""

    address: str
    columns: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class Judged:
    """A check of a verdict: its name, the column that it looks at (None: rows), whether it only warns, and how many
    rows broke it.
    """

    name: str
    column: str | None
    warns: bool
    broken: int


@dataclass(frozen=True)
class WrittenTable:
    """A table that is written. ``made``: per column what goes into it; ``decided``: what decides which rows there are.

    ``rows``: how many this run wrote, None where it committed nothing; ``checks``: what they were judged by.
    """

    table: Table
    made: Mapping[str, Fields] = field(default_factory=dict)
    decided: Fields = field(default_factory=dict)
    rows: int | None = None
    checks: tuple[Judged, ...] = ()


@dataclass(frozen=True)
class Lineage:
    """``text`` is the declaration, as its author wrote it."""

    inputs: tuple[Table, ...]
    outputs: tuple[WrittenTable, ...]
    text: str


def lineage(application: Application, name: str, since: int | None = None) -> Lineage:
    """The lineage of a stream, relation or query. ``since``: the sequence number of its last commit before the run,
    whose commits are those behind it; None: of no run.
    """
    commits = _commits(application, name, since)
    query = name in application.catalog.queries
    return _of_query(application, name, commits) if query else _of_source(application, name, commits)


def declared(application: Application, name: str) -> Lineage:
    """What a run will read and write, by addresses alone, as far as the files tell: no table is opened. Of a query
    that is its own table, and what it reads under the names of streams, relations and queries.
    """
    layout, catalog = application.layout, application.catalog
    if name not in catalog.queries:
        source = application.source(name)
        address = application.located(source.source.uri) if source.source.uri else layout.landing(name)
        return Lineage((Table(address),), (WrittenTable(Table(layout.admitted(name))),), source.written)
    read = [each for each in catalog.inputs(name) if application.owner(each) == each]
    inputs = tuple(Table(layout.result(i) if i in catalog.queries else layout.admitted(i)) for i in read)
    return Lineage(inputs, (WrittenTable(Table(layout.result(name))),), application.query(name).written)


def last_commits(application: Application, names: Iterable[str]) -> dict[str, int]:
    """By name the sequence number of its last commit; 0 where it has none."""
    head = application.ledger.head()
    return {name: head[name].seq if name in head else 0 for name in names}


def _commits(application: Application, name: str, since: int | None) -> list[LedgerRow]:
    row = application.ledger.row(name)
    if row is None or since is None:
        return []
    first = max(since, row.seq - COMMITS_COUNTED) + 1
    before = [r for seq in range(first, row.seq) for r in application.ledger.history(name, seq)]
    same = [r for r in before if r.registration == row.registration]
    return [*same, row] if row.seq >= first else []


# -- streams and relations ---------------------------------------------------------------------------------------------


def _of_source(application: Application, name: str, commits: Sequence[LedgerRow]) -> Lineage:
    """An admitted column has the source's values; an instant comes of the columns that the declaration names."""
    layout, declared = application.layout, application.source(name)
    source = _source(application, name)
    admitted = _table(layout.admitted(name))
    given = {column for column, _ in source.columns}
    made: dict[str, Fields] = {
        column: {(source.address, column): frozenset({Influence.IDENTITY})}
        for column, _ in admitted.columns
        if column in given
    }
    if instants := _instants(application, name):
        made["__tick"] = {(source.address, column): frozenset({Influence.TRANSFORMATION}) for column in instants}
    infos = [row.of_source for row in commits]
    outputs = [WrittenTable(admitted, made, {}, sum(i.rows or 0 for i in infos) if infos else None)]
    kept_out = sum(i.quarantined or 0 for i in infos)
    quarantine = _table(layout.quarantine(name))
    if kept_out or quarantine.columns:
        whole = {(source.address, column): frozenset({Influence.TRANSFORMATION}) for column in given}
        outputs.append(WrittenTable(quarantine, {"__row": whole}, {}, kept_out if infos else None))
    return Lineage((source,), tuple(outputs), declared.written)


def _source(application: Application, name: str) -> Table:
    spec = application.source(name).source
    table = application.sources.table(name)
    columns = tuple(table.spark_schema())
    at_home = application.layout.landing(name)
    return Table(application.located(spec.uri) if spec.uri else at_home, columns)


def _instants(application: Application, name: str) -> tuple[str, ...]:
    """The columns of a source that instants come from."""
    stream = application.catalog.streams.get(name)
    if stream is not None:
        return (stream.timestamp_by,)
    return () if application.is_static(name) else application.sources.relation(name).instants


# -- queries -----------------------------------------------------------------------------------------------------------


def _of_query(application: Application, name: str, commits: Sequence[LedgerRow]) -> Lineage:
    plan = application.plans.whole(name)
    inputs = {each: _read_table(application, each) for each in plan.inputs}
    found = origins(plan.root)
    times: Fields = {}
    for each in sorted(found.times):
        for column in _time_columns(application, each):
            times[inputs[each].address, column] = frozenset({Influence.TRANSFORMATION})
    made = {c.label: _fields(application, inputs, found.columns[c.id]) for c in plan.root.columns}
    decided = _fields(application, inputs, found.rows)
    infos = [row.of_query for row in commits]
    outputs = []
    for kind in plan.materialize:
        table = plan.table(kind)
        instants = ("valid_from", "valid_to") if kind == ResultKind.RELATION else ("ts",)
        judged = [v for info in infos for v in info.verdicts or [] if v.get("table") == table]
        outputs.append(
            WrittenTable(
                _result(application, plan, table, instants),
                {**made, **dict.fromkeys(instants, times)},
                decided,
                sum(_rows_of(info.rows or {}, kind) for info in infos) if infos else None,
                _judged(plan, kind, warnings_of(judged)) if judged else (),
            )
        )
    return Lineage(tuple(inputs.values()), tuple(outputs), application.query(name).written)


def _judged(plan: Plan, kind: ResultKind, broken: Mapping[str, int]) -> tuple[Judged, ...]:
    """The checks of a table whose rows were committed: those that do not only warn have passed."""
    of = suites.relation_checks if kind == ResultKind.RELATION else suites.stream_checks
    columns = [c.label for c in plan.root.columns]
    return tuple(
        Judged(
            check["id"],
            column if (column := check["kwargs"].get("column")) in (*columns, "valid_from", "valid_to", "ts") else None,
            check["severity"] == "warning",
            broken.get(check["id"], 0),
        )
        for check in of(columns, None, None, plan.constraints)
    )


def _rows_of(rows: Mapping[str, int], kind: ResultKind) -> int:
    """Of rows by what they are written to those of a table; a relation's are of two kinds, ended and open."""
    keys = ("closed", "open", "relation") if kind == ResultKind.RELATION else (kind.value,)
    return sum(rows.get(key, 0) for key in keys)


def _read_table(application: Application, name: str) -> Table:
    if application.owner(name) in application.catalog.queries:
        return _table(application.plans.result_table(name), _named(application, name))
    return _table(application.layout.admitted(name), _named(application, name))


def _named(application: Application, name: str) -> tuple[tuple[str, str | None], ...]:
    return tuple(application.plans.input_schema(name).columns)


def _result(application: Application, plan: Plan, table: str, instants: Iterable[str]) -> Table:
    known = tuple((c.label, c.type) for c in plan.root.columns)
    times = tuple((column, plan.time.type) for column in instants)
    return _table(application.layout.result(table), (*known, *times))


def _table(path: str, known: tuple[tuple[str, str | None], ...] = ()) -> Table:
    """A table of ours; ``known`` are its columns where it is not there yet."""
    log = DeltaLog(path)
    if not log.exists():
        return Table(path, known)
    return Table(path, tuple((f.name, spark_type(f.type)) for f in log.schema() if _shown(f.name)))


def _shown(column: str) -> bool:
    return column not in ENGINE_COLUMNS or column == "__tick"


def _fields(application: Application, inputs: Mapping[str, Table], found: Origins) -> Fields:
    fields: Fields = {}
    for (name, column), how in found.items():
        for each in _time_columns(application, name) if column is None else (column,):
            key = inputs[name].address, each
            fields[key] = fields.get(key, frozenset()) | how
    return fields


def _time_columns(application: Application, name: str) -> tuple[str, ...]:
    """The columns of a table that hold the instants of its rows; none of a static relation."""
    if application.owner(name) in application.catalog.queries:
        stream = application.plans.input_schema(name).kind.value == "stream"
        return ("ts",) if stream else ("valid_from", "valid_to")
    return () if application.is_static(name) else ("__tick",)
