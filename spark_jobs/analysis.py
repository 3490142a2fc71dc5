"""The binder's question to Spark (``cql/column_types.py``): types of columns, by schema analysis over empty frames.

A node is analysed over the known types of its inputs, so each question is as small as one node, and no job runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sweeparea.operators.logical import (
    Aggregate,
    AggregateCall,
    Analytic,
    Column,
    Difference,
    Generate,
    Intersect,
    Node,
    Project,
    UnionAll,
    WindowFunction,
)
from sweeparea.spark_jobs.errors import ArgumentTypeError, readable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def analyzer(spark: SparkSession) -> Callable[[Node], Mapping[str, str]]:
    """What ``bind(.., analyze=..)`` wants."""
    return partial(types_of, spark)


def types_of(spark: SparkSession, root: Node) -> dict[str, str]:
    """The types of a plan's columns by their ids. What Spark cannot tell, such as what comes of a user's function, is
    left out; ArgumentTypeError where it refuses an expression.
    """
    known: dict[str, str] = {}
    for node in root.walk():
        known.update({c.id: c.type for c in node.columns if c.type is not None})
        missing = [c for c in node.columns if c.id not in known]
        if missing and all(c.id in known for child in node.inputs for c in child.columns):
            known.update(_Analysis(spark, known).of(node))
    return known


class _Analysis:
    """The analysis of one node whose inputs' types are known."""

    def __init__(self, spark: SparkSession, known: Mapping[str, str]) -> None:
        self.spark, self.known = spark, known

    def of(self, node: Node) -> dict[str, str]:
        match node:
            case Project():
                return self._ask(node.inputs, [(c, e.sql) for c, e in node.outputs])
            case Aggregate():
                keys = self._ask(node.inputs, [(c, e.sql) for c, e in node.keys])
                return keys | self._ask(node.inputs, [(c, _call(call)) for c, call in node.calls])
            case Analytic():
                return self._ask(node.inputs, [(c, _over(call)) for c, call in node.calls])
            case Generate():
                made = self._empty(node.input.columns).selectExpr(node.generator.sql).schema
                return {c.id: f.dataType.simpleString() for c, f in zip(node.outputs, made, strict=False)}
            case UnionAll() | Difference() | Intersect():
                frames = [self._empty(child.columns) for child in node.inputs]
                total = frames[0]
                for frame in frames[1:]:
                    total = total.union(frame)
                return {c.id: f.dataType.simpleString() for c, f in zip(node.outputs, total.schema, strict=True)}
        return {}

    def _empty(self, columns: Sequence[Column]) -> DataFrame:
        names = [f"CAST(NULL AS {self.known[c.id]}) AS `{c.id}`" for c in columns if self.known[c.id] != "void"]
        names += [f"NULL AS `{c.id}`" for c in columns if self.known[c.id] == "void"]
        return self.spark.range(0).selectExpr(*names) if names else self.spark.range(0).selectExpr()

    def _ask(self, inputs: Sequence[Node], wanted: Sequence[tuple[Column, str]]) -> dict[str, str]:
        asked = [(c, sql) for c, sql in wanted if c.type is None]
        if not asked:
            return {}
        frame = self._empty([c for child in inputs for c in child.columns])
        try:
            schema = frame.selectExpr(*(f"{sql} AS `{c.id}`" for c, sql in asked)).schema
        except Exception as error:
            if "UNRESOLVED_ROUTINE" in str(error):  # a user's function
                return {}
            names = {c.id: c.label for child in inputs for c in child.columns}
            told = readable(error, ", ".join(c.label for c, _ in asked), names)
            raise ArgumentTypeError(str(told)) from error
        return {f.name: f.dataType.simpleString() for f in schema}


def _call(call: AggregateCall) -> str:
    if call.function == "SINGLE_VALUE":
        assert call.argument is not None
        return call.argument.sql
    if call.function in ("PERCENTILE_CONT", "PERCENTILE_DISC"):
        assert call.argument is not None
        return f"{call.function}({call.extra[0].sql}) WITHIN GROUP (ORDER BY {call.argument.sql})"
    arguments = ["1"] if call.argument is None else [call.argument.sql, *(e.sql for e in call.extra)]
    return f"{call.function}({', '.join(arguments)})"


def _over(call: WindowFunction) -> str:
    return f"{call.function}({', '.join(e.sql for e in call.arguments) or ''}) OVER (ORDER BY 1)"
