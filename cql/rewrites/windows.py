"""Window reduction: a stream that was windowed without end only to become a stream again needs no window (Arasu et al.
2003, section 7.2.1).

    Select Istream(L) From S [Range Unbounded] Where C  =  Select Rstream(L) From S [Now] Where C

Inside a plan the right side is nothing but the stream with the selection and projection on it. Outermost, the plan
gets the Now window and ``emits_each``; the stream that is published keeps its name, Istream.
"""

from __future__ import annotations

from dataclasses import replace

from sweeparea.cql.rewrites.conditions import column
from sweeparea.cql.rewrites.rule import Rewriting, Rule
from sweeparea.operators.nodes import (
    Enrich,
    Generate,
    Join,
    Project,
    RelationToStream,
    Select,
    StreamScan,
    UnionAll,
    Window,
)
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind, StreamKind
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.windows import Range, TimeWindow, Unbounded

NOW = Range(1)


def _as_stream(node: Node, rewriting: Rewriting) -> Node | None:
    assert isinstance(node, RelationToStream)
    if node.kind == StreamKind.ISTREAM:
        window: TimeWindow = Unbounded()
    elif node.kind == StreamKind.RSTREAM and node.every in (None, 1):
        window = NOW
    else:
        return None
    made = _unwindowed(node.input, window, node.instant, rewriting)
    if made is None or made.columns == node.columns:
        return made
    return Project(made, tuple((c, column(c)) for c in node.columns))


def _unwindowed(node: Node, window: TimeWindow, instant: Column | None, rewriting: Rewriting) -> Node | None:
    """The stream whose elements a relation without joins and groups gets one after the other; ``instant`` is the column
    of their instants that is to be added.
    """
    match node:
        case Window():
            if node.spec != window or node.bounds:
                return None
            return node.input if instant is None else _with_instant(node.input, instant)
        case Select():
            below = _unwindowed(node.input, window, instant, rewriting)
            return None if below is None else replace(node, input=below)
        case Project():
            below = _unwindowed(node.input, window, instant, rewriting)
            if below is None:
                return None
            added = ((instant, column(instant)),) if instant is not None else ()
            return Project(below, (*node.outputs, *added))
        case UnionAll():
            parts = []
            for part in node.parts:
                own = None if instant is None else rewriting.new_column(instant.label, instant.type)
                below = _unwindowed(part, window, own, rewriting)
                if below is None:
                    return None
                named = (*part.columns, *([own] if own is not None else []))
                parts.append(Project(below, tuple((c, column(c)) for c in named)))
            return UnionAll(tuple(parts), (*node.outputs, *([instant] if instant is not None else [])))
        case _:
            return None


def _with_instant(stream: Node, instant: Column) -> Node | None:
    """A stream with the instant of its elements as one more column."""
    if not isinstance(stream, StreamScan | RelationToStream):
        return None
    if stream.instant is None:
        return replace(stream, instant=instant)
    known = Expr(f"`{stream.instant.id}`", "ts", frozenset({stream.instant.id}))
    return Project(stream, (*((c, column(c)) for c in stream.columns), (instant, known)))


def emit_each(plan: Plan) -> Plan | None:
    """Outermost window reduction: no difference is taken of a relation whose rows come and never go.

    Condition: only the Istream is kept (no relation, Dstream or Rstream beside it; a quarantine may be); the relation
    is made of Unbounded and landmark windows by select, project, generators, UNION ALL and inner joins. Without joins
    the Unbounded windows become Now, so that nothing is kept at all; joins still need what has come.
    """
    if (
        plan.emits_each
        or plan.stream != StreamKind.ISTREAM
        or set(plan.materialize) - {ResultKind.QUARANTINE} != {ResultKind.ISTREAM}
        or not _grows(plan.root)
    ):
        return None
    root = plan.root
    if not any(isinstance(n, Join) for n in root.walk()):
        root = _now(root)
    return replace(plan, root=root, emits_each=True)


def _grows(node: Node) -> bool:
    """Whether each row of a relation is a new row once, and stays."""
    match node:
        case Window():
            return isinstance(node.spec, TimeWindow) and node.spec.monotonic
        case Select() | Project() | UnionAll() | Generate():
            return all(_grows(child) for child in node.inputs)
        case Join():
            return node.kind == JoinKind.INNER and all(_grows(child) for child in node.inputs)
        case _:
            return False


def _now(node: Node) -> Node:
    if isinstance(node, Window):
        return replace(node, spec=NOW) if isinstance(node.spec, Unbounded) else node
    if isinstance(node, Enrich | StreamScan | RelationToStream):
        return node
    return node.with_inputs(tuple(map(_now, node.inputs)))


REDUCTION = "Arasu et al. 2003, section 7.2.1"

RULES = (
    Rule(
        "stream_of_window",
        REDUCTION,
        "Istream of Unbounded, or Rstream at each tick of Now, under selections, projections and unions only",
        (RelationToStream,),
        _as_stream,
    ),
)

EMIT_EACH = "window_reduction"
"""The name of ``emit_each``."""
