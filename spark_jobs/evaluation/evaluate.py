"""One slice of a plan as Spark DataFrames: every operator in its incremental form, composed by the shape of the plan.

``new(node)`` is the bag that the slice adds to a node's relation; ``held(node)`` the rows that earlier slices made
and that can still matter after h0. None stands for a bag that is known to be empty without running anything. Linear
operators are maps on bags; joins combine new and held rows; the other operators sweep new rows together with the
SweepArea that their last slice left, and stage the SweepArea for the next one. The last DataFrame, when collected, is
the slice: one Spark job, after one of its own for each bag that two read at a cost (``once``), that a join may not
leave half read (``drained``), or whose rows several workers send each other (``operators/exchange.py``); nothing else
runs here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sweeparea.operators import bridge
from sweeparea.operators.nodes import (
    Aggregate,
    Analytic,
    Difference,
    Enrich,
    Framed,
    Generate,
    Intersect,
    Join,
    Navigation,
    OneRow,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    UnionAll,
    Window,
)
from sweeparea.operators.plan import sharing
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.sweeps import relation_to_stream
from sweeparea.operators.time.ticks import INF
from sweeparea.spark_jobs.declarations import user_code
from sweeparea.spark_jobs.evaluation.areas import SweepAreas
from sweeparea.spark_jobs.evaluation.encode import Encoder
from sweeparea.spark_jobs.evaluation.grouped.aggregate import Aggregates
from sweeparea.spark_jobs.evaluation.grouped.analytic import Analytics
from sweeparea.spark_jobs.evaluation.grouped.framed import Frames
from sweeparea.spark_jobs.evaluation.grouped.navigation import Navigations
from sweeparea.spark_jobs.evaluation.grouped.top_k import TopKs
from sweeparea.spark_jobs.evaluation.inputs import InputReader
from sweeparea.spark_jobs.evaluation.runners import linear
from sweeparea.spark_jobs.evaluation.runners.enrich import Enriches
from sweeparea.spark_jobs.evaluation.runners.joins import Joins
from sweeparea.spark_jobs.evaluation.runners.nested_stream import NestedStreams
from sweeparea.spark_jobs.evaluation.runners.two_counts import SetOperations, TwoCounts
from sweeparea.spark_jobs.evaluation.runners.windows import Windows
from sweeparea.spark_jobs.evaluation.running import Runner, RunningSlice
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark import frames
from sweeparea.tables.log.files import write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Evaluation:
    """The bags of one slice ``(h0, h1]`` (``running.Bags``)."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        reader: InputReader,
        areas: SweepAreas,
        attempt: str,
        partitions: int,
        most_rows: int = INF,
    ) -> None:
        static = {name for name, source in reader.inputs.items() if source.static}
        names = {id(node): name for name, node in sharing.named(plan.root)}
        self.slice = RunningSlice(
            spark, plan, reader, areas, attempt, partitions, most_rows, static, Edges.of(plan, static), names
        )
        self.sweeps = Sweeps(self.slice, self)
        self.streams = NestedStreams(self.slice, self, self.sweeps)
        self._encoder = Encoder(self.slice, self, self.sweeps)
        self._runners = self._made()
        self._read_twice = sharing.read_twice(plan.root)
        self._new: dict[int, DataFrame | None] = {}
        self._spilled: list[str] = []
        user_code.register(spark, plan.functions)

    def _made(self) -> dict[type[Node], Runner[Any]]:
        """What runs each kind of node."""
        slice, sweeps = self.slice, self.sweeps
        counts = TwoCounts(slice, self, sweeps)
        sets = SetOperations(slice, self, counts)
        return {
            StreamScan: linear.StreamScans(slice, self),
            RelationScan: linear.RelationScans(slice, self),
            OneRow: linear.OneRows(slice, self),
            Select: linear.Selects(slice, self),
            Project: linear.Projects(slice, self),
            Generate: linear.Generates(slice, self),
            UnionAll: linear.Unions(slice, self),
            Window: Windows(slice, self, sweeps, self._encoder),
            Enrich: Enriches(slice, self, sweeps),
            Join: Joins(slice, self, sweeps, counts),
            Difference: sets,
            Intersect: sets,
            Aggregate: Aggregates(slice, self, sweeps, counts),
            Analytic: Analytics(slice, self, sweeps),
            TopK: TopKs(slice, self, sweeps),
            Navigation: Navigations(slice, self, sweeps),
            Framed: Frames(slice, self, sweeps),
            RelationToStream: self.streams,
        }

    def _of(self, node: Node) -> Runner[Any]:
        return self._runners[type(node)]

    def new(self, node: Node) -> DataFrame | None:
        """What this slice adds to the node's relation (or stream). Starts after h0; may start after h1 (pending)."""
        if id(node) not in self._new:
            self._new[id(node)] = self._encoder.encoded(node, self._of(node).new(node))
            if id(node) in self._read_twice:
                self.once(node)
        return self._new[id(node)]

    def held(self, node: Node) -> DataFrame | None:
        """Rows of earlier slices that are alive after h0, or pending; for edges that can be read again by range."""
        return self._of(node).held(node)

    def past(self, node: Node, reach: int) -> DataFrame | None:
        """Past elements of a stream-valued edge, as far back as the window above it reaches."""
        return self._of(node).past(node, reach)

    def empty(self, node: Node) -> DataFrame:
        """An empty bag with the node's columns and their types, which Spark analyses without running anything."""
        return self._of(node).empty(node)

    @property
    def rstreams(self) -> list[tuple[bridge.RowCount, relation_to_stream.Every]]:
        """Where the plan's Rstreams note their numbers of rows, with their instants."""
        return self.streams.rstreams

    # -- how rows lie --------------------------------------------------------------------------------------------------

    def pipe(self, node: Node) -> bridge.Pipe | None:
        """How the rows of ``new(node)``, which has been made, come from a sweep or from files, if Spark has computed
        nothing of them since; a sweep may stand behind it in the same worker.
        """
        edges = self.slice.edges
        again = id(node) in self.slice.once_computed or edges.splits(node) or edges.expires(node)
        return None if again or node.lowered().expansion is not None else self._of(node).pipe(node)

    def net(self, node: Node) -> bool:
        """Whether in ``new(node)``, which has been made, no record ends where an equal one begins, and all that ends
        in the slice's future is open (``istream.changes``).
        """
        return self._of(node).net(node)

    def spread_by(self, node: Node) -> frozenset[str] | None:
        """Columns by which the rows of ``new(node)``, which has been made, lie in the slice's partitions: those with
        equal values together. None: they lie anyhow. What one sweep has brought together needs no second shuffle.
        """
        return None if id(node) in self.slice.once_computed else self._of(node).spread_by(node)

    # -- computed once -------------------------------------------------------------------------------------------------

    def once(self, node: Node) -> DataFrame | None:
        """``new(node)``, computed by a job of its own where two readers would have it computed twice at a cost."""
        if not self.slice.edges.cheap(node) and id(node) not in self.slice.once_computed:
            self.slice.once_computed.add(id(node))
            self._new[id(node)] = self.drained(self.new(node))
        return self.new(node)

    def drained(self, bag: DataFrame | None) -> DataFrame | None:
        """``bag`` after a job of its own: all of it has been computed, so every sweep below has staged its SweepArea.

        Spark pulls from one side of a join only what the other side asks for, and nothing where that is empty.
        Whether a SweepArea is written must not depend on that.
        """
        if bag is None:
            return None
        path = f"{self.slice.areas.spill}/{len(self._spilled)}"
        if self.slice.partitions == 1:
            table = bag.toArrow()
            if table.num_rows <= frames.LOCAL_ROWS:
                return frames.from_arrow(self.slice.spark, table) if table.num_rows else None
            write_file(table, path, "local", "rows")
            path = f"{path}/data/local"
        else:
            bag.write.parquet(path)
        self._spilled.append(path)
        return frames.of_files(self.slice.spark, bag.schema, path)
