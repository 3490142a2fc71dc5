"""From the plan that the language binds to the one that runs: what an incremental operator can do after a rewriting.

Each operator says what can (``Node.lowered``: aggregates in ``aggregate.py``, window functions in ``analytic.py``), and
why it runs by snapshot expansion if it then has no incremental form (``Node.expansion``). Every node runs.

The lowered plan has the columns of the given one, and means the same at every instant (Law S4).
"""

from __future__ import annotations

import dataclasses

from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import shared


def lowered(plan: Plan) -> Plan:
    """The plan as it runs."""
    root = shared(lower(plan.root))
    return plan if root is plan.root else dataclasses.replace(plan, root=root)


def lower(node: Node) -> Node:
    """A subplan as it runs."""
    return node.with_inputs(tuple(lower(child) for child in node.inputs)).lowered()


def expansion(node: Node) -> str | None:
    """Why a node runs by snapshot expansion, as its author wrote it; None: it has an incremental operator.

    What the node becomes by lowering counts, all of it: COUNT(x) FILTER (..) alone is incremental.
    """
    below = {id(child) for child in node.inputs}
    found: dict[str, None] = {}

    def visit(part: Node) -> None:
        if id(part) in below:
            return
        for child in part.inputs:
            visit(child)
        if part.expansion is not None:
            found[part.expansion] = None

    visit(node.lowered())
    return ", ".join(found) or None
