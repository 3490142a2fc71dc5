"""What a condition says of a ROW_NUMBER, RANK or DENSE_RANK, against the condition itself for each number."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.cql.rewrites.ranks import Numbers, numbers_of
from sweeparea.operators.sql.expressions import Expr

HIGHEST = 12
"""Beyond all constants in the conditions: what holds of it holds of all numbers behind it."""

Condition = tuple[str, Callable[[int], bool]]
COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<=>": operator.eq,
}  # fmt: skip
CONSTANTS = st.sampled_from(["-1", "0", "1", "2", "3", "5", "9", "2.0", "2.5", "0.5", "CAST(4 AS INT)"])


def _value(constant: str) -> Fraction:
    return Fraction(4) if constant.startswith("CAST") else Fraction(constant)


def _compared(sign: str, constant: str, first: bool) -> Condition:
    compare, value = COMPARISONS[sign], _value(constant)
    if first:
        return f"{constant} {sign} `r`", lambda n: compare(value, n)
    return f"`r` {sign} {constant}", lambda n: compare(n, value)


def _between(low: str, high: str) -> Condition:
    return f"`r` BETWEEN {low} AND {high}", lambda n: _value(low) <= n <= _value(high)


def _in(constants: list[str]) -> Condition:
    return f"`r` IN ({', '.join(constants)})", lambda n: n in [_value(c) for c in constants]


def _joined(below: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    return st.one_of(
        below.map(lambda c: (f"NOT ({c[0]})", lambda n: not c[1](n))),
        st.tuples(below, below).map(lambda c: (f"({c[0][0]}) AND ({c[1][0]})", lambda n: c[0][1](n) and c[1][1](n))),
        st.tuples(below, below).map(lambda c: (f"({c[0][0]}) OR ({c[1][0]})", lambda n: c[0][1](n) or c[1][1](n))),
    )


CONDITIONS = st.recursive(
    st.one_of(
        st.builds(_compared, st.sampled_from(sorted(COMPARISONS)), CONSTANTS, st.booleans()),
        st.builds(_between, CONSTANTS, CONSTANTS),
        st.builds(_in, st.lists(CONSTANTS, min_size=1, max_size=4)),
    ),
    _joined,
    max_leaves=4,
)


def _numbers(sql: str) -> Numbers:
    return numbers_of(Expr(sql, sql, frozenset({"r"})), "r")


@settings(deadline=None, max_examples=300)
@given(CONDITIONS)
def test_numbers_for_which_a_condition_is_true(condition: Condition):
    sql, holds = condition
    found = _numbers(sql)
    for n in range(1, HIGHEST + 1):
        within = found.low <= n and (found.high is None or n <= found.high)
        assert within or not holds(n), n
        assert holds(n) or not (within and found.exact), n


@pytest.mark.parametrize(
    ("sql", "numbers"),
    [
        ("`r` <= 3", Numbers(1, 3)),
        ("`r` < 3", Numbers(1, 2)),
        ("3 > `r`", Numbers(1, 2)),
        ("`r` = 1", Numbers(1, 1)),
        ("`r` BETWEEN 2 AND 4", Numbers(2, 4)),
        ("`r` <= 2.5", Numbers(1, 2)),
        ("`r` IN (3, 1, 2)", Numbers(1, 3)),
        ("NOT (`r` > 5)", Numbers(1, 5)),
        ("`r` > 2", Numbers(3)),
    ],
)
def test_the_interval_is_as_narrow_as_the_condition_says(sql: str, numbers: Numbers):
    assert _numbers(sql) == numbers


@pytest.mark.parametrize("sql", ["`r` % 2 = 1", "`r` < length('abc')", "`r` <= 3.5E0", "`r` IN (1, 3)"])
def test_a_condition_that_is_no_interval_stays(sql: str):
    assert not _numbers(sql).exact
