"""A plan as plain data for a page that draws it itself: nodes with their places and whole labels, edges with their
update patterns in words.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sweeparea.cql.explain.svg import kind_of, layout_of
from sweeparea.cql.explain.tree import top_text
from sweeparea.operators.plan import lowering
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import nodes

KINDS = {"i": "input", "s": "expansion", "o": "operator"}
PATTERNS = {
    "monotonic": "rows come and never end",
    "WKS": "weakest non-monotonic: rows end in the order in which they came, so the oldest is always the next to go",
    "WK": "weak non-monotonic: rows end in another order than they came",
    "STR": "strict non-monotonic: a new row may take back rows that are there, by negative tuples",
}
"""Update patterns (Golab & Oezsu 2005, section 5.2) for who does not know their names."""
EXPIRY = {
    True: "the end of a row is known when it appears",
    False: "the end of a row is known only when something ends it",
}


def as_graph(plan: Plan, static: Container[str] = ()) -> dict[str, Any]:
    """``nodes``: id, text, kind (input, operator, expansion, result), column and row (0: inputs), and why one runs by
    snapshot expansion; ``edges``: from, to, the pattern and what it means.
    """
    at, columns, rows = layout_of(plan.root)
    edges, order = Edges.of(plan, static), list(nodes(plan.root))
    names = {id(node): f"n{i}" for i, node in enumerate(order)}
    drawn = [
        {
            "id": names[id(node)],
            "text": node.words(plan.time),
            "kind": KINDS[kind_of(node)],
            "why": lowering.expansion(node),
            "column": at[id(node)][0],
            "row": at[id(node)][1],
        }
        for node in order
    ]
    result = f"{plan.name}: {top_text(plan) if plan.stream else 'relation'}"
    drawn.append(
        {"id": "result", "text": result, "kind": "result", "why": None, "column": at[id(plan.root)][0], "row": rows}
    )
    drawn_edges = [_edge(names[id(child)], names[id(node)], edges, child) for node in order for child in node.inputs]
    drawn_edges.append(_edge(names[id(plan.root)], "result", edges, plan.root))
    return {"nodes": drawn, "edges": drawn_edges, "columns": columns, "rows": rows + 1}


def _edge(below: str, above: str, edges: Edges, node: Node) -> dict[str, Any]:
    edge = edges.pattern(node)
    words = [PATTERNS[edge.pattern]]
    if edge.pattern != "monotonic":
        words.append(EXPIRY[edge.expiry_known])
    return {
        "from": below,
        "to": above,
        "pattern": edge.pattern,
        "text": edges.describe(node),
        "words": "; ".join(words),
    }
