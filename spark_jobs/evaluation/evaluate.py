"""One slice of a plan as Spark DataFrames: every operator in its incremental form, composed by the shape of the plan.

``new(node)`` is the bag that the slice adds to a node's relation; ``held(node)`` the rows that earlier slices made
and that can still matter after h0. None stands for a bag that is known to be empty without running anything. Linear
operators are maps on bags; joins combine new and held rows; the other operators sweep new rows together with the
SweepArea that their last slice left, and stage the SweepArea for the next one. Nothing runs here: the last DataFrame,
when collected, is the slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from sweeparea.operators.conditions import take_apart
from sweeparea.operators.encoding import DELTA, Edges
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
        self._pipes: dict[str, bridge.Pipe] = {}
        self._logged: dict[int, DataFrame | None] = {}
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
        of: Node | None = None,
    ) -> DataFrame:
        """What ``task`` makes of new rows and of what the SweepArea of ``op`` holds (``areas.py``), all of ``schema``.

        Without ``keys`` the SweepArea is whole, and one worker has it. ``of``: the node whose rows ``new`` are, perhaps
        with more columns: they need not move if they lie by the keys already.
        """
        if not keys:
            return self.swept_whole(op, new, schema, (), task, ddl)
        workers = self.partitions if bridge.hashable(schema, keys) else 1
        area = self.areas.keyed(op, schema, keys, due, workers)
        if workers == self.partitions:
            self._spread.add(op)
        if new is not None and of is not None:
            pipe, lie_by = self._pipe_with(of, schema.names), self.spread_by(of)
            stay = workers > 1 and lie_by and lie_by <= set(keys) and not self.areas.due(area)
            if pipe is not None and pipe.workers == workers and (stay or area.alone):
                return pipe.given.mapInArrow(pipe.then(task(area), schema.names), ddl)
            if stay:
                return new.mapInArrow(task(area), ddl)
        # one worker where others have several: rows move to it, since sweeps below must not run in its task
        by = keys if workers == self.partitions else ()
        given = bridge.spread(self.areas.given(area, new), by, workers)
        return self._through(op, given, task(area), workers, ddl)

    def _through(self, op: str, given: DataFrame, task: Callable[..., Any], workers: int, ddl: str) -> DataFrame:
        made = given.mapInArrow(task, ddl)
        self._pipes[op] = bridge.Pipe(given, task, workers, {name: name for name in made.columns})
        return made

    def pipe(self, node: Node) -> bridge.Pipe | None:
        """How the rows of ``new(node)``, which has been made, come from a sweep, if nothing has been computed of them
        since; a further sweep may stand behind it in the same worker.
        """
        if id(node) in self._once_computed or self.edges.splits(node) or support.expansion(node) is not None:
            return None
        match node:
            case Aggregate() if (made := self._pipes.get(self.names[id(node)])) is not None:
                plain = Grouping(node).plain
                return None if plain is None else made.renamed(plain | {name: name for name in BAG})
            case Project() if (below := self.pipe(node.input)) is not None:
                chosen = {column.id: expr.sql.strip("`") for column, expr in node.outputs}
                return below.renamed(chosen | {name: name for name in BAG})
        return None

    def _pipe_with(self, node: Node, names: Sequence[str]) -> bridge.Pipe | None:
        """``pipe``, if it has the columns ``names``."""
        found = self.pipe(node)
        return found if found is not None and found.columns.keys() >= set(names) else None

    def net(self, node: Node) -> bool:
        """Whether in ``new(node)``, which has been made, no record ends where an equal one begins, and all that ends
        in the slice's future is open (``emission.changes``).
        """
        match node:
            case Aggregate():
                swept = not self._two_sided.is_interval_distinct(node) and support.expansion(node) is None
                return swept and Grouping(node).plain is not None
            case Select():
                return self.net(node.input)
            case Project():
                # equal records must come of equal ones
                kept = {expr.sql.strip("`") for _, expr in node.outputs}
                return self.net(node.input) and {column.id for column in node.input.columns} <= kept
        return False

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
        workers = self.partitions if keys else 1
        given = bridge.spread(concatenated(rows), keys, workers)
        return self._through(op, given, task(self.areas.target(op, schema)), workers, ddl)

    def passed(
        self, of: Node | None, new: DataFrame, schema: pa.Schema, task: Callable[..., Any], ddl: str
    ) -> DataFrame:
        """What ``task`` makes of the rows of ``new``, however they lie; ``of``: as of ``swept``."""
        pipe = None if of is None else self._pipe_with(of, schema.names)
        if pipe is not None:
            return pipe.given.mapInArrow(pipe.then(task, schema.names), ddl)
        if self.partitions == 1 or not self.areas.staged:
            new = new.coalesce(self.partitions)  # else a task would run a sweep for several of its workers
        return new.mapInArrow(task, ddl)

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
        again = not patterns.settled(node.right, self.static), not patterns.settled(node.left, self.static)
        left, right = self._side(node.left, again[0]), self._side(node.right, again[1])
        parts = []
        if left is not None:
            held = self._held_side(node.right, self._reduction(node, left, node.left)) if again[1] else None
            rights = [bag for bag in (held, right) if bag is not None]
            if rights:
                every = rights[0] if len(rights) == 1 else rights[0].unionByName(rights[1])
                parts.append(join.apply(node, left, every))
        if right is not None and again[0]:
            held = self._held_side(node.left, self._reduction(node, right, node.right))
            if held is not None:
                parts.append(join.apply(node, held, right))
        return concatenated(parts) if parts else None

    def _side(self, node: Node, again: bool) -> DataFrame | None:
        """New rows of a join's side; ``again``: those that it holds are needed, too."""
        if patterns.readable_again(node):
            return self.once(node) if self.edges.sweeps(node) else self.new(node)
        return self._hold(node) if again else self.once(node)

    def _held_side(self, node: Node, among: frames.Among) -> DataFrame | None:
        """Rows of a join's side that earlier slices made; of those that need not be read, as many as may be."""
        if not patterns.readable_again(node):
            return self.areas.live(f"hold_{self.names[id(node)]}", self.h0, among)
        with self.reader.among(among):
            return self.held(node)

    def _reduction(self, node: Join, new: DataFrame, side: Node) -> frames.Among:
        """By column of the other side the values of ``new``, the new rows of ``side``, that alone can match: a semi
        join reduces what has to be read (Bernstein & Chiu 1981).
        """
        if self.partitions > 1 or not (self.edges.cheap(side) or id(side) in self._once_computed):
            return {}
        of_left, found = side is node.left, {}
        parts = take_apart(node.condition, *([c.id for c in x.columns] for x in (node.left, node.right)))
        for equal in parts[0].equalities if len(parts) == 1 else ():
            mine, other = (equal.left, equal.right) if of_left else (equal.right, equal.left)
            if not equal.null_safe and len(other.columns) == 1 and other.sql.strip("`") in other.columns:
                found[other.sql.strip("`")] = frames.Values(new, mine.sql)
        return found

    def once(self, node: Node) -> DataFrame | None:
        """``new(node)``, computed by a job of its own where two readers would have it computed twice at a cost."""
        if not self.edges.cheap(node) and id(node) not in self._once_computed:
            self._once_computed.add(id(node))
            self._new[id(node)] = self.drained(self.new(node))
        return self.new(node)

    def _hold(self, node: Node) -> DataFrame | None:
        """New rows of a side whose held ones only a SweepArea remembers (``bridge.HoldTask``)."""
        if id(node) not in self._logged:
            self._logged[id(node)] = self._log(node)
        return self._logged[id(node)]

    def _log(self, node: Node) -> DataFrame | None:
        op, ids = f"hold_{self.names[id(node)]}", [c.id for c in node.columns]
        new = self.new(node)
        if new is None:
            return None
        schema = pa.schema([*fields(new, ids), *BAG_FIELDS, pa.field("__new", pa.bool_())])
        stored = schema.remove(schema.get_field_index("__new"))
        log, merged = self.areas.logged(op, stored, expiry_log.reach(node))
        parts = [new.selectExpr(*ids, *BAG, "TRUE AS __new")]
        if merged is not None:
            parts.append(merged.selectExpr(*ids, *BAG, "FALSE AS __new"))
        net = not self.edges.expiry_known(node)
        touching, delta = patterns.touching(node), self.edges.encoding(node) == DELTA
        task = bridge.HoldTask(self.h1, schema, log.target, log.division, self.attempt, net, touching, delta)
        passed = self.drained(bridge.run(concatenated(parts), task, ids, self.partitions, frames.ddl(schema)))
        return None if passed is None else passed.drop("__new")

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
            # what no raw row has need not be sent; a whole SweepArea comes the same way, with all columns
            sent = pa.schema([f for f in schema if f.name in given or not grouping.keys])
            rows.append(_filled(shown, sent, {name: name for name in given}))
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
            stream = self.swept(op, new, schema, ids, bag_due, task, ddl, node.input)
        if node.instant is None:
            return stream
        return stream.selectExpr(*ids, f"{self.reader.instant_sql(TS)} AS {node.instant.id}", *BAG)

    def row_count(self, op: str, every: int | None, anchor: int) -> bridge.RowCount:
        """Where an Rstream's sweep notes its number of rows; ``rstreams`` lists them with their instants."""
        count = bridge.RowCount(f"{self.areas.spill}/rstream", op)
        self.rstreams.append((count, relation_to_stream.Every(every or 1, anchor)))
        return count


def _filled(frame: DataFrame, schema: pa.Schema, given: Mapping[str, str]) -> DataFrame:
    """``frame`` in the shape of a sweep's rows: given expressions, kind 0 (a raw row), NULL for the rest."""
    given = {"__kind": "0", **given}
    return frame.selectExpr(
        *(f"CAST({given.get(f.name, 'NULL')} AS {frames.spark_type(f.type)}) AS {f.name}" for f in schema)
    )
