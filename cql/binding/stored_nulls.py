"""Columns of a plan that are NULL without a type, as columns that can be stored (``functions/untyped_nulls.py``)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from sweeparea.cql.functions.untyped_nulls import VOID, as_written, held, is_inside, typed
from sweeparea.operators.nodes import Aggregate, Analytic, Project, SetOperation, UnionAll
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.sql.sql_text import substituted


def stored(root: Node) -> Node:
    """The plan ``root`` with columns that can be stored; the same object where it has no other ones."""
    if not any(c.type is not None and is_inside(c.type) for node in root.walk() for c in node.columns):
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
