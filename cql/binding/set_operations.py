"""UNION, INTERSECT and EXCEPT (MINUS), with and without ALL: relations put together by position.

INTERSECT binds tighter than the others, which go from left to right, as in Spark; the parser has seen to that. Columns
have the first part's names and the parts' common types. Without ALL a result has no duplicates; NULL is one value here.
"""

from __future__ import annotations

import itertools

from sqlglot import exp

from sweeparea.cql.binding.from_clause.values import cast
from sweeparea.cql.binding.refused_parts import refuse_parts
from sweeparea.cql.binding.scope.bound import column_expr
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.select import ordering
from sweeparea.cql.binding.subqueries.queries import BoundQuery, Cte, Queries
from sweeparea.cql.functions import types
from sweeparea.cql.text.errors import TypeError_
from sweeparea.operators.nodes import Aggregate, Difference, Intersect, UnionAll
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column

MANY = 16
"""Steps of EXCEPT, or of UNION, one after the other, from which on they are one operator. Each alone has a memory and a
shuffle of its own, and Spark's analyzer takes as long as the square of their number; fewer are run as they are
written, as what was deployed is.
"""
_PARTS = {"this", "expression", "distinct", "with_"} | ordering.PARTS


def bind(queries: Queries, node: exp.SetOperation, env: dict[str, Cte]) -> BoundQuery:
    """The relation of a set operation, without the ORDER BY behind it."""
    # a long chain leans to the left: walk down in a loop, not by recursion
    chain: list[exp.SetOperation] = []
    first: exp.Expr = node
    while isinstance(first, exp.SetOperation) and (first is node or _is_bare(first)):
        refuse_parts(queries.context, first, _PARTS)
        chain.append(first)
        first = first.this
    result = queries.relation(first, env)
    together: list[tuple[exp.SetOperation, BoundQuery]] = []
    for _, steps in itertools.groupby(reversed(chain), _kind):
        steps = [*steps]
        for i, step in enumerate(steps):
            other = queries.relation(step.expression, env)
            if together and not (i and _are_one(steps)):
                result, together = _combined(queries.context, result, together), []
            together.append((step, other))
    result = _combined(queries.context, result, together)
    return BoundQuery(result.node, result.columns)


def _is_bare(node: exp.SetOperation) -> bool:
    """Whether a set operation is nothing but its two parts."""
    return node.args.get("with_") is None and not any(node.args.get(part) is not None for part in ordering.PARTS)


def _kind(node: exp.SetOperation) -> tuple[str, bool]:
    return node.key, bool(node.args.get("distinct"))


def _are_one(steps: list[exp.SetOperation]) -> bool:
    """Whether steps of one kind may be one operator: A EXCEPT B EXCEPT C takes away what B UNION ALL C holds."""
    return _is_union_all(steps[0]) or (len(steps) >= MANY and not isinstance(steps[0], exp.Intersect))


def _is_union_all(node: exp.SetOperation) -> bool:
    return isinstance(node, exp.Union) and not node.args.get("distinct")


def _combined(context: Context, first: BoundQuery, steps: list[tuple[exp.SetOperation, BoundQuery]]) -> BoundQuery:
    """``first`` and the parts of one operation, or of several that are one."""
    step = steps[0][0]
    word = "EXCEPT" if isinstance(step, exp.Except) else step.key.upper()
    for tree, other in steps:
        if len(other.columns) != len(first.columns):
            raise TypeError_(
                f"{word} needs as many columns on both sides, found {len(first.columns)} and {len(other.columns)}",
                context.place(tree.expression),
                "Select the same number of columns in each part",
            )
    parts = [first, *(other for _, other in steps)]
    kinds = {tuple(column.type for column in part.columns) for part in parts}
    if len(steps) > 1 and not _is_union_all(step) and (len(kinds) > 1 or None in next(iter(kinds))):
        # values are compared as the common type of two parts, which may be another than that of all
        for each in steps:
            first = _combined(context, first, [each])
        return first
    outputs: list[Column] = []
    for i, column in enumerate(first.columns):
        found = [p.columns[i].type for p in parts]
        _check_types(context, found, column.label, word, steps[0][0])
        made = context.new_column(column.label, types.common(found))
        # as in Spark: what the first part's column is declared as, whatever the others are
        outputs.append(made.as_of(column) if made.type in (None, column.type) else made)
    nodes = [cast(context, p.node, p.columns, outputs) for p in parts]
    columns = tuple(outputs)
    if isinstance(step, exp.Union):
        union = UnionAll(tuple(nodes), columns)
        return _distinct(context, union, columns) if step.args.get("distinct") else BoundQuery(union, columns)
    kind = Intersect if isinstance(step, exp.Intersect) else Difference
    second = nodes[1]
    if len(nodes) > 2:
        second = UnionAll(tuple(nodes[1:]), tuple(context.new_column(c.label, c.type).as_of(c) for c in columns))
    return BoundQuery(kind(nodes[0], second, columns, all=not step.args.get("distinct")), columns)


def _check_types(context: Context, found: list[str | None], label: str, word: str, node: exp.SetOperation) -> None:
    known = {t for t in found if t is not None and t != "void"}
    if any(types.apart(a, b) for a, b in itertools.combinations(known, 2)):
        raise TypeError_(
            f"{word} cannot put {' and '.join(sorted(t.upper() for t in known))} into one column {label}",
            context.place(node.expression),
            "CAST them to one type",
        )
    maps = [t for t in known if t.startswith("map<") or t == "variant"]
    if maps and not _is_union_all(node):
        raise TypeError_(
            f"{word} cannot compare {label}, which is a {maps[0].split('<')[0].upper()}",
            context.place(node.expression),
            "Compare its entries" if maps[0] != "variant" else "CAST it to a type with an order",
        )


def _distinct(context: Context, node: Node, columns: tuple[Column, ...]) -> BoundQuery:
    keys = tuple((context.new_column(c.label, c.type).as_of(c), column_expr(c)) for c in columns)
    return BoundQuery(Aggregate(node, keys, ()), tuple(c for c, _ in keys))
