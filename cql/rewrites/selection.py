"""Selections go down: below projections, unions, differences, the sides of joins, groupings and time windows, so that
all that is above them sees fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sweeparea.cql.rewrites.conditions import (
    all_of,
    column,
    column_of,
    conjuncts,
    exact,
    respects_equality,
    split,
    substitute,
)
from sweeparea.cql.rewrites.rule import MAX_TEXT, Rewriting, Rule, ids
from sweeparea.operators.nodes import (
    Aggregate,
    Analytic,
    Difference,
    Generate,
    Intersect,
    Join,
    Project,
    Select,
    TopK,
    UnionAll,
    Window,
)
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.windows import TimeWindow, UserWindow


def push_selection(node: Node, *conditions: Expr) -> Node:
    """The node under selections, each put as low into its joins as their kinds allow: a comma join with WHERE becomes
    the join that ON would have made.

    A condition without columns stays on top, and so does what comes after it. Many are put in place in one step: one
    after the other, each would copy the conditions before it.
    """
    if not isinstance(node, Join):
        return select(node, list(conditions))
    left, right = ids(node.left), ids(node.right)
    on_left: list[Expr] = []
    on_right: list[Expr] = []
    on_both: list[Expr] = []
    above: list[Expr] = []
    for condition in conditions:
        if above or not condition.columns:
            above.append(condition)
        elif condition.columns <= left and node.kind != JoinKind.FULL:
            on_left.append(condition)
        elif node.kind != JoinKind.INNER:
            above.append(condition)
        else:
            (on_right if condition.columns <= right else on_both).append(condition)
    if on_left:
        node = replace(node, left=push_selection(node.left, *on_left))
    if on_right:
        node = replace(node, right=push_selection(node.right, *on_right))
    if on_both:
        node = replace(node, condition=all_of([*filter(None, [node.condition]), *on_both]))
    return select(node, above)


def select(node: Node, conditions: list[Expr]) -> Node:
    """A selection by all conditions; of a selection one more."""
    if not conditions:
        return node
    if isinstance(node, Select):
        return replace(node, condition=all_of([node.condition, *conditions]) or node.condition)
    condition = all_of(conditions)
    return node if condition is None else Select(node, condition)


def _types(node: Node) -> dict[str, str | None]:
    return {c.id: c.type for c in node.columns}


def _split_select(node: Select, test: Callable[[Expr], bool], build: Callable[[list[Expr]], Node]) -> Node | None:
    """The conjuncts that pass ``test`` go into ``build``, the others stay above."""
    down, stay = split(node.condition, test)
    return select(build(down), stay) if down else None


def _merge(node: Node, _: Rewriting) -> Node | None:
    assert isinstance(node, Select)
    return select(node.input, [node.condition]) if isinstance(node.input, Select) else None


def _past_project(node: Node, _: Rewriting) -> Node | None:
    if not isinstance(node, Select) or not isinstance(below := node.input, Project):
        return None
    by = {c.id: e for c, e in below.outputs}
    condition = substitute(node.condition, by)
    if len(condition.sql) > MAX_TEXT:
        return None
    return replace(below, input=select(below.input, [condition]))


def _past_window(node: Node, _: Rewriting) -> Node | None:
    if not isinstance(node, Select) or not isinstance(window := node.input, Window):
        return None
    if isinstance(window.spec, UserWindow):
        return None
    record = ids(window.input)
    if isinstance(window.spec, TimeWindow):
        allowed = record
    else:
        # equal keys are one partition, so the condition must not tell them apart
        types = _types(window.input)
        keys = (column_of(e) for e in window.partition)
        allowed = frozenset(k for k in keys if k is not None and exact(types.get(k)))
    return _split_select(
        node,
        lambda c: bool(c.columns) and c.columns <= allowed,
        lambda down: replace(window, input=select(window.input, down)),
    )


def _past_join(node: Node, _: Rewriting) -> Node | None:
    if not isinstance(node, Select) or not isinstance(join := node.input, Join):
        return None
    stay: list[Expr] = []
    found: Node = join
    for condition in conjuncts(node.condition):
        below = push_selection(found, condition) if condition.columns else found
        if not condition.columns or isinstance(below, Select):
            stay.append(condition)
        else:
            found = below
    return None if found is join else select(found, stay)


def _condition_past_join(node: Node, _: Rewriting) -> Node | None:
    assert isinstance(node, Join)
    if node.condition is None or node.kind == JoinKind.FULL:
        return None
    left, right = ids(node.left), ids(node.right)
    to_left = node.kind in (JoinKind.INNER, JoinKind.SEMI)  # the other kinds keep or answer left rows that do not match
    downs: tuple[list[Expr], list[Expr]] = ([], [])
    stay: list[Expr] = []
    for condition in conjuncts(node.condition):
        if condition.columns and condition.columns <= right:
            downs[1].append(condition)
        elif condition.columns and condition.columns <= left and to_left:
            downs[0].append(condition)
        else:
            stay.append(condition)
    if not downs[0] and not downs[1]:
        return None
    return replace(node, left=select(node.left, downs[0]), right=select(node.right, downs[1]), condition=all_of(stay))


def _by_position(condition: Expr, given: tuple[Column, ...], outputs: tuple[Column, ...]) -> Expr | None:
    """A condition on a set operation's columns as one on a part's: cast, where the part's are of another type."""
    by: dict[str, Expr] = {}
    for a, b in zip(given, outputs, strict=True):
        if b.id not in condition.columns:
            continue
        if b.type is None or a.type is None:
            return None
        by[b.id] = column(a) if a.type == b.type else Expr(f"CAST(`{a.id}` AS {b.type})", a.label, frozenset({a.id}))
    return substitute(condition, by)


def _past_set_operation(kind: type[UnionAll] | type[Difference] | type[Intersect]) -> Callable[..., Node | None]:
    def apply(node: Node, _: Rewriting) -> Node | None:
        if not isinstance(node, Select) or not isinstance(below := node.input, kind):
            return None
        types = _types(below)

        def fits(condition: Expr) -> bool:
            if not condition.columns:
                return False
            if kind is not UnionAll and not respects_equality(condition, types):
                return False
            return all(_by_position(condition, part.columns, below.outputs) is not None for part in below.inputs)

        def built(down: list[Expr]) -> Node:
            parts = []
            for part in below.inputs:
                moved = (_by_position(c, part.columns, below.outputs) for c in down)
                parts.append(select(part, [c for c in moved if c is not None]))
            return below.with_inputs(tuple(parts))

        return _split_select(node, fits, built)

    return apply


def _past_aggregate(node: Node, _: Rewriting) -> Node | None:
    if not isinstance(node, Select) or not isinstance(grouping := node.input, Aggregate) or grouping.global_:
        return None
    by, types = {c.id: e for c, e in grouping.keys}, _types(grouping)
    return _split_select(
        node,
        lambda c: bool(c.columns) and c.columns <= by.keys() and respects_equality(c, types),
        lambda down: replace(grouping, input=select(grouping.input, [substitute(c, by) for c in down])),
    )


def _past_generate(node: Node, _: Rewriting) -> Node | None:
    if not isinstance(node, Select) or not isinstance(below := node.input, Generate):
        return None
    known = ids(below.input)
    return _split_select(
        node,
        lambda c: bool(c.columns) and c.columns <= known,
        lambda down: replace(below, input=select(below.input, down)),
    )


def _past_groups(node: Node, _: Rewriting) -> Node | None:
    """Below top-k and window functions: whole groups go or stay."""
    if not isinstance(node, Select) or not isinstance(below := node.input, TopK | Analytic):
        return None
    partitions = [below.keys] if isinstance(below, TopK) else [call.partition for _, call in below.calls]
    if not partitions:
        return None
    common = frozenset.intersection(*(frozenset(k for e in p if (k := column_of(e))) for p in partitions))
    types = _types(below)
    return _split_select(
        node,
        lambda c: bool(c.columns) and c.columns <= common and respects_equality(c, types),
        lambda down: replace(below, input=select(below.input, down)),
    )


KRAEMER, PATROUMPAS = "Kraemer & Seeger 2005, section 5.3", "Patroumpas & Sellis 2006, section 4.2"

RULES = (
    Rule("merge_selections", KRAEMER, "always: the conjunction keeps what both keep", (Select,), _merge),
    Rule(
        "selection_past_project",
        KRAEMER,
        "always; the condition takes the projection's expressions in place of its columns",
        (Select,),
        _past_project,
    ),
    Rule(
        "selection_past_window",
        "Arasu et al. 2003, section 7.2.2; Patroumpas & Sellis 2006, section 4.2; Kraemer & Seeger 2005, section 5.3.1",
        "a time window, and the condition reads the record only; of windows that count elements a condition on the "
        "partition columns only, since it keeps or drops whole partitions; never past a user's window",
        (Select,),
        _past_window,
    ),
    Rule(
        "selection_past_join",
        PATROUMPAS,
        "inner: each side's conditions into it, the others into the join; left, semi, anti: those on the left side; "
        "full: none",
        (Select,),
        _past_join,
    ),
    Rule(
        "condition_past_join",
        PATROUMPAS,
        "a conjunct of ON that reads one side: the right side of inner, left, semi and anti joins, the left side of "
        "inner and semi joins",
        (Join,),
        _condition_past_join,
    ),
    Rule(
        "selection_past_union",
        KRAEMER,
        "column types of all parts are known; a part of another type is cast as the union casts it",
        (Select,),
        _past_set_operation(UnionAll),
    ),
    Rule(
        "selection_past_difference",
        "Kraemer & Seeger 2005, section 5.3, with equation 5",
        "as for unions, and the condition is the same of equal values",
        (Select,),
        _past_set_operation(Difference),
    ),
    Rule(
        "selection_past_intersect",
        KRAEMER,
        "as for differences",
        (Select,),
        _past_set_operation(Intersect),
    ),
    Rule(
        "selection_past_aggregate",
        "Kraemer & Seeger 2005, section 5.3 (after Slivinskas et al. 2001)",
        "a condition on grouping columns, the same of equal values; not past an aggregate without GROUP BY",
        (Select,),
        _past_aggregate,
    ),
    Rule("selection_past_generate", KRAEMER, "a condition on the input's columns", (Select,), _past_generate),
    Rule(
        "selection_past_groups",
        "Arasu et al. 2003, section 7.2: what holds in SQL holds at every instant",
        "a condition on columns by which top-k and all window functions partition",
        (Select,),
        _past_groups,
    ),
)
