"""From the plan that the language binds to the one that runs: what an incremental operator can do after a rewriting.

Each operator says what can (``Node.lowered``: aggregates in ``aggregate.py``, window functions in ``analytic.py``), and
why it runs by snapshot expansion if it then has no incremental form (``Node.expansion``). Every node runs.

The lowered plan has the columns of the given one, and means the same at every instant (Law S4).
"""

from __future__ import annotations

import dataclasses

from sweeparea.infra.deep_stack import bottom_up
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
    below, made = {id(child) for child in node.inputs}, node.lowered()
    if id(made) in below:
        return None
    own = bottom_up(made, lambda part: [child for child in part.inputs if id(child) not in below], id)
    return ", ".join(dict.fromkeys(part.expansion for part in own if part.expansion is not None)) or None
