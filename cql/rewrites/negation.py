"""Negation and semi-joins move above or below inner joins, whichever the cost model finds cheaper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sweeparea.cql.rewrites.cost import cost
from sweeparea.cql.rewrites.rule import Rewriting, Rule, ids
from sweeparea.operators.nodes import Join
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sweeps.join import JoinKind


def _pulled(kind: JoinKind) -> Callable[[Node, Rewriting], Node | None]:
    """An anti (semi) join on a side of an inner join goes above it: the join changes nothing of what it asks."""

    def apply(node: Node, rewriting: Rewriting) -> Node | None:
        assert isinstance(node, Join)
        if node.kind != JoinKind.INNER:
            return None
        for name in ("left", "right"):
            side = getattr(node, name)
            if isinstance(side, Join) and side.kind == kind:
                above = Join(replace(node, **{name: side.left}), side.right, side.condition, kind)
                if cost(above, rewriting) < cost(node, rewriting):
                    return above
        return None

    return apply


def _pushed(kind: JoinKind) -> Callable[[Node, Rewriting], Node | None]:
    """The reverse: onto the one side of an inner join below whose columns the condition reads."""

    def apply(node: Node, rewriting: Rewriting) -> Node | None:
        assert isinstance(node, Join)
        below = node.left
        if node.kind != kind or not isinstance(below, Join) or below.kind != JoinKind.INNER or node.condition is None:
            return None
        outer = node.condition.columns - ids(node.right)
        for name in ("left", "right"):
            side = getattr(below, name)
            if outer and outer <= ids(side):
                moved = replace(below, **{name: replace(node, left=side)})
                if cost(moved, rewriting) < cost(node, rewriting):
                    return moved
        return None

    return apply


GOLAB = "Golab & Oezsu 2005, section 5.4.2 (update pattern simplification), figure 6"

RULES = (
    Rule(
        "negation_past_join_up",
        GOLAB,
        "an anti join on a side of an inner join; the cost model finds it cheaper above, where its negative tuples "
        "reach fewer operators",
        (Join,),
        _pulled(JoinKind.ANTI),
    ),
    Rule(
        "negation_past_join_down",
        GOLAB,
        "an anti join above an inner join, whose condition reads one side; cheaper below, where it leaves fewer rows",
        (Join,),
        _pushed(JoinKind.ANTI),
    ),
    Rule("semi_join_past_join_up", GOLAB, "as for anti joins", (Join,), _pulled(JoinKind.SEMI)),
    Rule("semi_join_past_join_down", GOLAB, "as for anti joins", (Join,), _pushed(JoinKind.SEMI)),
)
