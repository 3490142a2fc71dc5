"""Session windows against their definition at every instant, however the timeline is cut."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import MAX_TICK
from sweeparea.operators.windows import session_window
from sweeparea.operators.windows.arrivals import ArrivalSpec
from tests.operators import brute, brute_windows
from tests.operators.arrival_elements import COLUMNS, CUTS, ELEMENTS, LAST, run, singly, table


@settings(max_examples=300, deadline=None)
@given(ELEMENTS, CUTS, st.integers(1, 6), st.booleans())
def test_sessions(elements, cuts, gap, partitioned):
    if not partitioned:
        elements = [((0.0, "x"), *e[1:]) for e in elements]
    spec = session_window.SessionSpec(ArrivalSpec(COLUMNS, ("__p0", "__p1"), ("a", "b")), gap)
    bag, carry = run(partial(session_window.sweep, spec=spec), elements, cuts, ("a", "b", "__first", "__past"))
    bag = [((record[:2], *record[2:]), *rest) for record, *rest in bag]
    for tick in range(LAST + 1):
        assert brute.at(bag, tick) == brute_windows.sessions(singly(elements), tick, gap), tick
    # only sessions that may go on are kept
    newest = {}
    for partition, tick, _, _ in elements:
        newest[brute.plain(partition)] = max(tick, newest.get(brute.plain(partition), 0))
    assert all(newest[brute.plain((r["__p0"], r["__p1"]))] + gap - 1 > LAST for r in carry.to_pylist())


@pytest.mark.parametrize("tick", [MAX_TICK, MAX_TICK - 1, MAX_TICK - 2])
def test_sessions_at_the_end_of_time(tick):
    rows = table([((0.0, "x"), tick, (1.0, "x"), 1)])
    delta, _ = session_window.sweep(rows, session_window.SessionSpec(ArrivalSpec(COLUMNS), 2), tick - 1, MAX_TICK)
    assert delta.num_rows == (tick < MAX_TICK)
