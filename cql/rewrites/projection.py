"""Projections: one after the other becomes one, and what changes nothing goes. (Columns that nothing reads are
left out by ``cql/rewrites/prune.py``.)
"""

from __future__ import annotations

from collections import Counter

from sweeparea.cql.rewrites.conditions import column_of, substitute, tree
from sweeparea.cql.rewrites.rule import MAX_TEXT, Rewriting, Rule
from sweeparea.operators.nodes import Project
from sweeparea.operators.plan.node import Node


def _merge(node: Node, _: Rewriting) -> Node | None:
    if not isinstance(node, Project) or not isinstance(below := node.input, Project):
        return None
    by = {c.id: e for c, e in below.outputs}
    uses = Counter(id_ for _, e in node.outputs for id_ in e.columns)
    if any(n > 1 and not _cheap(by[id_].sql) for id_, n in uses.items()):
        return None
    outputs = tuple((c, substitute(e, by)) for c, e in node.outputs)
    if any(len(e.sql) > MAX_TEXT for _, e in outputs):
        return None
    return Project(below.input, outputs)


def _cheap(sql: str) -> bool:
    node = tree(sql)
    return node is not None and node.key in ("column", "literal", "null", "boolean")


def _identity(node: Node, _: Rewriting) -> Node | None:
    if not isinstance(node, Project) or node.columns != node.input.columns:
        return None
    same = all(column_of(e) == c.id for c, e in node.outputs)
    return node.input if same else None


RULES = (
    Rule(
        "merge_projections",
        "Kraemer & Seeger 2005, sections 3.2.2 (map) and 5.3",
        "an expression that is used more than once is a column or a constant, so that nothing is computed twice",
        (Project,),
        _merge,
    ),
    Rule(
        "drop_identity_projection",
        "Kraemer & Seeger 2005, section 3.2.2 (map)",
        "the outputs are the input's columns, in their order",
        (Project,),
        _identity,
    ),
)
