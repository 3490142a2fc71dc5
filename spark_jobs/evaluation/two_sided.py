"""Operators that look at two bags at once, beside the inner join: semi, anti and outer joins, difference, intersection,
and duplicate elimination, which is their sweep over one bag.

They are put together from the inner join, from sums of bags and from one sweep (``operators/sweeps/two_counts.py``). A side
that is read twice is computed once (``once``). The joins that make them up are nodes of their own, with SweepAreas of
their own, named after the node that they belong to.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sweeparea.operators.linear import union_all
from sweeparea.operators.plan.logical import Aggregate, Difference, Expr, Intersect, Join, Node
from sweeparea.operators.state import expiry_log
from sweeparea.operators.state.sweep_area import bag_due
from sweeparea.operators.sweeps import difference, intersect, outer_join, semi_join, two_counts
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.frames import concatenated, fields
from sweeparea.tables.log.schema import ddl_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.spark_jobs.evaluation.evaluate import Evaluation


class TwoSided:
    """These operators' part of an ``Evaluation``."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._of = evaluation
        self._semi_plans: dict[int, semi_join.SemiJoinPlan] = {}
        self._outer_parts: dict[int, tuple[Join, ...]] = {}

    # -- semi, anti and outer joins ------------------------------------------------------------------------------------

    def semi_join(self, node: Join) -> DataFrame | None:
        """What a slice adds to a semi or anti join (``operators/sweeps/semi_join.py``)."""
        found, ids = self._semi_plan(node), [c.id for c in node.columns]
        if node.kind == "anti" or not found.by_sum:
            self._of.once(node.left)
        if len(found.lookups) > 1:
            self._of.once(node.right)
        bags = [
            bag.selectExpr(*ids, *BAG)
            for join_ in found.lookups
            if (bag := self._of.joins.inner_join(join_)) is not None
        ]
        matches = concatenated(bags) if bags else None
        if not found.by_sum:
            return self._counted(node, matches)
        if node.kind == "semi":
            return matches
        left = self._of.new(node.left)
        if matches is None or left is None:  # without new rows of the left side only matches can take rows back
            return left if matches is None else matches.selectExpr(*ids, TS, TE, f"-{N} AS {N}")
        return concatenated([left.selectExpr(*ids, *BAG), matches.selectExpr(*ids, TS, TE, f"-{N} AS {N}")])

    def _counted(self, node: Join, matches: DataFrame | None) -> DataFrame | None:
        """The left rows of a semi or anti join that have matches or none, by their counts."""
        operation = two_counts.SEMI if node.kind == "semi" else two_counts.STRICT_DIFFERENCE
        known = self._of.edges.expiry_known(node.left), self._matches_known(node)
        return self._two_counts(self._of.names[id(node)], node, operation, (self._of.new(node.left), matches), known)

    def _matches_known(self, node: Join) -> bool:
        return all(self._of.edges.expiry_known(side) for side in node.inputs)

    def _semi_plan(self, node: Join) -> semi_join.SemiJoinPlan:
        if id(node) not in self._semi_plans:
            found = self._semi_plans[id(node)] = semi_join.plan_of(node, self._type_of)
            for i, lookup in enumerate(found.lookups):
                for side, top, known in (("left", lookup.left, node.left), ("right", lookup.right, None)):
                    if top is not known:
                        self._of.names[id(top)] = f"{self._of.names[id(node)]}_{side}{i}"
        return self._semi_plans[id(node)]

    def _type_of(self, node: Node, expression: Expr) -> str | None:
        declared = [c.type for c in node.columns if c.id == expression.sql.strip("`")]
        if declared and declared[0]:
            return declared[0]
        asked = self._of.shape.bag(node).selectExpr(f"({expression.sql}) AS x").schema["x"]
        return ddl_type(asked.dataType)

    def outer_join(self, node: Join) -> DataFrame | None:
        """What a slice adds to a left or full outer join (``operators/sweeps/outer_join.py``)."""
        self._of.once(node.left)
        self._of.once(node.right)
        inner, *antis = self._parts_of_outer(node)
        matched, like, bags = self._of.joins.inner_join(inner), self._of.shape.bag(node), []
        if not all(self._semi_plan(anti).by_sum for anti in antis):
            matched = self._of.drained(matched)
        for anti in antis:
            ids = [c.id for c in anti.columns]
            if self._semi_plan(anti).by_sum:
                bag = self.semi_join(anti)
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
            parts = self._outer_parts[id(node)] = (replace(node, kind="inner"), *outer_join.unmatched(node))
            for side, anti in zip(("left", "right"), parts[1:], strict=False):
                self._of.names[id(anti)] = f"{self._of.names[id(node)]}_{side}"
        return self._outer_parts[id(node)]

    # -- difference, intersection, duplicate elimination ---------------------------------------------------------------

    def is_interval_distinct(self, node: Aggregate) -> bool:
        """Whether an Aggregate is a duplicate elimination over known expiry."""
        return not node.calls and not node.global_ and self._of.edges.expiry_known(node.input)

    def distinct(self, node: Aggregate) -> DataFrame | None:
        """Duplicate elimination where every end is known: it emits intervals, never a negative tuple."""
        keys = [f"({e.sql}) AS {c.id}" for c, e in node.keys]
        bag = self._of.new(node.input)
        left = None if bag is None else bag.selectExpr(*keys, *BAG)
        return self._two_counts(self._of.names[id(node)], node, two_counts.DISTINCT, (left, None), (True, True))

    def compared(self, node: Difference | Intersect) -> DataFrame | None:
        """What a slice adds to a difference or an intersection."""
        bags = [self._of.new(part) for part in node.inputs]
        left, right = (None if b is None else union_all.apply(node, [(i, b)]) for i, b in enumerate(bags))
        known = self._of.edges.expiry_known(node.left), self._of.edges.expiry_known(node.right)
        operation = difference.operation(node) if isinstance(node, Difference) else intersect.operation(node)
        return self._two_counts(self._of.names[id(node)], node, operation, (left, right), known)

    def _two_counts(
        self,
        op: str,
        node: Node,
        operation: two_counts.Operation,
        bags: tuple[DataFrame | None, DataFrame | None],
        known: tuple[bool, bool],
    ) -> DataFrame | None:
        """``two_counts`` of two bags with the columns of ``node``; of a duplicate elimination the second is empty."""
        ids = [c.id for c in node.columns]
        sides = [
            bag.selectExpr(*ids, *BAG, f"CAST({side} AS TINYINT) AS {two_counts.SIDE}")
            for side, bag in enumerate(bags)
            if bag is not None
        ]
        if not sides and self._of.sweeps.idle(op, ids):
            return None
        # the types of both inputs, whether or not they have rows now
        like = self._of.shape.bag(node).selectExpr(*ids, *BAG, f"CAST(0 AS TINYINT) AS {two_counts.SIDE}")
        schema = two_counts.rows_schema(fields(like, ids))
        spec = two_counts.TwoCountsSpec(tuple(ids), operation, known, self._of.edges.ahead(node))
        output = schema.remove(schema.get_field_index(two_counts.SIDE))
        task = partial(self._of.sweeps.sweep_task, spec.sweep, schema, output)
        # what is emitted ahead of time only has to go some time
        due = self._of.areas.lazily(bag_due, expiry_log.reach(node)) if spec.ahead else bag_due
        return self._of.sweeps.swept(op, concatenated([like, *sides]), schema, ids, due, task, frames.ddl(output))
