"""A plan as text for a terminal: the tree, what was assumed, what must be read, what is kept."""

from __future__ import annotations

from collections.abc import Container, Iterator
from datetime import UTC, datetime, timedelta

from sweeparea.cql.context import time_text
from sweeparea.cql.durations import micros_text
from sweeparea.cql.patterns import edge_of, reach_of, read_again
from sweeparea.operators import windows as spec
from sweeparea.operators.logical import (
    Aggregate,
    Column,
    Join,
    Node,
    Plan,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TimeDomain,
    UnionAll,
    Window,
)
from sweeparea.operators.patterns import readable_again
from sweeparea.operators.ticks import INF

WIDTH = 150


def explain(plan: Plan, static: Container[str] = ()) -> str:
    """Sections: result, plan, inputs, state, defaults. Every section is there, empty ones say so.

    ``static`` names the relations that never change: joins with them keep their other side's update pattern.
    """
    result = f"stream ({plan.stream})" if plan.stream else "relation"
    lines = [f"Query {plan.name}: a {result}", ""]
    lines += _section("Result", _result(plan))
    lines += _section("Plan (each line: operator, columns, then the update pattern of its output)", _tree(plan, static))
    lines += _section("Read from each input, for a slice (h0, h1]", _inputs(plan, static))
    lines += _section("State kept", _state(plan, static))
    lines += _section("Defaults applied", plan.notes or ("none",))
    lines += _section("Evaluation", ("incremental everywhere",))
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, lines: Iterator[str] | tuple[str, ...]) -> list[str]:
    return [title, *("  " + line for line in lines), ""]


def _result(plan: Plan) -> Iterator[str]:
    added = "ts" if plan.stream else "valid_from, valid_to"
    yield f"columns   {_columns(plan.root.columns, types=True)} + {added}"
    yield f"time      {time_text(plan.time)}, START AT {_instant(plan.start, plan.time)}"
    yield f"tables    {', '.join(table_names(plan))}"
    for constraint in plan.constraints:
        yield f"expects   {constraint.name}: {constraint.condition.text}, else {constraint.on_violation}"
    if plan.settings:
        yield f"settings  {', '.join(f'{k} = {v}' for k, v in plan.settings)}"


def table_names(plan: Plan) -> list[str]:
    """The result tables of a plan: named after the query what its type is, the others with a suffix."""
    main = plan.stream or "relation"
    kept = plan.materialize or (main,)
    return [plan.name if kind == main else f"{plan.name}__{kind}" for kind in kept]


def _tree(plan: Plan, static: Container[str]) -> Iterator[str]:
    if plan.stream:
        yield f"{plan.stream.capitalize()}  [monotonic, expiry known]"
    yield from _node(plan.root, "", "└─ " if plan.stream else "", plan.time, static)


def _node(node: Node, prefix: str, branch: str, time: TimeDomain, static: Container[str]) -> Iterator[str]:
    yield f"{prefix}{branch}{_describe(node, time)}  [{edge_of(node, static)}]"
    below = prefix + {"": "", "└─ ": "   ", "├─ ": "│  "}[branch]
    for i, child in enumerate(node.inputs):
        yield from _node(child, below, "└─ " if i == len(node.inputs) - 1 else "├─ ", time, static)


def _describe(node: Node, time: TimeDomain) -> str:
    if isinstance(node, StreamScan):
        return f"Stream {node.name} ({_columns(node.columns)})"
    if isinstance(node, RelationScan):
        return f"Relation {node.name} ({_columns(node.columns)})"
    if isinstance(node, Window):
        return f"Window {window_text(node.spec, time)}"
    if isinstance(node, Select):
        return f"Select {_cut(node.condition.text)}"
    if isinstance(node, Project):
        shown = (e.text if e.text == c.label or not e.text else f"{e.text} AS {c.label}" for c, e in node.outputs)
        return f"Project {_cut(', '.join(shown))}"
    if isinstance(node, Join):
        return f"Join ON {_cut(node.condition.text)}" if node.condition is not None else "Cross join"
    if isinstance(node, UnionAll):
        return f"Union all ({_columns(node.columns)})"
    if isinstance(node, Aggregate):
        keys = ", ".join(c.label for c, _ in node.keys)
        if not node.calls and not node.global_:
            return f"Distinct ({_cut(keys)})"
        calls = (
            ", ".join(f"{c.function}({c.argument.text if c.argument else '*'})" for _, c in node.calls)
            or "no aggregates"
        )
        return f"Aggregate {_cut(calls)}" + ("" if node.global_ else f" BY {_cut(keys)}")
    if isinstance(node, RelationToStream):
        return node.kind.capitalize()
    return type(node).__name__


def window_text(window: spec.Window, time: TimeDomain) -> str:
    """A window in the language's own words, with units where time has them."""
    if time.kind == "BIGINT":
        return str(window)

    def length(ticks: int) -> str:
        return micros_text(ticks * time.chronon)

    def anchor(ticks: int) -> str:
        return f" Anchor {_instant(ticks, time)}" if ticks else ""

    if isinstance(window, spec.Range):
        # a closed Range T lasts one tick longer than T
        closed = time.chronon * (window.length - 1)
        if window.length > 1 and len(micros_text(closed)) <= len(length(window.length)):
            return f"[Range {micros_text(closed)} Inclusive]"
        return "[Now]" if window.length == 1 else f"[Range {length(window.length)} Exclusive]"
    if isinstance(window, spec.Slide):
        lag = f" Lag {length(window.lag)}" if window.lag else ""
        return f"[Range {length(window.length)} Exclusive Slide {length(window.slide)}{lag}{anchor(window.anchor)}]"
    if isinstance(window, spec.Hopping):
        if window.length == window.slide:
            return f"[Tumbling {length(window.length)}{anchor(window.anchor)}]"
        return f"[Hopping {length(window.length)} Slide {length(window.slide)}{anchor(window.anchor)}]"
    if isinstance(window, spec.Fixed):
        return f"[Fixed {length(window.length)}{anchor(window.anchor)}]"
    if isinstance(window, spec.Landmark):
        parts = [
            f"{w} {_instant(t, time)}" for w, t in (("From", window.start), ("Until", window.end)) if t is not None
        ]
        return f"[{' '.join(parts)}]"
    return str(window)


def _inputs(plan: Plan, static: Container[str]) -> Iterator[str]:
    reaches, again = reach_of(plan.root), read_again(plan.root)
    relations = {n.name for n in plan.root.walk() if isinstance(n, RelationScan)}
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
            reach = f"{ticks:,} ticks" if plan.time.kind == "BIGINT" else micros_text(ticks * plan.time.chronon)
            length, back = f"for {reach}", f"h0 - {reach}"
        how = f"those from {back} on are read again" if name in again else "what it still contributes is in the state"
        yield f"{name}: its elements in (h0, h1]; an element matters {length}, {how}"


def _state(plan: Plan, static: Container[str]) -> Iterator[str]:
    """Per operator that keeps something, numbered as ``op`` in the order of ``Node.walk``."""
    for op, node in enumerate(plan.root.walk()):
        kept = _kept(node, static)
        if kept:
            yield f"op {op} {type(node).__name__}: {kept}"
    tables = " and ".join(plan.materialize) or "relation"
    yield f"materialize ({tables}): the rows that are valid after h1, and their known ends"


def _kept(node: Node, static: Container[str]) -> str | None:
    if isinstance(node, Aggregate):
        if not node.calls and not node.global_:
            return (
                "at most two intervals a value" if edge_of(node.input, static).expiry_known else "one net count a value"
            )
        extremes = any(c.function in ("MIN", "MAX") for _, c in node.calls)
        sums = any(c.function not in ("MIN", "MAX") for _, c in node.calls)
        end = "(group, end)" if edge_of(node.input, static).expiry_known else "group"
        parts = [f"counts and sums, one row a {end}"] if sums else []
        parts += ["the undominated elements of each group (MIN, MAX)"] if extremes else []
        return "; ".join(parts) or "one row a group"
    if isinstance(node, Join):
        held = [side for side, child in (("left", node.left), ("right", node.right)) if not readable_again(child)]
        if not held:
            return "none of its own, both inputs are read again by range"
        return f"the rows of its {' and '.join(held)} input that are valid after h1; the rest is read again by range"
    if isinstance(node, RelationToStream):
        return "the inner relation's rows that are valid after h1, and their known ends"
    return None


def _columns(columns: tuple[Column, ...], types: bool = False) -> str:
    return _cut(", ".join(f"{c.label} {c.type}" if types and c.type else c.label for c in columns))


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 2] + ".."


def _instant(tick: int, time: TimeDomain) -> str:
    if time.kind == "BIGINT":
        return str(tick)
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick * time.chronon)
    except OverflowError:
        return f"tick {tick}"
    return moment.isoformat().replace("+00:00", "Z")
