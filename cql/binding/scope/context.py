"""What all parts of one binding share: the inputs, the time domain, fresh column ids, the notes on defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from sqlglot import exp

from sweeparea.cql.binding.scope.around import QueryAround
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.binding.scope.scopes import INSTANT
from sweeparea.cql.functions import types
from sweeparea.cql.functions.column_types import Analyze
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.text.errors import BindError, Place, RefusedError, TypeError_
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.unknown_names import MATERIALIZATIONS, unknown_input
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.nodes import RelationScan, StreamScan
from sweeparea.operators.plan.plan import UserFunction
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain, TimeKind, micros_text

T = TypeVar("T")
_NESTED_WITH = 500
"""Queries of WITH, each of which reads the one before."""
MAX_COLUMNS = 5_000
"""Ids that one plan may use: WITH queries that use each other twice would grow without end."""


class Context:
    """The shared state of one binding."""

    def __init__(
        self,
        inputs: Mapping[str, InputSchema],
        source: SourceText,
        settings: Mapping[str, str],
        functions: Iterable[UserFunction] = (),
        analyze: Analyze | None = None,
    ) -> None:
        self.inputs = {name.lower(): schema for name, schema in inputs.items()}
        self.source = source
        self.settings = dict(settings)
        self.functions = {f.name.lower(): f for f in functions}
        self.analyze = analyze
        self.functions_used: dict[str, UserFunction] = {}
        self.notes: list[str] = []
        self.faults: list[SweepAreaError] = []
        self.used: dict[str, InputSchema] = {}
        self.outer: QueryAround | None = None
        """What the subquery that is being bound can name of the queries around it."""
        self._expected: TimeDomain | None = None
        self._time: TimeDomain | None = None
        self._time_of = ""
        self._next = 0
        self._depth = 0

    # -- columns and notes -------------------------------------------------------------------------------------------

    def new_column(self, label: str, type_: str | None = None) -> Column:
        if self._next >= MAX_COLUMNS:
            raise RefusedError(
                f"this query needs more than {MAX_COLUMNS:,} columns in its plan",
                None,
                "Register parts of it as queries of their own",
            )
        column = Column(f"c{self._next}", label, types.normal(type_))
        self._next += 1
        return column

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def nested(self, action: Callable[[], T], place: Place) -> T:
        """Run a step of a named query, guarding against endless nesting."""
        self._depth += 1
        try:
            if self._depth > _NESTED_WITH:
                raise RefusedError(
                    f"WITH queries nest more than {_NESTED_WITH} deep",
                    place,
                    "Register parts of them as queries of their own",
                )
            return action()
        finally:
            self._depth -= 1

    def place(self, node: exp.Expr) -> Place:
        """Where a tree stands; the beginning of the text where the parser does not say it."""
        span = span_of(node)
        return self.source.place(span[0] if span is not None else self.source.tokens[0].start)

    # -- inputs and time ---------------------------------------------------------------------------------------------

    @property
    def time(self) -> TimeDomain:
        """The query's time domain: that of its streams, else of its first relation that changes."""
        return self._time or self._expected or next((s.time for s in self.used.values()), TimeDomain())

    def expect(self, names: Iterable[str]) -> None:
        """Tells which inputs a query names, wherever it does: a window over a relation counts in the time of a stream
        that stands behind it in the text.
        """
        named = [self.inputs[name.lower()] for name in names if name.lower() in self.inputs]
        counting = [s for s in named if s.kind == SchemaKind.STREAM or s.derived] or [s for s in named if not s.static]
        self._expected = counting[0].time if counting else None

    def declare(self, chronon: int, names: Iterable[str], query: str, place: Place) -> None:
        """Takes the CHRONON that a query declares, in microseconds: the tick of relations, which have none of their
        own. TypeError_ where its inputs have one already, and another, or count BIGINT ticks."""
        time = TimeDomain(TimeKind.TIMESTAMP, chronon)
        named = [self.inputs[name.lower()] for name in names if name.lower() in self.inputs]
        for schema in named:
            counts = schema.kind == SchemaKind.STREAM or schema.derived
            if schema.static or (not counts and schema.time.kind == TimeKind.TIMESTAMP) or schema.time == time:
                continue
            if schema.time.kind == TimeKind.BIGINT:
                hint = "Leave CHRONON out: it is a length of the clock"
            else:
                hint = f"Leave CHRONON out, or write CHRONON {interval_text(schema.time.chronon)}"
            raise TypeError_(
                f"query {query} declares {time}, but {schema.name} counts {schema.time}",
                place,
                hint,
            )
        self._time, self._time_of = time, f"query {query}"

    def input(self, name: str, place: Place, others: list[str]) -> InputSchema:
        schema = self.inputs.get(name.lower())
        base, _, kind = name.lower().rpartition("__")
        if schema is None and kind in MATERIALIZATIONS and base in self.inputs and self.inputs[base].derived:
            raise BindError(
                f"{self.inputs[base].name} keeps no {kind}, so there is no {name}",
                place,
                f"List {kind.upper()} in its MATERIALIZE, or read {self.inputs[base].name}, the result itself",
            )
        if schema is None:
            kinds = {s.name: "query" if s.derived else s.kind for s in self.inputs.values()}
            raise unknown_input(name, place, kinds | dict.fromkeys(others, "query"))
        self.used.setdefault(schema.name, schema)
        return schema

    def _check_time(self, schema: InputSchema, place: Place) -> None:
        if self._time is None:
            self._time, self._time_of = schema.time, schema.name
        elif self._time != schema.time:
            raise TypeError_(
                f"{self._time_of} and {schema.name} count time differently: {self._time} and {schema.time}",
                place,
                self._one_chronon(schema),
            )

    def _one_chronon(self, schema: InputSchema) -> str:
        """What to declare so that an input counts as those before it do."""
        hint = "All streams of a query share one chronon: declare the same CHRONON on both"
        times = {schema.name: schema.time, self._time_of: self._time}
        derived = [s for s in self.inputs.values() if s.derived and s.name in times]
        fine = next((s for s in derived if s.time == TimeDomain(TimeKind.TIMESTAMP, 1)), None)
        other = next((t for n, t in times.items() if fine is not None and n != fine.name), None)
        if fine is None or other is None or other.kind != TimeKind.TIMESTAMP:
            return hint
        query = fine.name.partition("__")[0]
        return (
            f"{hint}. If {query} reads relations alone, it declares its own:"
            f" CREATE CONTINUOUS QUERY {query} CHRONON {interval_text(other.chronon)} AS .."
        )

    def stream_scan(self, schema: InputSchema, place: Place) -> StreamScan:
        """A scan with all columns; the instant is kept aside as ``ts``."""
        self._check_time(schema, place)
        source = tuple((schema.column(self.new_column(n, t), n), n) for n, t in schema.columns if n.lower() != INSTANT)
        return StreamScan(schema.name, source, self.instant(schema.time))

    def sequence_of(self, stream: StreamScan) -> str | None:
        """The id of a stream's SEQUENCE BY column."""
        declared = self.inputs[stream.name.lower()].sequence_by
        return next((c.id for c, n in stream.source if declared is not None and n.lower() == declared.lower()), None)

    def relation_scan(self, schema: InputSchema, place: Place) -> RelationScan:
        if schema.derived:
            self._check_time(schema, place)
        return RelationScan(schema.name, tuple((schema.column(self.new_column(n, t), n), n) for n, t in schema.columns))

    def instant(self, time: TimeDomain) -> Column:
        """A new column for the instants of a stream."""
        return self.new_column(INSTANT, time.type)


def interval_text(micros: int) -> str:
    """``INTERVAL 1 SECOND``, as CHRONON takes it."""
    return f"INTERVAL {micros_text(micros).replace(',', '').upper()}"
