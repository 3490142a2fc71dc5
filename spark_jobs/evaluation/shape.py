"""A node's columns and types, asked of Spark by analysing the plan over empty inputs. No job runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweeparea.operators.linear import generate, one_row, project, select, union_all
from sweeparea.operators.plan import support
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
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    UnionAll,
    UserFunction,
    Window,
)
from sweeparea.operators.sweeps import enrich, join
from sweeparea.operators.values.bag import BAG, TS
from sweeparea.operators.windows import window
from sweeparea.operators.windows.definitions import TimeWindow
from sweeparea.spark_jobs.evaluation.expansion import expansion_of
from sweeparea.spark_jobs.evaluation.grouping import Grouping
from sweeparea.spark_jobs.spark import frames

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sweeparea.spark_jobs.evaluation.inputs import InputReader


class Shape:
    """``bag(node)`` is an empty bag with the node's columns; ``functions`` are the plan's."""

    def __init__(self, spark: SparkSession, reader: InputReader, functions: Sequence[UserFunction] = ()) -> None:
        self.spark, self.reader, self.functions = spark, reader, functions

    def bag(self, node: Node) -> DataFrame:
        match node:
            case StreamScan() | RelationScan():
                return self._scan(node)
            case Window():
                return self._window(node)
            case Enrich():
                return enrich.apply(node, self.bag(node.stream), self.bag(node.relation))
            case Select():
                return select.apply(node, self.bag(node.input))
            case Project():
                return project.apply(node, self.bag(node.input))
            case UnionAll():
                return union_all.apply(node, [(i, self.bag(part)) for i, part in enumerate(node.parts)])
            case Join():
                both = join.apply(node, self.bag(node.left), self.bag(node.right))
                return both.selectExpr(*(c.id for c in node.columns), *BAG)
            case Difference() | Intersect():
                return union_all.apply(node, [(i, self.bag(part)) for i, part in enumerate(node.inputs)])
            case RelationToStream():
                below, ids = self.bag(node.input), [c.id for c in node.input.columns]
                instant = [f"{self.reader.instant_sql(TS)} AS {node.instant.id}"] if node.instant else []
                return below.selectExpr(*ids, *instant, *BAG)
            case TopK():
                return self.bag(node.input)
            case Aggregate() | Analytic() if support.expansion(node) is not None:
                how = expansion_of(node, self.functions)
                return how.evaluate(how.expanded(self.bag(node.inputs[0])))
            case Aggregate():
                return self._aggregate(node)
            case Generate():
                return generate.apply(node, self.bag(node.input))
            case OneRow():
                return one_row.apply(self.spark, 0).limit(0)
        raise TypeError(f"no shape for {type(node).__name__}")

    def _window(self, node: Window) -> DataFrame:
        below = self.bag(node.input)
        if isinstance(node.spec, TimeWindow):
            return window.apply(node, below, self.reader.instant_sql)
        bounds = [f"{self.reader.instant_sql(TS)} AS {c.id}" for c in node.bounds or ()]
        return below.selectExpr(*(c.id for c in node.input.columns), *bounds, *BAG)

    def _scan(self, node: StreamScan | RelationScan) -> DataFrame:
        schema: pa.Schema = self.reader.inputs[node.name].log.schema()
        columns = [f"CAST(NULL AS {frames.spark_type(schema.field(name).type)}) AS {c.id}" for c, name in node.source]
        if isinstance(node, StreamScan) and node.instant is not None:
            columns.append(f"{self.reader.instant_sql('0L')} AS {node.instant.id}")
        return self.spark.range(0).selectExpr(*columns, *(f"0L AS {x}" for x in BAG))

    def _aggregate(self, node: Aggregate) -> DataFrame:
        grouping = Grouping(node)
        raw = grouping.raw(self.bag(node.input), list(BAG))
        types = {f.name: f.type for f in frames.fields(raw, raw.columns)}
        bases = [
            f"CAST(NULL AS {frames.spark_type(result)}) AS b{i}"
            for i, result in enumerate(grouping.result_types(types))
        ]
        return raw.selectExpr(*grouping.keys, *bases, *BAG).selectExpr(*grouping.keys, *grouping.outputs(types), *BAG)
