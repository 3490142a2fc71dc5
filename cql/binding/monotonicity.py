"""The static test behind the default Istream (Arasu et al. 2003, section 6.2.2): can a row ever leave this relation?"""

from __future__ import annotations

from sweeparea.operators.plan.logical import (
    Aggregate,
    Enrich,
    Generate,
    Intersect,
    Join,
    Node,
    Project,
    RelationToStream,
    Select,
    StreamScan,
    UnionAll,
    Window,
)


def is_monotonic(node: Node) -> bool:
    """Whether a relation only ever grows, by its form alone (semantics, section 6).

    True for windows that nothing leaves (Unbounded, landmark), also over a stream enriched by a non-retroactive
    relation, and for select, project (generators are one to many projections), UNION [ALL], DISTINCT, INTERSECT [ALL],
    inner, cross and semi joins (so IN and EXISTS) of such. A stored relation may shrink, and the value of an aggregate
    changes.
    """
    match node:
        case Window():
            return node.spec.monotonic and reads_stream(node.input)
        case Aggregate():
            return not node.calls and not node.global_ and is_monotonic(node.input)
        case Join() if node.kind not in ("inner", "semi"):
            return False
        case Select() | Project() | Generate() | Join() | UnionAll() | Intersect():
            return all(is_monotonic(child) for child in node.inputs)
    return False


def reads_stream(node: Node) -> bool:
    """Whether a node is a stream: a scan or a relation-to-stream operator, as they are or with selections on them."""
    if isinstance(node, Select | Project | UnionAll | Generate):
        return all(reads_stream(child) for child in node.inputs)
    return isinstance(node, StreamScan | RelationToStream | Enrich)
