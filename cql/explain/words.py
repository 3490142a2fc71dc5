"""Nodes, windows and instants in the language's own words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sweeparea.cql.rewrites.conditions import bare
from sweeparea.cql.text.durations import micros_text
from sweeparea.operators.plan.logical import (
    Aggregate,
    AggregateCall,
    Analytic,
    Column,
    Difference,
    Enrich,
    Expr,
    Generate,
    Intersect,
    Join,
    Node,
    OneRow,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    SortKey,
    StreamScan,
    TimeDomain,
    TopK,
    UnionAll,
    Window,
    WindowFunction,
)
from sweeparea.operators.windows import definitions as spec

WIDTH = 150

_JOINS = {"inner": "Join", "left": "Left join", "full": "Full join", "semi": "Semi join", "anti": "Anti join"}


def describe(node: Node, time: TimeDomain) -> str:
    """One line for a node, without its inputs."""
    match node:
        case StreamScan():
            return f"Stream {node.name} ({columns_text(node.columns)})"
        case RelationScan():
            return f"Relation {node.name} ({columns_text(node.columns)})"
        case OneRow():
            return "One row"
        case Window():
            return f"Window {cut(window_text(node, time))}"
        case Select():
            return f"Select {cut(node.condition.text)}"
        case Project():
            shown = (e.text if e.text == c.label or not e.text else f"{e.text} AS {c.label}" for c, e in node.outputs)
            return f"Project {cut(', '.join(shown))}"
        case Join():
            if node.condition is not None:
                return f"{_JOINS[node.kind]} ON {cut(node.condition.text or node.condition.sql)}"
            return "Cross join" if node.kind == "inner" else _JOINS[node.kind]
        case Enrich():
            on = f" ON {cut(node.condition.text)}" if node.condition is not None else ""
            return f"Enrich{' (left)' if node.kind == 'left' else ''}{on}"
        case Generate():
            outer = " OUTER" if node.outer else ""
            return f"Lateral view{outer} {cut(node.generator.text)} AS {columns_text(node.outputs)}"
        case UnionAll():
            return f"Union all ({columns_text(node.columns)})"
        case Difference() | Intersect():
            word = "Except" if isinstance(node, Difference) else "Intersect"
            return f"{word}{' all' if node.all else ''} ({columns_text(node.columns)})"
        case Aggregate():
            return _aggregate(node)
        case Analytic():
            return f"Window functions {cut(', '.join(_over(call) for _, call in node.calls))}"
        case TopK():
            return _top(node)
        case RelationToStream():
            return node.kind.capitalize() + _every(node.every, node.anchor, time)
    return type(node).__name__


def _aggregate(node: Aggregate) -> str:
    keys = ", ".join(c.label for c, _ in node.keys)
    if not node.calls and not node.global_:
        return f"Distinct ({cut(keys)})"
    calls = ", ".join(_call(call) for _, call in node.calls) or "no aggregates"
    return f"Aggregate {cut(calls)}" + (f" BY {cut(keys)}" if node.keys else "")


def _call(call: AggregateCall) -> str:
    given = ([call.argument] if call.argument is not None else []) + list(call.extra)
    arguments = ", ".join(_text(e) for e in given) or "*"
    order = f" ORDER BY {_order(call.order)}" if call.order else ""
    condition = f" FILTER (WHERE {_text(call.filter)})" if call.filter is not None else ""
    return f"{call.function}({'DISTINCT ' if call.distinct else ''}{arguments}{order}){condition}"


def _over(call: WindowFunction) -> str:
    partition = f"PARTITION BY {', '.join(map(_text, call.partition))}" if call.partition else ""
    order = f"ORDER BY {_order(call.order)}" if call.order else ""
    inside = " ".join(part for part in (partition, order, call.frame) if part)
    return f"{call.function}({', '.join(map(_text, call.arguments))}) OVER ({inside})"


def _top(node: TopK) -> str:
    keys = f" of each {', '.join(map(_text, node.keys))}" if node.keys else ""
    limit = "all" if node.limit is None else f"first {node.limit:,}"
    skipped = f" after {node.offset:,}" if node.offset else ""
    return f"Top {limit}{skipped}{keys} by {_order(node.order)}"


def _order(keys: tuple[SortKey, ...]) -> str:
    shown = []
    for key in keys:
        nulls = "" if key.nulls_first != key.descending else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        shown.append(f"{_text(key.expr)}{' DESC' if key.descending else ''}{nulls}")
    return cut(", ".join(shown))


def _text(expr: Expr) -> str:
    return expr.text or expr.sql


def _every(every: int | None, anchor: int, time: TimeDomain) -> str:
    if every is None:
        return ""
    return f" every {length_text(every, time)}" + (f", anchor {instant_text(anchor, time)}" if anchor else "")


def stream_text(kind: str, every: int | None, anchor: int, time: TimeDomain) -> str:
    """The outermost relation-to-stream operator."""
    return kind.capitalize() + _every(every, anchor, time)


def window_text(node: Window, time: TimeDomain) -> str:
    """A window in the language's own words, with units where time has them."""
    window = node.spec
    partition = f"Partition By {', '.join(map(_text, node.partition))}" if node.partition else ""
    if isinstance(window, spec.Rows):
        within = f" Range {length_text(window.length, time)} Exclusive" if window.length is not None else ""
        slide = f" Slide {window.slide}" if window.slide != 1 else ""
        return f"[{partition + ' ' if partition else ''}Rows {window.count}{within}{slide}]"
    after = f" {partition}" if partition else ""
    if isinstance(window, spec.Session):
        return f"[Session {length_text(window.gap, time)}{after}]"
    if isinstance(window, spec.When):
        return f"[Tumbling When ({bare(_text(node.condition)) if node.condition is not None else ''}){after}]"
    return _time_window(window, time)


def _time_window(window: spec.Window, time: TimeDomain) -> str:
    if time.kind == "BIGINT":
        return str(window)

    def length(ticks: int) -> str:
        return length_text(ticks, time)

    def anchor(ticks: int) -> str:
        return f" Anchor {instant_text(ticks, time)}" if ticks else ""

    match window:
        case spec.Range():
            # a closed Range T lasts one tick longer than T
            closed = time.chronon * (window.length - 1)
            if window.length > 1 and len(micros_text(closed)) <= len(length(window.length)):
                return f"[Range {micros_text(closed)} Inclusive]"
            return "[Now]" if window.length == 1 else f"[Range {length(window.length)} Exclusive]"
        case spec.Slide():
            lag = f" Lag {length(window.lag)}" if window.lag else ""
            return f"[Range {length(window.length)} Exclusive Slide {length(window.slide)}{lag}{anchor(window.anchor)}]"
        case spec.Hopping() if window.length == window.slide:
            return f"[Tumbling {length(window.length)}{anchor(window.anchor)}]"
        case spec.Hopping():
            return f"[Hopping {length(window.length)} Slide {length(window.slide)}{anchor(window.anchor)}]"
        case spec.Fixed():
            return f"[Fixed {length(window.length)}{anchor(window.anchor)}]"
        case spec.Landmark():
            bounds = ("From", window.start), ("Until", window.end)
            return f"[{' '.join(f'{word} {instant_text(t, time)}' for word, t in bounds if t is not None)}]"
    return str(window)


def columns_text(columns: tuple[Column, ...], types: bool = False) -> str:
    """The columns' names, with their types where these are known."""
    return cut(", ".join(f"{c.label} {c.type}" if types and c.type else c.label for c in columns))


def cut(text: str) -> str:
    """The text on one line of bearable length."""
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 2] + ".."


def length_text(ticks: int, time: TimeDomain) -> str:
    """A length of time in ticks, or in the units that they have."""
    return str(ticks) if time.kind == "BIGINT" else micros_text(ticks * time.chronon)


def instant_text(tick: int, time: TimeDomain) -> str:
    """An instant as a tick, or as ISO 8601."""
    if time.kind == "BIGINT":
        return str(tick)
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick * time.chronon)
    except OverflowError:
        return f"tick {tick}"
    return moment.isoformat().replace("+00:00", "Z")
