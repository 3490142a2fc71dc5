"""Calls of functions by name, and what Spark would refuse of them or another run would answer otherwise."""

from __future__ import annotations

import re

from sqlglot import exp

from sweeparea.cql.binding.expressions import aggregate_calls, char_comparisons, columns, structs
from sweeparea.cql.binding.expressions.walk import Walk
from sweeparea.cql.functions import functions
from sweeparea.cql.functions.aggregates import is_aggregate
from sweeparea.cql.syntax.trees import is_star
from sweeparea.cql.text import foreign_words
from sweeparea.cql.text.errors import BindError, ParseError, RefusedError, TypeError_, nearest

_ID_LIKE = re.compile(r"^c\d+$", re.IGNORECASE)


def function(walk: Walk, node: exp.Anonymous) -> None:
    """A call by name: of Spark's functions, of a user's, or of an aggregate."""
    name = node.name.upper()
    if name in functions.WINDOW_BOUNDS:
        columns.window_bound(walk, node)
        return
    if is_aggregate(node):
        aggregate_calls.aggregate(walk, node)
        return
    if node.meta.get("user") is not None:
        node.meta["bound"] = True
    else:
        _check_name(walk, name, node)
    arguments = node.expressions
    if name in functions.UNIT_FIRST and len(arguments) == 3:
        arguments = arguments[1:]
    position = {id(argument): i for i, argument in enumerate(arguments, 1)}

    def visit(argument: exp.Expr) -> None:
        if isinstance(argument, exp.Distinct):
            raise ParseError(f"DISTINCT belongs to aggregates, and {name} is none", walk.binder.place(node))
        if is_star(argument):
            structs.expand(walk, argument, named=name == "STRUCT")
        else:
            walk.visit(argument)
            if name == "STRUCT":
                structs.keep_field_name(walk, argument, position[id(argument)])

    walk.each(arguments, visit)
    walk.checks.call(node, name)
    char_comparisons.pad_call(walk, node, name)


def _check_name(walk: Walk, name: str, node: exp.Expr) -> None:
    place = walk.binder.place(node)
    if node.meta.get("to_stream") is not None:
        raise ParseError(
            f"{name} turns a whole query into a stream and cannot stand inside {walk.binder.where}",
            place,
            f"Write SELECT {name}(a, b) FROM .., or {name}(SELECT ..)",
        )
    functions.refuse_non_deterministic(name, len(node.expressions), place)
    functions.refuse_collation(name, place)
    functions.refuse_random_iv(name, [a.name if isinstance(a, exp.Literal) else None for a in node.expressions], place)
    if name in functions.WINDOW_ONLY:
        raise TypeError_(f"{name} needs OVER", place, f"Write {name}(..) OVER (PARTITION BY a ORDER BY b)")
    if name in functions.GENERATORS:
        raise TypeError_(
            f"{name} makes rows, so it stands alone in the select list, not inside {walk.binder.where}",
            place,
            f"Write LATERAL VIEW {name.lower()}(..) t AS x, and use its columns",
        )
    if name in functions.SPARK_STREAMING:
        raise walk.refused(f"Spark's {name.lower()}(..)", node, functions.SPARK_STREAMING[name])
    if name == "EXISTS" and not node.expressions:
        raise ParseError("EXISTS holds no query", place, "Write EXISTS (SELECT ..)")
    if name == "ARRAYS_ZIP":
        raise RefusedError(
            "arrays_zip is not offered: it names its fields after columns, which have other names inside",
            place,
            "Write zip_with(a, b, (x, y) -> struct(x AS a, y AS b))",
        )
    if name.lower() not in functions.spark_functions():
        hint = foreign_words.FUNCTIONS.get(name) or nearest(name, functions.spark_functions())
        raise BindError(f"there is no function {node.name}", place, hint)


def own_function(walk: Walk, node: exp.Expr) -> None:
    """Functions that sqlglot makes a class of its own even so: CURRENT_DATE without parentheses, TRIM, EXTRACT,
    .."""
    names = list(node.sql_names()) if isinstance(node, exp.Func) else []
    name = names[0].upper() if names else ""
    functions.refuse_non_deterministic(name, len(list(node.iter_expressions())), walk.binder.place(node))
    walk.children(node)
    walk.checks.own_call(node)


def lambda_(walk: Walk, node: exp.Expr) -> None:
    for parameter in node.expressions:
        if _ID_LIKE.match(parameter.name):
            raise BindError(
                f"the parameter {parameter.name} has a name that the engine gives to columns",
                walk.binder.place(node),
                "Name it otherwise, such as x",
            )
    walk.visit(node.this)


def kwarg(walk: Walk, node: exp.Expr) -> None:
    walk.visit(node.expression)
