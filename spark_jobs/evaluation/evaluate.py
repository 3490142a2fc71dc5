"""One slice of a plan as Spark DataFrames: every operator in its incremental form, composed by the shape of the plan.

``new(node)`` is the bag that the slice adds to a node's relation; ``held(node)`` the rows that earlier slices made
and that can still matter after h0. None stands for a bag that is known to be empty without running anything. Linear
operators are maps on bags; joins combine new and held rows; the other operators sweep new rows together with the
SweepArea that their last slice left, and stage the SweepArea for the next one. Nothing runs here: the last DataFrame,
when collected, is the slice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.linear import generate, one_row, project, select, union_all
from sweeparea.operators.plan import patterns, sharing, support
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.logical import (
    Aggregate,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
    Node,
    OneRow,
    Plan,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    UnionAll,
    Window,
)
from sweeparea.operators.sweeps import enrich, join, relation_to_stream
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.operators.windows import window
from sweeparea.operators.windows.definitions import TimeWindow, UserWindow
from sweeparea.spark_jobs.declarations import user_code
from sweeparea.spark_jobs.evaluation.areas import SweepAreas
from sweeparea.spark_jobs.evaluation.encode import Encoder
from sweeparea.spark_jobs.evaluation.inner_join import InnerJoins
from sweeparea.spark_jobs.evaluation.inputs import InputReader
from sweeparea.spark_jobs.evaluation.shape import Shape
from sweeparea.spark_jobs.evaluation.sweeps import Sweeps
from sweeparea.spark_jobs.evaluation.swept_groups import SweptGroups
from sweeparea.spark_jobs.evaluation.swept_windows import SweptWindows
from sweeparea.spark_jobs.evaluation.two_sided import TwoSided
from sweeparea.spark_jobs.spark import frames, machine_probe
from sweeparea.spark_jobs.spark.frames import fields
from sweeparea.tables.log.files import write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Evaluation:
    """The evaluation of one slice ``(h0, h1]``."""

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
        self.most_rows = most_rows
        self.spark, self.plan, self.reader, self.areas = spark, plan, reader, areas
        self.attempt, self.partitions = attempt, partitions
        self.h0, self.h1 = reader.h0, reader.h1
        self.static = {name for name, source in reader.inputs.items() if source.static}
        self.names = {id(node): name for name, node in sharing.named(plan.root)}
        self._read_twice = sharing.read_twice(plan.root)
        self._new: dict[int, DataFrame | None] = {}
        self._spilled: list[str] = []
        self.once_computed: set[int] = set()
        self.sweeps = Sweeps(self)
        self.windows = SweptWindows(self)
        self.groups = SweptGroups(self)
        self.joins = InnerJoins(self)
        self.two_sided = TwoSided(self)
        self.edges = Edges.of(plan, self.static)
        self._encoder = Encoder(self)
        self._enriching = {id(x) for n in plan.root.walk() if isinstance(n, Enrich) for x in n.relation.walk()}
        self.rstreams: list[tuple[bridge.RowCount, relation_to_stream.Every]] = []
        user_code.register(spark, plan.functions)
        self.shape = Shape(spark, reader, plan.functions)

    def new(self, node: Node) -> DataFrame | None:
        """What this slice adds to the node's relation (or stream). Starts after h0; may start after h1 (pending)."""
        if id(node) not in self._new:
            self._new[id(node)] = self._encoder.encoded(node, self._make_new(node))
            if id(node) in self._read_twice:
                self.once(node)
        return self._new[id(node)]

    def _make_new(self, node: Node) -> DataFrame | None:
        match node:
            case StreamScan():
                return self.reader.new_elements(node)
            case RelationScan():
                return self.reader.new_changes(node, since_start=id(node) not in self._enriching)
            case Window() if isinstance(node.spec, TimeWindow):
                return self._windowed(node, self.new(node.input))
            case Window() if isinstance(node.spec, UserWindow):
                return self.windows.user(node)
            case Window():
                return self.windows.swept(node)
            case Enrich():
                return self._enrich(node)
            case Select():
                return self._map(select.apply, node, self.new(node.input))
            case Project():
                return self._map(project.apply, node, self.new(node.input))
            case UnionAll():
                return self._union(node, self.new)
            case Join() if node.kind == "inner":
                return self.joins.inner_join(node)
            case Join() if node.kind in ("semi", "anti"):
                return self.two_sided.semi_join(node)
            case Join():
                return self.two_sided.outer_join(node)
            case Difference() | Intersect():
                return self.two_sided.compared(node)
            case Aggregate() if self.two_sided.is_interval_distinct(node):
                return self.two_sided.distinct(node)
            case Aggregate() | Analytic() if support.expansion(node) is not None:
                return self.groups.expand(node)
            case TopK():
                return self.groups.top_k(node)
            case Aggregate():
                return self.groups.aggregate(node)
            case Generate():
                return self._map(generate.apply, node, self.new(node.input))
            case OneRow():
                return one_row.apply(self.spark, self.plan.start) if self.reader.first else None
            case RelationToStream():
                return self.groups.nested_stream(node)
        raise TypeError(f"no incremental form for {type(node).__name__}")

    def held(self, node: Node) -> DataFrame | None:
        """Rows of earlier slices that are alive after h0, or pending; for edges that can be read again by range."""
        match node:
            case RelationScan():
                return self.reader.past_contents(node)
            case Window():
                return self._encoder.held(node, self._windowed(node, self._past(node.input, node.spec.reach)))
            case Select():
                return self._map(select.apply, node, self.held(node.input))
            case Project():
                with self.reader.among(self._below(node)):
                    return self._map(project.apply, node, self.held(node.input))
            case Generate():
                return self._map(generate.apply, node, self.held(node.input))
            case OneRow():
                return None if self.reader.first else one_row.apply(self.spark, self.h0)
            case UnionAll():
                return self._union(node, self.held)
            case Join():
                both = self.held(node.left), self.held(node.right)
                return None if both[0] is None or both[1] is None else join.apply(node, both[0], both[1])
        raise TypeError(f"rows of {type(node).__name__} cannot be read again")

    def _past(self, node: Node, reach: int) -> DataFrame | None:
        """Past elements of a stream-valued edge, as far back as the window above it reaches."""
        match node:
            case StreamScan():
                return self.reader.past_elements(node, reach)
            case Select():
                return self._map(select.apply, node, self._past(node.input, reach))
            case Project():
                with self.reader.among(self._below(node)):
                    return self._map(project.apply, node, self._past(node.input, reach))
            case Generate():
                return self._map(generate.apply, node, self._past(node.input, reach))
            case UnionAll():
                return self._union(node, lambda part: self._past(part, reach))
        raise TypeError(f"elements of {type(node).__name__} cannot be read again")

    def _below(self, node: Project) -> frames.Among:
        """What rows may be chosen by below a projection, where they are chosen by its columns."""
        among = self.reader.chosen
        return {expr.sql.strip("`"): among[column.id] for column, expr in node.outputs if column.id in among}

    # -- linear operators ----------------------------------------------------------------------------------------------

    @staticmethod
    def _map(apply: Callable[..., DataFrame], node: Node, bag: DataFrame | None) -> DataFrame | None:
        return None if bag is None else apply(node, bag)

    @staticmethod
    def _union(node: UnionAll, of: Callable[[Node], DataFrame | None]) -> DataFrame | None:
        bags = [(i, bag) for i, part in enumerate(node.parts) if (bag := of(part)) is not None]
        return union_all.apply(node, bags) if bags else None

    def _windowed(self, node: Window, stream: DataFrame | None) -> DataFrame | None:
        if stream is None:
            return None
        return window.apply(node, stream, self.reader.instant_sql, partial(machine_probe.guarded_text, self.spark))

    # -- windows in which later elements decide, user-defined windows --------------------------------------------------

    def _enrich(self, node: Enrich) -> DataFrame | None:
        relation = self._contents(node.relation, f"hold_{self.names[id(node)]}")
        stream = self.new(node.stream)
        if not patterns.readable_again(node.stream):
            stream = self.drained(stream)
        if stream is None or (relation is None and node.kind != "left"):
            return None
        return enrich.apply(node, stream, relation if relation is not None else self.shape.bag(node.relation))

    def _contents(self, node: Node, op: str) -> DataFrame | None:
        """The intervals of a relation's history that reach into the slice."""
        if patterns.settled(node, self.static) and patterns.readable_again(node):
            return self.new(node) if self.reader.first else self.held(node)
        ids, bag = [c.id for c in node.columns], self.new(node)
        if bag is None and not self.areas.files(op):
            return None
        new = None if bag is None else bag.selectExpr(*ids, *BAG)
        schema = pa.schema([*fields(new if new is not None else self.shape.bag(node), ids), *BAG_FIELDS])
        task = partial(self.sweeps.sweep_task, partial(enrich.intervals, columns=ids), schema, schema)
        return self.drained(self.sweeps.swept_whole(op, new, schema, ids, task, frames.ddl(schema)))

    # -- join ----------------------------------------------------------------------------------------------------------

    def once(self, node: Node) -> DataFrame | None:
        """``new(node)``, computed by a job of its own where two readers would have it computed twice at a cost."""
        if not self.edges.cheap(node) and id(node) not in self.once_computed:
            self.once_computed.add(id(node))
            self._new[id(node)] = self.drained(self.new(node))
        return self.new(node)

    def drained(self, bag: DataFrame | None) -> DataFrame | None:
        """``bag`` after a job of its own: all of it has been computed, so every sweep below has staged its SweepArea.

        Spark pulls from one side of a join only what the other side asks for, and nothing where that is empty.
        Whether a SweepArea is written must not depend on that.
        """
        if bag is None:
            return None
        path = f"{self.areas.spill}/{len(self._spilled)}"
        if self.partitions == 1:
            table = bag.toArrow()
            if table.num_rows <= frames.LOCAL_ROWS:
                return frames.from_arrow(self.spark, table) if table.num_rows else None
            write_file(table, path, "local", "rows")
            path = f"{path}/data/local"
        else:
            bag.write.parquet(path)
        self._spilled.append(path)
        return self.spark.read.schema(bag.schema).parquet(path)

    # -- operators that sweep ------------------------------------------------------------------------------------------
