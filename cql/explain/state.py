"""What each operator of a plan keeps from slice to slice, and how it runs."""

from __future__ import annotations

from collections.abc import Container, Iterator

from sweeparea.operators.plan import lowering, sharing
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan


def state(plan: Plan, static: Container[str]) -> Iterator[str]:
    """A line for each operator that keeps something; its name is that of its SweepArea."""
    edges = Edges.of(plan, static)
    for name, node in _named(plan):
        kept = node.kept(edges)
        if kept:
            yield f"{name}: {kept}"
        if edges.expires(node):
            yield f"expire_{name}: the rows of {name} until they begin and until they end"
    if plan.emits_each:
        yield "the result: nothing, each row is emitted once when it comes"
        return
    tables = " and ".join(plan.materialize) or "relation"
    yield f"materialize ({tables}): the rows that are valid after h1, and their known ends"


def evaluation(plan: Plan, static: Container[str]) -> Iterator[str]:
    """Which operators run by snapshot expansion, and why; which combine rows before they travel, or divide a group."""
    found, edges = False, Edges.of(plan, static)
    for name, node in _named(plan):
        why = lowering.expansion(node)
        if why is not None:
            found = True
            yield f"{name}: snapshot expansion, because of {why}"
        if node.combines(edges):
            yield f"{name}: in a large slice each worker combines its rows before they travel to their group's"
        how = node.divides(edges)
        if how is not None:
            yield f"{name}: workers of a large slice share a group that has too many of its rows, {how}"
    yield "incremental everywhere else" if found else "incremental everywhere"


def _named(plan: Plan) -> Iterator[tuple[str, Node]]:
    """The operators that run, with the names that their SweepAreas have."""
    return sharing.named(lowered(plan).root)
