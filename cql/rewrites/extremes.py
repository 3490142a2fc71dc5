"""Rows whose value is the greatest (least) of all rows become the first rows of each group by RANK: one sweep in place
of an aggregation and a join with it.

    SELECT a.* FROM A a, (SELECT k, MAX(x) AS m FROM A GROUP BY k) b WHERE a.k = b.k AND a.x = b.m
      =  the first by RANK of each k in the descending order of x, but those whose k or x is NULL
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sweeparea.cql.rewrites.conditions import all_of, column, column_of, conjuncts, equality, substitute
from sweeparea.cql.rewrites.identity import Identity
from sweeparea.cql.rewrites.rule import Rewriting, Rule
from sweeparea.operators.nodes import Aggregate, Join, Project, Select, TopK
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.numbers import RANK
from sweeparea.operators.sql.expressions import Column, Expr, SortKey

_SAME = re.compile(r"(tinyint|smallint|int|bigint|decimal\(\d+,\s*\d+\)|date|timestamp|timestamp_ntz|string|boolean)\Z")
"""Types whose equal values are alike, and of which MAX and MIN give the type that they are given."""


@dataclass(frozen=True)
class _Extreme:
    """A side of a join that has the greatest or least value of each group of ``of``: its columns by the ids of those of
    ``of`` that they equal. ``value``: that of the extreme, ``keys``: the others.
    """

    of: Node
    columns: Mapping[str, str]
    value: str
    keys: frozenset[str]
    descending: bool


def _below(side: Node, through: tuple[type[Node], ...]) -> Iterator[tuple[Node, dict[str, str]]]:
    """A side and what is below its nodes of some kinds, each with its columns by the ids of those of the side that have
    their values.
    """
    names = {c.id: c.id for c in side.columns}
    yield side, names
    while isinstance(side, Project | Select) and isinstance(side, through):
        if isinstance(side, Project):
            given = {c.id: column_of(expr) for c, expr in side.outputs}
            names = {id_: below for id_, own in names.items() if (below := given[own]) is not None}
        side = side.input
        yield side, names


def _extreme_of(side: Node) -> _Extreme | None:
    """A join's side as extremes, under projections that only name columns."""
    *_, (below, names) = _below(side, (Project,))
    if not isinstance(below, Aggregate) or len(below.calls) != 1:
        return None
    [(made, call)] = below.calls
    value = None if call.argument is None else column_of(call.argument)
    keys = {key.id: column_of(expr) for key, expr in below.keys}
    if call.function not in ("MAX", "MIN") or call.filter is not None or value is None or None in keys.values():
        return None
    own = {made.id: value} | {id_: key for id_, key in keys.items() if key is not None}
    columns = {id_: own[of] for id_, of in names.items()}
    return _Extreme(below.input, columns, value, frozenset(own[id_] for id_ in keys), call.function == "MAX")


def _above(side: Node, old: Node, new: Node) -> Node:
    """A side with another node in the place of one that is below its selections and projections."""
    return new if side is old else side.with_inputs((_above(side.inputs[0], old, new),))


def _extreme_of_same(node: Node, _: Rewriting) -> Node | None:
    assert isinstance(node, Join)
    if node.kind != JoinKind.INNER or node.condition is None:
        return None
    return _first_of(node, node.left, node.right) or _first_of(node, node.right, node.left)


def _first_of(node: Join, side: Node, other: Node) -> Node | None:
    """The join as the first rows of one of its sides, if the other one tells which they are."""
    extreme = _extreme_of(other)
    if extreme is None:
        return None
    found = _same(side, extreme)
    if found is None:
        return None
    base, names, like = found
    types = {c.id: c.type for c in base.columns}
    # the other side's columns as those of this one that they equal
    shown = {own: c for c in side.columns if (own := names.get(c.id)) is not None}
    equal = {id_: shown[like[of]] for id_, of in extreme.columns.items() if like[of] in shown}
    if equal.keys() != {c.id for c in other.columns}:
        return None
    if not all(_SAME.match((types[like[id_]] or "").lower()) for id_ in (extreme.value, *extreme.keys)):
        return None
    left, met = [], set[str]()
    for condition in conjuncts(node.condition):
        pair = equality(condition)
        id_ = next((id_ for id_ in pair or () if id_ in equal), None)
        if pair is not None and id_ is not None and set(pair) == {id_, equal[id_].id}:
            met.add(extreme.columns[id_])
        else:
            left.append(condition)
    if met != {extreme.value, *extreme.keys}:
        return None
    return _made(node, side, base, extreme, like, equal, left)


def _same(side: Node, extreme: _Extreme) -> tuple[Node, dict[str, str], dict[str, str]] | None:
    """What is below a side and gives the rows that the extremes are of, with its columns by the ids of the side's, and
    by those of theirs.
    """
    identity = Identity()
    digests = {identity.of(below): (below, own) for below, own in _below(extreme.of, (Project,))}
    for below, names in _below(side, (Project, Select)):
        if identity.of(below) in digests:
            theirs, own = digests[identity.of(below)]
            places = dict(zip((c.id for c in theirs.columns), (c.id for c in below.columns), strict=True))
            like = {id_: places[of] for id_, of in own.items()}
            if {extreme.value, *extreme.keys} <= like.keys():
                return below, names, like
    return None


def _made(
    node: Join,
    side: Node,
    base: Node,
    extreme: _Extreme,
    like: Mapping[str, str],
    equal: Mapping[str, Column],
    left: list[Expr],
) -> Node:
    of = {c.id: c for c in base.columns}
    value, keys = of[like[extreme.value]], [of[like[key]] for key in sorted(extreme.keys, key=lambda k: like[k])]
    order = (SortKey(column(value), extreme.descending, nulls_first=False),)
    first: Node = TopK(base, order, 1, 0, tuple(map(column, keys)), RANK)
    not_null = [Expr(f"`{c.id}` IS NOT NULL", f"{c.label} IS NOT NULL", frozenset({c.id})) for c in (value, *keys)]
    condition = all_of(not_null)
    assert condition is not None
    made = _above(side, base, Select(first, condition))
    other = {id_: column(c) for id_, c in equal.items()}
    above = all_of([substitute(c, other) for c in left])
    made = made if above is None else Select(made, above)
    return Project(made, tuple((c, other.get(c.id, column(c))) for c in node.columns))


RULES = (
    Rule(
        "extreme_of_same",
        "Arasu et al. 2003, section 7.2: what holds in SQL holds at every instant",
        "an inner join says that a value equals MAX or MIN of it over the same rows, all or those of its keys; types "
        "whose equal values are alike",
        (Join,),
        _extreme_of_same,
    ),
)
