"""Split leaves every snapshot as it is (Kraemer & Seeger 2005, section 4.3.2.11)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators.intervals.split import split
from sweeparea.operators.time.ticks import INF
from tests.operators.interval_bags import ROWS, bag, intervals, rows_of, snapshots


@settings(max_examples=120, deadline=None)
@given(ROWS, st.booleans(), st.integers(1, 7))
def test_split_is_snapshot_equivalent(rows, endless, length):
    before = intervals(rows, endless)
    after = split(before, length)
    assert snapshots(after) == snapshots(before)
    assert all(te == INF or 1 <= te - ts <= length for _, ts, te, _ in rows_of(after))


def test_a_piece_has_a_length():
    with pytest.raises(DataError, match="at least one"):
        split(bag([]), 0)
