"""What a bound subquery says of the query around it: its free columns, and its outermost layers taken off."""

from __future__ import annotations

from dataclasses import dataclass, field

from sweeparea.cql.rewrites.conditions import column, substitute
from sweeparea.operators.nodes import Aggregate, Analytic, OneRow, Project, Select, TopK
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr


class FreeColumns:
    """The ids that a plan reads without having them: columns of queries around it. Remembers what it has seen."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Node, frozenset[str]]] = {}  # the node keeps its id from being used again

    def of(self, node: Node) -> frozenset[str]:
        if id(node) not in self._known:
            below = node.inputs
            found = frozenset(node.reads).union(*(self.of(child) for child in below))
            if found:
                found -= {c.id for child in below for c in child.columns}
            self._known[id(node)] = (node, found)
        return self._known[id(node)][1]


def ids(node: Node) -> frozenset[str]:
    return frozenset(c.id for c in node.columns)


def identity(columns: tuple[Column, ...] | list[Column]) -> tuple[tuple[Column, Expr], ...]:
    """Outputs of a projection that keeps columns as they are."""
    return tuple((c, column(c)) for c in columns)


@dataclass
class Peeled:
    """A subquery as ``values`` computed for each row of ``node`` for which all ``guards`` are TRUE."""

    node: Node
    values: list[Expr]
    guards: list[Expr] = field(default_factory=list)


def peel(node: Node, columns: tuple[Column, ...]) -> Peeled:
    """Projections and selections on top, one row for each row, as expressions over what is below them."""
    peeled = Peeled(node, [column(c) for c in columns])
    while isinstance(peeled.node, Project | Select):
        top = peeled.node
        if isinstance(top, Select):
            peeled.guards.append(top.condition)
        else:
            by = {c.id: e for c, e in top.outputs}
            peeled.values = [substitute(e, by) for e in peeled.values]
            peeled.guards = [substitute(e, by) for e in peeled.guards]
        peeled.node = top.input
    return peeled


def members(node: Node, columns: tuple[Column, ...]) -> tuple[Node, list[Expr]]:
    """A subquery of which only the set of its rows matters, not how often each is there: without projections and
    DISTINCT on top."""
    values = [column(c) for c in columns]
    while isinstance(node, Project) or is_distinct(node):
        outputs = node.outputs if isinstance(node, Project) else node.keys  # type: ignore[union-attr]
        by = {c.id: e for c, e in outputs}
        values = [substitute(e, by) for e in values]
        node = node.input  # type: ignore[union-attr]
    return node, values


def witnesses(node: Node) -> Node:
    """A subquery of which only matters whether it has a row."""
    while True:
        if (
            isinstance(node, Project | Analytic)
            or (isinstance(node, Aggregate) and not node.global_)
            or (isinstance(node, TopK) and not node.offset and node.limit != 0)
        ):
            node = node.input
        else:
            return node


def is_distinct(node: Node) -> bool:
    return isinstance(node, Aggregate) and not node.calls and not node.global_


def has_one_row(node: Node) -> bool:
    """Whether a plan has exactly one row, whatever its input holds."""
    return isinstance(node, OneRow) or (isinstance(node, Aggregate) and node.global_ and not node.keys)
