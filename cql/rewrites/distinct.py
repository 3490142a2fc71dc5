"""Duplicate elimination: once where once is enough, below joins where that is cheaper, not at all where there are no
duplicates.
"""

from __future__ import annotations

from dataclasses import replace

from sweeparea.cql.rewrites.conditions import column, column_of, substitute
from sweeparea.cql.rewrites.cost import cost
from sweeparea.cql.rewrites.rule import Rewriting, Rule, ids
from sweeparea.operators.nodes import Aggregate, Difference, Intersect, Join, Project, Select, TopK, UnionAll
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node


def is_distinct(node: Node) -> bool:
    """Whether a node is SELECT DISTINCT."""
    return isinstance(node, Aggregate) and not node.calls and not node.global_


def distinct(node: Node, rewriting: Rewriting) -> Node:
    """The node's rows once each, with the node's own columns."""
    keys = tuple((rewriting.new_column(c.label, c.type), column(c)) for c in node.columns)
    grouped = Aggregate(node, keys, ())
    return Project(grouped, tuple((c, column(k)) for c, (k, _) in zip(node.columns, keys, strict=True)))


def without_distinct(node: Node) -> Node | None:
    """The node without duplicate elimination, where what reads it does not count; None if there is none."""
    if is_distinct(node):
        assert isinstance(node, Aggregate)
        return without_distinct(node.input) or node.input if _same(node) else Project(node.input, node.keys)
    if isinstance(node, Select | Project | UnionAll) or (
        isinstance(node, Join) and node.kind in (JoinKind.SEMI, JoinKind.ANTI)
    ):
        inputs = list(node.inputs)
        if isinstance(node, Join):
            inputs = inputs[:1]
        found = [without_distinct(child) for child in inputs]
        if all(f is None for f in found):
            return None
        kept = tuple(f or child for f, child in zip(found, inputs, strict=True))
        return node.with_inputs((*kept, *node.inputs[len(kept) :]))
    return None


def _same(node: Aggregate) -> bool:
    return node.columns == node.input.columns and all(column_of(e) == c.id for c, e in node.keys)


def _idempotent(node: Node, _: Rewriting) -> Node | None:
    if is_distinct(node):
        below = without_distinct(node.inputs[0])
        return None if below is None else node.with_inputs((below,))
    if isinstance(node, Difference | Intersect) and not node.all:
        sides = [without_distinct(child) for child in node.inputs]
    elif isinstance(node, Join) and node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        sides = [None, without_distinct(node.right)]
    else:
        return None
    if all(side is None for side in sides):
        return None
    return node.with_inputs(tuple(side or child for side, child in zip(sides, node.inputs, strict=True)))


def unique_sets(node: Node) -> list[frozenset[str]]:
    """Sets of columns of which no two rows of a node have equal values, ever."""
    match node:
        case Aggregate():
            return [frozenset(c.id for c, _ in node.keys)]
        case Select():
            return unique_sets(node.input)
        case TopK():
            keys = [column_of(e) for e in node.keys]
            single = node.limit == 1 and node.by == "ROW_NUMBER" and None not in keys
            return [*unique_sets(node.input), *([frozenset(k for k in keys if k is not None)] if single else [])]
        case Project():
            names = {column_of(e): c.id for c, e in node.outputs}
            return [frozenset(names[i] for i in s) for s in unique_sets(node.input) if s <= names.keys()]
        case Difference() | Intersect() if not node.all:
            return [ids(node)]
        case Join() if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return unique_sets(node.left)
        case Join() if node.kind == JoinKind.INNER:
            return [a | b for a in unique_sets(node.left) for b in unique_sets(node.right)]
        case _:
            return []


def _no_duplicates(node: Node, _: Rewriting) -> Node | None:
    if not is_distinct(node) or not isinstance(node, Aggregate):
        return None
    keys = frozenset(k for _, e in node.keys if (k := column_of(e)) is not None)
    if not any(s <= keys for s in unique_sets(node.input)):
        return None
    return Project(node.input, node.keys)


def _past_join(node: Node, rewriting: Rewriting) -> Node | None:
    if not is_distinct(node) or not isinstance(node, Aggregate):
        return None
    join, keys = node.input, [column_of(e) for _, e in node.keys]
    if isinstance(join, Project):  # of columns only
        names = {c.id: column_of(e) for c, e in join.outputs}
        keys, join = [names.get(k) if k is not None else None for k in keys], join.input
    if not isinstance(join, Join) or join.kind != JoinKind.INNER or None in keys or not ids(join) <= set(keys):
        return None
    sides = [s if any(u <= ids(s) for u in unique_sets(s)) else distinct(s, rewriting) for s in join.inputs]
    by = {c.id: column(c) for c in join.columns}
    outputs = tuple((c, by[k]) for (c, _), k in zip(node.keys, keys, strict=True) if k is not None)
    pushed = Project(replace(join, left=sides[0], right=sides[1]), outputs)
    return pushed if cost(pushed, rewriting) < cost(node, rewriting) else None


def _join_to_semi(node: Node, rewriting: Rewriting) -> Node | None:
    if not is_distinct(node) or not isinstance(node, Aggregate):
        return None
    join, keys = node.input, node.keys
    if isinstance(join, Project):
        by = {c.id: e for c, e in join.outputs}
        keys, join = tuple((c, substitute(e, by)) for c, e in keys), join.input
    if not isinstance(join, Join) or join.kind != JoinKind.INNER:
        return None
    if not frozenset().union(*(e.columns for _, e in keys)) <= ids(join.left):
        return None
    reduced = replace(node, input=replace(join, kind=JoinKind.SEMI), keys=keys)
    return reduced if cost(reduced, rewriting) < cost(node, rewriting) else None


GOLAB = "Golab & Oezsu 2005, section 5.4.2 (duplicate elimination pull-up)"

RULES = (
    Rule(
        "distinct_once",
        "Kraemer & Seeger 2005, section 5.3: duplicate elimination is idempotent",
        "what reads the rows does not count them: below DISTINCT, EXCEPT and INTERSECT without ALL and on the right "
        "of semi and anti joins, through selections, projections and unions",
        (Aggregate, Difference, Intersect, Join),
        _idempotent,
    ),
    Rule(
        "distinct_of_unique",
        "Arasu et al. 2003, section 7.2 (SQL's equivalences hold)",
        "no two rows agree on the columns kept: they include the keys of a grouping, or there is one row at most",
        (Aggregate,),
        _no_duplicates,
    ),
    Rule(
        "distinct_past_join",
        f"{GOLAB}; Kraemer & Seeger 2005, section 5.3",
        "an inner join, all of whose columns are kept, and the cost model finds it cheaper",
        (Aggregate,),
        _past_join,
    ),
    Rule(
        "distinct_join_to_semi",
        "Arasu et al. 2003, section 7.2 (SQL's equivalences hold)",
        "an inner join of which only left columns are kept, and the cost model finds it cheaper",
        (Aggregate,),
        _join_to_semi,
    ),
)
