"""Joins on Spark: the inner one (``inner_join.py``), and what is put together of it, of sums of bags and of the sweep
of two counts: semi, anti and outer joins (``operators/sweeps/semi_join.py``, ``negation.py``, ``outer_join.py``).

A side that is read twice is computed once (``once``). The joins that make them up are nodes of their own, with
SweepAreas of their own, named after the node that they belong to.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sweeparea.operators.bridge import Pipe
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.sweeps import join, negation, outer_join, semi_join, two_counts
from sweeparea.operators.sweeps.join import Join
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.spark_jobs.evaluation.runners.by_key import ByKey
from sweeparea.spark_jobs.evaluation.runners.inner_join import InnerJoins
from sweeparea.spark_jobs.evaluation.runners.two_counts import TwoCounts
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice, ids_of
from sweeparea.spark_jobs.evaluation.sweeping import Sweeps
from sweeparea.spark_jobs.spark.frames import concatenated, storable
from sweeparea.tables.log.schema import ddl_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_HELD = re.compile(
    r"(tinyint|smallint|int|bigint|float|double|boolean|date|timestamp|timestamp_ntz|binary|string|decimal)\b.*"
)
"""Types of columns that a table can hold, as everybody knows."""


class Joins(Runner[Join]):
    """Joins of every kind."""

    def __init__(self, slice: RunningSlice, bags: Bags, sweeps: Sweeps, counts: TwoCounts) -> None:
        super().__init__(slice, bags)
        self.inner, self.counts, self.by_key = InnerJoins(slice, bags), counts, ByKey(slice, bags, sweeps)
        self._semi_plans: dict[int, semi_join.SemiJoinPlan] = {}
        self._outer_parts: dict[int, tuple[Join, ...]] = {}
        self._by_key: dict[int, bool] = {}

    def new(self, node: Join) -> DataFrame | None:
        if node.kind == JoinKind.INNER:
            return self.inner.new(node)
        if self._is_by_key(node):
            return self.by_key.new(node)
        return self._semi_join(node) if node.kind in (JoinKind.SEMI, JoinKind.ANTI) else self._outer_join(node)

    def held(self, node: Join) -> DataFrame | None:
        both = self.bags.held(node.left), self.bags.held(node.right)
        return None if both[0] is None or both[1] is None else join.apply(node, both[0], both[1])

    def empty(self, node: Join) -> DataFrame:
        if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.bags.empty(node.left)
        both = join.apply(node, self.bags.empty(node.left), self.bags.empty(node.right))
        return both.selectExpr(*ids_of(node), *BAG)

    def pipe(self, node: Join) -> Pipe | None:
        return self.by_key.pipe(node) if self._is_by_key(node) else None

    def spread_by(self, node: Join) -> frozenset[str] | None:
        return self.by_key.spread_by(node) if self._is_by_key(node) else None

    def _is_by_key(self, node: Join) -> bool:
        """Whether a semi or anti join is one sweep. Of two sides of which one never changes the sums keep less: neither
        the left rows beside a relation that is static, nor static rows that are read again.
        """
        if id(node) not in self._by_key:
            settled = any(side.settled(self.slice.static) for side in node.inputs)
            told = node.by_key and not settled and self._semi_plan(node).by_sum
            self._by_key[id(node)] = told and self._may_hold(node.left)
        return self._by_key[id(node)]

    def _may_hold(self, node: Node) -> bool:
        """Whether a table can hold the rows of a node: those that are read again may have an INTERVAL, say."""
        types = [column.type for column in node.columns]
        if not node.readable_again or all(kind is not None and _HELD.fullmatch(kind) for kind in types):
            return True
        return all(storable(f.dataType) for f in self.bags.empty(node).schema)

    def _semi_join(self, node: Join) -> DataFrame | None:
        """What a slice adds to a semi or anti join (``operators/sweeps/semi_join.py``)."""
        found, ids = self._semi_plan(node), ids_of(node)
        if node.kind == JoinKind.ANTI or not found.by_sum:
            self.bags.once(node.left)
        if len(found.lookups) > 1:
            self.bags.once(node.right)
        bags = [bag.selectExpr(*ids, *BAG) for join_ in found.lookups if (bag := self.inner.new(join_)) is not None]
        matches = concatenated(bags) if bags else None
        if not found.by_sum:
            return self._counted(node, matches)
        if node.kind == JoinKind.SEMI:
            return matches
        left = self.bags.new(node.left)
        if matches is None or left is None:  # without new rows of the left side only matches can take rows back
            return left if matches is None else matches.selectExpr(*ids, TS, TE, f"-{N} AS {N}")
        return concatenated([left.selectExpr(*ids, *BAG), matches.selectExpr(*ids, TS, TE, f"-{N} AS {N}")])

    def _counted(self, node: Join, matches: DataFrame | None) -> DataFrame | None:
        """The left rows of a semi or anti join that have matches or none, by their counts."""
        operation = two_counts.SEMI if node.kind == JoinKind.SEMI else negation.operation()
        known = self.known(node.left), self._matches_known(node)
        return self.counts.swept(node, operation, (self.bags.new(node.left), matches), known)

    def _matches_known(self, node: Join) -> bool:
        return all(self.known(side) for side in node.inputs)

    def _semi_plan(self, node: Join) -> semi_join.SemiJoinPlan:
        if id(node) not in self._semi_plans:
            found = self._semi_plans[id(node)] = semi_join.plan_of(node, self._type_of)
            for i, lookup in enumerate(found.lookups):
                for side, top, known in (("left", lookup.left, node.left), ("right", lookup.right, None)):
                    if top is not known:
                        self.slice.names[id(top)] = f"{self.slice.names[id(node)]}_{side}{i}"
        return self._semi_plans[id(node)]

    def _type_of(self, node: Node, expression: Expr) -> str | None:
        declared = [c.type for c in node.columns if c.id == expression.sql.strip("`")]
        if declared and declared[0]:
            return declared[0]
        asked = self.bags.empty(node).selectExpr(f"({expression.sql}) AS x").schema["x"]
        return ddl_type(asked.dataType)

    def _outer_join(self, node: Join) -> DataFrame | None:
        """What a slice adds to a left or full outer join (``operators/sweeps/outer_join.py``)."""
        self.bags.once(node.left)
        self.bags.once(node.right)
        inner, *antis = self._parts_of_outer(node)
        matched, like, bags = self.inner.new(inner), self.bags.empty(node), []
        if not all(self._semi_plan(anti).by_sum for anti in antis):
            matched = self.bags.drained(matched)
        for anti in antis:
            ids = ids_of(anti)
            if self._semi_plan(anti).by_sum:
                bag = self._semi_join(anti)
            else:
                bag = self._counted(anti, None if matched is None else matched.selectExpr(*ids, *BAG))
            if bag is not None:
                bags.append(outer_join.pad(node, bag, like))
        if matched is not None:
            bags.append(matched)
        return concatenated(bags) if bags else None

    def _parts_of_outer(self, node: Join) -> tuple[Join, ...]:
        """The inner join and the anti joins of an outer join."""
        if id(node) not in self._outer_parts:
            parts = self._outer_parts[id(node)] = (replace(node, kind=JoinKind.INNER), *outer_join.unmatched(node))
            for side, anti in zip(("left", "right"), parts[1:], strict=False):
                self.slice.names[id(anti)] = f"{self.slice.names[id(node)]}_{side}"
        return self._outer_parts[id(node)]
