"""Kraemer's derived operators against his equations at every instant."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.sweeps import derived
from tests.operators import brute
from tests.operators.matches import CONDITIONS, bare
from tests.operators.two_bags import (
    LAST,
    arrivals,
    at,
    holds_at_every_instant,
    holds_of_whole_bags,
    leaves_the_least,
    negative_tuples_leave_nothing,
    of_known,
    sides_of,
    tells_each_change_once,
)


@of_known
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(known, data):
    holds_at_every_instant("max-union", known, data)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_each_change_is_told_once(data):
    tells_each_change_once("max-union", data)


@of_known
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_every_slice_leaves_the_least(known, data):
    leaves_the_least("max-union", known, data)


def test_negative_tuples_leave_nothing():
    negative_tuples_leave_nothing("max-union")


WHOLE = {
    "distinct": lambda bag, columns: derived.distinct(bag, columns),
    "intersect all": derived.intersection,
    "max-union": derived.max_union,
    "strict": derived.strict_difference,
}


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_bags_that_are_known_to_the_end_of_time(name, data):
    holds_of_whole_bags(WHOLE[name], name, data)


@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_joins_on_any_predicate(condition, data):
    """Equations 11 and 12: a pair has n1 * n2 copies; the semi-join n1 for each distinct right record that matches."""
    rows, match = data.draw(arrivals()), CONDITIONS[condition]
    left, right = sides_of(rows)
    right = right.rename_columns(["c", "d", "__ts", "__te", "__n"])

    def predicate(one, other):
        return match((one["a"], one["b"]), (other["c"], other["d"]))

    pairs, semi = derived.theta_join(left, right, predicate), derived.semi_join(left, right, predicate)
    assert pairs.column_names == ["a", "b", "c", "d", "__ts", "__te", "__n"]
    assert semi.column_names == left.column_names
    found, kept = (
        [(brute.plain(record), *bag) for *record, ts, te, n in (row.values() for row in result.to_pylist())
         for bag in [(ts, te, n)]]
        for result in (pairs, semi)
    )  # fmt: skip
    for tick in range(LAST + 1):
        ones, others = at(rows, 0, tick), at(rows, 1, tick)
        wanted = {(*x, *y): n * n_ for x, n in ones.items() for y, n_ in others.items() if match(bare(x), bare(y))}
        assert brute.at(found, tick) == Counter(wanted), tick
        counts = {x: n * sum(bool(match(bare(x), bare(y))) for y in others) for x, n in ones.items()}
        assert brute.at(kept, tick) == Counter({x: n for x, n in counts.items() if n}), tick
