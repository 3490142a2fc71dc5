"""One slice of a plan as Spark DataFrames: every operator in its incremental form, composed by the shape of the plan.

``new(node)`` is the bag that the slice adds to a node's relation; ``held(node)`` the rows that earlier slices made
and that can still matter after h0. None stands for a bag that is known to be empty without running anything. Linear
operators are maps on bags; joins combine new and held rows; the other operators sweep new rows together with the
SweepArea that their last slice left, and stage the SweepArea for the next one. Nothing runs here: the last DataFrame,
when collected, is the slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import (
    aggregate,
    bridge,
    join,
    patterns,
    project,
    relation_to_stream,
    select,
    union_all,
    window,
)
from sweeparea.operators.bag import BAG, TE, TS
from sweeparea.operators.logical import (
    Aggregate,
    Join,
    Node,
    Plan,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    UnionAll,
    Window,
)
from sweeparea.spark_jobs import frames
from sweeparea.spark_jobs.grouping import Grouping
from sweeparea.spark_jobs.inputs import InputReader
from sweeparea.spark_jobs.shape import Shape
from sweeparea.tables.schema import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BAG_FIELDS = [pa.field(name, pa.int64()) for name in BAG]


@dataclass
class SweepAreas:
    """Where a slice finds the SweepAreas of its operators and stages the next ones.

    ``read(op)`` gives the rows left by the last slice (None: no rows), ``root(op, schema)`` the table's folder,
    created on first use.
    """

    read: Callable[[str], DataFrame | None]
    root: Callable[[str, pa.Schema], str]
    spill: str
    staged: dict[str, pa.Schema] = field(default_factory=dict)

    def target(self, op: str, schema: pa.Schema) -> bridge.Target:
        self.staged[op] = schema
        return bridge.Target(self.root(op, schema), schema, op)


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
    ) -> None:
        self.spark, self.plan, self.reader, self.areas = spark, plan, reader, areas
        self.attempt, self.partitions = attempt, partitions
        self.h0, self.h1 = reader.h0, reader.h1
        self.static = {name for name, source in reader.inputs.items() if source.static}
        self._names = {id(node): f"{type(node).__name__.lower()}{i}" for i, node in enumerate(plan.root.walk())}
        self._new: dict[int, DataFrame | None] = {}
        self._spilled: list[str] = []
        self.shape = Shape(spark, reader)

    def new(self, node: Node) -> DataFrame | None:
        """What this slice adds to the node's relation (or stream). Starts after h0; may start after h1 (pending)."""
        if id(node) not in self._new:
            self._new[id(node)] = self._make_new(node)
        return self._new[id(node)]

    def _make_new(self, node: Node) -> DataFrame | None:
        match node:
            case StreamScan():
                return self.reader.new_elements(node)
            case RelationScan():
                return self.reader.new_changes(node)
            case Window():
                return self._map(window.apply, node, self.new(node.input))
            case Select():
                return self._map(select.apply, node, self.new(node.input))
            case Project():
                return self._map(project.apply, node, self.new(node.input))
            case UnionAll():
                return self._union(node, self.new)
            case Join():
                return self._join(node)
            case Aggregate():
                return self._aggregate(node)
            case RelationToStream():
                return self._nested_stream(node)
        raise TypeError(f"no incremental form for {type(node).__name__}")

    def held(self, node: Node) -> DataFrame | None:
        """Rows of earlier slices that are alive after h0, or pending; for edges that can be read again by range."""
        match node:
            case RelationScan():
                return self.reader.past_contents(node)
            case Window():
                past = self._map(window.apply, node, self._past(node.input, node.spec.reach))
                return None if past is None else past.where(f"{TE} > {self.h0 + 1}L")
            case Select():
                return self._map(select.apply, node, self.held(node.input))
            case Project():
                return self._map(project.apply, node, self.held(node.input))
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
                return self._map(project.apply, node, self._past(node.input, reach))
            case UnionAll():
                return self._union(node, lambda part: self._past(part, reach))
        raise TypeError(f"elements of {type(node).__name__} cannot be read again")

    # -- linear operators ----------------------------------------------------------------------------------------------

    @staticmethod
    def _map(apply: Callable[..., DataFrame], node: Node, bag: DataFrame | None) -> DataFrame | None:
        return None if bag is None else apply(node, bag)

    @staticmethod
    def _union(node: UnionAll, of: Callable[[Node], DataFrame | None]) -> DataFrame | None:
        bags = [(i, bag) for i, part in enumerate(node.parts) if (bag := of(part)) is not None]
        return union_all.apply(node, bags) if bags else None

    # -- join ----------------------------------------------------------------------------------------------------------

    def _join(self, node: Join) -> DataFrame | None:
        # rows of a side are needed again only while the other side can still bring new ones
        left = self._side(node.left, held=not patterns.settled(node.right, self.static))
        right = self._side(node.right, held=not patterns.settled(node.left, self.static))
        parts = []
        if left.new is not None:
            rights = [bag for bag in (right.held, right.new) if bag is not None]
            if rights:
                every = rights[0] if len(rights) == 1 else rights[0].unionByName(rights[1])
                parts.append(join.apply(node, left.new, every))
        if left.held is not None and right.new is not None:
            parts.append(join.apply(node, left.held, right.new))
        return _concatenated(parts) if parts else None

    def _side(self, node: Node, held: bool) -> _Side:
        """New rows of a join's side and, where they are needed, the held ones."""
        if patterns.readable_again(node):
            return _Side(self.new(node), self.held(node) if held else None)
        return self._hold(node) if held else _Side(self._drained(self.new(node)), None)

    def _hold(self, node: Node) -> _Side:
        """New and held rows of a side that only a SweepArea remembers (``bridge.HoldTask``)."""
        op, ids = f"hold_{self._names[id(node)]}", [c.id for c in node.columns]
        new, held = self.new(node), self.areas.read(op)
        bags = [
            bag.selectExpr(*ids, *BAG, f"{flag} AS __new")
            for bag, flag in ((new, "TRUE"), (held, "FALSE"))
            if bag is not None
        ]
        if not bags:
            return _Side(None, None)
        rows = _concatenated(bags)
        schema = pa.schema([*fields(rows, ids), *BAG_FIELDS, pa.field("__new", pa.bool_())])
        target = self.areas.target(op, schema.remove(schema.get_field_index("__new")))
        task = bridge.HoldTask(self.h1, schema, target, self.attempt)
        passed = self._drained(bridge.run(rows, task, ids, self.partitions, frames.ddl(schema)))
        if passed is None:
            return _Side(None, None)
        return _Side(
            passed.where("__new").drop("__new") if new is not None else None,
            passed.where("NOT __new").drop("__new") if held is not None else None,
        )

    def _drained(self, bag: DataFrame | None) -> DataFrame | None:
        """``bag`` after a job of its own: all of it has been computed, so every sweep below has staged its SweepArea.

        Spark pulls from one side of a join only what the other side asks for, and nothing where that is empty.
        Whether a SweepArea is written must not depend on that.
        """
        if bag is None:
            return None
        if self.partitions == 1:
            table = bag.toArrow()
            return frames.from_arrow(self.spark, table) if table.num_rows else None
        path = f"{self.areas.spill}/{len(self._spilled)}"
        self._spilled.append(path)
        bag.write.parquet(path)
        return self.spark.read.schema(bag.schema).parquet(path)

    # -- operators that sweep ------------------------------------------------------------------------------------------

    def _aggregate(self, node: Aggregate) -> DataFrame | None:
        op, grouping = self._names[id(node)], Grouping(node)
        bag, state = self.new(node.input), self.areas.read(op)
        seeded = node.global_ and self.reader.first
        if bag is None and state is None and not seeded:
            return None
        shown = grouping.raw(bag if bag is not None else self.shape.bag(node.input), list(BAG))
        types = {f.name: f.type for f in fields(shown, [*grouping.keys, *grouping.arguments])}
        spec = aggregate.AggregateSpec(
            keys=tuple((key, types[key]) for key in grouping.keys),
            calls=tuple(
                aggregate.BaseCall(f"b{i}", base.function, result, base.text, types.get(f"a{i}"))
                for i, (base, result) in enumerate(zip(grouping.bases, grouping.result_types(types), strict=True))
            ),
            global_=node.global_,
            expiry_known=patterns.expiry_known(node.input, self.static),
            start=self.plan.start,
        )
        schema = aggregate.rows_schema(spec)
        rows = []
        if bag is not None:
            given = {*grouping.keys, *grouping.arguments, *BAG}
            rows.append(_filled(shown, schema, {name: name for name in given}))
        if state is not None:
            rows.append(state.selectExpr(*schema.names))
        if node.global_:  # a row that counts nothing, so that the sweep runs when nothing else has arrived
            rows.append(_filled(self.spark.range(1), schema, dict.fromkeys(BAG, "0L")))
        output = aggregate.delta_schema(spec)
        area = self.areas.target(op, schema)
        task = bridge.AggregateTask(spec, self.h0, self.h1, schema, output, area, self.attempt)
        partitions = self.partitions if grouping.keys else 1
        swept = bridge.run(_concatenated(rows), task, grouping.keys, partitions, frames.ddl(output))
        return swept.selectExpr(*grouping.keys, *grouping.outputs(types), *BAG)

    def _nested_stream(self, node: RelationToStream) -> DataFrame | None:
        """A stream inside a plan: Istream or Dstream of the input, as elements ``[t, t+1)`` (Arasu 2003, section
        5.1).
        """
        op, ids = self._names[id(node)], [c.id for c in node.input.columns]
        bag, state = self.new(node.input), self.areas.read(op)
        bags = [b.selectExpr(*ids, *BAG) for b in (bag, state) if b is not None]
        if not bags:
            return None
        rows = _concatenated(bags)
        record = fields(rows, ids)
        schema = pa.schema([*record, *BAG_FIELDS])
        spec = relation_to_stream.MaterializeSpec(
            columns=tuple(ids), istream=node.kind == "istream", dstream=node.kind == "dstream", relation=False
        )
        task = bridge.StreamTask(spec, node.kind, self.h0, self.h1, schema, self.areas.target(op, schema), self.attempt)
        stream = bridge.run(rows, task, ids, self.partitions, frames.ddl(schema))
        if node.instant is None:
            return stream
        return stream.selectExpr(*ids, f"{self.reader.instant_sql(TS)} AS {node.instant.id}", *BAG)


@dataclass(frozen=True)
class _Side:
    """What a join reads of one side; None where a bag is known to be empty, or is not needed."""

    new: DataFrame | None
    held: DataFrame | None


def _concatenated(bags: Sequence[DataFrame]) -> DataFrame:
    total = bags[0]
    for other in bags[1:]:
        total = total.union(other)
    return total


def _filled(frame: DataFrame, schema: pa.Schema, given: Mapping[str, str]) -> DataFrame:
    """``frame`` in the shape of a sweep's rows: given expressions, kind 0 (a raw row), NULL for the rest."""
    given = {"__kind": "0", **given}
    return frame.selectExpr(
        *(f"CAST({given.get(f.name, 'NULL')} AS {frames.spark_type(f.type)}) AS {f.name}" for f in schema)
    )


def fields(frame: DataFrame, names: Sequence[str]) -> list[pa.Field]:
    """Arrow fields of columns of a DataFrame: one analysis, no job."""
    types = {f.name: f.dataType for f in frame.schema}
    return [pa.field(name, arrow_type(types[name].simpleString())) for name in names]
