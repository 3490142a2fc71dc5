"""The window functions of one SELECT while it is bound, and the Analytic nodes that they become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sweeparea.cql.binding.scope.ties import completed
from sweeparea.operators.nodes import Analytic, WindowFunction
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column

NewColumn = Callable[[str, str | None], Column]


@dataclass
class WindowCalls:
    """The window functions of one SELECT: its WINDOW clause, and the calls met so far."""

    named: dict[str, exp.Window] = field(default_factory=dict)
    calls: dict[tuple[object, ...], tuple[Column, WindowFunction, bool]] = field(default_factory=dict)

    def add(self, call: WindowFunction, complete: bool, label: str, type_: str | None, new_column: NewColumn) -> Column:
        """The column of a call; equal calls are one. ``complete``: ties are to be broken by the record."""
        key = (call, complete)
        if key not in self.calls:
            self.calls[key] = (new_column(label, type_), call, complete)
        return self.calls[key][0]

    @property
    def reads(self) -> frozenset[str]:
        return frozenset().union(*(call.reads for _, call, _ in self.calls.values()))

    def build(self, plan: Node, record: list[Column]) -> Node:
        """``plan`` with the calls on top. ``record`` breaks ties."""
        pending = list(self.calls.values())
        made: set[str] = set()
        results = {column.id for column, _, _ in pending}
        while pending:
            layer = [entry for entry in pending if not (entry[1].reads & results - made)]
            plan = Analytic(
                plan,
                tuple(
                    (column, replace(call, order=completed(call.order, record)) if complete else call)
                    for column, call, complete in layer
                ),
            )
            made |= {column.id for column, _, _ in layer}
            pending = [entry for entry in pending if entry not in layer]
        return plan
