"""Names in expressions: columns and their fields, aliases, columns of the query around, window bounds."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.expressions.walk import Walk
from sweeparea.cql.binding.scope.scopes import parts_of
from sweeparea.cql.binding.scope.window_bounds import bound_column
from sweeparea.cql.functions import types
from sweeparea.cql.text.errors import BindError, ParseError
from sweeparea.cql.text.source_text import Replacement
from sweeparea.operators.sql.expressions import Column


def column(walk: Walk, node: exp.Column) -> None:
    """A name: a column of the scope, a key of GROUP BY, an alias of the select list, or of the query around."""
    binder = walk.binder
    parts = parts_of(node)
    if len(parts) != len(node.parts):
        if isinstance(node.this, exp.Star):
            raise ParseError(f"* does not belong into an expression of {binder.where}", binder.place(node))
        if isinstance(node.this, exp.Func):
            raise walk.refused("a function with a qualified name", node)
        raise ParseError("this name cannot be read", binder.place(node))
    names = [p.name for p in parts]
    place = binder.place(node)
    if binder.aliases_first and _alias(walk, node, parts):
        return
    try:
        if binder.outer is not None and not binder.scope.has(names) and binder.outer.knows(names):
            raise BindError(f"column {'.'.join(names)} is one of the query around", place)
        found, used = binder.scope.resolve(names, place)
    except BindError as error:
        if _alias(walk, node, parts):
            return
        if binder.outer is None or binder.scope.has(names):
            raise error
        if not binder.outer.knows(names):
            raise binder.scope.unknown(names, place, binder.outer.scopes()) from None
        found, used = binder.outer.resolve(names, place)
        _put(walk, node, found, parts, used)
        walk.outer.add(id(node))
        return
    grouping = binder.grouping
    if grouping is None:
        _put(walk, node, found, parts, used)
        return
    key = grouping.key_of_column(found)
    if key is None and used < len(parts):
        canonical = binder.canonical(node)
        whole = grouping.key_of(canonical) if canonical else None
        if whole is not None:
            walk.replace(node, binder.span_of_parts(node, parts), whole)
            return
    if key is None:
        if _alias(walk, node, parts):
            return
        name = ".".join(names)
        raise BindError(
            f"column {name} is neither grouped nor inside an aggregate",
            place,
            f"Add it to GROUP BY, or write MIN({name}) or another aggregate of it",
        )
    _put(walk, node, key, parts, used)


def _put(walk: Walk, node: exp.Column, column: Column, parts: list[exp.Identifier], used: int) -> None:
    """A column in place of the parts that name it; the further ones are fields of a struct."""
    walk.replace(node, walk.binder.span_of_parts(node, parts[:used]), column)
    _field(walk, node, column, parts[used:])


def _field(walk: Walk, node: exp.Expr, column: Column, parts: list[exp.Identifier]) -> None:
    """The type of a field of a struct column."""
    type_ = column.type
    if parts:
        walk.chars.pop(id(node), None)
    for part in parts:
        if type_ is not None and not type_.startswith(("struct", "array", "map", "variant")):
            raise BindError(
                f"{column.label} is of type {type_.upper()} and has no field {part.name}",
                walk.binder.place(node),
                f"Write {column.label} alone",
            )
        type_ = types.field_type(type_, part.name)
    walk.types[id(node)] = type_


def _alias(walk: Walk, node: exp.Column, parts: list[exp.Identifier]) -> bool:
    bound = walk.binder.aliases.get(parts[0].name.lower())
    if bound is None:
        return False
    walk.replacements.append(Replacement(walk.binder.span_of_parts(node, parts[:1]), f"({bound.expr.sql})"))
    walk.used |= bound.expr.columns
    walk.types[id(node)] = bound.type if len(parts) == 1 else None
    if bound.char is not None and len(parts) == 1:
        walk.chars[id(node)] = bound.char
    return True


def window_bound(walk: Walk, node: exp.Anonymous) -> None:
    """WINDOW_START(S), WINDOW_END(S)."""
    binder = walk.binder
    span, place = binder.span(node), binder.place(node)
    column = bound_column(node, binder.scope, place)
    if binder.grouping is not None:
        key = binder.grouping.key_of_column(column)
        if key is None:
            text = binder.source.splice(span)
            raise BindError(f"{text} is neither grouped nor inside an aggregate", place, f"Add {text} to GROUP BY")
        column = key
    walk.replace(node, span, column)
