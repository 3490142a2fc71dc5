"""What runs a node on Spark: one class a kind of node, and what all of them share of a slice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import pyarrow as pa

from sweeparea.operators.bridge import Pipe
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.spark_jobs.evaluation.areas import SweepAreas
from sweeparea.spark_jobs.evaluation.inputs import InputReader
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.deferred import deferred

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NodeT = TypeVar("NodeT", bound=Node)


@dataclass(frozen=True)
class RunningSlice:
    """One slice ``(h0, h1]`` of a plan that is being evaluated.

    ``static`` names the inputs that never change, ``names`` the nodes by id as their SweepAreas are called, ``attempt``
    the run; ``partitions`` is how many workers share a sweep, ``most_rows`` how many rows an Rstream may have.
    """

    spark: SparkSession
    plan: Plan
    reader: InputReader
    areas: SweepAreas
    attempt: str
    partitions: int
    most_rows: int
    static: Container[str]
    edges: Edges
    names: dict[int, str]
    once_computed: set[int] = field(default_factory=set)
    """The nodes whose new rows a job of their own has computed."""

    @property
    def h0(self) -> int:
        return self.reader.h0

    @property
    def h1(self) -> int:
        return self.reader.h1


class Bags(Protocol):
    """The bags of a slice's nodes; None stands for one that is known to be empty without running anything."""

    def new(self, node: Node) -> DataFrame | None:
        """What this slice adds to the node's relation (or stream)."""
        ...

    def held(self, node: Node) -> DataFrame | None:
        """Rows of earlier slices that are alive after h0, or pending; for edges that can be read again by range."""
        ...

    def past(self, node: Node, reach: int) -> DataFrame | None:
        """Past elements of a stream-valued edge, as far back as the window above it reaches."""
        ...

    def once(self, node: Node) -> DataFrame | None:
        """``new(node)``, computed by a job of its own where two readers would have it computed twice at a cost."""
        ...

    def drained(self, bag: DataFrame | None) -> DataFrame | None:
        """``bag`` after a job of its own: all of it has been computed."""
        ...

    def empty(self, node: Node) -> DataFrame:
        """An empty bag with the node's columns and their types."""
        ...

    def pipe(self, node: Node) -> Pipe | None:
        """How the rows of ``new(node)`` come from a sweep or from files, if Spark has computed nothing since."""
        ...

    def net(self, node: Node) -> bool:
        """Whether in ``new(node)`` no record ends where an equal one begins, and all that ends in the slice's future is
        open.
        """
        ...

    def spread_by(self, node: Node) -> frozenset[str] | None:
        """Columns by which the rows of ``new(node)`` lie in the slice's partitions, None: they lie anyhow."""
        ...


class Runner(ABC, Generic[NodeT]):
    """How the nodes of one kind run in a slice. ``bags`` has those of all nodes."""

    def __init__(self, slice: RunningSlice, bags: Bags) -> None:
        self.slice, self.bags = slice, bags

    @abstractmethod
    def new(self, node: NodeT) -> DataFrame | None:
        """What this slice adds to the node's relation (or stream). Starts after h0; may start after h1 (pending)."""

    @abstractmethod
    def empty(self, node: NodeT) -> DataFrame:
        """An empty bag with the node's columns and types: Spark analyses it, no job runs."""

    def held(self, node: NodeT) -> DataFrame | None:
        """As of ``Bags``."""
        raise TypeError(f"rows of {type(node).__name__} cannot be read again")

    def past(self, node: NodeT, reach: int) -> DataFrame | None:
        """As of ``Bags``."""
        raise TypeError(f"elements of {type(node).__name__} cannot be read again")

    def pipe(self, node: NodeT) -> Pipe | None:
        """As of ``Bags``; nothing has been computed of the rows since."""
        return None

    def net(self, node: NodeT) -> bool:
        """As of ``Bags``."""
        return False

    def spread_by(self, node: NodeT) -> frozenset[str] | None:
        """As of ``Bags``; nothing has been computed of the rows since."""
        return None

    def name(self, node: Node) -> str:
        """What a node's SweepArea is called."""
        return self.slice.names[id(node)]

    def known(self, node: Node) -> bool:
        """Whether every row of a node's output carries its final end."""
        return self.slice.edges.expiry_known(node)


def filled(spark: SparkSession, frame: DataFrame, schema: pa.Schema, given: Mapping[str, str]) -> DataFrame:
    """``frame`` in the shape of a sweep's rows: given expressions, kind 0 (a raw row), NULL for the rest."""
    given = {"__kind": "0", **given}
    types = frames.kinds(schema)
    casts = [f"CAST({given.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind in types.items()]
    return deferred(spark, lambda: frame.selectExpr(*casts), types)


def ids_of(node: Node) -> list[str]:
    return [column.id for column in node.columns]


def union(bags: Iterable[DataFrame | None]) -> DataFrame | None:
    """All rows of some bags; None: there are none."""
    found = [bag for bag in bags if bag is not None]
    return frames.concatenated(found) if found else None
