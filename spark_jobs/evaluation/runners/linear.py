"""Scans and the operators that map each row alone, on Spark: maps on bags (``operators/linear``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from sweeparea.operators.bridge import Pipe
from sweeparea.operators.linear import computed, generate, one_row, project, select, union_all
from sweeparea.operators.linear.generate import Generate
from sweeparea.operators.linear.map import Map
from sweeparea.operators.linear.one_row import OneRow
from sweeparea.operators.linear.project import Project
from sweeparea.operators.linear.scan import RelationScan, Scan, StreamScan
from sweeparea.operators.linear.select import Select
from sweeparea.operators.linear.union_all import UnionAll
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sweeps.enrich import Enrich
from sweeparea.operators.values.bag import BAG
from sweeparea.spark_jobs.evaluation import computing, in_arrow
from sweeparea.spark_jobs.evaluation.running import Bags, Runner, RunningSlice, ids_of
from sweeparea.spark_jobs.spark import frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

M = TypeVar("M", bound=Map)
S = TypeVar("S", bound=Scan)


class _Scans(Runner[S]):
    def empty(self, node: S) -> DataFrame:
        reader = self.slice.reader
        schema: pa.Schema = reader.inputs[node.name].log.schema()
        columns = [f"CAST(NULL AS {frames.spark_type(schema.field(name).type)}) AS {c.id}" for c, name in node.source]
        return self.slice.spark.range(0).selectExpr(*columns, *self._instant(node), *(f"0L AS {x}" for x in BAG))

    def _instant(self, node: S) -> list[str]:
        return []


class StreamScans(_Scans[StreamScan]):
    """Elements of a stream."""

    def new(self, node: StreamScan) -> DataFrame | None:
        return self.slice.reader.new_elements(node)

    def past(self, node: StreamScan, reach: int) -> DataFrame | None:
        return self.slice.reader.past_elements(node, reach)

    def pipe(self, node: StreamScan) -> Pipe | None:
        return self.slice.reader.pipe(node, self.slice.partitions)

    def _instant(self, node: StreamScan) -> list[str]:
        if node.instant is None:
            return []
        return [f"{self.slice.reader.instant_sql('0L')} AS {node.instant.id}"]


class RelationScans(_Scans[RelationScan]):
    """Changes of a relation. Where a stream is enriched by one, each change counts from its own instant on."""

    def __init__(self, slice: RunningSlice, bags: Bags) -> None:
        super().__init__(slice, bags)
        enriching = (n for n in slice.plan.root.walk() if isinstance(n, Enrich))
        self._enriching = {id(below) for node in enriching for below in node.relation.walk()}

    def new(self, node: RelationScan) -> DataFrame | None:
        return self.slice.reader.new_changes(node, since_start=id(node) not in self._enriching)

    def held(self, node: RelationScan) -> DataFrame | None:
        return self.slice.reader.past_contents(node)


class OneRows(Runner[OneRow]):
    """The one row of a missing FROM."""

    def new(self, node: OneRow) -> DataFrame | None:
        return one_row.apply(self.slice.spark, self.slice.plan.start) if self.slice.reader.first else None

    def held(self, node: OneRow) -> DataFrame | None:
        return None if self.slice.reader.first else one_row.apply(self.slice.spark, self.slice.h0)

    def empty(self, node: OneRow) -> DataFrame:
        return one_row.apply(self.slice.spark, 0).limit(0)


class _Maps(Runner[M]):
    apply: Callable[[M, DataFrame], DataFrame]

    def _mapped(self, node: M, bag: DataFrame | None) -> DataFrame | None:
        return None if bag is None else type(self).apply(node, bag)

    def new(self, node: M) -> DataFrame | None:
        return self._mapped(node, self.bags.new(node.input))

    def held(self, node: M) -> DataFrame | None:
        return self._mapped(node, self.bags.held(node.input))

    def past(self, node: M, reach: int) -> DataFrame | None:
        return self._mapped(node, self.bags.past(node.input, reach))

    def empty(self, node: M) -> DataFrame:
        return type(self).apply(node, self.bags.empty(node.input))

    def types(self, node: Node) -> dict[str, pa.DataType]:
        """The types of columns of ``new(node)``, which has been made, of those that Arrow may compute with."""
        bag = self.bags.new(node)
        assert bag is not None
        return frames.comparable_types(bag, ids_of(node))


class Selects(_Maps[Select]):
    """Selections keep what is known of their input's rows."""

    apply = staticmethod(select.apply)

    def pipe(self, node: Select) -> Pipe | None:
        below = self.bags.pipe(node.input)
        chosen = None if below is None else in_arrow.condition(node.condition.sql, self.types(node.input))
        if below is None or chosen is None:
            return None
        names = [*ids_of(node.input), *BAG]
        return below.mapped(partial(computed.selected, condition=chosen), names, names)

    def net(self, node: Select) -> bool:
        return self.bags.net(node.input)

    def spread_by(self, node: Select) -> frozenset[str] | None:
        return self.bags.spread_by(node.input)


class Generates(_Maps[Generate]):
    """Generators."""

    apply = staticmethod(generate.apply)


class Projects(_Maps[Project]):
    """Projections rename what is known of their input's columns."""

    apply = staticmethod(project.apply)

    def held(self, node: Project) -> DataFrame | None:
        with self.slice.reader.among(self._below(node)):
            return super().held(node)

    def past(self, node: Project, reach: int) -> DataFrame | None:
        with self.slice.reader.among(self._below(node)):
            return super().past(node, reach)

    def _below(self, node: Project) -> frames.Among:
        """What rows may be chosen by below a projection, where they are chosen by its columns."""
        among: Mapping[str, frames.Values] = self.slice.reader.chosen
        return {expr.bare: among[column.id] for column, expr in node.outputs if column.id in among}

    def pipe(self, node: Project) -> Pipe | None:
        below = self.bags.pipe(node.input)
        if below is None:
            return None
        wanted = {column.id: expr.sql for column, expr in node.outputs}
        renamed = computing.renamed(below, wanted)
        return renamed or computing.behind(below, wanted, self.types(node.input), self.types(node))

    def net(self, node: Project) -> bool:
        # equal records must come of equal ones
        kept = {expr.bare for _, expr in node.outputs}
        return self.bags.net(node.input) and {column.id for column in node.input.columns} <= kept

    def spread_by(self, node: Project) -> frozenset[str] | None:
        below = self.bags.spread_by(node.input)
        kept = {expr.bare: column.id for column, expr in reversed(node.outputs)}
        return frozenset(kept[c] for c in below) if below and below <= kept.keys() else None


class Unions(Runner[UnionAll]):
    """Sums of bags."""

    def new(self, node: UnionAll) -> DataFrame | None:
        return self._of(node, self.bags.new)

    def held(self, node: UnionAll) -> DataFrame | None:
        return self._of(node, self.bags.held)

    def past(self, node: UnionAll, reach: int) -> DataFrame | None:
        return self._of(node, lambda part: self.bags.past(part, reach))

    def empty(self, node: UnionAll) -> DataFrame:
        return union_all.apply(node, [(i, self.bags.empty(part)) for i, part in enumerate(node.parts)])

    @staticmethod
    def _of(node: UnionAll, of: Callable[[Node], DataFrame | None]) -> DataFrame | None:
        bags = [(i, bag) for i, part in enumerate(node.parts) if (bag := of(part)) is not None]
        return union_all.apply(node, bags) if bags else None
