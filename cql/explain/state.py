"""What each operator of a plan keeps from slice to slice, and how it runs."""

from __future__ import annotations

from collections.abc import Container, Iterator

from sweeparea.operators.aggregates.names import OF_VALUES, ORDERED
from sweeparea.operators.plan import sharing, support
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.logical import (
    Aggregate,
    AggregateCall,
    Analytic,
    Difference,
    Enrich,
    Intersect,
    Join,
    Node,
    Plan,
    RelationToStream,
    TopK,
    Window,
)
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.patterns import readable_again, settled
from sweeparea.operators.windows import definitions as spec


def state(plan: Plan, static: Container[str]) -> Iterator[str]:
    """A line for each operator that keeps something; its name is that of its SweepArea."""
    edges = Edges.of(plan, static)
    for name, node in _named(plan):
        kept = _kept(node, edges)
        if kept:
            yield f"{name}: {kept}"
        if edges.expires(node):
            yield f"expire_{name}: the rows of {name} until they begin and until they end"
    if plan.emits_each:
        yield "the result: nothing, each row is emitted once when it comes"
        return
    tables = " and ".join(plan.materialize) or "relation"
    yield f"materialize ({tables}): the rows that are valid after h1, and their known ends"


def evaluation(plan: Plan) -> Iterator[str]:
    """Which operators run by snapshot expansion, and why."""
    found = False
    for name, node in _named(plan):
        why = support.expansion(node)
        if why is not None:
            found = True
            yield f"{name}: snapshot expansion, because of {why}"
    yield "incremental everywhere else" if found else "incremental everywhere"


def _named(plan: Plan) -> Iterator[tuple[str, Node]]:
    """The operators that run, with the names that their SweepAreas have."""
    return sharing.named(lowered(plan).root)


def _kept(node: Node, edges: Edges) -> str | None:
    match node:
        case Window():
            return _window(node)
        case Enrich():
            if settled(node.relation, edges.static) and readable_again(node.relation):
                return "none, the relation is read again"
            return "the relation's contents, no element"
        case Join() if node.kind == "inner":
            return _join(node, edges.static)
        case Join():
            return f"the values of the right input and the rows of both that are valid after h1 ({node.kind} join)"
        case Difference() | Intersect():
            known = all(edges.expiry_known(side) for side in node.inputs)
            bound = "the counts of each value that is valid after h1, on both sides"
            return bound + (", and their known ends" if known else "")
        case Aggregate() | Analytic() | TopK() if support.expansion(node) is not None:
            return "the input's rows that are valid after h1"
        case Aggregate():
            return _aggregate(node, edges)
        case RelationToStream():
            return "the inner relation's rows that are valid after h1, and their known ends"
    return None


def _window(node: Window) -> str | None:
    each = " of each partition" if node.partition else ""
    match node.spec:
        case spec.Rows():
            most = node.spec.count + node.spec.slide - 1
            return f"first in, first out: the last {most:,} elements{each}"
        case spec.Session():
            return "the elements of the sessions that are open"
        case spec.When():
            return f"the visible bucket{each} and the elements after it"
    return None


def _join(node: Join, static: Container[str]) -> str:
    pairs = (("left", node.left, node.right), ("right", node.right, node.left))
    needed = [(name, side) for name, side, other in pairs if not settled(other, static)]
    held = [name for name, side in needed if not readable_again(side)]
    if held:
        return f"the rows of its {' and '.join(held)} input that are valid after h1; the rest is read again by range"
    if len(needed) == 2:
        return "none of its own, both inputs are read again by range"
    return "none of its own, inputs are read again by range as far as the other can still change"


def _aggregate(node: Aggregate, edges: Edges) -> str:
    known = edges.expiry_known(node.input)
    if not node.calls and not node.global_:
        return "one interval a value, and pending ones that a gap parts from it" if known else "one net count a value"
    end = "(group, end)" if known else "group"
    kept = dict.fromkeys(_call(call, known) for _, call in node.calls)
    parts = [f"counts and sums, one row a {end}"] if None in kept else []
    parts += [text for text in kept if text is not None]
    return "; ".join(parts) or "one row a group"


def _call(call: AggregateCall, known: bool) -> str | None:
    """What an aggregate keeps beside counts and sums."""
    if call.function in ("MIN", "MAX"):
        return "the undominated elements of each group (MIN, MAX)" if known else "the values of each group (MIN, MAX)"
    if call.function in ORDERED:
        kind = "undominated" if known else "live"
        return f"the {kind} elements of each group in the order of {call.function}"
    if call.distinct:
        return f"the distinct values of each group ({call.function} DISTINCT)"
    return f"the values of each group ({call.function})" if call.function in OF_VALUES else None
