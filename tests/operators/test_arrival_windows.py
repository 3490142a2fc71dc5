"""Windows in which later elements decide: what their definitions say of the order in which elements leave."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import INF
from sweeparea.operators.windows import Rows, Session, UserWindow, When, rows_window
from sweeparea.operators.windows.arrivals import ArrivalSpec
from tests.operators.arrival_elements import COLUMNS, ELEMENTS, LAST, table
from tests.operators.window_scopes import first_in_first_out

WINDOWS = st.builds(Rows, st.integers(1, 5), st.sampled_from([1, 1, 2, 3]), st.none() | st.integers(1, 9))


@settings(max_examples=40, deadline=None)
@given(WINDOWS, ELEMENTS, st.booleans())
def test_windows_of_rows_are_first_in_first_out_by_partition(window, elements, partitioned):
    """Patroumpas & Sellis 2006, section 3.4."""
    assert window.pattern(partitioned) == ("WK" if partitioned else "WKS")
    spec = ArrivalSpec((*COLUMNS, "__p0", "__p1"), ("__p0", "__p1") if partitioned else (), COLUMNS)
    sweep = rows_window.RowsSpec(spec, window.count, window.slide, window.length)
    delta, _ = rows_window.sweep(table(elements), sweep, -1, LAST)
    parts: dict = {}
    for row in delta.to_pylist():
        part = repr((row["__p0"] + 0.0 if row["__p0"] is not None else None, row["__p1"])) if partitioned else ""
        parts.setdefault(part, []).append((row["__ts"], row["__te"]))
    assert all(first_in_first_out(intervals) for intervals in parts.values())


def test_an_end_is_known_when_an_element_arrives_to_a_user_s_function_alone():
    windows = [Rows(2), Rows(2, 1, 5), Session(3), When(), UserWindow("mine", "WK")]
    assert [w.expiry_known for w in windows] == [False, False, False, False, True]
    assert [w.reach for w in windows] == [INF, 5, INF, INF, INF]
    assert [w.counts for w in (*windows, Rows(2, 3))] == [False] * 5 + [True]


def test_a_user_s_window_has_the_pattern_that_its_author_declares():
    assert [UserWindow("mine", told).pattern(False) for told in ("monotonic", "WKS", "WK", "STR", "sometimes")] == [
        "monotonic",
        "WKS",
        "WK",
        "STR",
        "STR",
    ]
    assert UserWindow("mine", "monotonic").monotonic
    assert not UserWindow("mine", "WKS").monotonic
