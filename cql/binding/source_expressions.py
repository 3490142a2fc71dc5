"""Expressions over single rows that a declaration has beside its query: heartbeats, and constraints of streams and
queries. They are Spark SQL over the names of columns, and what they must give is known before anything is run.
"""

from __future__ import annotations

from dataclasses import dataclass

from sweeparea.cql.binding.expressions.registry import binder_over
from sweeparea.cql.binding.scope.inputs import InputSchema
from sweeparea.cql.binding.scope.scopes import Item, Scope
from sweeparea.cql.functions import column_types
from sweeparea.cql.functions.column_types import Analyze
from sweeparea.cql.syntax import foreign_syntax
from sweeparea.cql.syntax.statements import SourceExpression
from sweeparea.cql.text.errors import BindError, TypeError_, raise_all
from sweeparea.operators.nodes import Project, StreamScan
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.time.domain import TimeKind


@dataclass(frozen=True)
class WantedType:
    """What an expression must give: one of ``types`` (Spark DDL), which ``words`` name; ``hint`` is the way out."""

    types: frozenset[str]
    words: str
    hint: str


CONDITION = WantedType(frozenset(["boolean", "void"]), "a condition", "Write a comparison, such as a > 0")
INSTANTS = {
    TimeKind.TIMESTAMP: WantedType(
        frozenset(["timestamp", "timestamp_ntz", "date"]),
        "an instant (TIMESTAMP, TIMESTAMP_NTZ or DATE)",
        "Write one, such as t - INTERVAL 10 MINUTES with the column t of TIMESTAMP BY",
    ),
    TimeKind.BIGINT: WantedType(
        frozenset(["bigint", "int", "smallint", "tinyint"]),
        "a tick (BIGINT, since the stream counts time in ticks)",
        "Write one, such as t - 10 with the column t of TIMESTAMP BY, or CAST(.. AS BIGINT)",
    ),
}
"""What is an instant of a stream, by the kind of its time."""


def bind_source_expression(
    expression: SourceExpression,
    schema: InputSchema,
    what: str,
    wanted: WantedType | None = None,
    analyze: Analyze | None = None,
) -> Expr:
    """An expression over a source's own columns, as heartbeats and stream constraints have: Spark SQL over their
    names. TypeError_ where it is known not to give what is ``wanted``; ``analyze`` is asked for a type that only Spark
    knows.
    """
    columns = tuple(schema.column(Column(f"c{i}", n, t), n) for i, (n, t) in enumerate(schema.columns))
    bound = bind_over(expression, columns, schema.name, what, wanted, analyze)
    sql = bound.sql
    for column in reversed(columns):  # c10 before c1
        sql = (
            sql.replace(f"`{column.id}`", "`" + column.label.replace("`", "``") + "`")
            if column.id in bound.columns
            else sql
        )
    names = frozenset(c.label for c in columns if c.id in bound.columns)
    return Expr(sql, bound.text, names)


def bind_over(
    expression: SourceExpression,
    columns: tuple[Column, ...],
    name: str | None,
    what: str,
    wanted: WantedType | None = None,
    analyze: Analyze | None = None,
) -> Expr:
    """As ``bind_source_expression``, over columns of a table ``name`` (None: no name) and in terms of their ids."""
    binder = binder_over(expression.source, Scope.of(Item(name, columns)), _no_column, what)
    raise_all([*foreign_syntax.faults(expression.tree, binder.place)])
    bound = binder.bind(expression.tree, expression.span)
    kind = bound.type
    scan = StreamScan(name or what, tuple((c, c.label) for c in columns))
    asked = Project(scan, ((Column(f"c{len(columns)}_asked", what, kind), bound.expr),))
    column_types.checked(asked, analyze, expression.source)
    if wanted is None:
        return bound.expr
    if kind is None:
        kind = column_types.filled(asked, analyze, expression.source).columns[0].type
    if kind is not None and kind not in wanted.types:
        raise TypeError_(
            f"{what} needs {wanted.words}, but {bound.expr.text} is of type {kind.upper()}",
            expression.place,
            wanted.hint,
        )
    return bound.expr


def _no_column(label: str, type_: str | None) -> Column:
    raise BindError(f"an aggregate ({label}) cannot stand in an expression over single rows")
