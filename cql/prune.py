"""Leaves out columns that nothing reads, so that scans read few and shuffles carry little. The bags stay the same, by
count.

Below a relation-to-stream operator and a DISTINCT every column matters, since values are compared whole.
"""

from __future__ import annotations

from dataclasses import replace

from sweeparea.operators.logical import (
    Aggregate,
    Analytic,
    Column,
    Difference,
    Enrich,
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


def prune(node: Node, needed: frozenset[str] | None = None) -> Node:
    """The plan with scans and projections cut down to what is read above them; ``needed`` None keeps all outputs."""
    if needed is None:
        needed = frozenset(c.id for c in node.columns)
    if isinstance(node, StreamScan):
        kept = tuple((c, n) for c, n in node.source if c.id in needed)
        return replace(node, source=kept, instant=_kept(node.instant, needed))
    if isinstance(node, RelationScan):
        return replace(node, source=tuple((c, n) for c, n in node.source if c.id in needed))
    if isinstance(node, Window):
        return replace(node, input=prune(node.input, needed | node.reads | frozenset(node.ties)))
    if isinstance(node, Select):
        return replace(node, input=prune(node.input, needed | node.condition.columns))
    if isinstance(node, Project):
        outputs = tuple((c, e) for c, e in node.outputs if c.id in needed)
        return replace(node, outputs=outputs, input=prune(node.input, _ids(e.columns for _, e in outputs)))
    if isinstance(node, Join):
        below = needed | node.reads
        return replace(node, left=prune(node.left, below), right=prune(node.right, below))
    if isinstance(node, UnionAll):
        # columns are matched by position, so all parts keep all of them
        return replace(node, parts=tuple(prune(p) for p in node.parts))
    if isinstance(node, Aggregate):
        return replace(node, input=prune(node.input, node.reads))
    if isinstance(node, Generate | Analytic | TopK):
        return replace(node, input=prune(node.input, needed | node.reads))
    if isinstance(node, Enrich):
        below = needed | node.reads
        return replace(node, stream=prune(node.stream, below), relation=prune(node.relation, below))
    if isinstance(node, Difference | Intersect):
        return replace(node, left=prune(node.left), right=prune(node.right))
    if isinstance(node, RelationToStream):
        return replace(node, input=prune(node.input), instant=_kept(node.instant, needed))
    return node


def _kept(column: Column | None, needed: frozenset[str]) -> Column | None:
    return column if column is not None and column.id in needed else None


def _ids(parts: object) -> frozenset[str]:
    return frozenset().union(*parts)  # type: ignore[misc]
