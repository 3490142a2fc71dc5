"""The sources of an application's streams and relations: their tables, their columns, and what the declarations say of
these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sweeparea.cql.binding.expectations import bind_expectations
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.binding.source_expressions import CONDITION, INSTANTS, bind_source_expression
from sweeparea.cql.syntax.source_formats import columns_of
from sweeparea.cql.syntax.statements import CreateRelation, ExpectationKind, HeartbeatKind, SourceKind
from sweeparea.cql.text.errors import RefusedError, TypeError_, raise_all
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Expectation
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.spark_jobs.declarations.relation_source import RelationExpressions, RelationSource, source_of
from sweeparea.spark_jobs.declarations.source_columns import TIME_TYPES, no_column, refuse_reserved
from sweeparea.spark_jobs.declarations.stream_clauses import clause_faults
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.schema import spark_type
from sweeparea.tables.sources.landing import LandingTable
from sweeparea.tables.sources.source import SourceTable

if TYPE_CHECKING:
    from sweeparea.cql.declarations.catalog import Catalog
    from sweeparea.cql.syntax.statements import CreateStream

ENGINE_COLUMNS = ("__tick", "__seq", "__n", "__came")
CHANGES = "changes"
"""The name of the table in which a relation's changes are kept as its source tells them (``change_table.py``)."""


class Sources:
    """What is behind the names of streams and relations. Schemas are read once, until ``forget``."""

    def __init__(self, declared: Declarations) -> None:
        self.declared = declared
        self._schemas: dict[str, InputSchema] = {}

    def schema(self, name: str) -> InputSchema:
        """Columns, types and time of a stream or relation, from what was admitted, else from its source."""
        if name not in self._schemas:
            relation = name in self.declared.catalog.relations
            self._schemas[name] = self._relation_schema(name) if relation else self._stream_schema(name)
        return self._schemas[name]

    def forget(self) -> None:
        """Schemas are read anew: a source has changed its columns."""
        self._schemas.clear()

    def table(self, name: str) -> SourceTable:
        """The user's own Delta table behind a stream or relation, or the table in which its FORMAT is landed. Relative
        paths start at the data folder.
        """
        source = self.declared.source(name).source
        if source.kind == SourceKind.FORMAT:
            return LandingTable(self.declared.layout.landing(name), columns_of(source), name)
        table = SourceTable(self.declared.located(source.uri))
        row = self.declared.ledger.head().get(name)
        if row is not None:
            table.padded = dict(row.of_source.chars or {})
        return table

    def char_columns(self, name: str) -> dict[str, str]:
        """The columns of a source that are read as Spark reads CHAR(n), padded, with their declared types: those that
        were first admitted so, else all that the source has. What an earlier version admitted was never padded.
        """
        row = self.declared.ledger.head().get(name)
        return self.table(name).char_columns() if row is None else dict(row.of_source.chars or {})

    def chars_of(self, name: str) -> tuple[tuple[str, str], ...]:
        """The columns of a source that hold CHAR values, with their declared types."""
        return tuple(self.char_columns(name).items())

    def text(self, name: str) -> str:
        """Where a stream or relation comes from, for people."""
        source = self.declared.source(name).source
        where = self.declared.located(source.uri) if source.uri else ""
        return where if source.kind == SourceKind.DELTA else f"{source.format} {where}".rstrip()

    def _stream_schema(self, name: str) -> InputSchema:
        admitted = DeltaLog(self.declared.layout.admitted(name))
        if admitted.exists():
            fields = [f for f in admitted.schema() if f.name not in ENGINE_COLUMNS]
            columns = tuple((f.name, spark_type(f.type)) for f in fields)
        else:
            columns = tuple(self.table(name).spark_schema())
            refuse_reserved(name, [column for column, _ in columns])
        sequence = self.declared.catalog.streams[name].sequence_by
        time = self.stream_time(name, dict(columns))
        return InputSchema(name, SchemaKind.STREAM, columns, time, sequence_by=sequence, chars=self.chars_of(name))

    def _relation_schema(self, name: str) -> InputSchema:
        source = self.relation(name)
        declared = self.declared.catalog.relations[name]
        return InputSchema(
            name,
            SchemaKind.RELATION,
            source.record_columns,
            source.time,
            retroactive=declared.retroactive,
            static=self.declared.is_static(name),
            chars=self.chars_of(name),
        )

    def relation(self, name: str) -> RelationSource:
        """How the source of a relation is read: as it was first admitted, else as it is now."""
        declared, log = self.declared.catalog.relations[name], DeltaLog(self.declared.layout.state(name, CHANGES))
        # a log of changes beside a static relation was left by another definition
        static = declared.contents == "static" and not log.exists()
        kept = DeltaLog(self.declared.layout.admitted(name)) if static else log
        if kept.exists() and (static or declared.contents != "static"):
            columns = [(f.name, spark_type(f.type)) for f in kept.schema() if not f.name.startswith("__")]
        else:
            columns = self.table(name).spark_schema()
            refuse_reserved(name, [column for column, _ in columns])
        return replace(source_of(declared, columns), chars=self.chars_of(name))

    def stream_time(self, name: str, types: Mapping[str, str | None]) -> TimeDomain:
        """The time domain of a stream; refuses a TIMESTAMP BY column that is missing or no time."""
        declared = self.declared.catalog.streams[name]
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
        if kind == TimeKind.BIGINT and chronon not in (None, 1):
            raise TypeError_(
                f"CHRONON of stream {name} is a length of time, but TIMESTAMP BY {column} is a BIGINT sequence number,"
                " whose tick is 1",
                declared.places.get("chronon_us", place),
                "Remove CHRONON, or use a TIMESTAMP column",
            )
        return TimeDomain(kind, chronon or 1)

    def stream_expressions(self, name: str) -> tuple[str | None, list[str]]:
        """Spark SQL of a stream's heartbeat and of its constraints, over its columns. All of their faults are raised:
        BindError for an unknown column, TypeError_ for a heartbeat that is no time of the stream, or a constraint that
        is no condition.
        """
        declared, schema = self.declared.stream(name), self.schema(name)
        heartbeat, constraints = self._expressions(
            declared, schema, lambda: clause_faults(declared, schema, self.declared.modules)
        )
        return heartbeat, [bound.sql for bound in constraints]

    def _expressions(
        self,
        declared: CreateStream | CreateRelation,
        schema: InputSchema,
        clauses: Callable[[], Iterable[SweepAreaError]],
    ) -> tuple[str | None, list[Expr]]:
        """Heartbeat and constraints of a source. All faults are raised, between theirs those of its other clauses."""
        faults: list[SweepAreaError] = []
        heartbeat: str | None = None
        try:
            heartbeat = self.heartbeat_of(declared, schema)
        except SweepAreaError as error:
            faults.append(error)
        faults += clauses()
        constraints: list[Expr] = []
        for spec in declared.constraints:
            what = f"constraint {spec.name}"
            try:
                bound = bind_source_expression(spec.expression, schema, what, CONDITION, self.declared.analyze)
                constraints.append(bound)
            except SweepAreaError as error:
                faults.append(error)
        faults += _expectation_faults(declared, self.declared.catalog, schema)
        raise_all(faults)
        return heartbeat, constraints

    def expectations(self, name: str) -> list[Expectation]:
        """What several rows of a stream or relation together are expected to be. All faults are raised."""
        declared = self.declared.source(name)
        schema = self.schema(name) if name in self.declared.catalog.streams else self.relation(name).schema
        found, faults = bind_expectations(declared.expectations, _names(schema), schema.time, of_query=False)
        raise_all(faults)
        return found

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
        if spec.kind in (HeartbeatKind.FOR, HeartbeatKind.PER) and spec.expression is not None:
            return bind_source_expression(spec.expression, schema, "HEARTBEAT", wanted, self.declared.analyze).sql
        if spec.kind != HeartbeatKind.COLUMN or column is None:
            return None
        if kind is not None and kind not in wanted.types:
            times = ", ".join(name for name, other in schema.columns if other in wanted.types)
            raise TypeError_(
                f"HEARTBEAT FROM COLUMN {column} needs {wanted.words}, but it is of type {kind.upper()}",
                spec.place or declared.place,
                f"Columns of such a type: {times or 'none'}",
            )
        return "`" + column.replace("`", "``") + "`"

    def check(self, name: str) -> None:
        """Raises all faults of what a stream or relation says of its source: of the columns that its clauses name, of
        its heartbeat and its constraints.
        """
        if name in self.declared.catalog.streams:
            self.stream_expressions(name)
        else:
            self.relation_expressions(self.relation(name))

    def relation_expressions(self, source: RelationSource) -> RelationExpressions:
        """The expressions of a relation's declaration; all of their faults are raised."""
        declared = self.declared.catalog.relations[source.name]
        heartbeat, constraints = self._expressions(declared, source.schema, lambda: _late_faults(declared, source.time))
        return RelationExpressions(heartbeat, tuple(constraints))


def _names(schema: InputSchema) -> list[str]:
    return [column for column, _ in schema.columns]


def _expectation_faults(
    declared: CreateStream | CreateRelation, catalog: Catalog, schema: InputSchema
) -> Iterator[SweepAreaError]:
    """What is wrong with the expectations of a source over several rows."""
    yield from bind_expectations(declared.expectations, _names(schema), schema.time, of_query=False)[1]
    for spec in declared.expectations:
        other = str(dict(spec.arguments).get("other", ""))
        if spec.kind == ExpectationKind.REFERENCES and other in catalog.streams | catalog.relations | catalog.queries:
            relation = catalog.relations.get(other)
            if relation is None or relation.contents != "static":
                yield RefusedError(
                    f"constraint {spec.name}: when a row of {declared.name} is admitted, {other} is not known at its"
                    " instant yet",
                    spec.place,
                    "Reference a static relation here, or expect it of a query over the stream",
                )
        if isinstance(declared, CreateRelation) and (spec.per is not None or spec.kind != ExpectationKind.GX):
            what = "PER" if spec.kind == ExpectationKind.GX else spec.kind.value.upper()
            yield RefusedError(
                f"constraint {spec.name}: {what} is for streams and queries; a relation is judged commit by commit",
                spec.place,
                "Expect it of a query over the relation",
            )


def _late_faults(declared: CreateRelation, time: TimeDomain) -> Iterator[SweepAreaError]:
    if declared.late_within is not None and declared.contents != "static":
        try:
            declared.late_within.in_ticks(time, "LATE REPAIR WITHIN")
        except SweepAreaError as error:
            yield error
