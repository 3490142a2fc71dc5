"""What operators remember is bounded as stated, on input made to break it, and what can matter no more is gone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.kernels.aggregate import undominated, united
from sweeparea.operators.kernels.sorting import sorted_order
from sweeparea.operators.ordered.snapshot import SnapshotSpec, expand
from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.netting import compacted
from sweeparea.operators.windows import condition_window, rows_window, session_window
from sweeparea.operators.windows.arrivals import ArrivalSpec
from tests.operators import brute

BAG = [pa.field(c, pa.int64()) for c in ("__ts", "__te", "__n")]
KEYED = pa.schema([pa.field("k", pa.int64()), pa.field("v", pa.int64()), *BAG])
ARRIVED = pa.schema([(c, pa.int64()) for c in ("v", "p", "__ts", "__n", "__at")] + [("__when", pa.bool_())])
OF_P = ArrivalSpec(("v",), ("p",), ("v",))


def bag(rows) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(KEYED.names, row, strict=True)) for row in rows], KEYED)


def arrived(rows) -> pa.Table:
    """Rows (v, p, ts); those with a v below zero meet the condition."""
    given_ = [{"v": v, "p": p, "__ts": s, "__n": 1, "__at": 0, "__when": v < 0} for v, p, s in rows]
    return pa.Table.from_pylist(given_, ARRIVED)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([9, 9, 9, 10, 12]), st.integers(13, 17), st.integers(0, 3)),
        max_size=14,
    )
)
def test_minima_are_kept_where_no_other_element_makes_them_needless(rows):
    """An element that starts no earlier, ends no later and is no smaller than another one can never be the least alone
    (a SweepArea may reorganize by what cannot matter any more: Kraemer & Seeger 2005, section 4.3.1).
    """
    group, start, end, rank = (
        (np.array(c, np.int64) for c in zip(*rows, strict=True)) if rows else [np.zeros(0, int)] * 4
    )
    kept = undominated(sorted_order((group, start, -end + 20, rank)), group, start, end, rank)
    seen = [rows[i] for i in kept]
    assert len(set(seen)) == len(seen)
    assert set(seen) == brute.undominated(rows)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(1, 4)), max_size=14))
def test_presence_is_kept_as_intervals_that_do_not_touch(rows):
    rows = [(g, s, s + length) for g, s, length in rows]
    group, start, end = (np.array(c, np.int64) for c in zip(*rows, strict=True)) if rows else [np.zeros(0, int)] * 3
    row, since, until = united(sorted_order((group, start)), group, start, end)
    found = list(zip(group[row].tolist(), since.tolist(), until.tolist(), strict=True))
    assert len(set(found)) == len(found)
    assert set(found) == brute.united(rows)


class TestWindows:
    def test_elements_that_a_range_has_ended_leave_a_window_of_rows(self):
        spec = rows_window.RowsSpec(OF_P, count=5, length=4)
        rows = arrived([(v, v % 3, s) for v, s in enumerate(range(1, 31))])
        assert rows_window.sweep(rows, spec, 0, 30)[1].column("__ts").to_pylist() == [28, 29, 30]
        assert rows_window.sweep(rows, spec, 0, 40)[1].num_rows == 0

    def test_an_element_that_is_driven_out_at_its_end_leaves_once(self):
        spec = rows_window.RowsSpec(OF_P, count=1, length=4)
        first, carry = rows_window.sweep(arrived([(7, 0, 1)]), spec, 0, 2)
        later, _ = rows_window.sweep(pa.concat_tables([carry, arrived([(8, 0, 5)])]), spec, 2, 6)
        told = [(r["v"], r["__ts"], r["__te"], r["__n"]) for r in (*first.to_pylist(), *later.to_pylist())]
        assert told == [(7, 1, 5, 1), (8, 5, 9, 1)]

    def test_the_last_rows_of_each_partition_and_no_more(self):
        rows = arrived([(v, v % 7, 1 + v // 50) for v in range(3000)])
        assert rows_window.sweep(rows, rows_window.RowsSpec(OF_P, count=4), 0, 99)[1].num_rows == 4 * 7
        assert rows_window.sweep(rows, rows_window.RowsSpec(OF_P, count=4, slide=3), 0, 99)[1].num_rows <= 6 * 7

    def test_sessions_that_are_closed_leave_nothing(self):
        rows = arrived([(v, v % 7, 1 + 10 * (v // 50)) for v in range(3000)])
        spec = session_window.SessionSpec(OF_P, gap=5)
        assert set(session_window.sweep(rows, spec, 0, 594)[1].column("__ts").to_pylist()) == {591}
        assert session_window.sweep(rows, spec, 0, 595)[1].num_rows == 0

    def test_buckets_that_are_over_leave_nothing(self):
        rows = arrived([(-1 if v % 10 == 9 else v, 0, v) for v in range(1, 995)])
        kept = condition_window.sweep(rows, OF_P, 0, 999)[1].column("__ts").to_pylist()
        assert sorted(kept) == list(range(980, 995))


class TestBags:
    def test_what_has_expired_is_not_expanded_again(self):
        rows = [(1, v, v % 9, 10 + v % 5, 1) for v in range(500)] + [(1, 0, 3, 40, 1), (1, 0, 4, 40, 2)]
        carry = expand(bag(rows), SnapshotSpec(("k",), ("v",)), -1, 20)[1]
        assert carry.select(KEYED.names).to_pylist() == [{"k": 1, "v": 0, "__ts": 20, "__te": 40, "__n": 3}]

    def test_a_side_of_a_join_holds_the_net_of_what_lives(self):
        rows = [(1, v % 4, v, v + 30, 1) for v in range(100)]
        assert compacted(bag(rows), 99).num_rows == 30 - 1
        assert compacted(bag([*rows, *((k, v, s + 1, e, -n) for k, v, s, e, n in rows)]), 100).num_rows == 0

    @pytest.mark.parametrize("presence", [True, False])
    def test_duplicates_are_two_intervals_a_value_at_most(self, presence):
        schema = two_counts.rows_schema([pa.field("k", pa.int64())])
        operation = two_counts.DISTINCT if presence else two_counts.EXCEPT
        spec = two_counts.TwoCountsSpec(("k",), operation, (True, True))
        h0, carry = 0, schema.empty_table()
        for h1 in range(5, 200, 5):  # rising ends, falling ends, pending ones
            rows = [
                (k, h1 - k, h1 + 20 - (h1 + 7 * k) % 13 + 3 * (k == 2), 1, side) for k in range(4) for side in (0, 1)
            ]
            new = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
            _, carry = spec.sweep(pa.concat_tables([carry, new]), h0, h1)
            assert carry.num_rows <= 2 * 4 * 2
            h0 = h1
        assert spec.sweep(carry, h0, 400)[1].num_rows == 0

    def test_pending_results_of_infinite_bags_are_no_rows(self):
        rows = bag([(1, v, v, INF, 1) for v in range(50)] + [(1, v, v + 1, INF, -1) for v in range(50)])
        assert compacted(rows, 60).num_rows == 0
