"""The inner join: new rows of each side with new and held rows of the other (``operators/sweeps/join.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.nodes import Join
from sweeparea.operators.plan.encoding import DELTA
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.conditions import take_apart
from sweeparea.operators.state import expiry_log
from sweeparea.operators.sweeps import join
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.spark_jobs.evaluation.running import Bags, RunningSlice
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import concatenated, fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class InnerJoins:
    """Inner joins, those inside of semi and outer joins too."""

    def __init__(self, slice: RunningSlice, bags: Bags) -> None:
        self.slice, self.bags = slice, bags
        self._logged: dict[int, DataFrame | None] = {}

    def new(self, node: Join) -> DataFrame | None:
        """What a slice adds to an inner join: new rows of each side with all that the other side holds."""
        # rows of a side are needed again only while the other side can still bring new ones
        again = not node.right.settled(self.slice.static), not node.left.settled(self.slice.static)
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
        if node.readable_again:
            return self.bags.once(node) if self.slice.edges.sweeps(node) else self.bags.new(node)
        return self._hold(node) if again else self.bags.once(node)

    def _held_side(self, node: Node, among: frames.Among) -> DataFrame | None:
        """Rows of a join's side that earlier slices made; of those that need not be read, as many as may be."""
        if not node.readable_again:
            return self.slice.areas.live(f"hold_{self.slice.names[id(node)]}", self.slice.h0, among)
        with self.slice.reader.among(among):
            return self.bags.held(node)

    def _reduction(self, node: Join, new: DataFrame, side: Node) -> frames.Among:
        """By column of the other side the values of ``new``, the new rows of ``side``, that alone can match: a semi
        join reduces what has to be read (Bernstein & Chiu 1981).
        """
        if self.slice.partitions > 1 or not (self.slice.edges.cheap(side) or id(side) in self.slice.once_computed):
            return {}
        of_left, found = side is node.left, {}
        parts = take_apart(node.condition, *([c.id for c in x.columns] for x in (node.left, node.right)))
        for equal in parts[0].equalities if len(parts) == 1 else ():
            mine, other = (equal.left, equal.right) if of_left else (equal.right, equal.left)
            if not equal.null_safe and len(other.columns) == 1 and other.sql.strip("`") in other.columns:
                found[other.sql.strip("`")] = frames.Values(new, mine.sql)
        return found

    def _hold(self, node: Node) -> DataFrame | None:
        """New rows of a side whose held ones only a SweepArea remembers (``bridge.HoldTask``)."""
        if id(node) not in self._logged:
            self._logged[id(node)] = self._log(node)
        return self._logged[id(node)]

    def _log(self, node: Node) -> DataFrame | None:
        op, ids = f"hold_{self.slice.names[id(node)]}", [c.id for c in node.columns]
        new = self.bags.new(node)
        if new is None:
            return None
        schema = pa.schema([*fields(new, ids), *BAG_FIELDS, pa.field("__new", pa.bool_())])
        stored = schema.remove(schema.get_field_index("__new"))
        log, merged = self.slice.areas.logged(op, stored, expiry_log.reach(node))
        parts = [new.selectExpr(*ids, *BAG, "TRUE AS __new")]
        if merged is not None:
            parts.append(merged.selectExpr(*ids, *BAG, "FALSE AS __new"))
        net = not self.slice.edges.expiry_known(node)
        touching, delta = node.lengthens, self.slice.edges.encoding(node) == DELTA
        task = bridge.HoldTask(
            self.slice.h1, schema, log.target, log.division, self.slice.attempt, net, touching, delta,
            self.slice.areas.watch(op, ids),
        )  # fmt: skip
        passed = self.bags.drained(
            bridge.run(concatenated(parts), task, ids, self.slice.partitions, frames.ddl(schema))
        )
        return None if passed is None else passed.drop("__new")
