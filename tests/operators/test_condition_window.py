"""Condition windows against their definition at every instant, however the timeline is cut."""

from __future__ import annotations

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.windows import condition_window
from sweeparea.operators.windows.arrivals import ArrivalSpec
from tests.operators import brute, brute_windows
from tests.operators.arrival_elements import COLUMNS, CUTS, ELEMENTS, LAST, meets, run, singly


@settings(max_examples=300, deadline=None)
@given(ELEMENTS, CUTS, st.booleans())
def test_condition(elements, cuts, partitioned):
    if not partitioned:
        elements = [((0.0, "x"), *e[1:]) for e in elements]
    spec = ArrivalSpec(COLUMNS, ("__p0", "__p1") if partitioned else (), ("a", "b"))
    bag, carry = run(partial(condition_window.sweep, spec=spec), elements, cuts)
    single = singly(elements)
    for tick in range(LAST + 1):
        assert brute.at(bag, tick) == brute_windows.condition(single, tick, meets), tick
    # the visible buckets and what follows them
    kept = sum(r["__n"] for r in carry.to_pylist())
    waiting = 0
    for part in brute_windows.arrived(single, LAST):
        ends = [i for i, e in enumerate(part) if meets(e[2])]
        waiting += len(part) - (ends[-1] + 1 if ends else 0)
    assert kept <= waiting + brute_windows.condition(single, LAST, meets).total()
