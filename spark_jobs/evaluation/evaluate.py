"""One slice of a plan as Spark DataFrames: every operator in its incremental form, composed by the shape of the plan.

``new(node)`` is the bag that the slice adds to a node's relation; ``held(node)`` the rows that earlier slices made
and that can still matter after h0. None stands for a bag that is known to be empty without running anything. Linear
operators are maps on bags; joins combine new and held rows; the other operators sweep new rows together with the
SweepArea that their last slice left, and stage the SweepArea for the next one. Nothing runs here: the last DataFrame,
when collected, is the slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators import (
    aggregate,
    bridge,
    enrich,
    expiry_log,
    generate,
    join,
    one_row,
    patterns,
    project,
    relation_to_stream,
    select,
    sharing,
    snapshot,
    support,
    union_all,
    user,
    window,
)
from sweeparea.operators.bag import BAG, TS
from sweeparea.operators.columns import BAG_FIELDS
from sweeparea.operators.encoding import Edges
from sweeparea.operators.logical import (
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
from sweeparea.operators.sweep_area import Due, SweepArea, bag_due
from sweeparea.operators.ticks import INF
from sweeparea.operators.windows import TimeWindow, UserWindow
from sweeparea.spark_jobs import frames
from sweeparea.spark_jobs.deployment import user_code
from sweeparea.spark_jobs.evaluation.areas import SweepAreas
from sweeparea.spark_jobs.evaluation.encode import Encoder
from sweeparea.spark_jobs.evaluation.expansion import expansion_of
from sweeparea.spark_jobs.evaluation.grouping import Grouping
from sweeparea.spark_jobs.evaluation.inputs import InputReader
from sweeparea.spark_jobs.evaluation.keyed_rows import TopKRows
from sweeparea.spark_jobs.evaluation.shape import Shape
from sweeparea.spark_jobs.evaluation.sweep_windows import WindowRows
from sweeparea.spark_jobs.evaluation.two_sided import TwoSided
from sweeparea.spark_jobs.frames import concatenated, fields
from sweeparea.tables.files import write_file

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
        self.names = {id(node): f"{type(node).__name__.lower()}{i}" for i, node in enumerate(sharing.nodes(plan.root))}
        self._read_twice = sharing.read_twice(plan.root)
        self._new: dict[int, DataFrame | None] = {}
        self._spilled: list[str] = []
        self._once_computed: set[int] = set()
        self._spread: set[str] = set()
        self._sides: dict[int, _Side] = {}
        self._two_sided = TwoSided(self)
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
                return self._user_window(node)
            case Window():
                return self._sweep_window(node)
            case Enrich():
                return self._enrich(node)
            case Select():
                return self._map(select.apply, node, self.new(node.input))
            case Project():
                return self._map(project.apply, node, self.new(node.input))
            case UnionAll():
                return self._union(node, self.new)
            case Join() if node.kind == "inner":
                return self.inner_join(node)
            case Join() if node.kind in ("semi", "anti"):
                return self._two_sided.semi_join(node)
            case Join():
                return self._two_sided.outer_join(node)
            case Difference() | Intersect():
                return self._two_sided.compared(node)
            case Aggregate() if self._two_sided.is_interval_distinct(node):
                return self._two_sided.distinct(node)
            case Aggregate() | Analytic() if support.expansion(node) is not None:
                return self._expand(node)
            case TopK():
                return self._top_k(node)
            case Aggregate():
                return self._aggregate(node)
            case Generate():
                return self._map(generate.apply, node, self.new(node.input))
            case OneRow():
                return one_row.apply(self.spark, self.plan.start) if self.reader.first else None
            case RelationToStream():
                return self._nested_stream(node)
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
                return self._map(project.apply, node, self._past(node.input, reach))
            case Generate():
                return self._map(generate.apply, node, self._past(node.input, reach))
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

    def _windowed(self, node: Window, stream: DataFrame | None) -> DataFrame | None:
        return None if stream is None else window.apply(node, stream, self.reader.instant_sql)

    # -- windows in which later elements decide, user-defined windows --------------------------------------------------

    def _sweep_window(self, node: Window) -> DataFrame | None:
        op, rows = self.names[id(node)], WindowRows(node)
        bag = self.new(node.input)
        if bag is None and self.idle(op, rows.partition):
            return None
        shown = rows.raw(bag if bag is not None else self.shape.bag(node.input))
        schema = pa.schema(fields(shown, shown.columns))
        record = [schema.field(c) for c in rows.ids]
        output = pa.schema([*record, *(pa.field(b, pa.int64()) for b in rows.bounds), *BAG_FIELDS])
        task = partial(self.sweep_task, rows.sweep(), schema, output)
        given = None if bag is None else shown
        swept = self.swept(op, given, schema, rows.partition, rows.due(self.areas.lazily), task, frames.ddl(output))
        bounds = zip(rows.bounds, node.bounds or (), strict=False)
        stamped = (f"{self.reader.instant_sql(tick)} AS {column.id}" for tick, column in bounds)
        return swept.selectExpr(*rows.ids, *stamped, *BAG)

    # -- sweeps with a SweepArea ---------------------------------------------------------------------------------------

    def idle(self, op: str, keys: Sequence[str]) -> bool:
        """Whether a sweep that gets no new rows has nothing to do."""
        return self.areas.quiet(op) if keys else not self.areas.files(op)

    def swept(
        self,
        op: str,
        new: DataFrame | None,
        schema: pa.Schema,
        keys: Sequence[str],
        due: Due,
        task: Callable[[bridge.Target | SweepArea], Callable[..., Any]],
        ddl: str,
        spread: frozenset[str] | None = None,
    ) -> DataFrame:
        """What ``task`` makes of new rows and of what the SweepArea of ``op`` holds (``areas.py``), all of ``schema``.

        Without ``keys`` the SweepArea is whole, and one worker has it. ``spread``: as of ``spread_by``.
        """
        if not keys:
            return self.swept_whole(op, new, schema, (), task, ddl)
        workers = self.partitions if bridge.hashable(schema, keys) else 1
        area = self.areas.keyed(op, schema, keys, due, workers)
        if workers == self.partitions:
            self._spread.add(op)
        if new is not None and workers > 1 and spread and spread <= set(keys) and not self.areas.due(area):
            return new.mapInArrow(task(area), ddl)
        return bridge.run(self.areas.given(area, new), task(area), keys, workers, ddl)

    def spread_by(self, node: Node) -> frozenset[str] | None:
        """Columns by which the rows of ``new(node)``, which has been made, lie in the slice's partitions: those with
        equal values together. None: they lie anyhow. What one sweep has brought together needs no second shuffle.
        """
        if id(node) in self._once_computed:
            return None
        match node:
            case Aggregate() if self.names[id(node)] in self._spread and support.expansion(node) is None:
                return frozenset(column.id for column, _ in node.keys)
            case Select():
                return self.spread_by(node.input)
            case Project():
                below = self.spread_by(node.input)
                kept = {expr.sql.strip("`"): column.id for column, expr in reversed(node.outputs)}
                return frozenset(kept[c] for c in below) if below and below <= kept.keys() else None
        return None

    def swept_whole(
        self,
        op: str,
        new: DataFrame | None,
        schema: pa.Schema,
        keys: Sequence[str],
        task: Callable[[bridge.Target | SweepArea], Callable[..., Any]],
        ddl: str,
    ) -> DataFrame:
        """As ``swept``, of a sweep that looks at every row in every slice."""
        state = self.areas.read(op)
        rows = [] if new is None else [new]
        if state is not None:
            rows.append(state.selectExpr(*(f"`{name}`" for name in schema.names)))
        target = task(self.areas.target(op, schema))
        return bridge.run(concatenated(rows), target, keys, self.partitions if keys else 1, ddl)

    def sweep_task(
        self, sweep: Callable[..., Any], schema: pa.Schema, output: pa.Schema, area: bridge.Target | SweepArea
    ) -> bridge.SweepTask:
        return bridge.SweepTask(sweep, self.h0, self.h1, schema, output, area, self.attempt)

    def _user_window(self, node: Window) -> DataFrame | None:
        bag, rows = self.new(node.input), WindowRows(node)
        if bag is None:
            return None
        shown = rows.raw(bag)
        schema = pa.schema(fields(shown, shown.columns))
        output = pa.schema([*(schema.field(c) for c in rows.ids), *BAG_FIELDS])
        task = bridge.MapTask(rows.function(self._registered), schema, output)
        return shown.mapInArrow(task, frames.ddl(output))

    def _registered(self, name: str) -> Any:
        return user.load(next(f.target for f in self.plan.functions if f.name == name), "window")

    # -- join with a non-retroactive relation --------------------------------------------------------------------------

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
        task = partial(self.sweep_task, partial(enrich.intervals, columns=ids), schema, schema)
        return self.drained(self.swept_whole(op, new, schema, ids, task, frames.ddl(schema)))

    # -- join ----------------------------------------------------------------------------------------------------------

    def inner_join(self, node: Join) -> DataFrame | None:
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
        return concatenated(parts) if parts else None

    def _side(self, node: Node, held: bool) -> _Side:
        """New rows of a join's side and, where they are needed, the held ones."""
        if patterns.readable_again(node):
            new = self.once(node) if self.edges.sweeps(node) else self.new(node)
            return _Side(new, self.held(node) if held else None)
        return self._hold(node) if held else _Side(self.once(node), None)

    def once(self, node: Node) -> DataFrame | None:
        """``new(node)``, computed by a job of its own where two readers would have it computed twice at a cost."""
        if not self.edges.cheap(node) and id(node) not in self._once_computed:
            self._once_computed.add(id(node))
            self._new[id(node)] = self.drained(self.new(node))
        return self.new(node)

    def _hold(self, node: Node) -> _Side:
        """New and held rows of a side that only a SweepArea remembers (``bridge.HoldTask``)."""
        if id(node) not in self._sides:
            self._sides[id(node)] = self._make_hold(node)
        return self._sides[id(node)]

    def _make_hold(self, node: Node) -> _Side:
        op, ids = f"hold_{self.names[id(node)]}", [c.id for c in node.columns]
        new, held = self.new(node), self.areas.live(op, self.h0)
        if new is None:
            return _Side(None, held)
        schema = pa.schema([*fields(new, ids), *BAG_FIELDS, pa.field("__new", pa.bool_())])
        stored = schema.remove(schema.get_field_index("__new"))
        log, merged = self.areas.logged(op, stored, expiry_log.reach(node))
        parts = [new.selectExpr(*ids, *BAG, "TRUE AS __new")]
        if merged is not None:
            parts.append(merged.selectExpr(*ids, *BAG, "FALSE AS __new"))
        net = not self.edges.expiry_known(node)
        task = bridge.HoldTask(self.h1, schema, log.target, log.division, self.attempt, net)
        passed = self.drained(bridge.run(concatenated(parts), task, ids, self.partitions, frames.ddl(schema)))
        return _Side(None if passed is None else passed.drop("__new"), held)

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

    def _aggregate(self, node: Aggregate) -> DataFrame | None:
        op, grouping = self.names[id(node)], Grouping(node)
        bag = self.new(node.input)
        if bag is None and self.idle(op, grouping.keys) and not (node.global_ and self.reader.first):
            return None
        shown = grouping.raw(bag if bag is not None else self.shape.bag(node.input), list(BAG))
        types = {f.name: f.type for f in fields(shown, [*grouping.keys, *grouping.arguments])}
        spec = aggregate.AggregateSpec(
            keys=tuple((key, types[key]) for key in grouping.keys),
            calls=grouping.calls(types),
            global_=node.global_,
            expiry_known=self.edges.expiry_known(node.input),
            start=self.plan.start,
        )
        schema = aggregate.rows_schema(spec)
        rows = []
        if bag is not None:
            given = {*grouping.keys, *grouping.arguments, *BAG}
            rows.append(_filled(shown, schema, {name: name for name in given}))
        if node.global_:  # a row that counts nothing, so that the sweep runs when nothing else has arrived
            rows.append(_filled(self.spark.range(1), schema, dict.fromkeys(BAG, "0L")))
        output = aggregate.delta_schema(spec)
        task = partial(self.sweep_task, partial(aggregate.sweep, spec=spec), schema, output)
        new = concatenated(rows) if rows else None
        swept = self.swept(op, new, schema, grouping.keys, bag_due, task, frames.ddl(output))
        return swept.selectExpr(*grouping.keys, *grouping.outputs(types), *BAG)

    def _expand(self, node: Node) -> DataFrame | None:
        """What has no incremental operator, by snapshot expansion (``operators/snapshot.py``)."""
        op, how = self.names[id(node)], expansion_of(node, self.plan.functions)
        [below], keys = node.inputs, list(how.keys)
        bag = self.new(below)
        if bag is None and self.idle(op, keys) and not (how.global_ and self.reader.first):
            return None
        shown = how.raw(bag if bag is not None else self.shape.bag(below))
        schema = pa.schema(fields(shown, shown.columns))
        rows = [shown] if bag is not None else []
        if how.global_:  # a row that counts nothing, so that the expansion runs when nothing else has arrived
            rows.append(_filled(self.spark.range(1), schema, dict.fromkeys(BAG, "0L")))
        spec = how.spec(self.plan.start)
        output = snapshot.expanded_schema(schema, spec)
        new = concatenated(rows) if rows else None

        def task(area: bridge.Target | SweepArea) -> bridge.ExpandTask:
            return bridge.ExpandTask(spec, self.h0, self.h1, schema, output, area, self.attempt)

        return how.evaluate(self.swept(op, new, schema, keys, bag_due, task, frames.ddl(output)))

    def _top_k(self, node: TopK) -> DataFrame | None:
        op, how = self.names[id(node)], TopKRows(node)
        bag, keys = self.new(node.input), list(how.keys)
        if bag is None and self.idle(op, keys):
            return None
        shown = how.raw(bag if bag is not None else self.shape.bag(node.input))
        schema = pa.schema(fields(shown, shown.columns))
        output = pa.schema([*(schema.field(c.id) for c in node.columns), *BAG_FIELDS])
        task = partial(self.sweep_task, how.sweep(self.plan.start), schema, output)
        return self.swept(op, None if bag is None else shown, schema, keys, bag_due, task, frames.ddl(output))

    def _nested_stream(self, node: RelationToStream) -> DataFrame | None:
        """A stream inside a plan: Istream, Dstream or Rstream of the input, as elements ``[t, t+1)`` (Arasu 2003,
        section 5.1).
        """
        op, ids = self.names[id(node)], [c.id for c in node.input.columns]
        bag, whole = self.new(node.input), node.kind == "rstream"
        if bag is None and self.idle(op, [] if whole else ids):
            return None
        new = None if bag is None else bag.selectExpr(*ids, *BAG)
        schema = pa.schema([*fields(new if new is not None else self.shape.bag(node.input), ids), *BAG_FIELDS])
        count = self.row_count(op, node.every, node.anchor) if node.kind == "rstream" else None
        spec = relation_to_stream.MaterializeSpec(
            columns=tuple(ids),
            istream=node.kind == "istream",
            dstream=node.kind == "dstream",
            rstream=None if count is None else self.rstreams[-1][1],
            most=self.most_rows,
        )

        def task(area: bridge.Target | SweepArea) -> bridge.StreamTask:
            return bridge.StreamTask(spec, node.kind, self.h0, self.h1, schema, area, self.attempt, count)

        ddl = frames.ddl(schema)
        if whole:
            stream = self.swept_whole(op, new, schema, ids, task, ddl)
        else:
            stream = self.swept(op, new, schema, ids, bag_due, task, ddl)
        if node.instant is None:
            return stream
        return stream.selectExpr(*ids, f"{self.reader.instant_sql(TS)} AS {node.instant.id}", *BAG)

    def row_count(self, op: str, every: int | None, anchor: int) -> bridge.RowCount:
        """Where an Rstream's sweep notes its number of rows; ``rstreams`` lists them with their instants."""
        count = bridge.RowCount(f"{self.areas.spill}/rstream", op)
        self.rstreams.append((count, relation_to_stream.Every(every or 1, anchor)))
        return count


@dataclass(frozen=True)
class _Side:
    """What a join reads of one side; None where a bag is known to be empty, or is not needed."""

    new: DataFrame | None
    held: DataFrame | None


def _filled(frame: DataFrame, schema: pa.Schema, given: Mapping[str, str]) -> DataFrame:
    """``frame`` in the shape of a sweep's rows: given expressions, kind 0 (a raw row), NULL for the rest."""
    given = {"__kind": "0", **given}
    return frame.selectExpr(
        *(f"CAST({given.get(f.name, 'NULL')} AS {frames.spark_type(f.type)}) AS {f.name}" for f in schema)
    )
