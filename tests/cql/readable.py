"""Bound plans as text over the names that their author wrote, for exact expectations."""

from __future__ import annotations

import re

from sweeparea.operators.nodes import Aggregate, AggregateCall, Analytic, TopK, WindowFunction
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.sql.expressions import Expr, SortKey
from tests.cql.schemas import nodes


class Readable:
    """A plan whose ids are shown as labels."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.labels = {c.id: c.label for node in plan.root.walk() for c in node.columns}

    def sql(self, expr: Expr) -> str:
        return re.sub(r"`(c\d+)`", lambda m: self.labels.get(m[1], m[0]), expr.sql)

    def key(self, key: SortKey) -> str:
        text = self.sql(key.expr) + (" DESC" if key.descending else "")
        usual = key.nulls_first != key.descending
        return text if usual else f"{text} NULLS {'FIRST' if key.nulls_first else 'LAST'}"

    def keys(self, keys: tuple[SortKey, ...]) -> str:
        return ", ".join(map(self.key, keys))

    def aggregate(self, call: AggregateCall) -> str:
        arguments = ["*"] if call.argument is None else [self.sql(e) for e in (call.argument, *call.extra)]
        text = f"{call.function}({'DISTINCT ' if call.distinct else ''}{', '.join(arguments)})"
        text += " IGNORE NULLS" if call.ignore_nulls else ""
        text += f" ORDER BY {self.keys(call.order)}" if call.order else ""
        return text + (f" FILTER {self.sql(call.filter)}" if call.filter is not None else "")

    def over(self, call: WindowFunction) -> str:
        text = f"{call.function}({', '.join(map(self.sql, call.arguments))})"
        text += " IGNORE NULLS" if call.ignore_nulls else ""
        text += f" FILTER {self.sql(call.filter)}" if call.filter is not None else ""
        parts = [f"PARTITION BY {', '.join(map(self.sql, call.partition))}"] if call.partition else []
        parts += [f"ORDER BY {self.keys(call.order)}"] if call.order else []
        return f"{text} OVER ({' '.join([*parts, call.frame]).strip()})"

    def aggregates(self) -> list[str]:
        return [self.aggregate(call) for node in self._all(Aggregate) for _, call in node.calls]

    def overs(self) -> list[list[str]]:
        return [[self.over(call) for _, call in node.calls] for node in self._all(Analytic)]

    def top(self) -> str:
        [node] = self._all(TopK)
        return f"{self.keys(node.order)} LIMIT {node.limit} OFFSET {node.offset}"

    def _all(self, kind: type[Node]) -> list:
        return nodes(self.plan.root, kind)

    @property
    def types(self) -> list[str | None]:
        return [c.type for c in self.plan.root.columns]
