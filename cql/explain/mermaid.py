"""A plan as a Mermaid flowchart: inputs at the bottom, each edge with its update pattern."""

from __future__ import annotations

from collections.abc import Container

from sweeparea.cql.explain.tree import top_text
from sweeparea.operators.nodes import RelationScan, StreamScan
from sweeparea.operators.plan import lowering
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import nodes


def as_mermaid(plan: Plan, static: Container[str]) -> str:
    """The text of a picture that Mermaid draws; a node that is read twice is drawn once."""
    edges = Edges.of(plan, static)
    order = list(nodes(plan.root))
    names = {id(node): f"n{i}" for i, node in enumerate(order)}
    lines = ["flowchart BT"]
    for node in order:
        left, right = _shape(node)
        lines.append(f'  {names[id(node)]}{left}"{_escaped(node.words(plan.time))}"{right}')
        for child in node.inputs:
            lines.append(f'  {names[id(child)]} -->|"{edges.describe(child)}"| {names[id(node)]}')
    result = f"{plan.name}: {top_text(plan) if plan.stream else 'relation'}"
    lines.append(f'  result(["{_escaped(result)}"])')
    lines.append(f'  {names[id(plan.root)]} -->|"{edges.describe(plan.root)}"| result')
    return "\n".join(lines) + "\n"


def _shape(node: Node) -> tuple[str, str]:
    if isinstance(node, StreamScan):
        return "[/", "/]"
    if isinstance(node, RelationScan):
        return "[(", ")]"
    return ("[[", "]]") if lowering.expansion(node) is not None else ("[", "]")


def _escaped(text: str) -> str:
    for character, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        text = text.replace(character, code)
    return text
