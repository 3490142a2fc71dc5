"""Statistical aggregates of doubles against Fractions: one correct rounding, whatever the values and their order."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators.aggregates import moments
from tests.replay import bags

HOSTILE = st.sampled_from([0.0, -0.0, 1.0, 0.1, 1e16, -1e16, 1e-300, 1e300, 5e-324, math.inf, -math.inf, math.nan])
NUMBERS = st.one_of(HOSTILE, st.floats(allow_nan=False, allow_infinity=False), st.integers(-3, 3).map(float))
SINGLES = {
    "SUM": bags.total,
    "AVG": bags.average,
    "VAR_POP": bags.var_pop,
    "VAR_SAMP": bags.var_samp,
    "STDDEV_POP": bags.stddev_pop,
    "STDDEV_SAMP": bags.stddev_samp,
    "SKEWNESS": bags.skewness,
    "KURTOSIS": bags.kurtosis,
}
PAIRS = {
    "COVAR_POP": bags.covar_pop,
    "COVAR_SAMP": bags.covar_samp,
    "CORR": bags.corr,
    "REGR_SLOPE": lambda y, x: bags.slope(x, y),
    "REGR_INTERCEPT": lambda y, x: bags.intercept(x, y),
    "REGR_R2": lambda y, x: bags.determination(x, y),
    "REGR_SXY": bags.sxy,
}


def _same(a: float | None, b: float | None) -> bool:
    return repr(a) == repr(b) or (a == b and a is not None)


@settings(deadline=None, max_examples=100)
@given(st.lists(NUMBERS, max_size=6), st.sampled_from(sorted(SINGLES)))
def test_one_argument(numbers: list[float], function: str):
    lists = pa.array([numbers], pa.list_(pa.float64()))
    assert _same(moments.values(function, lists)[0].as_py(), SINGLES[function](numbers))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5), st.sampled_from(sorted(PAIRS)))
def test_two_arguments(pairs: list[tuple[float, float]], function: str):
    kind = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.float64())]))
    lists = pa.array([[{"x": x, "y": y} for x, y in pairs]], kind)
    first, second = zip(*pairs, strict=True) if pairs else ((), ())
    assert _same(moments.values(function, lists)[0].as_py(), PAIRS[function](first, second))


def test_sums_are_those_of_fsum_in_any_order():
    chance = random.Random(7)
    numbers = [chance.choice([1e16, -1e16, 0.1, 1.0, 1e-9]) * chance.random() for _ in range(2000)]
    for _ in range(5):
        chance.shuffle(numbers)
        assert moments.values("SUM", pa.array([numbers]))[0].as_py() == math.fsum(numbers)


def test_every_list_has_its_own_value():
    lists = pa.array([[1.0, 3.0], None, [], [2.0]], pa.list_(pa.float64()))
    assert moments.values("VAR_SAMP", lists).to_pylist() == [2.0, None, None, None]
    assert moments.values("VAR_SAMP", lists.slice(0, 1)).to_pylist() == [2.0]


def test_sums_of_squares_read_one_argument_alone():
    kind = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.float64())]))
    lists = pa.array([[{"x": math.nan, "y": 1.0}, {"x": 2.0, "y": 3.0}]], kind)
    assert moments.values("REGR_SXX", lists).to_pylist() == [2.0]  # REGR_SXX(y, x): of the second
    assert math.isnan(moments.values("REGR_SYY", lists)[0].as_py())


def test_vectors_element_by_element():
    lists = pa.array([[[1e8, 1.0], [1.0, 2.0], [-1e8, 3.0]], [], None], pa.list_(pa.list_(pa.float32())))
    assert moments.vectors("VECTOR_SUM", lists).to_pylist() == [[1.0, 6.0], None, None]
    assert moments.vectors("VECTOR_AVG", lists)[0].as_py()[1] == 2.0
    with pytest.raises(DataError, match="differ in length"):
        moments.vectors("VECTOR_SUM", pa.array([[[1.0], [1.0, 2.0]]]))


def test_a_root_just_beyond_a_tie_is_rounded_up():
    tie = 2**54 + 2  # lies between two doubles
    assert moments.root(tie * tie, 1) == 2.0**54
    assert moments.root(tie * tie + 1, 1) == 2.0**54 + 4
