"""The binder's question to Spark (``cql/functions/column_types.py``): types of columns, by schema analysis over empty
frames.

A node is analysed over the known types of its inputs, so each question is as small as one node, and no job runs.
"""

from __future__ import annotations

import atexit
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sweeparea.cql.functions.column_types import Untyped
from sweeparea.infra.errors import SetupError, UnfitSetupError
from sweeparea.operators.plan.node import Evaluated, ExpressionKind, Node
from sweeparea.operators.plan.plan import UserFunction
from sweeparea.operators.sql.expressions import Column
from sweeparea.spark_jobs.spark.errors import UnheldTypeError, readable
from sweeparea.spark_jobs.spark.frames import storable
from sweeparea.tables.log.schema import ddl_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def analyzer(spark: SparkSession) -> Callable[[Node], Mapping[str, str]]:
    """What ``bind(.., analyze=..)`` wants."""
    return partial(types_of, spark)


class Checking:
    """An analyzer that has every expression of a plan analysed, not only those whose type is wanted.

    ``session`` gives the session, None where there is none; ``unchecked`` tells whether that has happened.
    """

    def __init__(
        self, analyze: Callable[[Node], Mapping[str, str]], session: Callable[[], SparkSession | None]
    ) -> None:
        self.analyze, self.session = analyze, session
        self.unchecked = False

    def __call__(self, root: Node) -> Mapping[str, str]:
        return self.analyze(root)

    @property
    def missing(self) -> str:
        """Why there is no Spark, where one was asked for."""
        return self.analyze.missing if isinstance(self.analyze, AskedOnce) else ""

    def check(self, root: Node, functions: Iterable[UserFunction] = ()) -> list[Untyped]:
        """All that Spark's analyzer refuses in a plan that calls ``functions``. UnfitSetupError where this Spark would
        compute other answers.
        """
        from sweeparea.spark_jobs.declarations import user_code
        from sweeparea.spark_jobs.spark.zone_guards import require_zones

        spark = self.session()
        if spark is None:
            self.unchecked = True
            return []
        require_zones(spark, root)
        user_code.register(spark, functions)
        return faults_of(spark, root)


class AskedOnce:
    """An analyzer for commands that need no Spark: it makes a session when a type is asked for that only Spark knows,
    and keeps it. Where none can be made, ``missing`` says why, and the types stay unknown, as without an analyzer.
    UnfitSetupError where one is there that would compute other answers.
    """

    def __init__(self) -> None:
        self.missing = ""
        self._stack = contextlib.ExitStack()
        self._spark: SparkSession | None = None
        self._unfit: UnfitSetupError | None = None

    def __call__(self, root: Node) -> Mapping[str, str]:
        spark = self.session()
        return {} if spark is None else types_of(spark, root)

    def session(self) -> SparkSession | None:
        """The session, which is made now if there is none yet."""
        from sweeparea.spark_jobs.spark.session import spark_session, unanswered

        if self._unfit is not None:
            raise self._unfit
        if self._spark is None and not self.missing:
            try:
                self.missing = unanswered()
                if not self.missing:
                    self._spark = self._stack.enter_context(spark_session())
                    atexit.register(self._stack.close)
            except UnfitSetupError as error:
                self._unfit = error
                raise
            except SetupError as error:
                self.missing = str(error)
        return self._spark

    def at_hand(self) -> SparkSession | None:
        """The session if one costs next to nothing: it was made already, or a server runs that gives one."""
        from sweeparea.spark_jobs.spark.session import runs, unanswered

        if self._spark is not None or self._unfit is not None or (not self.missing and runs()):
            return self.session()
        self.missing = self.missing or unanswered()
        return None


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


def faults_of(spark: SparkSession, root: Node) -> list[Untyped]:
    """What Spark refuses in the expressions of a plan, node by node. What cannot be asked about, since a type below is
    not known or a user's function is none of this session's, is left out.
    """
    try:
        known = {c.id: c.type for node in root.walk() for c in node.columns if c.type is not None}
        known |= types_of(spark, root)
    except Untyped as error:
        return [error]
    nodes = {id(node): node for node in root.walk()}.values()
    nodes = [node for node in nodes if all(c.id in known for child in node.inputs for c in child.columns)]
    analysis = _Analysis(spark, known)
    if analysis.faultless(nodes):
        return []
    return [error for node in nodes for error in analysis.faults(node)]


class _Analysis:
    """The analysis of one node whose inputs' types are known."""

    def __init__(self, spark: SparkSession, known: Mapping[str, str]) -> None:
        self.spark, self.known = spark, known

    def of(self, node: Node) -> dict[str, str]:
        if node.by_position:
            return self._of_union(node)
        asked = [each for each in node.computed() if any(c.type is None for c in each.columns)]
        found: dict[str, str] = {}
        for part in _askable(asked):
            found |= self._types(node.inputs, part)
        return found

    def _of_union(self, node: Node) -> dict[str, str]:
        frames = [self._empty(child.columns) for child in node.inputs]
        try:
            total = frames[0]
            for frame in frames[1:]:
                total = total.union(frame)  # analyzed at once, or through Spark Connect with the schema
            schema = total.schema
        except Exception as error:
            parts = [c.label for child in node.inputs for c in child.columns]
            raise Untyped(str(readable(error, ", ".join(c.label for c in node.columns))), parts) from error
        return {c.id: ddl_type(f.dataType) for c, f in zip(node.columns, schema, strict=True)}

    def faultless(self, nodes: Sequence[Node]) -> bool:
        """Whether Spark refuses nothing of nodes, asked about all at once: two questions for most plans."""
        columns = {c.id: c for node in nodes for child in node.inputs for c in child.columns}
        asked = {
            (each.sql, each.remembered, each.condition, each.columns): each
            for node in nodes
            for each in node.evaluated()
        }
        return all(self._fault([*columns.values()], part) is None for part in _askable(asked.values()))

    def faults(self, node: Node) -> list[Untyped]:
        """What Spark refuses in a node's own expressions, each asked for alone where not all are right together."""
        columns = [c for child in node.inputs for c in child.columns]
        found: list[Untyped] = []
        for part in _askable(node.evaluated()):
            if self._fault(columns, part) is not None:
                found += [error for each in part if (error := self._fault(columns, [each])) is not None]
        return found

    def _fault(self, columns: Sequence[Column], asked: Sequence[Evaluated]) -> Untyped | None:
        texts = [t for each in asked for t in each.texts]
        where, names = ", ".join(texts), {c.id: c.label for c in columns}
        try:
            schema = self._empty(columns).selectExpr(*(each.sql for each in asked)).schema
        except Exception as error:  # one of many classes of the JVM's
            condition = re.search(r"\[([A-Z_.]+)\]", str(error))
            alone = len(asked) == 1
            if alone and (condition is None or condition[1].startswith("UNRESOLVED_ROUTINE")):
                return None  # it says nothing of the expression
            return Untyped(str(readable(error, where, names)), texts)
        for field, each in zip(schema, asked, strict=not any(each.kind == ExpressionKind.GENERATOR for each in asked)):
            if each.condition and field.dataType.typeName() != "boolean":
                type_ = ddl_type(field.dataType).upper()
                return Untyped(
                    f"a condition is needed, but {each.texts[0]} is of type {type_}", texts, "Write a comparison"
                )
            if each.remembered and not storable(field.dataType, void=bool(each.columns)):
                told = UnheldTypeError("", ddl_type(field.dataType)).told(each.texts[0])
                return Untyped(told, texts, hint="")
        return None

    def _empty(self, columns: Sequence[Column]) -> DataFrame:
        names = [f"CAST(NULL AS {self.known[c.id]}) AS `{c.id}`" for c in columns if self.known[c.id] != "void"]
        names += [f"NULL AS `{c.id}`" for c in columns if self.known[c.id] == "void"]
        return self.spark.range(0).selectExpr(*names) if names else self.spark.range(0).selectExpr()

    def _types(self, inputs: Sequence[Node], asked: Sequence[Evaluated]) -> dict[str, str]:
        """What Spark makes of expressions; nothing where a user's function is among them."""
        columns = [c for each in asked for c in each.columns]
        names = {c.id: c.label for child in inputs for c in child.columns}
        frame = self._empty([c for child in inputs for c in child.columns])
        try:
            schema = frame.selectExpr(*(_named(each) for each in asked)).schema
        except Exception as error:
            if "UNRESOLVED_ROUTINE" in str(error):
                return {}
            if len(asked) > 1:  # which of them it is, each alone tells
                for each in asked:
                    self._types(inputs, [each])
            told = readable(error, ", ".join(each.columns[0].label for each in asked), names)
            raise Untyped(str(told), [t for each in asked for t in each.texts]) from error
        return {c.id: ddl_type(f.dataType) for c, f in zip(columns, schema, strict=False)}


def _askable(asked: Iterable[Evaluated]) -> Iterator[list[Evaluated]]:
    """What Spark can be asked about at once."""
    given = [*asked]
    for kind in (ExpressionKind.VALUE, ExpressionKind.AGGREGATE):
        if part := [each for each in given if each.kind == kind]:
            yield part
    yield from ([each] for each in given if each.kind == ExpressionKind.GENERATOR)


def _named(asked: Evaluated) -> str:
    return asked.sql if asked.kind == ExpressionKind.GENERATOR else f"{asked.sql} AS `{asked.columns[0].id}`"
