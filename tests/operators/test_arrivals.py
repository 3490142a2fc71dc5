"""What windows that count or compare arrivals share: their elements' order, and the bag of what they show."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import INF
from sweeparea.operators.windows.arrivals import UNKNOWN, ArrivalSpec, Visits, carried, delta, in_order
from tests.operators import brute
from tests.operators.arrival_elements import COLUMNS, CUTS, ELEMENTS, LAST, table

VISITS = st.lists(
    st.tuples(st.integers(0, LAST), st.integers(1, 9) | st.just(INF), st.integers(1, 9) | st.just(INF), st.just(1)),
    max_size=10,
)


@settings(max_examples=30, deadline=None)
@given(ELEMENTS, st.randoms(use_true_random=True))
def test_the_order_of_elements_is_that_of_instants_then_of_the_record_whatever_the_rows(elements, rng):
    spec = ArrivalSpec(COLUMNS, ("__p0", "__p1"), COLUMNS)
    orders = []
    for given_ in (elements, rng.sample(elements, len(elements))):
        rows = table(given_)
        found = in_order(rows, spec)
        parts: dict = {}
        for at, tick, n in zip(found.row.tolist(), found.tick.tolist(), found.n.tolist(), strict=True):
            row = {name: rows.column(name)[at].as_py() for name in rows.schema.names}
            key = brute.plain((row["__p0"], row["__p1"]))
            parts.setdefault(key, []).append((tick, brute.plain((row["a"], row["b"])), n))
        orders.append(parts)
        for part in parts.values():
            ranked = [(tick, *(brute.total_order(float("nan") if v == "NaN" else v) for v in r)) for tick, r, _ in part]
            assert ranked == sorted(ranked)
    same = [{key: Counter(map(repr, part)) for key, part in parts.items()} for parts in orders]
    assert same[0] == same[1]


@settings(max_examples=40, deadline=None)
@given(VISITS, CUTS)
def test_each_slice_tells_what_comes_and_what_goes(visits, cuts):
    """What leaves in a later slice than it entered is told by a negative tuple, but for an end that is known."""
    rows = pa.table({"v": pa.array(range(len(visits)), pa.int64())})
    enter = np.array([e for e, *_ in visits], np.int64)
    leave, end = (
        np.array([e + d if d != INF else INF for e, d in zip(enter.tolist(), ticks, strict=True)], np.int64)
        for ticks in ([x for _, x, _, _ in visits], [x for _, _, x, _ in visits])
    )
    told, h0 = [], -1
    for h1 in cuts:
        at = np.flatnonzero(leave > h0)  # what has left is not carried
        comes, goes = (np.where(ticks <= h1, ticks, UNKNOWN)[at] for ticks in (enter, leave))
        seen = Visits(at, np.ones(len(at), np.int64), comes, goes, end[at])
        part = [tuple(row.values()) for row in delta(rows, seen, ["v"], h0, h1).to_pylist()]
        assert all(h0 < ts <= h1 for _, ts, _, _ in part)
        told += part
        h0 = h1
    for tick in range(LAST + 1):
        assert brute.at(told, tick) == Counter(
            np.flatnonzero((enter <= tick) & (tick < np.minimum(leave, end))).tolist()
        )


def test_copies_of_one_row_that_are_kept_are_one_row():
    rows = table([((0.0, "x"), 1, (1.0, "x"), 5), ((0.0, "x"), 2, (2.0, "y"), 5)])
    kept = carried(rows, np.array([0, 0, 1]), np.array([2, 1, 4]))
    assert [(r["a"], r["__n"]) for r in kept.to_pylist()] == [(1.0, 3), (2.0, 4)]
    assert kept.schema == rows.schema
    assert carried(rows, np.zeros(0, np.int64), np.zeros(0, np.int64)).num_rows == 0
