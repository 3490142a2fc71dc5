"""Semi and anti joins by key on Spark: the rows of both sides, spread by the key together, and one sweep over them
(``operators/sweeps/existence.py``). No join of Spark's, and no job of its own for a side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.operators.bridge import Pipe
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.conditions import conjunction, take_apart
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.state import expiry_log
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.sweeps import existence, two_counts
from sweeparea.operators.sweeps.existence import ExistenceSpec
from sweeparea.operators.sweeps.join import Join
from sweeparea.operators.sweeps.semi_join import selected
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.spark_jobs.evaluation.running import Bags, RunningSlice, ids_of
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark.frames import concatenated, fields, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class JoinKey:
    """A key by which the sides meet: its column in the sweep's rows, and what it is of a row of each side."""

    name: str
    left: Expr
    right: Expr
    null_safe: bool

    @property
    def is_column(self) -> bool:
        """Whether it is a column of the left record."""
        return self.left.bare == self.name


@dataclass(frozen=True)
class KeyedSides:
    """What a semi or anti join by key sweeps: the rows of two nodes, and the keys by which they meet."""

    left: Node
    right: Node
    keys: tuple[JoinKey, ...]

    @classmethod
    def of(cls, node: Join) -> KeyedSides:
        """Left rows that what the condition says of them alone shuts out match nothing: a semi join does not need them,
        of an anti join they have no key.
        """
        ids = ids_of(node.left)
        (condition,) = take_apart(node.condition, ids, ids_of(node.right))
        admitted = conjunction(condition.left)
        equalities = [(e.left, e.right, e.null_safe) for e in condition.equalities]
        left = node.left
        if admitted is not None and node.kind == JoinKind.SEMI:
            left = selected(left, condition.left)
        elif admitted is not None:
            always = Expr(f"IF({admitted.sql}, TRUE, NULL)", columns=admitted.columns)
            equalities.append((always, Expr("TRUE"), False))
        keys: list[JoinKey] = []
        for i, (mine, other, null_safe) in enumerate(equalities):
            taken = mine.bare not in ids or mine.bare in {key.name for key in keys}
            keys.append(JoinKey(f"__key{i}" if taken else mine.bare, mine, other, null_safe))
        return cls(left, selected(node.right, condition.right), tuple(keys))

    @property
    def lie_by(self) -> frozenset[str] | None:
        """The columns of the left record by which the sweep spreads it, if these are all of its keys."""
        return frozenset(key.name for key in self.keys) if all(key.is_column for key in self.keys) else None


class ByKey:
    """Semi and anti joins by key."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps) -> None:
        self.slice, self.bags, self.sweeps = slice, bags, sweeps
        self._sides: dict[int, KeyedSides] = {}

    def sides(self, node: Join) -> KeyedSides:
        """The sides of a join; always the same nodes."""
        if id(node) not in self._sides:
            self._sides[id(node)] = KeyedSides.of(node)
        return self._sides[id(node)]

    def new(self, node: Join) -> DataFrame | None:
        """What a slice adds to the join."""
        op, sides, ids = self.slice.names[id(node)], self.sides(node), ids_of(node)
        bags = self.bags.new(sides.left), self.bags.new(sides.right)
        names = tuple(key.name for key in sides.keys)
        if all(bag is None for bag in bags) and self.sweeps.idle(op, names):
            return None
        own = [f"({key.left.sql}) AS `{key.name}`" for key in sides.keys if not key.is_column]
        left = (self.bags.empty(sides.left) if bags[0] is None else bags[0]).selectExpr(*ids, *own, *BAG)
        record = fields(left, left.columns[: -len(BAG)])
        schema = two_counts.rows_schema(record)
        rows = []
        if bags[0] is not None:
            rows.append(left.selectExpr(*(f"`{name}`" for name in left.columns), _side(two_counts.LEFT)))
        if bags[1] is not None:
            given = {key.name: f"({key.right.sql})" for key in sides.keys}
            shown = (f"CAST({given.get(f.name, 'NULL')} AS {spark_type(f.type)}) AS `{f.name}`" for f in record)
            rows.append(bags[1].selectExpr(*shown, *BAG, _side(two_counts.RIGHT)))
        known = self.slice.edges.expiry_known(node.left), self.slice.edges.expiry_known(node.right)
        safe = tuple(key.null_safe for key in sides.keys)
        anti, touching = node.kind == JoinKind.ANTI, node.left.lengthens
        spec = ExistenceSpec(names, safe, tuple(ids), anti, known, touching)
        # what is to come has been told: rows only have to go some time
        due = self.slice.areas.lazily(bag_due, expiry_log.reach(node))
        output = pa.schema([*(schema.field(c) for c in ids), *BAG_FIELDS])
        sweep = Sweep(names, schema, output, due, spec.sweep)
        given = concatenated(rows) if rows else None
        return self.sweeps.swept(op, given, sweep, *self._sources(sides, bags, schema))

    def _sources(
        self, sides: KeyedSides, bags: tuple[DataFrame | None, DataFrame | None], schema: pa.Schema
    ) -> list[Pipe | None]:
        """How the rows of each side that has any come about without Spark SQL."""
        found = []
        for side, (node, bag) in enumerate(zip((sides.left, sides.right), bags, strict=True)):
            if bag is not None:
                below = self.bags.pipe(node)
                found.append(None if below is None else self._side_of(below, sides, node, schema, side))
        return found

    def _side_of(self, below: Pipe, sides: KeyedSides, node: Node, schema: pa.Schema, side: int) -> Pipe | None:
        columns = {name: name for name in BAG}
        if side == two_counts.LEFT:
            columns |= {id_: id_ for id_ in ids_of(node)} | {key.name: key.left.bare for key in sides.keys}
        else:
            columns |= {key.name: key.right.bare for key in sides.keys}
        shown = below.renamed(columns)
        made = partial(existence.of_side, schema=schema, side=side)
        return None if shown is None else shown.mapped(made, list(columns), schema.names)

    def pipe(self, node: Join) -> Pipe | None:
        """As of ``Bags``."""
        return self.sweeps.pipe(self.slice.names[id(node)])

    def spread_by(self, node: Join) -> frozenset[str] | None:
        """As of ``Bags``."""
        return self.sides(node).lie_by if self.sweeps.spreads(self.slice.names[id(node)]) else None


def _side(side: int) -> str:
    return f"CAST({side} AS TINYINT) AS {two_counts.SIDE}"
