"""Leaves out columns that nothing reads, so that scans read few and shuffles carry little. The bags stay the same, by
count (Patroumpas & Sellis 2006, section 4.2: projection commutes with windows and, with the columns of its condition
kept, with joins).

Below a relation-to-stream operator, a difference, an intersection and a DISTINCT every column matters, since values are
compared whole; below a window that counts elements those that order its ties.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    UnionAll,
    Window,
)

Ids = frozenset[str]


def prune(root: Node) -> Node:
    """The plan with scans, projections and unread aggregates cut down to what is read above them. A node that is used
    twice stays one node, with what either use reads.
    """
    order = unique(root)
    needed: dict[int, Ids] = {id(node): frozenset() for node in order}
    needed[id(root)] = _ids(root)
    for node in reversed(order):  # every use before what it uses
        for child, ids in zip(node.inputs, _below(node, needed[id(node)]), strict=True):
            needed[id(child)] |= ids
    done: dict[int, Node] = {}
    for node in order:
        inputs = tuple(done[id(child)] for child in node.inputs)
        done[id(node)] = _cut(node, inputs, needed[id(node)])
    return done[id(root)]


def unique(root: Node) -> list[Node]:
    """All nodes, each once, inputs first."""
    found: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) in found:
            return
        for child in node.inputs:
            visit(child)
        found[id(node)] = node

    visit(root)
    return list(found.values())


def _ids(node: Node) -> Ids:
    return frozenset(c.id for c in node.columns)


def _below(node: Node, needed: Ids) -> Iterator[Ids]:
    """For each input the ids that it must keep, given those that are read of the node."""
    match node:
        case Window():
            yield (needed | node.reads | frozenset(node.ties)) & _ids(node.input)
        case Select():
            yield needed | node.condition.columns
        case Project():
            yield frozenset().union(*(e.columns for c, e in node.outputs if c.id in needed))
        case Join() | Enrich():
            for child in node.inputs:
                yield (needed | node.reads) & _ids(child)
        case UnionAll():
            kept = [i for i, c in enumerate(node.outputs) if c.id in needed]
            for part in node.parts:
                yield frozenset(part.columns[i].id for i in kept)
        case Aggregate():
            calls = (call.reads for call in _calls(node, needed))
            yield frozenset().union(*(e.columns for _, e in node.keys), *calls)
        case Analytic():
            calls = (call.reads for c, call in node.calls if c.id in needed)
            yield (needed & _ids(node.input)).union(*calls)
        case Generate() | TopK():
            yield (needed | node.reads) & _ids(node.input)
        case _:
            for child in node.inputs:
                yield _ids(child)


def _cut(node: Node, inputs: tuple[Node, ...], needed: Ids) -> Node:
    match node:
        case StreamScan():
            kept = tuple((c, n) for c, n in node.source if c.id in needed)
            return replace(node, source=kept, instant=_kept(node.instant, needed))
        case RelationScan():
            return replace(node, source=tuple((c, n) for c, n in node.source if c.id in needed))
        case Window():
            bounds = node.bounds if any(c.id in needed for c in node.bounds or ()) else None
            return replace(node, input=inputs[0], bounds=bounds)
        case Project():
            return Project(inputs[0], tuple((c, e) for c, e in node.outputs if c.id in needed))
        case UnionAll():
            kept = [i for i, c in enumerate(node.outputs) if c.id in needed]
            parts = zip(node.parts, inputs, strict=True)
            narrow = tuple(_columns(new, [old.columns[i] for i in kept]) for old, new in parts)
            return UnionAll(narrow, tuple(node.outputs[i] for i in kept))
        case Difference() | Intersect():
            left, right = (_columns(new, old.columns) for old, new in zip(node.inputs, inputs, strict=True))
            return replace(node, left=left, right=right)
        case Aggregate():
            calls = _calls(node, needed)
            return replace(node, input=inputs[0], calls=tuple((c, a) for c, a in node.calls if a in calls))
        case Analytic():
            calls = tuple((c, call) for c, call in node.calls if c.id in needed)
            return replace(node, input=inputs[0], calls=calls) if calls else inputs[0]
        case RelationToStream():
            whole = _columns(inputs[0], node.input.columns)
            return replace(node, input=whole, instant=_kept(node.instant, needed))
    return node.with_inputs(inputs)


def _calls(node: Aggregate, needed: Ids) -> list[AggregateCall]:
    # a SINGLE_VALUE is also a check, and without any call an aggregate would be a DISTINCT
    kept = [a for c, a in node.calls if c.id in needed or a.function == "SINGLE_VALUE"]
    return kept or [a for _, a in node.calls[:1]]


def _columns(node: Node, columns: tuple[Column, ...] | list[Column]) -> Node:
    """A node whose columns are just these: what is matched by position must have no others."""
    if node.columns == tuple(columns):
        return node
    return Project(node, tuple((c, Expr(f"`{c.id}`", c.label, frozenset({c.id}))) for c in columns))


def _kept(column: Column | None, needed: Ids) -> Column | None:
    return column if column is not None and column.id in needed else None
