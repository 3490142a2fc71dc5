"""Semi join and anti join: IN, EXISTS, NOT IN, NOT EXISTS and their correlated forms.

Definition, at every instant: the semi join keeps each copy of a left record that some right record matches, the anti
join each that none does (Golab & Oezsu 2005, section 2.1: negation; Kraemer & Seeger 2005, section 3.5 counts matches
instead, see ``derived.py``). The condition is any; a match needs it to be TRUE, so that NULL never matches by itself,
and NOT IN, which holds only where no comparison is TRUE or unknown, is the anti join on ``coalesce(x = y, TRUE)``.
Columns out: the left record, ``__ts``, ``__te``, ``__n``.

Where the condition is made of equalities x = y and of parts that read one side, it is one sweep by key
(``existence.py``, ``Join.by_key``). Beside a side that never changes, and in outer joins, whose inner join has the rows
already, it is made of joins: D, the distinct values of y, matches a left record at most once. Then both are sums of
bags, and no left record is ever looked at again:

    L semi R  =  L join D              L anti R  =  L - L join D

Else the matches M = L join R, projected to the left record, are counted beside L (``two_counts``): a copy stays where
its record's count in M is positive (semi) or zero (anti). It does not matter how often a match is counted, so that M
may be the sum of several joins, one for each alternative: that is how NOT IN is looked up by equality.

SweepArea of joins: D with its distinct values (``aggregate``), of known expiry one interval a value; the live rows of
both sides, as in every join; in the second form also the counts of live records that have matches. Expiry of a semi
join is known where that of both inputs is; an anti join's is unknown, since an arrival on the right undoes it.

>>> from sweeparea.operators.sql.expressions import Column
>>> from sweeparea.operators.nodes import RelationScan
>>> from sweeparea.operators.plan.join_kind import JoinKind
>>> left = RelationScan("L", ((Column("a", "a", "int"), "a"), (Column("b", "b", "int"), "b")))
>>> right = RelationScan("R", ((Column("c", "c", "int"), "c"), (Column("d", "d", "int"), "d")))
>>> join = Join(left, right, Expr("a = c AND d > 0", columns=frozenset("acd")), JoinKind.ANTI)
>>> plan = plan_of(join, lambda *_: "int")
>>> plan.by_sum, [lookup.condition.sql for lookup in plan.lookups]
(True, ['((a) = (__key0))'])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sweeparea.operators.linear.project import Project
from sweeparea.operators.linear.select import Select
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.conditions import Condition, Equality, conjunction, take_apart
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.sweeps.aggregate import Aggregate
from sweeparea.operators.sweeps.join import Join, compared_as_they_are

TypeOf = Callable[[Node, Expr], str | None]
"""The Spark type of an expression over a node's columns, None if nobody can tell."""


@dataclass(frozen=True)
class SemiJoinPlan:
    """How a semi or anti join is computed: by inner joins, whose right sides are ``Aggregate`` where they are distinct.

    ``by_sum``: there is one, and it gives each copy of a left record at most once.
    """

    lookups: tuple[Join, ...]
    by_sum: bool


def plan_of(node: Join, type_of: TypeOf) -> SemiJoinPlan:
    """The joins that find what a semi or anti join's left records match."""
    sides = ({c.id for c in node.left.columns}, {c.id for c in node.right.columns})
    alternatives = take_apart(node.condition, *sides)
    lookups = tuple(_lookup(node, condition) for condition in alternatives)
    once = len(lookups) == 1 and not alternatives[0].rest
    exact = once and all(_exact(node, e, type_of) for e in alternatives[0].equalities)
    return SemiJoinPlan(lookups, exact)


def _lookup(node: Join, condition: Condition) -> Join:
    left = selected(node.left, condition.left)
    right = selected(node.right, condition.right)
    if condition.rest:
        used = frozenset().union(*(p.columns for p in condition.rest), *(e.right.columns for e in condition.equalities))
        kept = [c for c in node.right.columns if c.id in used]
        projected = Project(right, tuple((c, Expr(c.id, c.label, frozenset([c.id]))) for c in kept))
        equal = [_equal(e, e.right) for e in condition.equalities]
        return Join(left, projected, conjunction([*equal, *condition.rest]))
    keys, equal = [], []
    for i, equality in enumerate(condition.equalities):
        key = Column(f"__key{i}", equality.right.text or equality.right.sql)
        keys.append((key, equality.right))
        equal.append(_equal(equality, Expr(key.id, columns=frozenset([key.id]))))
    return Join(left, Aggregate(right, tuple(keys), ()), conjunction(equal))


def selected(node: Node, conditions: tuple[Expr, ...]) -> Node:
    """The rows of a node that meet all of some conditions; of none the node itself."""
    condition = conjunction(conditions)
    return node if condition is None else Select(node, condition)


def _equal(equality: Equality, right: Expr) -> Expr:
    sign = "<=>" if equality.null_safe else "="
    return Expr(f"({equality.left.sql}) {sign} ({right.sql})", columns=equality.left.columns | right.columns)


def _exact(node: Join, equality: Equality, type_of: TypeOf) -> bool:
    left, right = type_of(node.left, equality.left), type_of(node.right, equality.right)
    return left is not None and right is not None and compared_as_they_are(left, right)
