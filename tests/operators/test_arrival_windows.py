"""Row, session and condition windows against their definitions at every instant, however the timeline is cut."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import INF, MAX_TICK
from sweeparea.operators.windows import condition_window, rows_window, session_window
from sweeparea.operators.windows.arrivals import ArrivalSpec
from tests.operators import brute, brute_windows

LAST = 24
RECORD = [("a", pa.float64()), ("b", pa.string())]
SCHEMA = pa.schema([*RECORD, ("__p0", pa.float64()), ("__p1", pa.string()), ("__when", pa.bool_())]
                   + [(c, pa.int64()) for c in ("__at", "__ts", "__n")])  # fmt: skip
COLUMNS = ("a", "b")
KEYS = [0.0, -0.0, math.nan, None, 1.5]
TEXTS = ["x", "y", None, "é"]


def meets(record):
    return None if record[1] is None else record[1] == "y"


def table(elements) -> pa.Table:
    rows = [
        dict(zip(SCHEMA.names, (*record, *partition, bool(meets(record)), 0, tick, n), strict=True))
        for partition, tick, record, n in elements
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def run(sweep, elements, cuts, record=("a", "b")):
    """The bag of all slices, as ``(record, ts, te, n)``, and the last carry. Nothing may depend on the rows' order."""
    shuffle = random.Random(len(elements))
    bag, carry = [], table([])
    h0 = -1
    for h1 in cuts:
        rows = pa.concat_tables([carry, table([e for e in elements if h0 < e[1] <= h1])])
        rows = rows.take(pa.array(shuffle.sample(range(rows.num_rows), rows.num_rows), pa.int64()))
        delta, carry = sweep(rows, h0=h0, h1=h1)
        assert carry.schema.equals(SCHEMA)
        for row in delta.to_pylist():
            assert h0 < row["__ts"] <= h1
            assert row["__ts"] < row["__te"]
            bag.append((brute.plain(tuple(row[c] for c in record)), row["__ts"], row["__te"], row["__n"]))
        h0 = h1
    return bag, carry


def singly(elements):
    return [e[:3] for e in elements for _ in range(e[3])]


ELEMENTS = st.lists(
    st.tuples(
        st.tuples(st.sampled_from(KEYS), st.sampled_from(TEXTS[:3])) | st.just((0.0, "x")),
        st.integers(0, LAST),
        st.tuples(st.sampled_from(KEYS), st.sampled_from(TEXTS)),
        st.sampled_from([1, 1, 1, 2, 5]),
    ),
    max_size=20,
)
CUTS = st.sets(st.integers(0, LAST - 1), max_size=8).map(lambda s: [*sorted(s), LAST])
EVERY_TICK = [*range(LAST + 1)]


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
def test_at_the_end_of_time(tick):
    rows = table([((0.0, "x"), tick, (1.0, "x"), 1)])
    delta, _ = session_window.sweep(rows, session_window.SessionSpec(ArrivalSpec(COLUMNS), 2), tick - 1, MAX_TICK)
    assert delta.num_rows == (tick < MAX_TICK)
    spec = rows_window.RowsSpec(ArrivalSpec(COLUMNS), 1 << 62, 1 << 62, 1 << 62)
    assert rows_window.sweep(rows, spec, tick - 1, MAX_TICK)[0].num_rows == 0
    spec = rows_window.RowsSpec(ArrivalSpec(COLUMNS), 1 << 62, 1, 1 << 62)
    assert rows_window.sweep(rows, spec, tick - 1, MAX_TICK)[0].column("__te").to_pylist() == [INF]
