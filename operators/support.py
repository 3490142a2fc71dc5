"""Which plans the operators of this folder can run: the language binds more than they cover."""

from __future__ import annotations

from collections.abc import Iterator

from sweeparea.operators.logical import (
    Aggregate,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
    Node,
    OneRow,
    Plan,
    RelationToStream,
    TopK,
    Window,
)
from sweeparea.operators.windows import TimeWindow

INCREMENTAL_CALLS = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})


def not_covered(plan: Plan) -> list[str]:
    """The constructs of a plan that no operator runs, each named once as its author wrote it; empty: it can run."""
    found = [text for node in plan.root.walk() for text in _not_covered(node)]
    if plan.stream == "rstream" or "rstream" in plan.materialize:
        found.append("RSTREAM")
    return list(dict.fromkeys(found))


def _not_covered(node: Node) -> Iterator[str]:
    match node:
        case Window() if not isinstance(node.spec, TimeWindow):
            yield f"the window {node.spec}"
        case Window() if node.bounds is not None:
            yield "WINDOW_START and WINDOW_END"
        case Join() if node.kind != "inner":
            yield f"the {node.kind} join"
        case RelationToStream() if node.kind == "rstream":
            yield "RSTREAM"
        case Difference():
            yield "EXCEPT"
        case Intersect():
            yield "INTERSECT"
        case Enrich():
            yield "the join with a NON RETROACTIVE relation"
        case Generate():
            yield "LATERAL VIEW"
        case Analytic():
            yield "window functions (OVER)"
        case TopK():
            yield "ORDER BY .. LIMIT"
        case OneRow():
            yield "SELECT without FROM"
        case Aggregate():
            for _, call in node.calls:
                if call.function not in INCREMENTAL_CALLS:
                    yield f"the aggregate {call.function}"
                elif call.distinct or call.filter is not None:
                    yield f"{call.function} with DISTINCT or FILTER"
