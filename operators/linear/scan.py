"""Scans: what a plan reads.

A stream is a bag of elements ``[s, s+1)``; a relation its history, as signed changes. Their update patterns are where
the rules of Golab & Oezsu 2005, section 5.2, begin: nothing leaves a stream, and what a relation's changes take back is
not known before. SweepArea: none, both are read from their tables by range.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.carriers import Carriers
from sweeparea.operators.plan.edge import MONOTONIC, STRICT, Edge
from sweeparea.operators.plan.node import Ids, Node
from sweeparea.operators.plan.stretch import Stretch
from sweeparea.operators.plan.words import columns_text
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF


@dataclass(frozen=True)
class Scan(Node):
    """Base of the scans of tables. ``source`` maps each output column to the name that it has in the table."""

    name: str
    source: tuple[tuple[Column, str], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.source)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def scans(self) -> str | None:
        return self.name

    @property
    def readable_again(self) -> bool:
        return True

    @property
    def cheap(self) -> bool:
        return True

    @property
    def looks_back(self) -> int:
        return 0

    def read_columns(self) -> Iterator[tuple[str, str]]:
        yield from ((column.id, name) for column, name in self.source)

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        return {column.id: frozenset({column.id}) for column, _ in self.source}

    def touched(self, below: Sequence[Stretch | None], inputs: Mapping[str, Stretch]) -> Stretch | None:
        return inputs.get(self.name)

    def of(self, needed: Ids) -> tuple[tuple[Column, str], ...]:
        """The columns that somebody needs."""
        return tuple((column, name) for column, name in self.source if column.id in needed)


@stored("StreamScan", "name", "source", "instant")
@dataclass(frozen=True)
class StreamScan(Scan):
    """A registered stream or a stream-valued query, as elements ``[s, s+1)``.

    ``instant`` is the column that carries the pseudo-column ``ts`` (a TIMESTAMP, or the BIGINT tick itself where time
    is BIGINT), or None if unused.
    """

    instant: Column | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return super().columns if self.instant is None else (*super().columns, self.instant)

    def words(self, time: TimeDomain) -> str:
        return f"Stream {self.name} ({columns_text(self.columns)})"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        return MONOTONIC

    @property
    def is_stream(self) -> bool:
        return True

    def settled(self, static: Container[str]) -> bool:
        return False

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        return replace(self, source=self.of(needed), instant=needed_only(self.instant, needed))

    def reaches(self, below: Mapping[str, int]) -> dict[str, int]:
        return {self.name: 1}


@stored("RelationScan", "name", "source")
@dataclass(frozen=True)
class RelationScan(Scan):
    """A registered relation, a relation-valued query's result, or a materialization of one."""

    def words(self, time: TimeDomain) -> str:
        return f"Relation {self.name} ({columns_text(self.columns)})"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        return MONOTONIC if self.name in static else STRICT

    def settled(self, static: Container[str]) -> bool:
        return self.name in static

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        return replace(self, source=self.of(needed))

    def reaches(self, below: Mapping[str, int]) -> dict[str, int]:
        return {self.name: INF}


def needed_only(column: Column | None, needed: Ids) -> Column | None:
    """A column that may be there, if somebody needs it."""
    return column if column is not None and column.id in needed else None
