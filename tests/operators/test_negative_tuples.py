"""W-Expire: windows whose elements leave by negative tuples show the same bag at every instant, however the timeline is
cut.
"""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import INF
from sweeparea.operators.windows import negative_tuples
from tests.operators import brute
from tests.operators.two_bags import CUTS, LAST

SCHEMA = pa.schema([("v", pa.int64()), ("__ts", pa.int64()), ("__te", pa.int64()), ("__n", pa.int64())])


def bag(rows) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def rows_of(table: pa.Table) -> list:
    return [tuple(row.values()) for row in table.to_pylist()]


@st.composite
def windowed(draw):
    """(slice's instant, row): rows that come when their element does, valid at once or later."""
    rows = []
    for _ in range(draw(st.integers(0, 12))):
        s = draw(st.integers(0, LAST))
        ts = s + draw(st.sampled_from([0, 0, 2]))
        te = ts + draw(st.integers(1, 9)) if draw(st.booleans()) else INF
        rows.append((s, (draw(st.sampled_from([1, 2])), ts, te, draw(st.sampled_from([1, 2])))))
    return rows


@settings(max_examples=100, deadline=None)
@given(windowed(), CUTS)
def test_w_expire_tells_the_same_bag_without_ends(rows, cuts):
    h0, carry, told = -1, bag([]), []
    for h1 in cuts:
        new = bag([row for s, row in rows if h0 < s <= h1])
        out, carry = negative_tuples.sweep(pa.concat_tables([carry, new]), h0, h1)
        assert all(te == INF and h0 < ts <= h1 for _, ts, te, _ in rows_of(out))
        # no more is kept than what is still to begin or to end, equal rows once
        waiting = {(v, ts if ts > h1 else h1, te) for s, (v, ts, te, _) in rows if s <= h1 < te}
        kept = [(v, ts if ts > h1 else h1, te) for v, ts, te, _ in rows_of(carry)]
        assert sorted(kept) == sorted(row for row in waiting if row[2] != INF or row[1] > h1)
        told += rows_of(out)
        h0 = h1
    for tick in range(LAST + 1):
        assert brute.at([((v,), *rest) for v, *rest in told], tick) == brute.at(
            [((v,), *rest) for _, (v, *rest) in rows], tick
        )


def test_what_has_been_told_to_the_end_is_gone():
    rows = bag([(v % 3, v % 9, 10 + v % 5, 1) for v in range(500)])
    assert negative_tuples.sweep(rows, -1, 11)[1].num_rows == 3 * 3
    assert negative_tuples.sweep(rows, -1, 14)[1].num_rows == 0
