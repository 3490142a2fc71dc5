"""The inputs that the language's tests bind against."""

from __future__ import annotations

from dataclasses import replace

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.time.domain import TimeDomain, TimeKind

TIMESTAMP = TimeDomain(TimeKind.TIMESTAMP, 1_000_000)

TICKS = {
    "S": InputSchema("S", SchemaKind.STREAM, (("a", "int"), ("b", "string"), ("x", "double"))),
    "T": InputSchema("T", SchemaKind.STREAM, (("a", "int"), ("c", "decimal(10,2)"))),
    "R": InputSchema("R", SchemaKind.RELATION, (("a", "int"), ("d", "string"))),
    "Fixed": InputSchema("Fixed", SchemaKind.RELATION, (("a", "int"), ("e", "string")), static=True),
    "q": InputSchema("q", SchemaKind.RELATION, (("a", "int"), ("n", "bigint")), derived=True),
}
"""Inputs whose time is BIGINT."""

TIMES = {
    "flights": InputSchema(
        "flights",
        SchemaKind.STREAM,
        (("origin", "string"), ("dest", "string"), ("dep_delay", "double"), ("tailnum", "string")),
        TIMESTAMP,
    ),
    "planes": InputSchema("planes", SchemaKind.RELATION, (("tailnum", "string"), ("seats", "int")), TIMESTAMP),
}
"""Inputs whose time is TIMESTAMP with a chronon of one second."""


def plan(text: str, rewrites: str = "projection_pruning", **arguments: object) -> Plan:
    """The plan of a query over whichever of the two sets has its inputs: as it was bound, unless ``rewrites`` asks for
    more rules.
    """
    defaults = {**(arguments.pop("defaults", None) or {}), "rewrites": rewrites}  # type: ignore[dict-item]
    made = bind_select(text, {**TICKS, **TIMES}, defaults, **arguments)  # type: ignore[arg-type]
    return replace(made, settings=tuple(s for s in made.settings if s[0] != "rewrites"))


def nodes(root: Node, kind: type) -> list:
    """All nodes of one kind, inputs first."""
    return [n for n in root.walk() if isinstance(n, kind)]


def tree(node: Node) -> str:
    """The shape of a plan on one line: ``Project(Window(StreamScan))``."""
    below = ", ".join(tree(child) for child in node.inputs)
    return type(node).__name__ + (f"({below})" if below else "")
