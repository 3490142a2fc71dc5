"""The binder's question to Spark (``cql/column_types.py``): types of columns, by schema analysis over empty frames.

A node is analysed over the known types of its inputs, so each question is as small as one node, and no job runs.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sweeparea.cql.column_types import Untyped
from sweeparea.operators.logical import (
    Aggregate,
    AggregateCall,
    Analytic,
    Column,
    Difference,
    Expr,
    Generate,
    Intersect,
    Node,
    Project,
    UnionAll,
    WindowFunction,
)
from sweeparea.spark_jobs.errors import readable
from sweeparea.tables.schema import ddl_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def analyzer(spark: SparkSession) -> Callable[[Node], Mapping[str, str]]:
    """What ``bind(.., analyze=..)`` wants."""
    return partial(types_of, spark)


class AskedOnce:
    """An analyzer for commands that need no Spark: it makes a session when a type is asked for that only Spark knows,
    and keeps it. Where none can be made, the types stay unknown, as without an analyzer.
    """

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._spark: SparkSession | None = None
        self._missing = False

    def __call__(self, root: Node) -> Mapping[str, str]:
        from sweeparea.infra.errors import SetupError
        from sweeparea.spark_jobs.session import spark_session

        if self._spark is None and not self._missing:
            try:
                self._spark = self._stack.enter_context(spark_session())
                atexit.register(self._stack.close)
            except SetupError:
                self._missing = True
        return {} if self._spark is None else types_of(self._spark, root)


def types_of(spark: SparkSession, root: Node) -> dict[str, str]:
    """The types of a plan's columns by their ids. What Spark cannot tell, such as what comes of a user's function, is
    left out; Untyped where it refuses an expression.
    """
    known: dict[str, str] = {}
    for node in root.walk():
        known.update({c.id: c.type for c in node.columns if c.type is not None})
        missing = [c for c in node.columns if c.id not in known]
        if missing and all(c.id in known for child in node.inputs for c in child.columns):
            known.update(_Analysis(spark, known).of(node))
    return known


_Asked = tuple[Column, str, list[str]]
"""A column, the expression that it is, and the author's texts of its parts."""


class _Analysis:
    """The analysis of one node whose inputs' types are known."""

    def __init__(self, spark: SparkSession, known: Mapping[str, str]) -> None:
        self.spark, self.known = spark, known

    def of(self, node: Node) -> dict[str, str]:
        match node:
            case Project():
                return self._ask(node.inputs, [(c, e.sql, [e.text]) for c, e in node.outputs])
            case Aggregate():
                keys = self._ask(node.inputs, [(c, e.sql, [e.text]) for c, e in node.keys])
                calls = [(c, _call(call), _texts(call.argument, *call.extra)) for c, call in node.calls]
                return keys | self._ask(node.inputs, calls)
            case Analytic():
                return self._ask(node.inputs, [(c, _over(f), _texts(*f.arguments)) for c, f in node.calls])
            case Generate():
                frame = self._empty(node.input.columns)
                made = self._schema(frame, [(node.outputs[0], node.generator.sql, [node.generator.text])], node.inputs)
                fields = zip(node.outputs, made or (), strict=False)
                return {c.id: ddl_type(f.dataType) for c, f in fields}
            case UnionAll() | Difference() | Intersect():
                frames = [self._empty(child.columns) for child in node.inputs]
                total = frames[0]
                for frame in frames[1:]:
                    total = total.union(frame)
                return {c.id: ddl_type(f.dataType) for c, f in zip(node.outputs, total.schema, strict=True)}
        return {}

    def _empty(self, columns: Sequence[Column]) -> DataFrame:
        names = [f"CAST(NULL AS {self.known[c.id]}) AS `{c.id}`" for c in columns if self.known[c.id] != "void"]
        names += [f"NULL AS `{c.id}`" for c in columns if self.known[c.id] == "void"]
        return self.spark.range(0).selectExpr(*names) if names else self.spark.range(0).selectExpr()

    def _ask(self, inputs: Sequence[Node], wanted: Sequence[_Asked]) -> dict[str, str]:
        asked = [each for each in wanted if each[0].type is None]
        if not asked:
            return {}
        frame = self._empty([c for child in inputs for c in child.columns])
        schema = self._schema(frame, [(c, f"{sql} AS `{c.id}`", texts) for c, sql, texts in asked], inputs)
        return {} if schema is None else {f.name: ddl_type(f.dataType) for f in schema}

    def _schema(self, frame: DataFrame, asked: Sequence[_Asked], inputs: Sequence[Node]) -> StructType | None:
        """What Spark makes of expressions; None where a user's function is among them."""
        try:
            return frame.selectExpr(*(sql for _, sql, _ in asked)).schema
        except Exception as error:
            if "UNRESOLVED_ROUTINE" in str(error):
                return None
            if len(asked) > 1:  # which of them it is, each alone tells
                for each in asked:
                    self._schema(frame, [each], inputs)
            names = {c.id: c.label for child in inputs for c in child.columns}
            told = readable(error, ", ".join(c.label for c, _, _ in asked), names)
            raise Untyped(str(told), [t for _, _, texts in asked for t in texts]) from error


def _texts(*expressions: Expr | None) -> list[str]:
    return [e.text for e in expressions if e is not None]


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
