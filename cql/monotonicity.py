"""The static test behind the default Istream (Arasu et al. 2003, section 6.2.2): can a row ever leave this relation?"""

from __future__ import annotations

from sweeparea.operators.logical import (
    Aggregate,
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
    """Whether a relation only ever grows, by its form alone.

    True for windows that nothing leaves (Unbounded, landmark), and for select, project, UNION ALL, DISTINCT and inner
    joins of such. A stored relation may shrink, and the value of an aggregate changes.
    """
    if isinstance(node, Window):
        return node.spec.monotonic and reads_stream(node.input)
    if isinstance(node, Aggregate):
        return not node.calls and not node.global_ and is_monotonic(node.input)
    if isinstance(node, Select | Project | Join | UnionAll):
        return all(is_monotonic(child) for child in node.inputs)
    return False


def reads_stream(node: Node) -> bool:
    return isinstance(node, StreamScan | RelationToStream)
