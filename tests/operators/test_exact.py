"""Exact sums against Python's integers, fractions and math.fsum."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.values.exact import Accumulator

EDGES = [5e-324, 2.0**-1022, 2.0**-1022 - 5e-324, 1.7976931348623157e308, 1e308, 1e16, 1.0, 0.1, -0.0, 2.0**53 + 2]
FINITE = st.sampled_from([*EDGES, *(-x for x in EDGES)]) | st.floats(allow_nan=False, allow_infinity=False)
COPIES = st.sampled_from([1, 1, 1, -1, 2, -3, 2**30, 2**31 - 1, -(2**45) + 3, 2**62, 2**63 - 1, -(2**63) + 1])


def nearest(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator if exact else 0.0
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(FINITE, COPIES), max_size=12), st.randoms(use_true_random=True))
def test_doubles_any_order_any_split_any_copies(pairs, rng):
    expected = nearest(sum((Fraction(v) * n for v, n in pairs), Fraction(0)))
    values, copies = [v for v, _ in pairs], [n for _, n in pairs]
    total = Accumulator().add(values, copies)
    assert same(total.double(), expected)
    rng.shuffle(pairs)
    k = rng.randint(0, len(pairs))
    left = Accumulator().add([v for v, _ in pairs[:k]], [n for _, n in pairs[:k]])
    right = Accumulator().add([v for v, _ in pairs[k:]], [n for _, n in pairs[k:]])
    whole = Accumulator(encoded=left.encode()).add_encoded(right.encode())
    assert whole.encode() == total.encode()
    assert same(whole.double(), expected)
    assert Accumulator(encoded=total.encode()).add(values, [-n for n in copies]).encode() == b""


@settings(max_examples=200, deadline=None)
@given(st.lists(FINITE, max_size=20))
def test_doubles_are_fsum(values):
    try:
        expected = math.fsum(values) + 0.0
    except OverflowError:  # fsum gives up where an intermediate sum is too large
        expected = nearest(sum(map(Fraction, values), Fraction(0)))
    assert same(Accumulator().add(values).double(), expected)


@pytest.mark.parametrize(
    ("values", "copies", "expected"),
    [
        ([1e16, 1.0, -1e16], [1, 1, 1], 1.0),
        ([1e308, 1e308, -1e308], [1, 1, 1], 1e308),
        ([1.7976931348623157e308, 2.0**970], [1, 1], math.inf),  # half an ulp above the greatest double: to even, up
        ([1.7976931348623157e308, 2.0**970, 5e-324], [1, 1, -1], 1.7976931348623157e308),
        ([-1e308], [2], -math.inf),
        ([1.0, 2.0**-53], [1, 1], 1.0),
        ([1.0, 2.0**-53, 5e-324], [1, 1, 1], 1.0 + 2.0**-52),
        ([1.0 + 2.0**-52, 2.0**-53], [1, 1], 1.0 + 2.0**-51),
        ([-0.0], [1], 0.0),
        ([math.inf, 1.0], [1, 1], math.inf),
        ([math.inf, -math.inf], [1, 1], math.nan),
        ([math.inf, -math.inf, 3.0], [1, 0, 1], math.inf),
        ([math.nan, math.inf, 3.0], [0, 0, 2], 6.0),
    ],
)
def test_rounding_and_special_values(values, copies, expected):
    assert same(Accumulator().add(values, copies).double(), expected)


def test_special_values_can_be_taken_out_again_also_encoded():
    full = Accumulator().add([math.nan, math.inf, -math.inf, 0.5])
    assert math.isnan(full.double())
    left = Accumulator(encoded=full.encode()).add([math.nan, math.inf, -math.inf], [-1, -1, -1])
    assert left.double() == 0.5
    assert left.encode() == Accumulator().add([0.5]).encode()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**127), 2**127 - 1) | st.integers(-(2**63), 2**63 - 1), COPIES), max_size=10))
def test_integers(pairs):
    exact = sum(v * n for v, n in pairs)
    total = Accumulator("integer").add([v for v, _ in pairs], [n for _, n in pairs])
    if -(2**127) <= exact < 2**127:
        assert total.integer() == exact
    else:
        with pytest.raises(OverflowError):
            total.integer()
    assert total.double() == float(exact)
    back = Accumulator("integer", total.encode())
    assert back.encode() == total.encode()
    assert back.add([v for v, _ in pairs], [-n for _, n in pairs]).encode() == b""


@settings(max_examples=50, deadline=None)
@given(st.lists(st.decimals(-(10**16), 10**16, places=20), max_size=10))
def test_decimals_by_their_unscaled_values(values):
    with localcontext(prec=100):
        unscaled = [int(v.scaleb(20)) for v in values]
        assert Decimal(Accumulator("integer").add(unscaled).integer()).scaleb(-20) == sum(values, Decimal(0))


def test_a_long_random_sum():
    rng = np.random.default_rng(7)
    values = rng.normal(size=200_000) * 10.0 ** rng.integers(-300, 300, 200_000)
    total = Accumulator().add(values)
    assert total.double() == math.fsum(values)
    order = list(range(len(values)))
    random.Random(1).shuffle(order)
    total.add(values[order][:199_000], -np.ones(199_000, np.int64))
    assert total.double() == math.fsum(values[order][199_000:])


def test_other_kinds_are_refused():
    with pytest.raises(ValueError, match="not 'float'"):
        Accumulator("float")
