"""A plan as text for a terminal: the tree, what was assumed and rewritten, what must be read, what is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator

from sweeparea.cql.explain.state import evaluation, state
from sweeparea.operators.nodes import RelationScan
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.patterns import reach_of, read_again
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import nodes
from sweeparea.operators.plan.words import columns_text, cut, every_text
from sweeparea.operators.time.domain import TimeKind
from sweeparea.operators.time.ticks import INF


def as_tree(plan: Plan, static: Container[str]) -> str:
    """Sections: result, plan, inputs, state, defaults, rewrites, evaluation. Each is there, empty ones say so."""
    result = f"stream ({plan.stream})" if plan.stream else "relation"
    lines = [f"Query {plan.name}: a {result}", ""]
    lines += _section("Result", _result(plan))
    lines += _section("Plan (each line: operator, columns, then the update pattern of its output)", _plan(plan, static))
    lines += _section("Read from each input, for a slice (h0, h1]", _inputs(plan, static))
    lines += _section("State kept", state(plan, static))
    lines += _section("Defaults applied", plan.notes or ("none",))
    lines += _section("Rewrites done", (", ".join(plan.rewrites) or "none",))
    lines += _section("Evaluation", evaluation(plan, static))
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [title, *("  " + line for line in lines), ""]


def _result(plan: Plan) -> Iterator[str]:
    added = "ts" if plan.stream else "valid_from, valid_to"
    yield f"columns   {columns_text(plan.root.columns, types=True)} + {added}"
    yield f"time      {plan.time}, START AT {plan.time.instant(plan.start)}"
    yield f"tables    {', '.join(table_names(plan))}"
    for constraint in plan.constraints:
        yield f"expects   {constraint.name}: {cut(constraint.condition.text)}, else {constraint.on_violation}"
    for expected in plan.expectations:
        per = "each commit" if expected.per is None else f"each {plan.time.length(expected.per)}"
        what = expected.type if expected.kind == "gx" else expected.kind
        yield f"expects   {expected.name}: {what}, {per}, else {expected.on_violation}"
    if plan.settings:
        yield f"settings  {', '.join(f'{k} = {v}' for k, v in plan.settings)}"


def table_names(plan: Plan) -> list[str]:
    """The result tables of a plan: named after the query what its type is, the others with a suffix."""
    return [plan.table(kind) for kind in plan.materialize or (plan.kind,)]


def top_text(plan: Plan) -> str:
    """The outermost operator of a stream-valued plan."""
    text = (plan.stream or "").capitalize() + every_text(plan.every, plan.anchor, plan.time)
    return f"{text} (each row once, nothing is compared)" if plan.emits_each else text


def uses(root: Node) -> dict[int, int]:
    """How many nodes read each node that is read more than once, by id."""
    counted = Counter(id(child) for node in nodes(root) for child in node.inputs)
    return {id_: n for id_, n in counted.items() if n > 1}


def _plan(plan: Plan, static: Container[str]) -> Iterator[str]:
    edges = Edges.of(plan, static)
    shared = dict.fromkeys(uses(plan.root), 0)

    def lines(node: Node, prefix: str, branch: str) -> Iterator[str]:
        mark = ""
        if id(node) in shared:
            if shared[id(node)]:
                yield f"{prefix}{branch}({shared[id(node)]}) again"
                return
            shared[id(node)] = max(shared.values()) + 1
            mark = f"({shared[id(node)]}) "
        yield f"{prefix}{branch}{mark}{node.words(plan.time)}  [{edges.describe(node)}]"
        below = prefix + {"": "", "└─ ": "   ", "├─ ": "│  "}[branch]
        for i, child in enumerate(node.inputs):
            yield from lines(child, below, "└─ " if i == len(node.inputs) - 1 else "├─ ")

    if plan.stream:
        yield f"{top_text(plan)}  [monotonic, expiry known]"
    yield from lines(plan.root, "", "└─ " if plan.stream else "")


def _inputs(plan: Plan, static: Container[str]) -> Iterator[str]:
    reaches, again = reach_of(plan.root), read_again(plan.root)
    relations = {n.name for n in nodes(plan.root) if isinstance(n, RelationScan)}
    if not reaches:
        yield "none"
    for name, ticks in reaches.items():
        if name in relations:
            changes = "its snapshot" if name in static else "its changes in (h0, h1]"
            yield f"{name}: {changes}" + ("; its contents at h0 are read again" if name in again else "")
            continue
        if ticks >= INF:
            length, back = "for ever", "START"
        else:
            reach = (
                f"{ticks:,} tick{'s' * (ticks != 1)}" if plan.time.kind == TimeKind.BIGINT else plan.time.length(ticks)
            )
            length, back = f"for {reach}", f"h0 - {reach}"
        how = f"those from {back} on are read again" if name in again else "what it still contributes is in the state"
        yield f"{name}: its elements in (h0, h1]; an element matters {length}, {how}"
