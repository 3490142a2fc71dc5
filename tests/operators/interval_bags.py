"""Random bags of intervals, and what they show at every instant."""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import INF
from tests.operators import brute

LAST = 30
SCHEMA = pa.schema([("v", pa.float64()), ("__ts", pa.int64()), ("__te", pa.int64()), ("__n", pa.int64())])
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, -0.0, math.nan, None]), st.integers(0, 12), st.integers(1, 9), st.sampled_from([1, 1, 3])
    ),
    max_size=14,
)


def bag(rows) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def rows_of(table: pa.Table) -> list[tuple]:
    return [((brute.plain(v),), ts, te, n) for v, ts, te, n in (tuple(row.values()) for row in table.to_pylist())]


def snapshots(table: pa.Table) -> list[Counter]:
    return [brute.at(rows_of(table), tick) for tick in range(LAST)]


def intervals(rows, endless) -> pa.Table:
    return bag(
        [(v, ts, INF if endless and i % 4 == 3 else ts + length, n) for i, (v, ts, length, n) in enumerate(rows)]
    )
