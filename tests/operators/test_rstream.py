"""Rstream against its definition, R(t) at the instants of its grid, however the timeline is cut."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.sweeps.relation_to_stream import Every, MaterializeSpec, sweep
from sweeparea.operators.time.ticks import INF
from tests.operators import brute
from tests.operators.test_relation_to_stream import CUTS, LAST, arrivals, record, table


@settings(max_examples=200, deadline=None)
@given(arrivals(), CUTS, st.integers(1, 7), st.integers(-9, 30), st.booleans())
def test_every_instant_of_the_grid(rows, cuts, every, anchor, relation):
    spec = MaterializeSpec(("a", "b"), checks=("ok",), relation=relation, rstream=Every(every, anchor))
    got, carry, h0 = Counter(), table([]), -1
    for h1 in cuts:
        out = sweep(pa.concat_tables([carry, table([r for due, r in rows if h0 < due <= h1])]), spec, h0, h1)
        assert out.rstream_rows == out.rstream.num_rows
        for row in out.rstream.to_pylist():
            assert h0 < row["__tick"] <= h1
            got[record(row), row["__tick"]] += 1
        if not relation:
            assert out.closed.num_rows == out.opened.num_rows == 0
        carry, h0 = out.carry, h1
    bag = [(brute.plain(r), ts, te, n) for _, (r, ts, te, n) in rows]
    wanted = Counter()
    for tick in range(LAST + 1):
        if (tick - anchor) % every == 0:
            wanted += Counter({(r, tick): n for r, n in brute.at(bag, tick).items()})
    assert got == wanted


def test_too_many_rows_are_counted_and_not_made():
    spec = MaterializeSpec(("a", "b"), checks=("ok",), rstream=Every(), most=1000)
    out = sweep(table([((1.0, "y"), 1, INF, 1 << 40)]), spec, 0, 1 << 40)
    assert out.rstream_rows == 1 << 80
    assert out.rstream.num_rows == 0
    assert sweep(table([((1.0, "y"), 1, INF, 10)]), spec, 0, 100).rstream.num_rows == 1000
