"""Conditions on ROW_NUMBER, RANK and DENSE_RANK become the first rows of each group, of which a change costs what it
changes.

    SELECT .. FROM (SELECT *, RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM S) WHERE r <= 3 AND c
      =  the first 3 by RANK of each a in the order of b, then c

What a conjunct says of a number is an interval that holds all numbers for which it can be TRUE. Where it is TRUE of
just these, the conjunct goes; else it stays above.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from sweeparea.cql.rewrites.conditions import all_of, column, conjuncts, tree
from sweeparea.cql.rewrites.rule import Rewriting, Rule
from sweeparea.cql.text.constants import number_of
from sweeparea.operators.nodes import Analytic, Project, Select, TopK, WindowFunction
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.numbers import NUMBERINGS, ROW_NUMBER
from sweeparea.operators.sql.expressions import Column, Expr

_WHOLE = (exp.DataType.Type.TINYINT, exp.DataType.Type.SMALLINT, exp.DataType.Type.INT, exp.DataType.Type.BIGINT)
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


@dataclass(frozen=True)
class Numbers:
    """Whole numbers from ``low`` to ``high`` (None: without end). ``exact``: no others, and all of them."""

    low: int = 1
    high: int | None = None
    exact: bool = True

    @property
    def none(self) -> bool:
        return self.high is not None and self.high < self.low

    def __and__(self, other: Numbers) -> Numbers:
        ends = [n.high for n in (self, other) if n.high is not None]
        return Numbers(max(self.low, other.low), min(ends, default=None), self.exact and other.exact)

    def __or__(self, other: Numbers) -> Numbers:
        if self.none or other.none:
            kept = other if self.none else self
            return replace(kept, exact=self.exact and other.exact)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        first, second = sorted((self, other), key=lambda n: n.low)
        joined = first.high is None or second.low <= first.high + 1
        return Numbers(min(self.low, other.low), high, self.exact and other.exact and joined)


ALL, NONE, ANY = Numbers(), Numbers(1, 0), Numbers(exact=False)


def numbers_of(condition: Expr, id_: str) -> Numbers:
    """For which numbers in a column a condition can be TRUE."""
    node = tree(condition.sql) if condition.columns == frozenset({id_}) else None
    return ANY if node is None else _numbers(node, id_)


def _numbers(node: exp.Expr, id_: str) -> Numbers:
    node = node.unnest()
    match node:
        case exp.And():
            return _numbers(node.this, id_) & _numbers(node.expression, id_)
        case exp.Or():
            return _numbers(node.this, id_) | _numbers(node.expression, id_)
        case exp.Not():
            found = _numbers(node.this, id_)
            if not found.exact:
                return ANY
            if found.none:
                return ALL
            if found.low > 1:  # with an end on both sides, all numbers below and all above: no interval
                return Numbers(1, found.low - 1) if found.high is None else ANY
            return NONE if found.high is None else Numbers(found.high + 1)
        case exp.Between():
            low = _compared(exp.GTE, node.this, node.args["low"], id_)
            return low & _compared(exp.LTE, node.this, node.args["high"], id_)
        case exp.In() if node.expressions and not node.args.get("query"):
            found = NONE
            for value in sorted(node.expressions, key=lambda e: _constant(e) or 0):
                found |= _compared(exp.EQ, node.this, value, id_)
            return found
        case exp.EQ() | exp.NullSafeEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            kind = exp.EQ if isinstance(node, exp.NullSafeEQ) else type(node)
            if isinstance(node.this.unnest(), exp.Column):
                return _compared(kind, node.this, node.expression, id_)
            return _compared(_MIRRORED.get(kind, kind), node.expression, node.this, id_)
        case _:
            return ANY


def _compared(kind: type[exp.Expr], number: exp.Expr, with_: exp.Expr, id_: str) -> Numbers:
    number = number.unnest()
    value = _constant(with_)
    if not isinstance(number, exp.Column) or number.name != id_ or value is None:
        return ANY
    if kind is exp.EQ:
        return Numbers(max(1, int(value)), int(value)) if value.denominator == 1 and value >= 1 else NONE
    if kind in (exp.LT, exp.LTE):
        return Numbers(1, max(0, math.ceil(value) - 1 if kind is exp.LT else math.floor(value)))
    return Numbers(max(1, math.floor(value) + 1 if kind is exp.GT else math.ceil(value)))


def _constant(node: exp.Expr) -> Fraction | None:
    """The number that Spark compares with, where that is told exactly: whole numbers of an INT, and decimals."""
    node = node.unnest()
    if isinstance(node, exp.Cast) and node.to.this in _WHOLE:
        node = node.this.unnest()
    elif isinstance(node, exp.Literal) and not node.is_string and re.fullmatch(r"\d+\.\d*|\.\d+", str(node.this)):
        return Fraction(str(node.this))
    if node.find(exp.Cast, exp.Div):
        return None
    value = number_of(node)
    return value if value is not None and abs(value) < 1 << 31 else None


def _first_of_groups(node: Node, _: Rewriting) -> Node | None:
    assert isinstance(node, Select)
    below = node.input
    if isinstance(below, Analytic):
        numbered = {c: call for c, call in below.calls if call.function in NUMBERINGS}
        found = _narrowest(node, {c: call.function for c, call in numbered.items()})
        return None if found is None else _of_analytic(node, below, found, numbered[found[0]])
    if isinstance(below, TopK):
        shown = {c: function for c, function in below.numbers if function == below.by}
        found = _narrowest(node, shown)
        return None if found is None else _of_top(node, below, *found)
    return None


def _narrowest(node: Select, numbered: dict[Column, str]) -> tuple[Column, Numbers] | None:
    """The number that the conditions limit most, with all that they say of it."""
    best: tuple[Column, Numbers] | None = None
    for c in numbered:
        found = ALL
        for condition in conjuncts(node.condition):
            if condition.columns == frozenset({c.id}):
                said = numbers_of(condition, c.id)
                found &= said if said != ANY else ALL
        if found.low == 1 and found.high is None:
            continue
        if best is None or (found.high is not None and (best[1].high is None or found.high < best[1].high)):
            best = c, found
    return best


def _above(node: Select, cut: Column, below: Node) -> Node:
    """``below`` under the conditions that it does not meet by itself."""
    left = [c for c in conjuncts(node.condition) if not numbers_of(c, cut.id).exact]
    condition = all_of(left)
    return below if condition is None else replace(node, input=below, condition=condition)


def _of_analytic(node: Select, below: Analytic, found: tuple[Column, Numbers], call: WindowFunction) -> Node | None:
    cut, numbers = found
    if numbers.high is None and numbers.low == 1:
        return None
    top, rest = TopK.of_calls(below.input, below.calls, cut)
    told = ROW_NUMBER in (call.function, *(function for _, function in top.numbers))
    if told and any(call.tells_copies for _, call in rest):
        return None  # which copy of a record has which number could not be told above the others
    if rest:
        top = replace(top, input=Analytic(below.input, rest))
    made: Node = _above(node, cut, _limited(top, call.function, numbers))
    if made.columns == below.columns:
        return made
    return Project(made, tuple((c, column(c)) for c in below.columns))


def _of_top(node: Select, below: TopK, cut: Column, numbers: Numbers) -> Node | None:
    had = Numbers(below.offset + 1, None if below.limit is None else below.offset + below.limit)
    both = had & numbers
    exact = any(numbers_of(c, cut.id).exact for c in conjuncts(node.condition))
    if both == replace(had, exact=both.exact) and not exact:
        return None
    return _above(node, cut, _limited(below, below.by, both))


def _limited(top: TopK, by: str, numbers: Numbers) -> TopK:
    limit = None if numbers.high is None else max(0, numbers.high - numbers.low + 1)
    return replace(top, by=by, limit=limit, offset=numbers.low - 1)


RULES = (
    Rule(
        "first_of_groups",
        "Arasu et al. 2003, section 7.2: what holds in SQL holds at every instant",
        "a conjunct compares ROW_NUMBER, RANK or DENSE_RANK with constants; of ROW_NUMBER only where no other "
        "call tells copies of a record apart",
        (Select,),
        _first_of_groups,
    ),
)
