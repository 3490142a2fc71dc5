"""User-defined windows: what a function may give, and what it is told when it gives something else."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sweeparea.infra.errors import DataError
from sweeparea.operators.time.ticks import INF, MAX_TICK
from sweeparea.operators.windows.user_window import UserWindowSpec, apply

ROWS = pa.table({"v": ["a", "b", "c"], "hold": [3, None, 0], "__ts": [1, 2, 5], "__n": [1, 2, 1]})


def windowed(function, monotonic=False):
    return apply(ROWS, UserWindowSpec("mine", function, ("v",), ("hold",), monotonic))


def test_intervals_are_what_the_function_gives():
    out = windowed(lambda s, hold: (s, pc.call_function("add", [s, hold])))
    assert [tuple(r.values()) for r in out.to_pylist()] == [("a", 1, 4, 1), ("b", 2, INF, 2)]


def test_null_starts_and_what_lies_beyond_time_are_never_valid():
    out = windowed(lambda s, hold: ([None, MAX_TICK + 1, 6], [9, None, MAX_TICK + 5]))
    assert [tuple(r.values()) for r in out.to_pylist()] == [("c", 6, INF, 1)]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda s, hold: (pa.array([0, 2, 5]), s), "element of tick 1 be valid from tick 0"),
        (lambda s, hold: (s.slice(1), s), "columns of 2 and 3 values for 3 elements"),
        (lambda s, hold: s, "two Arrow arrays"),
        (lambda s, hold: (s, ["x"] * 3), "two Arrow arrays"),
        (lambda s: (s, s), "failed: TypeError"),
        (lambda s, hold: 1 / 0, "failed: ZeroDivisionError"),
    ],
)
def test_faults_name_the_window(function, message):
    with pytest.raises(DataError, match=f"The window mine.*{message}"):
        windowed(function)


def test_a_want_of_memory_is_no_fault_of_the_rows():
    def greedy(s, hold):
        raise pa.ArrowMemoryError("malloc of size 640 failed")

    with pytest.raises(MemoryError):
        windowed(greedy)


def test_nothing_leaves_a_monotonic_window():
    assert windowed(lambda s, hold: (s, [None] * 3), monotonic=True).num_rows == 3
    with pytest.raises(DataError, match="declared to be monotonic"):
        windowed(lambda s, hold: (s, pc.call_function("add", [s, pa.scalar(1)])), monotonic=True)
