"""Arasu et al. 2003, as properties: a stream and the relation over it (section 5.1), their transformations of windows
(section 7.2), and windows that are one and the same. Each side runs through the sweeps, cut in its own way.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.sweeps.relation_to_stream import Every, MaterializeSpec, sweep
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.windows import Range, TimeWindow, Unbounded, rows_window
from sweeparea.operators.windows.arrivals import ArrivalSpec
from tests.operators import arrival_elements, brute
from tests.operators.test_relation_to_stream import CUTS, LAST, table

KEYS = [0.0, -0.0, math.nan, None, 1.5]
NOW, FOR_EVER = Range(1), Unbounded()
ELEMENTS = st.lists(
    st.tuples(
        st.tuples(st.sampled_from(KEYS), st.sampled_from(["x", "y", None])),
        st.integers(0, LAST),
        st.sampled_from([1, 1, 3]),
    ),
    max_size=14,
)
"""(record, instant, copies)"""


def condition(record) -> bool:
    return record[1] == "x"


def windowed(elements, window: TimeWindow) -> list:
    """The window's rows, each with the slice's instant at which it comes."""
    return [(s, (record, *(window.interval(s) or (s, s)), n)) for record, s, n in elements]


def streams(rows, cuts) -> dict[str, Counter]:
    """Istream, Dstream and Rstream at each tick, as bags of (record, tick)."""
    spec = MaterializeSpec(("a", "b"), checks=("ok",), istream=True, dstream=True, rstream=Every())
    found: dict[str, Counter] = {kind: Counter() for kind in ("istream", "dstream", "rstream")}
    carry, h0 = table([]), -1
    for h1 in cuts:
        out = sweep(pa.concat_tables([carry, table([r for due, r in rows if h0 < due <= h1])]), spec, h0, h1)
        for kind, bag in found.items():
            for row in getattr(out, kind).to_pylist():
                bag[brute.plain((row["a"], row["b"])), row["__tick"]] += 1
        carry, h0 = out.carry, h1
    return found


def as_stream(elements) -> Counter:
    found: Counter = Counter()
    for record, s, n in elements:
        found[brute.plain(record), s] += n
    return found


@settings(max_examples=60, deadline=None)
@given(ELEMENTS, CUTS, CUTS)
def test_a_stream_is_the_istream_of_all_of_it_and_the_rstream_of_now(elements, one, other):
    assert streams(windowed(elements, FOR_EVER), one)["istream"] == as_stream(elements)
    assert streams(windowed(elements, NOW), other)["rstream"] == as_stream(elements)
    assert not streams(windowed(elements, FOR_EVER), one)["dstream"]


@settings(max_examples=60, deadline=None)
@given(ELEMENTS, CUTS, CUTS)
def test_window_reduction(elements, one, other):
    """Section 7.2.1: Select Istream(L) From S[Range Unbounded] Where C  =  Select Rstream(L) From S[Now] Where C."""
    unbounded = [row for row in windowed(elements, FOR_EVER) if condition(row[1][0])]
    now = [row for row in windowed(elements, NOW) if condition(row[1][0])]
    assert streams(unbounded, one)["istream"] == streams(now, other)["rstream"]


@settings(max_examples=60, deadline=None)
@given(ELEMENTS, CUTS, CUTS)
def test_istream_and_rstream_are_one_where_nothing_stays(elements, one, other):
    """Footnote 4: where R(t) and R(t-1) have nothing in common. The instant as a key makes it so."""
    keyed = [((float(s), record[1]), s, n) for record, s, n in elements]
    rows = windowed(keyed, NOW)
    assert streams(rows, one)["istream"] == streams(rows, other)["rstream"]


@settings(max_examples=60, deadline=None)
@given(ELEMENTS, st.integers(1, 9), CUTS, CUTS)
def test_rstream_alone_is_enough(elements, length, one, other):
    """Section 5.1: Istream and Dstream are differences of what Rstream gives at neighbouring instants."""
    rows = windowed(elements, Range(length))
    found, each = streams(rows, one), streams(rows, other)["rstream"]
    before = Counter({(record, t + 1): n for (record, t), n in each.items() if t < LAST})
    assert found["istream"] == each - before
    assert found["dstream"] == before - each


@pytest.mark.parametrize("length", [1, 4, INF])
@settings(max_examples=60, deadline=None)
@given(ELEMENTS, CUTS, CUTS)
def test_selections_commute_with_time_windows(length, elements, one, other):
    """Section 7.2.2: (Select L From S Where C)[Range T]  =  Select L From S[Range T] Where C."""
    inside = windowed([e for e in elements if condition(e[0])], Range(length))
    outside = [row for row in windowed(elements, Range(length)) if condition(row[1][0])]
    assert streams(inside, one) == streams(outside, other)


# -- windows that count ------------------------------------------------------------------------------------------------


def rows_of(elements, count, cuts, partition=lambda record: (0.0, ""), length=None) -> list:
    spec = rows_window.RowsSpec(ArrivalSpec(("a", "b"), ("__p0", "__p1"), ("a", "b")), count, 1, length)
    given_ = [(partition(record), s, record, n) for record, s, n in elements]
    return arrival_elements.run(partial(rows_window.sweep, spec=spec), given_, cuts)[0]


def same(one, other) -> None:
    for tick in range(LAST + 1):
        assert brute.at(one, tick) == brute.at(other, tick), tick


def plain(rows) -> list:
    return [(brute.plain(record), ts, te, n) for _, (record, ts, te, n) in rows]


@settings(max_examples=50, deadline=None)
@given(ELEMENTS, CUTS, st.integers(0, 5))
def test_windows_that_hold_everything_are_one(elements, cuts, more):
    everything = plain(windowed(elements, FOR_EVER))
    total = sum(n for _, _, n in elements)
    same(rows_of(elements, total + more + 1, cuts), everything)
    same(plain(windowed(elements, Range(LAST + 1 + more))), everything)
    same(rows_of(elements, total + more + 1, cuts, partition=lambda record: record), everything)


@settings(max_examples=50, deadline=None)
@given(ELEMENTS, CUTS, CUTS, st.integers(1, 4))
def test_one_partition_is_no_partition(elements, one, other, count):
    same(rows_of(elements, count, one), rows_of(elements, count, other, partition=lambda record: (1.5, "y")))


@settings(max_examples=50, deadline=None)
@given(ELEMENTS, CUTS, CUTS, st.integers(1, 4))
def test_selections_on_the_partition_commute_with_partitioned_windows(elements, one, other, count):
    by_text = partial(rows_of, partition=lambda record: (0.0, record[1]))
    inside = by_text([e for e in elements if condition(e[0])], count, one)
    outside = [row for row in by_text(elements, count, other) if condition(row[0])]
    same(inside, outside)


def test_selections_do_not_commute_with_windows_that_count():
    elements = [((1.5, "x"), 1, 1), ((1.5, "y"), 2, 1)]
    inside = rows_of([e for e in elements if condition(e[0])], 1, [LAST])
    outside = [row for row in rows_of(elements, 1, [LAST]) if condition(row[0])]
    assert brute.at(inside, 5) != brute.at(outside, 5)


@settings(max_examples=50, deadline=None)
@given(ELEMENTS, CUTS, st.integers(1, 6))
def test_partitioned_rows_within_a_range_are_cut_by_both(elements, cuts, length):
    """With more rows than there are only the range decides."""
    total = sum(n for _, _, n in elements) + 1
    by_text = rows_of(elements, total, cuts, partition=lambda record: (0.0, record[1]), length=length)
    same(by_text, plain(windowed(elements, Range(length))))
