"""Where catch-up cuts a long range: slices of about ``slice.max_rows``, few of them, a burst in one."""

from __future__ import annotations

import bisect
import itertools
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.spark_jobs.slices import catch_up

TARGET = 1 << 40


def ends(ticks: list[int], most: int) -> list[int]:
    """The ends of the slices of ``(0, TARGET]`` over rows at these ticks."""
    ticks, plan = sorted(ticks), SimpleNamespace(name="q", settings=(("slice.max_rows", str(most)),))

    def rows(_plans, _plan, h0: int, h1: int) -> int:
        return bisect.bisect_right(ticks, h1) - bisect.bisect_right(ticks, h0)

    kept, catch_up.new_rows = catch_up.new_rows, rows
    try:
        found = [0]
        while found[-1] < TARGET:
            found.append(catch_up._cut(SimpleNamespace(plans=None), plan, found[-1], TARGET))  # type: ignore[arg-type]
            assert len(found) < 1_000
        return found
    finally:
        catch_up.new_rows = kept


@settings(deadline=None)
@given(st.lists(st.integers(1, TARGET) | st.integers(1, 50) | st.just(7_000_000), max_size=60), st.integers(1, 9))
def test_slices_are_of_the_size_that_is_asked_for_or_one_instant(ticks, most):
    cuts = ends(ticks, most)
    sizes = [sum(a < t <= b for t in ticks) for a, b in itertools.pairwise(cuts)]
    assert sum(sizes) == len(ticks)
    for (a, b), size in zip(itertools.pairwise(cuts), sizes, strict=True):
        assert size <= most or b == a + 1
    assert len(sizes) <= 2 * (2 * len(ticks) // most + 1) + 2 * len(set(ticks))


def test_a_burst_has_one_small_slice_before_it():
    assert ends([123_456_789] * 1_000, 10) == [0, 123_456_788, 123_456_789, TARGET]
