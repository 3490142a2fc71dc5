"""The order of inner joins, by Golab's cost model."""

from __future__ import annotations

from itertools import combinations

from sweeparea.cql.rewrites.conditions import all_of, column, conjuncts
from sweeparea.cql.rewrites.cost import Estimate, cost, estimate
from sweeparea.cql.rewrites.rule import Rewriting, Rule, ids
from sweeparea.cql.rewrites.selection import select
from sweeparea.operators.nodes import Join, Project
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Expr

MOST = 6
"""Inputs up to which all orders are tried (dynamic programming over their subsets)."""
GAIN = 0.99
"""The author's order stays unless another costs less than this part of it."""


def _reorder(node: Node, rewriting: Rewriting) -> Node | None:
    if not isinstance(node, Join) or node.kind != JoinKind.INNER:
        return None
    inputs, conditions = _flat(node)
    if not 2 < len(inputs) <= MOST:
        return None
    best = _best(inputs, conditions, rewriting)
    if cost(best, rewriting) >= GAIN * cost(node, rewriting):
        return None
    if best.columns == node.columns:
        return best
    return Project(best, tuple((c, column(c)) for c in node.columns))


def _flat(node: Node) -> tuple[list[Node], list[Expr]]:
    if not isinstance(node, Join) or node.kind != JoinKind.INNER:
        return [node], []
    left, right = _flat(node.left), _flat(node.right)
    return [*left[0], *right[0]], [*left[1], *right[1], *conjuncts(node.condition)]


def _best(inputs: list[Node], conditions: list[Expr], rewriting: Rewriting) -> Node:
    """The cheapest tree of joins, bushy ones included; of equal ones the first, so that plans do not vary."""
    seen: dict[int, Estimate] = {}
    tried: list[Node] = []  # keeps ids in ``seen`` from being used again
    inputs = [select(node, [c for c in conditions if c.columns and c.columns <= ids(node)]) for node in inputs]
    known = [ids(node) for node in inputs]
    best: dict[frozenset[int], Node] = {frozenset({i}): node for i, node in enumerate(inputs)}
    for size in range(2, len(inputs) + 1):
        for chosen in combinations(range(len(inputs)), size):
            group = frozenset(chosen)
            columns = frozenset().union(*(known[i] for i in chosen))
            options: list[tuple[bool, float, Node]] = []
            for left in _halves(chosen):
                right = group - left
                if left not in best or right not in best:
                    continue
                inside = [frozenset().union(*(known[i] for i in half)) for half in (left, right)]
                between = [
                    c for c in conditions if c.columns <= columns and not any(c.columns <= half for half in inside)
                ]
                join = Join(best[left], best[right], all_of(between))
                tried.append(join)
                options.append((not between, estimate(join, rewriting, seen).cost, join))
            least = min(options, key=lambda option: option[:2])
            best[group] = least[2]
    root = best[frozenset(range(len(inputs)))]
    return select(root, [c for c in conditions if not c.columns])


def _halves(chosen: tuple[int, ...]) -> list[frozenset[int]]:
    """The left halves of all splits in two, each split once, the first input on the left."""
    rest = chosen[1:]
    return [frozenset((chosen[0], *others)) for size in range(len(rest)) for others in combinations(rest, size)]


RULES = (
    Rule(
        "join_order",
        "Golab & Oezsu 2005, section 5.4.1; Kraemer & Seeger 2005, section 5.3 (joins associate and commute)",
        "three to six inputs of inner joins, and another order costs at least a hundredth less; joins without a "
        "condition come last",
        (Join,),
        _reorder,
    ),
)
