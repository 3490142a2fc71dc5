"""What a plan means, free of ids and of how it was put together: for comparing plans.

Two plans of one normal form are the same up to the ids of their columns, projections (which are put into what reads
them), columns that are scanned and not read, parentheses, the order of the conditions of one AND, whether ON or a
selection below says what concerns one side of a join, and joins with the one row of a missing FROM.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from sweeparea.operators.nodes import (
    Aggregate,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
    OneRow,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    UnionAll,
    Window,
)
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.sql.expressions import Expr, SortKey
from sweeparea.operators.sql.sql_text import bare, parts, substituted

Names = dict[str, str]
"""Ids to the expressions that they stand for."""


def normal_form(plan: Plan) -> tuple[Any, ...]:
    """A plain value, equal for plans that mean the same in the sense above."""
    value, names = _Form().node(plan.root)
    outputs = tuple((c.label, names[c.id]) for c in plan.root.columns)
    return value, outputs, plan.stream, plan.every, plan.anchor, plan.time, plan.start, plan.materialize


def conjuncts(text: str) -> tuple[str, ...]:
    """The parts of a condition, without needless parentheses, sorted."""
    return tuple(sorted(set(parts(text))))


class _Form:
    def __init__(self) -> None:
        self.count = 0

    def _fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def node(self, node: Node) -> tuple[Any, Names]:
        match node:
            case StreamScan() | RelationScan():
                prefix = self._fresh("scan")
                names = {c.id: f"`{prefix}.{n}`" for c, n in node.source}
                if isinstance(node, StreamScan) and node.instant is not None:
                    names[node.instant.id] = f"`{prefix}.ts`"
                return (type(node).__name__, node.name.lower(), f"`{prefix}.`"), names
            case OneRow():
                return ("OneRow",), {}
            case Project():
                value, names = self.node(node.input)
                return value, {c.id: self._term(e, names) for c, e in node.outputs}
            case Select():
                return self._select(node)
            case Window():
                return self._window(node)
            case Join() | Enrich():
                return self._join(node)
            case UnionAll() | Difference() | Intersect():
                inputs = tuple(self._part(part) for part in node.inputs)
                kind = type(node).__name__ + ("" if isinstance(node, UnionAll) or node.all else " distinct")
                return self._made(kind, [c.id for c in node.outputs], inputs)
            case Aggregate():
                value, names = self.node(node.input)
                keys = tuple(self._term(e, names) for _, e in node.keys)
                calls = tuple(self._plain(call, names) for _, call in node.calls)
                return self._made("Aggregate", [c.id for c in node.columns], (value, keys, calls, node.global_))
            case Analytic():
                value, names = self.node(node.input)
                calls = tuple(self._plain(call, names) for _, call in node.calls)
                made, more = self._made("Analytic", [c.id for c, _ in node.calls], (value, calls))
                return made, {**names, **more}
            case Generate():
                value, names = self.node(node.input)
                call = self._term(node.generator, names)
                made, more = self._made("Generate", [c.id for c in node.outputs], (value, call, node.outer))
                return made, {**names, **more}
            case TopK():
                value, names = self.node(node.input)
                order = tuple(self._plain(key, names) for key in node.order)
                keys = tuple(self._term(e, names) for e in node.keys)
                peers = len(order) if node.peers is None else node.peers
                cut = (order, peers, node.limit, node.offset, keys, node.by, tuple(f for _, f in node.numbers))
                made, more = self._made("TopK", [c.id for c, _ in node.numbers], (value, cut))
                return made, {**names, **more}
            case RelationToStream():
                inner = self._part(node.input)
                prefix = self._fresh("stream")
                made = (node.kind, f"`{prefix}.`", node.every, node.anchor, inner)
                names = {c.id: f"`{prefix}.{i}`" for i, c in enumerate(node.input.columns)}
                if node.instant is not None:
                    names[node.instant.id] = f"`{prefix}.ts`"
                return made, names
            case _:
                raise TypeError(f"no node of a plan: {type(node).__name__}")

    def _part(self, node: Node) -> tuple[Any, ...]:
        value, names = self.node(node)
        return value, tuple(names[c.id] for c in node.columns)

    def _made(self, kind: str, ids: list[str], inputs: tuple[Any, ...]) -> tuple[Any, Names]:
        prefix = self._fresh(kind)
        return (kind, f"`{prefix}.`", *inputs), {id_: f"`{prefix}.{i}`" for i, id_ in enumerate(ids)}

    def _select(self, node: Select) -> tuple[Any, Names]:
        value, names = self.node(node.input)
        return _selected(value, conjuncts(substituted(node.condition.sql, names))), names

    def _window(self, node: Window) -> tuple[Any, Names]:
        value, names = self.node(node.input)
        terms = tuple(self._term(e, names) for e in (*node.partition, *node.arguments))
        condition = conjuncts(substituted(node.condition.sql, names)) if node.condition is not None else ()
        ties = tuple(names[i] for i in node.ties)
        bounds = node.bounds or ()
        made, more = self._made("Window", [c.id for c in bounds], (value, node.spec, terms, condition, ties))
        return made, {**names, **more}

    def _join(self, node: Join | Enrich) -> tuple[Any, Names]:
        first, second = node.inputs
        left, names = self.node(first)
        right, more = self.node(second)
        names = {**names, **more}
        condition = conjuncts(substituted(node.condition.sql, names)) if node.condition is not None else ()
        condition = () if condition == ("TRUE",) else condition
        if ("OneRow",) in (left, right) and node.kind == "inner":
            value = right if left == ("OneRow",) else left
            return (("Select", value, condition) if condition else value), names
        if isinstance(node, Join):
            # what ON says of one side alone is a selection of it, where the kind of join lets it be one
            ours = tuple(c for c in condition if node.kind in ("inner", "semi") and _only(c, left))
            theirs = tuple(c for c in condition if node.kind != "full" and _only(c, right))
            left, right = _selected(left, ours), _selected(right, theirs)
            condition = tuple(c for c in condition if c not in ours and c not in theirs)
        return (type(node).__name__, node.kind, left, right, condition), names

    def _term(self, expr: Expr, names: Names) -> str:
        text = bare(substituted(expr.sql, names))
        return text if text in names.values() else f"({text})"

    def _plain(self, value: Any, names: Names) -> Any:
        """An aggregate, window function or sort key as plain values."""
        if isinstance(value, Expr):
            return self._term(value, names)
        if isinstance(value, tuple):
            return tuple(self._plain(part, names) for part in value)
        if isinstance(value, SortKey) or dataclasses.is_dataclass(value):
            return tuple(self._plain(getattr(value, f.name), names) for f in dataclasses.fields(value))  # type: ignore[arg-type]
        return value


def _selected(value: Any, conditions: tuple[str, ...]) -> Any:
    """A selection, as far down as joins let it go."""
    if value[0] == "Join":
        kind, left, right, on = value[1:]
        ours = tuple(c for c in conditions if kind != "full" and _only(c, left))
        theirs = tuple(c for c in conditions if kind == "inner" and _only(c, right))
        value = ("Join", kind, _selected(left, ours), _selected(right, theirs), on)
        conditions = tuple(c for c in conditions if c not in ours and c not in theirs)
    if not conditions:
        return value
    if value[0] == "Select":
        return ("Select", value[1], tuple(sorted({*value[2], *conditions})))
    return ("Select", value, tuple(sorted(set(conditions))))


def _only(condition: str, side: Any) -> bool:
    """Whether a condition reads one side of a join and nothing else."""
    found = set(re.findall(r"`\w+\.", condition))
    return bool(found) and found <= set(re.findall(r"`\w+\.(?=`)", str(side)))
