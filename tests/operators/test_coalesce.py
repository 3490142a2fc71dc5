"""Coalesce leaves every snapshot as it is (Kraemer & Seeger 2005, section 4.3.2.10)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.intervals.coalesce import coalesce
from sweeparea.operators.intervals.split import split
from sweeparea.operators.time.ticks import INF
from tests.operators import brute
from tests.operators.interval_bags import ROWS, bag, intervals, rows_of, snapshots


@settings(max_examples=120, deadline=None)
@given(ROWS, st.booleans(), st.one_of(st.just(INF), st.integers(1, 12)))
def test_coalesce_is_snapshot_equivalent(rows, endless, most):
    before = intervals(rows, endless)
    after = coalesce(before, ["v"], most)
    assert snapshots(after) == snapshots(before)
    longest = max((te - ts for _, ts, te, _ in rows_of(before) if te != INF), default=0)
    for _, ts, te, n in rows_of(after):
        assert n > 0
        assert te == INF or te - ts <= most + longest  # what is longer than that is not enlarged
    if most == INF:  # nothing is left that could be merged
        begun, ended = Counter(), Counter()
        for record, ts, te, n in rows_of(after):
            begun[record, ts] += n
            ended[record, te] += n
        assert not begun & ended


@settings(max_examples=80, deadline=None)
@given(ROWS, st.integers(1, 7))
def test_coalesce_undoes_split(rows, length):
    """Pieces of one copy of one record come together again (of several copies in one of the equivalent ways)."""
    apart = [row for i, row in enumerate(rows) if not any(brute.plain(row[0]) == brute.plain(r[0]) for r in rows[:i])]
    before = intervals([(v, ts, te, 1) for v, ts, te, _ in apart], False)
    again = coalesce(split(before, length), ["v"])
    assert Counter(rows_of(again)) == Counter(rows_of(before))


def test_records_without_columns_and_empty_bags():
    empty = bag([])
    assert coalesce(empty, ["v"]).num_rows == split(empty, 3).num_rows == 0
    plain = bag([(1.0, 1, 3, 1), (2.0, 3, 5, 1)]).drop_columns(["v"])
    assert coalesce(plain, []).to_pylist() == [{"__ts": 1, "__te": 5, "__n": 1}]
