"""The sweep below difference, intersection, negation and their kin: what holds whatever becomes of the two counts. Each
operation against its definition: `test_difference.py`, `test_intersect.py`, `test_distinct.py`, `test_negation.py`,
`test_semi_join.py`, `test_derived.py`; all of them share `two_bags.py`.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.sweeps.two_counts import TwoCountsSpec, sweep
from tests.operators import brute
from tests.operators.two_bags import DEFINITIONS, LAST, arrivals, expected, left, right, table


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_records_without_columns_are_counted(data):
    rows = [(due, side, ((0.0, "x"), ts, te, n)) for due, side, (_, ts, te, n) in data.draw(arrivals())]
    bag = table([(side, row) for _, side, row in rows]).select(["__ts", "__te", "__n", "__side"])
    result, _ = sweep(bag, TwoCountsSpec((), two_counts.DIFFERENCE), -1, LAST)
    assert result.column_names == ["__ts", "__te", "__n"]
    bag_ = [((), r["__ts"], r["__te"], r["__n"]) for r in result.to_pylist()]
    for tick in range(LAST + 1):
        wanted = expected(rows, tick, DEFINITIONS["difference"][1]).total()
        assert brute.at(bag_, tick).total() == wanted


@pytest.mark.parametrize("h1", [9, 4])
@pytest.mark.parametrize("side", [left, right])
def test_below_zero_names_the_record_and_the_instant(side, h1):
    rows = [left(1, 1), right(1, 1), side(-2, 4)]
    with pytest.raises(DataError, match=r"'b': 'x'.*below zero at tick 4"):
        sweep(table(rows), TwoCountsSpec(("a", "b"), two_counts.INTERSECT), 0, h1)
    sweep(table(rows), TwoCountsSpec(("a", "b"), two_counts.INTERSECT), 0, 3)  # not known to be so yet


def test_a_negative_tuple_where_expiry_is_known_is_refused():
    spec = TwoCountsSpec(("a", "b"), two_counts.INTERSECT, (True, True))
    with pytest.raises(DataError, match="the plan is wrong about expiry"):
        sweep(table([left(1, 1), left(-1, 4)]), spec, 0, 9)
