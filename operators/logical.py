"""Logical plans: immutable nodes over named, typed columns.

The binder (``cql``) makes them, rewrites transform them, ``spark_jobs`` runs them. A node's ``columns`` are its output
record; ids are unique within a plan, so no join can confuse two inputs. Expressions are Spark SQL text over column ids:
scalar semantics are Spark's own and are never re-implemented here. No Spark import.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

from sweeparea.operators.windows import Window as WindowSpec


@dataclass(frozen=True)
class Column:
    """A column of a node's output.

    ``id`` is its name inside the engine (``c0``, ``c1``, .. unique in the plan), ``label`` what the author wrote,
    ``type`` the Spark type as DDL text (``bigint``, ``decimal(10,2)``), or None where only Spark's analysis can tell.
    """

    id: str
    label: str
    type: str | None = None


@dataclass(frozen=True)
class Expr:
    """A scalar expression: Spark SQL text over column ids, and the text as its author wrote it (for explain)."""

    sql: str
    text: str = ""
    columns: frozenset[str] = frozenset()


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


@dataclass(frozen=True)
class RelationScan(Node):
    """A registered relation, a relation-valued query's result, or a materialization of one."""

    name: str
    source: tuple[tuple[Column, str], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c, _ in self.source)


@dataclass(frozen=True)
class Window(Node):
    """Stream to relation (Arasu section 6.1, semantics of each kind in ``operators/windows.py``)."""

    input: Node
    spec: WindowSpec

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Select(Node):
    """Selection: keeps the rows for which ``condition`` is TRUE (Kraemer section 3.1)."""

    input: Node
    condition: Expr

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Project(Node):
    """Projection without duplicate elimination: Kraemer's map (section 3.1)."""

    input: Node
    outputs: tuple[tuple[Column, Expr], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c, _ in self.outputs)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Join(Node):
    """Inner join on any condition (None: the Cartesian product). Output: left columns, then right columns."""

    left: Node
    right: Node
    condition: Expr | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns + self.right.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class UnionAll(Node):
    """Bag union (Kraemer section 3.1). ``outputs`` are fresh columns; each input's columns fill them by position."""

    parts: tuple[Node, ...]
    outputs: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.outputs

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate: ``function`` is COUNT, SUM, AVG, MIN or MAX; ``argument`` None stands for COUNT(*)."""

    function: str
    argument: Expr | None = None


@dataclass(frozen=True)
class Aggregate(Node):
    """Grouping with aggregation (Kraemer section 3.3). Output: keys, then calls.

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
class Plan:
    """A bound continuous query, ready to run.

    ``root`` is the relation whose instantaneous contents the query means; ``stream`` is istream / dstream / rstream
    where the query is stream-valued (the RelationToStream node itself is then not in ``root``), else None. Output
    columns are ``root.columns`` in order; their labels are the result table's column names. ``materialize`` lists
    which tables are kept: a subset of relation, istream, dstream, rstream. ``inputs`` are the names scanned.
    ``notes`` are the defaults applied.
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
