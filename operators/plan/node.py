"""What every operator says of itself: the base of all nodes of a logical plan.

The binder (``cql``) makes nodes, rewrites transform them, ``spark_jobs`` runs them. A node's ``columns`` are its output
record; ids are unique within a plan, so no join can confuse two inputs. Each kind has a file of its own (``nodes.py``
lists them) that holds the node, its laws and its sweep. Within ``operators`` whoever looks at a plan asks its nodes,
and does not list the kinds that it knows (rules of ``cql`` that know an algebraic law of one kind name it). What is
told here is what may be said of an operator of which nothing is known: an operator that says no more is slow, not
wrong.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, Self

from sweeparea.operators.plan.carriers import Carriers
from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.plan.influence import Ids, Influence, Made, read_by
from sweeparea.operators.plan.stretch import Stretch, hull
from sweeparea.operators.sql.expressions import Column, Expr, expressions_in, reference, with_expressions
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF


class Ends(Protocol):
    """What is known of a plan's edges where its state is asked for (``encoding.Edges``)."""

    static: Container[str]

    def expiry_known(self, node: Node) -> bool:
        """Whether every row of the node's output carries its final end."""
        ...


class ExpressionKind(StrEnum):
    """What Spark takes beside what: aggregates not beside values, of generators one alone."""

    VALUE = "value"
    AGGREGATE = "aggregate"
    GENERATOR = "generator"


@dataclass(frozen=True)
class Evaluated:
    """Spark SQL of a node, the author's texts of its parts, what it must be, and the columns that it gives.

    ``remembered``: rows are remembered by it, in a table. A column of the node is stored with a type that a table holds
    where it is a NULL without one, anything else is kept as it is.
    """

    sql: str
    texts: Sequence[str]
    condition: bool = False
    remembered: bool = False
    kind: ExpressionKind = ExpressionKind.VALUE
    columns: tuple[Column, ...] = ()


def plain(*expressions: Expr | None, remembered: bool = False) -> Iterator[Evaluated]:
    """Expressions of any type."""
    yield from (Evaluated(f"({e.sql})", [e.text], remembered=remembered) for e in expressions if e is not None)


def condition(expr: Expr | None) -> Iterator[Evaluated]:
    """An expression that must be BOOLEAN."""
    if expr is not None:
        yield Evaluated(f"({expr.sql})", [expr.text], condition=True)


@dataclass(frozen=True)
class Node(ABC):
    """Base of all plan nodes."""

    # -- shape -------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The output record."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Node, ...]:
        """The nodes below, left to right; none of a scan."""

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

    @property
    def scans(self) -> str | None:
        """The name of the table that this scans, if it is a scan."""
        return None

    # -- words -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def words(self, time: TimeDomain) -> str:
        """One line for explain, without its inputs."""

    # -- update pattern, encoding ------------------------------------------------------------------------------------

    @abstractmethod
    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        """The output's update pattern, from those of the inputs; ``static`` names the relations that never change."""

    @property
    def ends(self) -> frozenset[object]:
        """By what the rows of this edge end, through operators that keep their order: windows, or what stands there
        else.
        """
        return frozenset({self})

    @property
    def monotonic(self) -> bool:
        """Whether the relation only ever grows, by its form alone: the test behind the default Istream (Arasu et al.
        2003, section 6.2.2).
        """
        return False

    @property
    def is_stream(self) -> bool:
        """Whether this is a stream: a scan or a relation-to-stream operator, as they are or with selections on them."""
        return False

    @property
    def lengthens(self) -> bool:
        """Whether of an edge whose expiry is known a record may come in pieces that follow each other (Kraemer's
        coalesce puts them together again).
        """
        return any(child.lengthens for child in self.inputs)

    @property
    def compares(self) -> bool:
        """Whether this compares two bags, so that it can tell expected ends although later rows may change them."""
        return False

    @property
    def replaces(self) -> bool:
        """Whether a row of this may come and go within a slice."""
        return False

    @property
    def forgets(self) -> bool:
        """Whether this is a window that elements leave."""
        return False

    # -- reading again -----------------------------------------------------------------------------------------------

    def settled(self, static: Container[str]) -> bool:
        """Whether this edge cannot change after the query's first slice: it rests on static relations alone."""
        return bool(self.inputs) and all(child.settled(static) for child in self.inputs)

    @property
    def readable_again(self) -> bool:
        """Whether the rows that this edge still holds can be read from the inputs by range, so that no SweepArea is
        needed; its runner then has ``held`` and, of a stream, ``past``.
        """
        return False

    @property
    def read_again(self) -> tuple[Node, ...]:
        """The inputs whose past rows are read by range instead of being kept."""
        return ()

    @property
    def keeps_readable(self) -> bool:
        """Whether this keeps rows in its SweepArea that could be read from the inputs: another version, that read them,
        may have left no row of it (``stale.py``).
        """
        return False

    @property
    def cheap(self) -> bool:
        """Whether computing this edge twice costs little: scans, selections, projections, unions, and windows that
        look at one element at a time.
        """
        return False

    # -- columns -----------------------------------------------------------------------------------------------------

    def expressions(self) -> Iterator[Expr]:
        """The scalar expressions that this node itself evaluates, wherever its fields hold them."""
        for each in dataclasses.fields(self):
            yield from expressions_in(getattr(self, each.name))

    def map_expressions(self, change: Callable[[Expr], Expr]) -> Self:
        """The same node with each of its own expressions changed."""
        changed = {f.name: with_expressions(getattr(self, f.name), change) for f in dataclasses.fields(self)}
        return dataclasses.replace(self, **changed)

    @property
    def reads(self) -> Ids:
        """The ids of the columns that this node's own expressions refer to."""
        return read_by(self.expressions())

    def needs(self, needed: Ids) -> Iterator[Ids]:
        """For each input the ids that it must keep, given those that are read of this node: all, where values are
        compared whole.
        """
        for child in self.inputs:
            yield ids_of(child)

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        """The node over inputs that were cut down, without what nobody needs."""
        return self.with_inputs(inputs)

    def evaluated(self) -> Iterator[Evaluated]:
        """What Spark is given of this node: its expressions, of values that it may remember."""
        return plain(*self.expressions(), remembered=True)

    def computed(self) -> Iterator[Evaluated]:
        """The columns that this node adds, with the Spark SQL that gives each of them its type."""
        return iter(())

    @property
    def by_position(self) -> bool:
        """Whether the inputs' columns fill this node's by position, so that its types are those of their union."""
        return False

    # -- lineage -----------------------------------------------------------------------------------------------------

    def read_columns(self) -> Iterator[tuple[str, str]]:
        """Of a scan: each column's id with its name in the table."""
        return iter(())

    def made(self) -> Iterator[Made]:
        """The columns that this node makes, each with those that it is made of; any other has an input's value. Of
        nothing that is known: of all that it reads.
        """
        given = frozenset().union(*(ids_of(child) for child in self.inputs))
        if self.by_position:
            for i, column in enumerate(self.columns):
                yield Made(column.id, frozenset(child.columns[i].id for child in self.inputs), Influence.IDENTITY)
            return
        yield from (Made(c.id, self.reads or given) for c in self.columns if c.id not in given)

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        """The columns of the inputs that decide which rows there are."""
        yield Influence.FILTER, self.reads

    # -- keys, time --------------------------------------------------------------------------------------------------

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        """Which columns carry a key of the inputs, given those of the inputs (``carriers.py``)."""
        return {}

    def touched(self, below: Sequence[Stretch | None], inputs: Mapping[str, Stretch]) -> Stretch | None:
        """The instants at which this relation (or stream) can differ, given those of its inputs, and of the inputs of
        the query by their names. Every operator works instant by instant (Kraemer & Seeger 2005, Definition 5.2).
        """
        found = hull(below)
        return None if found is None else found.longer(self.looks_back)

    @property
    def looks_back(self) -> int:
        """For how many ticks a row of an input can make a difference after its own instants; ``INF``: for ever.

        0 is right of an operator that is snapshot-reducible (Kraemer & Seeger 2005, Definition 5.2).
        """
        return INF

    def reaches(self, below: Mapping[str, int]) -> dict[str, int]:
        """Per scanned name, for how many ticks one of its rows can still change the result; ``INF``: for ever."""
        return {name: longer(ticks, self.looks_back) for name, ticks in below.items()}

    # -- how it runs -------------------------------------------------------------------------------------------------

    def kept(self, ends: Ends) -> str | None:
        """What it keeps from slice to slice, for explain; None: nothing."""
        return None

    def combines(self, ends: Ends) -> bool:
        """Whether rows that meet in this node are made fewer by the workers that made them, before they travel."""
        return False

    def divides(self, ends: Ends) -> str | None:
        """How several workers share a group of this node, for explain; None: they do not."""
        return None

    def lowered(self) -> Node:
        """What an incremental operator can do in its place (``lowering.py``); its inputs are left as they are."""
        return self

    @property
    def expansion(self) -> str | None:
        """Why this node, which has been lowered, runs by snapshot expansion; None: it has an incremental operator."""
        return None


def ids_of(node: Node) -> Ids:
    """The ids of a node's columns."""
    return frozenset(column.id for column in node.columns)


def longer(ticks: int, more: int) -> int:
    """A sum that stays at ``INF``."""
    return INF if ticks >= INF - more else ticks + more


__all__ = ["Ends", "Evaluated", "Ids", "Node", "condition", "ids_of", "longer", "plain", "reference"]
