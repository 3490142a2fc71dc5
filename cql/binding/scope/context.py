"""What all parts of one binding share: the inputs, the time domain, fresh column ids, the notes on defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from sweeparea.cql.binding.from_clause.windows import bind_window
from sweeparea.cql.binding.scope.rstream_every import every_of
from sweeparea.cql.binding.scope.scopes import INSTANT, Item
from sweeparea.cql.binding.scope.unknown_names import MATERIALIZATIONS, unknown_input
from sweeparea.cql.binding.scope.window_bounds import bounds_of
from sweeparea.cql.binding.subqueries.decorrelate import Decorrelation
from sweeparea.cql.functions import types
from sweeparea.cql.functions.column_types import Analyze
from sweeparea.cql.syntax.window_text import WindowText
from sweeparea.cql.text.errors import BindError, Place, RefusedError, TypeError_
from sweeparea.cql.text.source_text import SourceText
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.nodes import RelationScan, RelationToStream, StreamScan, Window
from sweeparea.operators.plan.expressions import Column
from sweeparea.operators.plan.plan import UserFunction
from sweeparea.operators.time.domain import TimeDomain, micros_text
from sweeparea.operators.windows import Unbounded, UserWindow

if TYPE_CHECKING:
    from sweeparea.cql.binding.query import BoundQuery
    from sweeparea.cql.binding.subqueries.subqueries import Outer

T = TypeVar("T")
_NESTED_WITH = 500
"""Queries of WITH, each of which reads the one before."""
MAX_COLUMNS = 5_000
"""Ids that one plan may use: WITH queries that use each other twice would grow without end."""


@dataclass(frozen=True)
class InputSchema:
    """What the binder knows of an input: a registered stream or relation, or another query's result.

    ``kind`` is stream or relation; ``columns`` are (name, Spark type or None) without bookkeeping columns; ``time`` is
    what a tick of it means. ``derived`` marks results of queries (their chronon is fixed), ``static`` relations that
    never change, ``sequence_by`` the column that orders a stream's elements of one instant, ``chars`` the
    columns that hold CHAR values with the types that they are declared as, ``char(5)`` or ``array<char(5)>``.
    """

    name: str
    kind: str
    columns: tuple[tuple[str, str | None], ...]
    time: TimeDomain = field(default_factory=TimeDomain)
    retroactive: bool = True
    derived: bool = False
    static: bool = False
    sequence_by: str | None = None
    chars: tuple[tuple[str, str], ...] = ()

    def column(self, made: Column, name: str) -> Column:
        """``made`` for the column ``name``, with what a comparison must know of it."""
        return replace(made, char=dict(self.chars).get(name))


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
        self.decorrelation = Decorrelation(self.new_column)
        self.outer: Outer | None = None
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
        counting = [s for s in named if s.kind == "stream" or s.derived] or [s for s in named if not s.static]
        self._expected = counting[0].time if counting else None

    def declare(self, chronon: int, names: Iterable[str], query: str, place: Place) -> None:
        """Takes the CHRONON that a query declares, in microseconds: the tick of relations, which have none of their
        own. TypeError_ where its inputs have one already, and another, or count BIGINT ticks."""
        time = TimeDomain("TIMESTAMP", chronon)
        named = [self.inputs[name.lower()] for name in names if name.lower() in self.inputs]
        for schema in named:
            counts = schema.kind == "stream" or schema.derived
            if schema.static or (not counts and schema.time.kind == "TIMESTAMP") or schema.time == time:
                continue
            if schema.time.kind == "BIGINT":
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
        fine = next((s for s in derived if s.time == TimeDomain("TIMESTAMP", 1)), None)
        other = next((t for n, t in times.items() if fine is not None and n != fine.name), None)
        if fine is None or other is None or other.kind != "TIMESTAMP":
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
        return StreamScan(schema.name, source, self._instant(schema.time))

    def relation_scan(self, schema: InputSchema, place: Place) -> RelationScan:
        if schema.derived:
            self._check_time(schema, place)
        return RelationScan(schema.name, tuple((schema.column(self.new_column(n, t), n), n) for n, t in schema.columns))

    def _instant(self, time: TimeDomain) -> Column:
        return self.new_column(INSTANT, "bigint" if time.kind == "BIGINT" else "timestamp")

    # -- windows -----------------------------------------------------------------------------------------------------

    def window_over(
        self,
        stream: StreamScan | RelationToStream,
        window: WindowText | None,
        name: str | None,
        named: tuple[Column, ...] | None = None,
    ) -> tuple[Window, tuple[Column, ...], Column | None]:
        """A stream under its window, its columns and its instant. ``named`` are the columns as the window names them,
        where an alias before it does."""
        columns = tuple(c for c in stream.columns if stream.instant is None or c.id != stream.instant.id)
        if window is None:
            self.note(f"{name or 'a subquery'} has no window: [Range Unbounded] is taken")
            return Window(stream, Unbounded()), columns, stream.instant
        bounds = self.settings.get("range_bounds", "inclusive")
        try:
            sequence = self.sequence_of(stream)

            def bound(visible: tuple[Column, ...]) -> Window:
                item = Item(name, visible, stream.instant)
                return bind_window(stream, item, window, self.time, bounds, sequence, self.functions, self.outer)

            node = self._first(lambda: bound(named or columns), lambda: bound(columns))
        except SweepAreaError as error:
            self.faults.append(error)  # the rest of the query may have faults to tell as well
            return Window(stream, Unbounded()), columns, stream.instant
        if isinstance(node.spec, UserWindow):
            self.functions_used.setdefault(node.spec.name.lower(), self.functions[node.spec.name.lower()])
        node = replace(node, bounds=bounds_of(node.spec, self.time, self.new_column))
        return node, columns, stream.instant

    def _first(self, bind: Callable[[], Window], otherwise: Callable[[], Window]) -> Window:
        """A window over the columns as its alias names them; else by their own names, as deployed queries may."""
        try:
            return bind()
        except SweepAreaError as error:
            try:
                return otherwise()
            except SweepAreaError:
                raise error from None

    def sequence_of(self, stream: StreamScan | RelationToStream) -> str | None:
        """The id of a stream's SEQUENCE BY column; derived streams have no sequence."""
        if not isinstance(stream, StreamScan):
            return None
        declared = self.inputs[stream.name.lower()].sequence_by
        return next((c.id for c, n in stream.source if declared is not None and n.lower() == declared.lower()), None)

    def window_over_stream(
        self,
        bound: BoundQuery,
        window: WindowText | None,
        place: Place,
        alias: str | None = None,
        names: Callable[[tuple[Column, ...]], tuple[Column, ...]] = lambda columns: columns,
    ) -> tuple[Window, tuple[Column, ...], Column | None]:
        """A subquery under a window. A monotonic relation becomes a stream by Istream, any other relation is a type
        error. ``names`` gives the columns as the window names them."""
        name = alias or "the subquery"
        every, anchor = None, 0
        if bound.to_stream is not None:
            kind = bound.to_stream.kind.lower()
            every, anchor = every_of(bound.to_stream, self.source, self.time)
        elif bound.node.monotonic:
            kind = "istream"
            self.note(f"{name} is a monotonic relation under a window: Istream is added")
        else:
            raise TypeError_(
                f"a window needs a stream, but {name} is a relation whose rows also leave",
                self.source.place(window.span[0]) if window is not None else place,
                "Say which stream of it is meant: ISTREAM(..), DSTREAM(..) or RSTREAM(..) around the subquery",
            )
        clash = [c for c in bound.columns if c.label.lower() == INSTANT]
        if clash:
            raise BindError(
                f"column ts of {name} clashes with the instant that every stream has",
                place,
                "Give it an alias inside the subquery",
            )
        stream = RelationToStream(bound.node, kind, every, anchor, self._instant(self.time))
        return self.window_over(stream, window, alias, names(bound.columns))


def interval_text(micros: int) -> str:
    """``INTERVAL 1 SECOND``, as CHRONON takes it."""
    return f"INTERVAL {micros_text(micros).replace(',', '').upper()}"
