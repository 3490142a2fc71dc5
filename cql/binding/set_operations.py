"""UNION, INTERSECT and EXCEPT (MINUS), with and without ALL, and VALUES: relations put together by position.

INTERSECT binds tighter than the others, which go from left to right, as in Spark; the parser has seen to that. Columns
have the first part's names and the parts' common types. Without ALL a result has no duplicates; NULL is one value here.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sqlglot import exp

from sweeparea.cql.binding.expressions.binder import Bound, column_expr
from sweeparea.cql.binding.scope.scopes import Scope
from sweeparea.cql.binding.select import ordering
from sweeparea.cql.functions import types
from sweeparea.cql.text.errors import TypeError_
from sweeparea.operators.nodes import Difference, Intersect, OneRow, Project, UnionAll
from sweeparea.operators.plan.expressions import Column, Expr
from sweeparea.operators.plan.node import Node

if TYPE_CHECKING:
    from sweeparea.cql.binding.query import BoundQuery, Cte, QueryBinder

_PARTS = {"this", "expression", "distinct", "with_"} | ordering.PARTS


def bind(queries: QueryBinder, node: exp.SetOperation, env: dict[str, Cte]) -> BoundQuery:
    """The relation of a set operation, without the ORDER BY behind it."""
    from sweeparea.cql.binding.query import BoundQuery

    # a long chain leans to the left: walk down in a loop, not by recursion
    chain: list[exp.SetOperation] = []
    first: exp.Expr = node
    while isinstance(first, exp.SetOperation) and (first is node or _is_bare(first)):
        queries._refuse_parts(first, _PARTS)
        chain.append(first)
        first = first.this
    result = queries.relation(first, env)
    together: list[tuple[exp.SetOperation, BoundQuery]] = []
    for step in reversed(chain):
        other = queries.relation(step.expression, env)
        if together and not (_is_union_all(step) and _is_union_all(together[-1][0])):
            result, together = _combined(queries, result, together), []
        together.append((step, other))
    result = _combined(queries, result, together)
    return BoundQuery(result.node, result.columns)


def _is_bare(node: exp.SetOperation) -> bool:
    """Whether a set operation is nothing but its two parts."""
    return node.args.get("with_") is None and not any(node.args.get(part) is not None for part in ordering.PARTS)


def _is_union_all(node: exp.SetOperation) -> bool:
    return isinstance(node, exp.Union) and not node.args.get("distinct")


def _combined(queries: QueryBinder, first: BoundQuery, steps: list[tuple[exp.SetOperation, BoundQuery]]) -> BoundQuery:
    """``first`` and the parts of one operation, which are several for UNION ALL alone."""
    from sweeparea.cql.binding.query import BoundQuery

    step = steps[0][0]
    word = "EXCEPT" if isinstance(step, exp.Except) else step.key.upper()
    for tree, other in steps:
        if len(other.columns) != len(first.columns):
            raise TypeError_(
                f"{word} needs as many columns on both sides, found {len(first.columns)} and {len(other.columns)}",
                queries.place(tree.expression),
                "Select the same number of columns in each part",
            )
    parts = [first, *(other for _, other in steps)]
    outputs: list[Column] = []
    for i, column in enumerate(first.columns):
        found = [p.columns[i].type for p in parts]
        _check_types(queries, found, column.label, word, steps[0][0])
        made = queries.context.new_column(column.label, types.common(found))
        # as in Spark: what the first part's column is declared as, whatever the others are
        outputs.append(made.as_of(column) if made.type in (None, column.type) else made)
    nodes = [cast(queries, p.node, p.columns, outputs) for p in parts]
    columns = tuple(outputs)
    if isinstance(step, exp.Union):
        union = UnionAll(tuple(nodes), columns)
        return queries._distinct(union, columns) if step.args.get("distinct") else BoundQuery(union, columns)
    kind = Intersect if isinstance(step, exp.Intersect) else Difference
    return BoundQuery(kind(nodes[0], nodes[1], columns, all=not step.args.get("distinct")), columns)


def cast(queries: QueryBinder, node: Node, columns: tuple[Column, ...], wanted: list[Column]) -> Node:
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
        outputs.append((queries.context.new_column(column.label, target.type if differs else column.type), expr))
    return Project(node, tuple(outputs))


def _check_types(queries: QueryBinder, found: list[str | None], label: str, word: str, node: exp.SetOperation) -> None:
    known = {t for t in found if t not in (None, "void")}
    if any(types.apart(a, b) for a, b in itertools.combinations(known, 2) if a and b):
        raise TypeError_(
            f"{word} cannot put {' and '.join(sorted(t.upper() for t in known if t))} into one column {label}",
            queries.place(node.expression),
            "CAST them to one type",
        )
    maps = [t for t in known if t is not None and (t.startswith("map<") or t == "variant")]
    if maps and not _is_union_all(node):
        raise TypeError_(
            f"{word} cannot compare {label}, which is a {maps[0].split('<')[0].upper()}",
            queries.place(node.expression),
            "Compare its entries" if maps[0] != "variant" else "CAST it to a type with an order",
        )


def values(queries: QueryBinder, node: exp.Values) -> BoundQuery:
    """``VALUES (1, 'a'), (2, 'b')``: the relation that holds these rows at every instant; columns col1, col2, .."""
    from sweeparea.cql.binding.query import BoundQuery

    binder = queries._binder(Scope(), "VALUES")
    rows: list[list[Bound]] = []
    for tree in node.expressions:
        cells = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
        rows.append([binder.bind(cell) for cell in cells])
        if len(rows[-1]) != len(rows[0]):
            raise TypeError_(
                f"all rows of VALUES have as many columns as the first: {len(rows[0])}; found {len(rows[-1])}",
                queries.place(tree),
                "Give each row the same number of values",
            )
    parts: list[Node] = []
    for row in rows:
        outputs = [(queries.context.new_column(f"col{i}", b.type), b.expr) for i, b in enumerate(row, 1)]
        parts.append(Project(OneRow(), tuple(outputs)))
    if len(parts) == 1:
        return BoundQuery(parts[0], parts[0].columns)
    columns: list[Column] = []
    for i in range(len(rows[0])):
        found = [row[i].type for row in rows]
        known = [t for t in found if t != "void"] or found
        columns.append(queries.context.new_column(f"col{i + 1}", types.common(known)))
    cast_parts = tuple(cast(queries, p, p.columns, columns) for p in parts)
    return BoundQuery(UnionAll(cast_parts, tuple(columns)), tuple(columns))
