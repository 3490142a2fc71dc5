"""Row windows against their definition at every instant, however the timeline is cut."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import INF, MAX_TICK
from sweeparea.operators.windows import rows_window
from sweeparea.operators.windows.arrivals import ArrivalSpec
from tests.operators import brute, brute_windows
from tests.operators.arrival_elements import COLUMNS, CUTS, ELEMENTS, EVERY_TICK, LAST, run, singly, table


@settings(max_examples=400, deadline=None)
@given(
    ELEMENTS,
    CUTS,
    st.integers(1, 7),
    st.sampled_from([1, 1, 2, 3, 5]),
    st.none() | st.integers(1, 9),
    st.booleans(),
)
def test_rows(elements, cuts, count, slide, length, partitioned):
    if not partitioned:
        elements = [((0.0, "x"), *e[1:]) for e in elements]
    arrivals = ArrivalSpec(COLUMNS, ("__p0", "__p1") if partitioned else (), ("a", "b"))
    sweep = partial(rows_window.sweep, spec=rows_window.RowsSpec(arrivals, count, slide, length))
    bag, carry = run(sweep, elements, cuts)
    single = singly(elements)
    for tick in range(LAST + 1):
        shown = brute_windows.rows(single, tick, count, slide, length or math.inf)
        assert brute.at(bag, tick) == shown, tick
    # the SweepArea's bound, whatever has arrived
    partitions = {brute.plain(e[0]) for e in elements}
    held = Counter((brute.plain((r["__p0"], r["__p1"])),) for r in carry.to_pylist() for _ in range(r["__n"]))
    assert all(n <= count + slide - 1 for n in held.values())
    assert carry.num_rows <= len(partitions) * (count + slide)


@settings(max_examples=100, deadline=None)
@given(ELEMENTS, st.integers(1, 7), st.sampled_from([1, 2, 3]))
def test_one_slice_a_tick(elements, count, slide):
    arrivals = ArrivalSpec(COLUMNS, ("__p0",), ("a", "b"))
    sweep = partial(rows_window.sweep, spec=rows_window.RowsSpec(arrivals, count, slide))
    elements = [((e[0][0], None), *e[1:]) for e in elements]
    bag, _ = run(sweep, elements, EVERY_TICK)
    for tick in range(LAST + 1):
        assert brute.at(bag, tick) == brute_windows.rows(singly(elements), tick, count, slide)


def test_ties_follow_the_sequence_then_the_record():
    elements = [((0.0, "x"), 3, (v, "x"), 1) for v in (4.0, math.nan, None, -1.0)]
    by_record = rows_window.RowsSpec(ArrivalSpec(COLUMNS, (), ("a", "b")), 2)
    assert brute.at(run(partial(rows_window.sweep, spec=by_record), elements, [LAST])[0], 3) == Counter(
        {("NaN", "x"): 1, (4.0, "x"): 1}
    )
    elements = [((0.0, "x"), 3, (v, text), 1) for v, text in ((4.0, "a"), (math.nan, "b"), (None, "d"), (-1.0, "c"))]
    by_text = rows_window.RowsSpec(ArrivalSpec(COLUMNS, (), ("b", "a")), 2)
    assert brute.at(run(partial(rows_window.sweep, spec=by_text), elements, [LAST])[0], 3) == Counter(
        {(None, "d"): 1, (-1.0, "c"): 1}
    )


def test_a_million_copies_are_one_row():
    spec = rows_window.RowsSpec(ArrivalSpec(COLUMNS), 3, 7)
    rows = table([((0.0, "x"), 1, (1.0, "x"), 10**15), ((0.0, "x"), 2, (2.0, "x"), 6)])
    delta, carry = rows_window.sweep(rows, spec, 0, 5)
    # 10**15 is 7k + 6: the window shows the arrivals up to 7k, then, with one of the six, up to 7k + 7
    assert 10**15 % 7 == 6
    assert [tuple(r.values())[:1] + tuple(r.values())[2:] for r in delta.to_pylist()] == [
        (1.0, 1, 2, 3),
        (1.0, 2, INF, 2),
        (2.0, 2, INF, 1),
    ]
    assert carry.column("__at").to_pylist() == [10**15, 10**15 + 6]
    assert carry.column("__n").to_pylist() == [2, 6]


@pytest.mark.parametrize("tick", [MAX_TICK, MAX_TICK - 1, MAX_TICK - 2])
def test_rows_at_the_end_of_time(tick):
    rows = table([((0.0, "x"), tick, (1.0, "x"), 1)])
    spec = rows_window.RowsSpec(ArrivalSpec(COLUMNS), 1 << 62, 1 << 62, 1 << 62)
    assert rows_window.sweep(rows, spec, tick - 1, MAX_TICK)[0].num_rows == 0
    spec = rows_window.RowsSpec(ArrivalSpec(COLUMNS), 1 << 62, 1, 1 << 62)
    assert rows_window.sweep(rows, spec, tick - 1, MAX_TICK)[0].column("__te").to_pylist() == [INF]
