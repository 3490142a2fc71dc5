"""VALUES: the relation that holds the rows written, and a relation's columns in other types."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.expressions.registry import binder_at
from sweeparea.cql.binding.scope.bound import Bound, column_expr
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.scopes import Scope
from sweeparea.cql.binding.subqueries.queries import BoundQuery
from sweeparea.cql.functions import types
from sweeparea.cql.text.errors import TypeError_
from sweeparea.operators.nodes import OneRow, Project, UnionAll
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr


def values(context: Context, node: exp.Values) -> BoundQuery:
    """``VALUES (1, 'a'), (2, 'b')``: the relation that holds these rows at every instant; columns col1, col2, .."""
    binder = binder_at(context, Scope(), "VALUES")
    rows: list[list[Bound]] = []
    for tree in node.expressions:
        cells = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
        rows.append([binder.bind(cell) for cell in cells])
        if len(rows[-1]) != len(rows[0]):
            raise TypeError_(
                f"all rows of VALUES have as many columns as the first: {len(rows[0])}; found {len(rows[-1])}",
                context.place(tree),
                "Give each row the same number of values",
            )
    parts: list[Node] = []
    for row in rows:
        outputs = [(context.new_column(f"col{i}", b.type), b.expr) for i, b in enumerate(row, 1)]
        parts.append(Project(OneRow(), tuple(outputs)))
    if len(parts) == 1:
        return BoundQuery(parts[0], parts[0].columns)
    columns: list[Column] = []
    for i in range(len(rows[0])):
        found = [row[i].type for row in rows]
        known = [t for t in found if t != "void"] or found
        columns.append(context.new_column(f"col{i + 1}", types.common(known)))
    cast_parts = tuple(cast(context, p, p.columns, columns) for p in parts)
    return BoundQuery(UnionAll(cast_parts, tuple(columns)), tuple(columns))


def cast(context: Context, node: Node, columns: tuple[Column, ...], wanted: list[Column]) -> Node:
    """A part with exactly its visible columns, in the types of the whole where these are known."""
    changed = [
        w.type is not None and c.type is not None and c.type != w.type for c, w in zip(columns, wanted, strict=True)
    ]
    if not any(changed) and node.columns == columns:
        return node
    outputs = []
    for column, target, differs in zip(columns, wanted, changed, strict=True):
        expr = column_expr(column)
        if differs:
            expr = Expr(f"CAST({expr.sql} AS {target.type})", expr.text, expr.columns)
        outputs.append((context.new_column(column.label, target.type if differs else column.type), expr))
    return Project(node, tuple(outputs))
