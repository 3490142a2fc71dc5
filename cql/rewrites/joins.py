"""Joins: outer ones become inner where their NULLs are rejected above, and what is known of one side is told to the
other.
"""

from __future__ import annotations

from dataclasses import replace

from sweeparea.cql.rewrites.conditions import (
    all_of,
    column,
    column_of,
    conjuncts,
    equality,
    exact,
    rejects_nulls,
    substitute,
)
from sweeparea.cql.rewrites.rule import Rewriting, Rule, ids
from sweeparea.cql.rewrites.selection import select
from sweeparea.operators.nodes import Aggregate, Enrich, Generate, Join, Project, Select, TopK, Window
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Expr


def _outer_to_inner(node: Node, _: Rewriting) -> Node | None:
    if isinstance(node, Select):
        stronger = _strengthened(node.input, conjuncts(node.condition))
        return None if stronger is None else replace(node, input=stronger)
    if not isinstance(node, Join) or node.kind == JoinKind.FULL:
        return None
    conditions = conjuncts(node.condition)
    # rows of the left side that match nothing are kept by left joins and are the answer of anti joins
    left = _strengthened(node.left, conditions) if node.kind in (JoinKind.INNER, JoinKind.SEMI) else None
    right = _strengthened(node.right, conditions)
    if left is None and right is None:
        return None
    return replace(node, left=left or node.left, right=right or node.right)


def _strengthened(join: Node, conditions: list[Expr]) -> Node | None:
    """An outer join under conditions that drop rows with NULLs in place of one side."""
    if not isinstance(join, Join) or join.kind not in (JoinKind.LEFT, JoinKind.FULL):
        return None
    no_left, no_right = (any(rejects_nulls(c, ids(side)) for c in conditions) for side in join.inputs)
    if join.kind == JoinKind.LEFT:
        return replace(join, kind=JoinKind.INNER) if no_right else None
    if no_left and no_right:
        return replace(join, kind=JoinKind.INNER)
    if no_left:
        return replace(join, kind=JoinKind.LEFT)
    if no_right:  # what is left of it is a right join
        swapped = Join(join.right, join.left, join.condition, JoinKind.LEFT)
        return Project(swapped, tuple((c, column(c)) for c in join.columns))
    return None


def _transitive(node: Node, rewriting: Rewriting) -> Node | None:
    assert isinstance(node, Join)
    if node.kind == JoinKind.FULL:
        return None
    types = {c.id: c.type for side in node.inputs for c in side.columns}
    labels = {c.id: c.label for side in node.inputs for c in side.columns}
    left, right = ids(node.left), ids(node.right)
    known = {side: _known(child) for side, child in (("left", node.left), ("right", node.right))}
    add: dict[str, list[Expr]] = {"left": [], "right": []}
    for pair in filter(None, map(equality, conjuncts(node.condition))):
        a, b = pair if pair[0] in left else pair[::-1]
        if a not in left or b not in right or types[a] != types[b] or not exact(types[a]):
            continue
        for source, target, given, renamed in (("left", "right", a, b), ("right", "left", b, a)):
            # rows of the left side without a match are kept or answered by left and anti joins
            if target == "left" and node.kind not in (JoinKind.INNER, JoinKind.SEMI):
                continue
            for condition in known[source]:
                if condition.columns != frozenset({given}):
                    continue
                moved = substitute(condition, {given: Expr(f"`{renamed}`", "", frozenset({renamed}))})
                moved = replace(moved, text=moved.sql.replace(f"`{renamed}`", labels[renamed]))
                # told once: further below it may be hidden by an expression
                if moved.sql in rewriting.told or any(moved.sql == c.sql for c in known[target]):
                    continue
                rewriting.told.add(moved.sql)
                add[target].append(moved)
    if not add["left"] and not add["right"]:
        return None
    return replace(node, left=select(node.left, add["left"]), right=select(node.right, add["right"]))


def _known(node: Node) -> list[Expr]:
    """Conditions over the node's columns, each of one column, that all its rows meet."""
    match node:
        case Select():
            return [*(c for c in conjuncts(node.condition) if len(c.columns) == 1), *_known(node.input)]
        case Window() | TopK() | Generate():
            return _known(node.input)
        case Project():
            return _renamed(_known(node.input), {column_of(e): c.id for c, e in node.outputs})
        case Aggregate() if not node.global_:
            return _renamed(_known(node.input), {column_of(e): c.id for c, e in node.keys})
        case Join():
            if node.kind == JoinKind.FULL:
                return []
            right = _known(node.right) if node.kind == JoinKind.INNER else []
            own = [c for c in conjuncts(node.condition) if len(c.columns) == 1] if node.kind == JoinKind.INNER else []
            return [*own, *_known(node.left), *right]
        case Enrich():
            return _known(node.stream)
        case _:
            return []


def _renamed(conditions: list[Expr], names: dict[str | None, str]) -> list[Expr]:
    found = []
    for condition in conditions:
        (id_,) = condition.columns
        if id_ in names:
            found.append(substitute(condition, {id_: Expr(f"`{names[id_]}`", "", frozenset({names[id_]}))}))
    return found


def _constant_condition(node: Node, _: Rewriting) -> Node | None:
    # ON TRUE is how some write a cross join
    assert isinstance(node, Join)
    stay = [c for c in conjuncts(node.condition) if c.sql.upper().strip("() ") != "TRUE"]
    if node.condition is None or len(stay) == len(conjuncts(node.condition)):
        return None
    return replace(node, condition=all_of(stay))


RULES = (
    Rule(
        "outer_join_to_inner",
        "Arasu et al. 2003, section 7.2 (SQL's equivalences hold); Galindo-Legaria & Rosenthal 1997",
        "a condition above cannot be TRUE where the columns of the side that may be missing are NULL",
        (Select, Join),
        _outer_to_inner,
    ),
    Rule(
        "transitive_equality",
        "Arasu et al. 2003, section 7.2 (SQL's equivalences hold)",
        "inner and semi joins: in both directions; left and anti joins: from left to right; both columns of the "
        "equality have the same known type, which is not floating point, and the condition reads nothing else",
        (Join,),
        _transitive,
    ),
    Rule("drop_true", "Arasu et al. 2003, section 7.2", "a conjunct of ON is TRUE", (Join,), _constant_condition),
)
