"""NULL without a type (Spark's VOID) where rows are kept: no table holds it, so it is kept as the NULL of a type.

What an expression means does not change. ``NULL`` takes the type of what stands beside it, so wherever a column that is
NULL in every row is read, the word itself is read, and what holds such NULLs inside is given its own type again; only
the column that is stored gets a type of its own (STRING).
Conditions are made BOOLEAN where they are bound (``binding/expressions/walk.py``), arguments and keys where these are.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from sweeparea.cql.functions import types
from sweeparea.cql.functions.signatures import split_types
from sweeparea.operators.nodes import Aggregate, Analytic, Project, SetOperation, UnionAll
from sweeparea.operators.plan.expressions import Column, Expr
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.sql_text import substituted

VOID = "void"
STORED = "string"
"""The type that a NULL without one is stored with: the one that compares with most others."""
_INSIDE = re.compile(r"(?<![\w`.])void(?![\w`:])")


def typed(sql: Expr, type_: str = STORED) -> Expr:
    """An expression of type VOID as one of another type."""
    shown = type_ if "<" in type_ else type_.upper()  # names of fields stay as they are
    return Expr(f"CAST({sql.sql} AS {shown})", sql.text, sql.columns)


def held(type_: str | None) -> str | None:
    """A type that a table can hold, where ``type_`` is none for the NULLs without a type inside it."""
    return None if type_ is None else _INSIDE.sub(STORED, type_)


def as_written(sql: str, type_: str, depth: int = 0) -> str:
    """SQL that gives a stored value its own type again, with NULLs without one: what stands beside it takes part of
    its type from there.
    """
    if type_ == VOID:
        return "NULL"
    if not _INSIDE.search(type_):
        return sql
    kind, element = type_.partition("<")[0], f"__v{depth}"
    if kind == "array":
        return f"transform({sql}, {element} -> {as_written(element, type_[6:-1], depth + 1)})"
    if kind == "map":  # a key is never NULL
        value = as_written(element, split_types(type_[4:-1])[1], depth + 1)
        return f"transform_values({sql}, (__k{depth}, {element}) -> {value})"
    parts = []
    for name, inner in types.fields(type_) or []:
        quoted, label = name.replace("`", "``"), name.replace("\\", "\\\\").replace("'", "\\'")
        parts.append(f"'{label}', {as_written(f'{sql}.`{quoted}`', inner, depth + 1)}")
    return f"IF({sql} IS NULL, NULL, named_struct({', '.join(parts)}))"


def stored(root: Node) -> Node:
    """The plan ``root`` with columns that can be stored; the same object where it has no other ones."""
    if not any(c.type is not None and _INSIDE.search(c.type) for node in root.walk() for c in node.columns):
        return root
    return _Stored(root).of(root)


class _Stored:
    def __init__(self, root: Node) -> None:
        self.nulls: dict[str, str] = {}
        """By id of a column that is stored with another type what is read in its place."""
        self.words: set[str] = set()
        """The ids of those that are NULL in every row."""
        self._made: dict[int, Node] = {}
        ids = {c.id for node in root.walk() for c in node.columns}
        self._free = max([0, *(int(i[1:]) for i in ids if re.fullmatch(r"c\d+", i))])

    def of(self, node: Node) -> Node:
        # a node that is used twice stays one node
        if id(node) not in self._made:
            below = node.with_inputs(tuple(self.of(child) for child in node.inputs))
            self._made[id(node)] = self._outputs(below.map_expressions(self._read))
        return self._made[id(node)]

    def _read(self, expr: Expr) -> Expr:
        if not expr.columns & self.nulls.keys() or expr.sql.strip("`") in self.nulls:
            return expr
        return replace(expr, sql=substituted(expr.sql, self.nulls), columns=expr.columns - self.words)

    def _outputs(self, node: Node) -> Node:
        match node:
            case Project():
                return replace(node, outputs=tuple(self._computed(c, e) for c, e in node.outputs))
            case Aggregate():
                keys = tuple(self._computed(c, e) for c, e in node.keys)
                return replace(node, keys=keys, calls=tuple((self._column(c), call) for c, call in node.calls))
            case Analytic():
                return replace(node, calls=tuple((self._column(c), call) for c, call in node.calls))
            case UnionAll() | SetOperation():
                outputs = tuple(self._column(c) for c in node.outputs)
                node = node.with_inputs(tuple(self._fitting(part, outputs) for part in node.inputs))
                changes: dict[str, Any] = {"outputs": outputs}
                return replace(node, **changes)
            case _:
                return node

    def _column(self, column: Column) -> Column:
        kept = held(column.type)
        if column.type is not None and kept != column.type:
            self.nulls[column.id] = as_written(f"`{column.id}`", column.type)
            if column.type == VOID:
                self.words.add(column.id)
        return replace(column, type=kept)

    def _computed(self, column: Column, expr: Expr) -> tuple[Column, Expr]:
        made = self._column(column)
        if made.type == column.type or made.type is None or expr.sql.strip("`") in self.nulls:
            return made, expr
        return made, typed(expr, made.type)

    def _fitting(self, part: Node, outputs: tuple[Column, ...]) -> Node:
        """A part of a set operation whose stored NULLs have the types of the whole."""

        def other(mine: Column, whole: Column) -> bool:
            null = mine.id in self.nulls or (mine.type or "").endswith(">")
            return null and whole.type is not None and mine.type is not None and mine.type != whole.type

        if not any(other(m, w) for m, w in zip(part.columns, outputs, strict=True)):
            return part
        made = []
        for mine, whole in zip(part.columns, outputs, strict=True):
            expr = Expr(f"`{mine.id}`", mine.label, frozenset({mine.id}))
            self._free += 1
            column = replace(mine, id=f"c{self._free}")
            if other(mine, whole):
                column, expr = replace(column, type=whole.type), typed(expr, str(whole.type))
            made.append((column, expr))
        return Project(part, tuple(made))
