"""Logical plans: immutable nodes over named, typed columns.

The binder (``cql``) makes them, rewrites transform them, ``spark_jobs`` runs them. A node's ``columns`` are its output
record; ids are unique within a plan, so no join can confuse two inputs. Expressions are Spark SQL text over column ids:
scalar semantics are Spark's own and are never re-implemented here. No Spark import.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from sweeparea.operators.plan.stored_names import stored
from sweeparea.operators.user_code.user_modules import Modules
from sweeparea.operators.windows.definitions import Window as WindowSpec


@dataclass(frozen=True)
class Column:
    """A column of a node's output.

    ``id`` is its name inside the engine (``c0``, ``c1``, .. unique in the plan), ``label`` what the author wrote,
    ``type`` the Spark type as DDL text (``bigint``, ``decimal(10,2)``), or None where only Spark's analysis can tell.
    ``char`` is the declared type of a column that holds CHAR values (``char(5)``, ``array<char(5)>``): these are
    padded, and so is what it is compared with.
    """

    id: str
    label: str
    type: str | None = None
    char: str | None = field(default=None, compare=False, repr=False)

    def as_of(self, other: Column | None) -> Column:
        """This column, known to hold CHAR values where ``other``, whose values it has, does."""
        return self if other is None or other.char is None else dataclasses.replace(self, char=other.char)


@dataclass(frozen=True)
class Expr:
    """A scalar expression: Spark SQL text over column ids, and the text as its author wrote it (for explain)."""

    sql: str
    text: str = ""
    columns: frozenset[str] = frozenset()


@stored("SortKey", "expr", "descending", "nulls_first")
@dataclass(frozen=True)
class SortKey:
    """One key of an ORDER BY. Defaults are Spark's: ascending with NULL first, descending with NULL last."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Node(ABC):
    """Base of all plan nodes."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The output record."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def walk(self) -> Iterator[Node]:
        """This node and all below it, inputs first (post-order, left to right): the order in which ``op`` numbers
        run.
        """
        for child in self.inputs:
            yield from child.walk()
        yield self

    def with_inputs(self, inputs: tuple[Node, ...]) -> Self:
        """The same node over other inputs, given in the order of ``inputs``."""
        if all(a is b for a, b in zip(inputs, self.inputs, strict=True)):
            return self
        rest = iter(inputs)
        changes: dict[str, Any] = {}
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Node):
                changes[each.name] = next(rest)
            elif isinstance(value, tuple) and value and isinstance(value[0], Node):
                changes[each.name] = tuple(next(rest) for _ in value)
        return dataclasses.replace(self, **changes)

    def expressions(self) -> Iterator[Expr]:
        """The scalar expressions that this node itself evaluates, wherever its fields hold them."""
        for each in dataclasses.fields(self):
            yield from _expressions(getattr(self, each.name))

    def map_expressions(self, change: Callable[[Expr], Expr]) -> Self:
        """The same node with each of its own expressions changed."""
        changed = {f.name: _mapped(getattr(self, f.name), change) for f in dataclasses.fields(self)}
        return dataclasses.replace(self, **changed)

    @property
    def reads(self) -> frozenset[str]:
        """The ids of the columns that this node's own expressions refer to."""
        return frozenset().union(*(e.columns for e in self.expressions()))


def _expressions(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _expressions(part)
    elif isinstance(value, SortKey | AggregateCall | WindowFunction):
        for each in dataclasses.fields(value):
            yield from _expressions(getattr(value, each.name))


def _mapped(value: Any, change: Callable[[Expr], Expr]) -> Any:
    if isinstance(value, Expr):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_mapped(part, change) for part in value)
    if isinstance(value, SortKey | AggregateCall | WindowFunction):
        changed = {f.name: _mapped(getattr(value, f.name), change) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **changed)
    return value


@stored("StreamScan", "name", "source", "instant")
@dataclass(frozen=True)
class StreamScan(Node):
    """A registered stream or a stream-valued query, as elements ``[s, s+1)``.

    ``source`` maps each output column id to the name it has in the admitted stream. ``instant`` is the id of the
    column that carries the pseudo-column ``ts`` (a TIMESTAMP, or the BIGINT tick itself where time is BIGINT), or
    None if unused.
    """

    name: str
    source: tuple[tuple[Column, str], ...]
    instant: Column | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        cols = tuple(c for c, _ in self.source)
        return cols if self.instant is None else (*cols, self.instant)


@stored("RelationScan", "name", "source")
@dataclass(frozen=True)
class RelationScan(Node):
    """A registered relation, a relation-valued query's result, or a materialization of one."""

    name: str
    source: tuple[tuple[Column, str], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c, _ in self.source)


@stored("OneRow")
@dataclass(frozen=True)
class OneRow(Node):
    """The relation that holds one record without columns at every instant: what SELECT without FROM reads."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return ()


@stored("Window", "input", "spec", "partition", "condition", "arguments", "ties", "bounds")
@dataclass(frozen=True)
class Window(Node):
    """Stream to relation (Arasu section 6.1, semantics of each kind in ``operators/windows/definitions.py``).

    ``partition`` are the expressions of PARTITION BY, ``condition`` that of Tumbling When, ``arguments`` those of a
    user-defined window. ``ties`` are the ids of input columns that order elements of one instant (the declared
    sequence first, then the record, left to right); only windows that count rows have them. ``bounds`` are the
    columns of WINDOW_START and WINDOW_END where the query refers to them, else None.
    """

    input: Node
    spec: WindowSpec
    partition: tuple[Expr, ...] = ()
    condition: Expr | None = None
    arguments: tuple[Expr, ...] = ()
    ties: tuple[str, ...] = ()
    bounds: tuple[Column, Column] | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + (self.bounds or ())

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@stored("Select", "input", "condition")
@dataclass(frozen=True)
class Select(Node):
    """Selection: keeps the rows for which ``condition`` is TRUE (Kraemer section 3.2.1)."""

    input: Node
    condition: Expr

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@stored("Project", "input", "outputs")
@dataclass(frozen=True)
class Project(Node):
    """Projection without duplicate elimination: Kraemer's map (section 3.2.2)."""

    input: Node
    outputs: tuple[tuple[Column, Expr], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c, _ in self.outputs)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@stored("Join", "left", "right", "condition", "kind")
@dataclass(frozen=True)
class Join(Node):
    """Join on any condition (None: every pair matches). ``kind`` is inner, left, full, semi or anti.

    Output: left columns, then right columns; of semi and anti the left columns alone. RIGHT JOIN is a left join with
    its sides exchanged.
    """

    left: Node
    right: Node
    condition: Expr | None = None
    kind: str = "inner"

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns if self.kind in ("semi", "anti") else self.left.columns + self.right.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@stored("Enrich", "stream", "relation", "condition", "kind")
@dataclass(frozen=True)
class Enrich(Node):
    """Join of a stream with a non-retroactive relation (Golab & Oezsu 2005, section 4.1), below the stream's window.

    An element at s is joined with the relation's contents from changes before s; later changes undo nothing. ``kind``
    is inner or left. A stream: its elements have the instants of ``stream``'s.
    """

    stream: Node
    relation: Node
    condition: Expr | None = None
    kind: str = "inner"

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.stream.columns + self.relation.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.stream, self.relation)


@stored("Generate", "input", "generator", "outputs", "outer")
@dataclass(frozen=True)
class Generate(Node):
    """Each row beside the rows that a generator (explode, inline, ..) makes of it: LATERAL VIEW.

    ``outer`` keeps a row for which the generator makes none, with NULLs. Output: the input's columns, then ``outputs``.
    """

    input: Node
    generator: Expr
    outputs: tuple[Column, ...]
    outer: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + self.outputs

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@stored("UnionAll", "parts", "outputs")
@dataclass(frozen=True)
class UnionAll(Node):
    """Bag union (Kraemer section 3.2.8). ``outputs`` are fresh columns; each input's columns fill them by position."""

    parts: tuple[Node, ...]
    outputs: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.outputs

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True)
class SetOperation(Node):
    """Base of the operators that compare two bags record by record.

    Columns as in ``UnionAll``: the inputs' columns fill ``outputs`` by position.
    """

    left: Node
    right: Node
    outputs: tuple[Column, ...]
    all: bool = True

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.outputs

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@stored("Difference", "left", "right", "outputs", "all")
@dataclass(frozen=True)
class Difference(SetOperation):
    """EXCEPT ALL: max(0, n1 - n2) copies of a record (Kraemer eq. 5); ``all`` False: EXCEPT, one copy of what the left
    has and the right has not.
    """


@stored("Intersect", "left", "right", "outputs", "all")
@dataclass(frozen=True)
class Intersect(SetOperation):
    """INTERSECT ALL: min(n1, n2) copies of a record; ``all`` False: one copy of what both have."""


@stored("AggregateCall", "function", "argument", "extra", "distinct", "filter", "order", "ignore_nulls")
@dataclass(frozen=True)
class AggregateCall:
    """One aggregate. ``function`` is Spark's name in upper case (COUNT, SUM, PERCENTILE, ..), SINGLE_VALUE (what
    a scalar subquery gives: NULL of no row, an error of more than one), or the name of a user's aggregate.

    ``argument`` None stands for COUNT(*); ``extra`` are further arguments (CORR(x, y)). ``order`` is a total order of
    the rows, complete with its ties, where the function depends on one (FIRST, COLLECT_LIST, WITHIN GROUP).
    """

    function: str
    argument: Expr | None = None
    extra: tuple[Expr, ...] = ()
    distinct: bool = False
    filter: Expr | None = None
    order: tuple[SortKey, ...] = ()
    ignore_nulls: bool = False

    @property
    def reads(self) -> frozenset[str]:
        """The ids of all columns that this call refers to."""
        parts = [self.argument, *self.extra, self.filter, *(key.expr for key in self.order)]
        return frozenset().union(*(part.columns for part in parts if part is not None))


@stored("Aggregate", "input", "keys", "calls", "global_")
@dataclass(frozen=True)
class Aggregate(Node):
    """Grouping with aggregation (Kraemer sections 3.2.6 and 3.2.7). Output: keys, then calls.

    ``global_`` tells an aggregate without GROUP BY (one row at every instant from START, also over an empty bag) from a
    GROUP BY whose groups vanish with their last element. Without calls it is duplicate elimination over the keys.
    """

    input: Node
    keys: tuple[tuple[Column, Expr], ...]
    calls: tuple[tuple[Column, AggregateCall], ...]
    global_: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c, _ in self.keys) + tuple(c for c, _ in self.calls)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@stored("WindowFunction", "function", "arguments", "partition", "order", "frame", "filter", "distinct", "ignore_nulls")
@dataclass(frozen=True)
class WindowFunction:
    """One call of an SQL window function. ``frame`` is Spark SQL's text (``ROWS BETWEEN ..``), empty for the default.

    ``order`` is complete with its ties where the function or frame depends on them (ROW_NUMBER, LAG, ROWS frames), and
    as written where ties have a meaning of their own (RANK, RANGE frames).
    """

    function: str
    arguments: tuple[Expr, ...] = ()
    partition: tuple[Expr, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: str = ""
    filter: Expr | None = None
    distinct: bool = False
    ignore_nulls: bool = False

    @property
    def reads(self) -> frozenset[str]:
        """The ids of all columns that this call refers to."""
        parts = [*self.arguments, *self.partition, *(key.expr for key in self.order), self.filter]
        return frozenset().union(*(part.columns for part in parts if part is not None))


@stored("Analytic", "input", "calls")
@dataclass(frozen=True)
class Analytic(Node):
    """SQL window functions (OVER). Output: the input's columns, then one for each call."""

    input: Node
    calls: tuple[tuple[Column, WindowFunction], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + tuple(c for c, _ in self.calls)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@stored("TopK", "input", "order", "limit", "offset", "keys")
@dataclass(frozen=True)
class TopK(Node):
    """ORDER BY .. LIMIT: of each group of equal ``keys`` (none: of all) the rows from ``offset`` on, at most ``limit``.

    ``order`` ends with the record's own columns, so that ties are broken by the total order.
    """

    input: Node
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    keys: tuple[Expr, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@stored("RelationToStream", "input", "kind", "every", "anchor", "instant")
@dataclass(frozen=True)
class RelationToStream(Node):
    """``kind`` is istream, dstream or rstream (Arasu section 5.1). ``every`` / ``anchor`` in ticks, rstream only.

    ``instant`` as in StreamScan: the output's ``ts`` column if something above refers to it.
    """

    input: Node
    kind: str
    every: int | None = None
    anchor: int = 0
    instant: Column | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        cols = self.input.columns
        return cols if self.instant is None else (*cols, self.instant)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@stored("TimeDomain", "kind", "chronon")
@dataclass(frozen=True)
class TimeDomain:
    """What a tick of a query means. ``kind`` is BIGINT or TIMESTAMP; ``chronon`` is in microseconds (1 for BIGINT)."""

    kind: str = "BIGINT"
    chronon: int = 1


@dataclass(frozen=True)
class Constraint:
    """A row constraint: violated where ``condition`` is FALSE. ``on_violation`` is fail, quarantine or warn."""

    name: str
    condition: Expr
    on_violation: str


@dataclass(frozen=True)
class UserFunction:
    """What CREATE FUNCTION, AGGREGATE or WINDOW registered: ``kind`` is function, aggregate or window, ``target`` is
    ``module:object``, ``type`` the declared result type (Spark DDL; of a window: its declared update pattern),
    ``modules`` those of the application that registered it.
    """

    name: str
    kind: str
    target: str
    type: str
    modules: Modules | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Plan:
    """A bound continuous query, ready to run.

    ``root`` is the relation whose instantaneous contents the query means; ``stream`` is istream / dstream / rstream
    where the query is stream-valued (the RelationToStream node itself is then not in ``root``), else None. Output
    columns are ``root.columns`` in order; their labels are the result table's column names. ``materialize`` lists
    which tables are kept: a subset of relation, istream, dstream, rstream. ``inputs`` are the names scanned.
    ``notes`` are the defaults applied, ``rewrites`` the rules that changed the plan, ``functions`` the user's own
    functions in it. ``every`` and ``anchor`` (ticks) belong to rstream. ``emits_each``: each row that ``root`` brings
    is an element of the stream, once, at the instant at which it begins; no difference is taken and nothing is kept.
    ``chars``: the output columns that hold CHAR values, with the types that these are declared as.
    """

    name: str
    root: Node
    stream: str | None
    time: TimeDomain
    start: int = 0
    every: int | None = None
    anchor: int = 0
    materialize: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())
    rewrites: tuple[str, ...] = ()
    functions: tuple[UserFunction, ...] = ()
    emits_each: bool = False
    chars: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    @property
    def kind(self) -> str:
        """What the query itself is: relation, istream, dstream or rstream."""
        return self.stream or "relation"

    def table(self, kind: str) -> str:
        """The name of the result table of that kind: after the query what it is itself, others with a suffix."""
        return self.name if kind == self.kind else f"{self.name}__{kind}"
