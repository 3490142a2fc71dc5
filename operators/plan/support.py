"""How each node of a plan runs: by an incremental operator, or by snapshot expansion. Every node runs."""

from __future__ import annotations

from sweeparea.operators.plan.logical import Aggregate, AggregateCall, Analytic, Node
from sweeparea.operators.plan.lowering import INCREMENTAL_CALLS, lower_one


def expansion(node: Node) -> str | None:
    """Why a node runs by snapshot expansion, as its author wrote it; None: it has an incremental operator.

    What the node becomes by lowering counts: COUNT(x) FILTER (..) alone is incremental.
    """
    match lower_one(node):
        case Analytic():
            return "window functions (OVER)"
        case Aggregate() as ready:
            found = dict.fromkeys(_expanded(call) for _, call in ready.calls)
            return ", ".join(text for text in found if text) or None
    return None


def _expanded(call: AggregateCall) -> str | None:
    if call.function not in INCREMENTAL_CALLS:
        return f"the aggregate {call.function}"
    if call.function == "PERCENTILE" and len(call.extra) > 1:
        return "PERCENTILE(.., .., frequency)"
    if call.function in ("MAX_BY", "MIN_BY") and len(call.extra) > 1:
        return f"{call.function}(.., .., number)"
    return None
