"""Coalesce and split leave every snapshot as it is (Kraemer & Seeger 2005, sections 4.3.2.10 and 4.3.2.11)."""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators.intervals.coalesce import coalesce
from sweeparea.operators.intervals.split import split
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


@settings(max_examples=120, deadline=None)
@given(ROWS, st.booleans(), st.one_of(st.just(INF), st.integers(1, 12)))
def test_coalesce_is_snapshot_equivalent(rows, endless, most):
    before = intervals(rows, endless)
    after = coalesce(before, ["v"], most)
    assert snapshots(after) == snapshots(before)
    longest = max((te - ts for _, ts, te, _ in rows_of(before) if te != INF), default=0)
    for _, ts, te, n in rows_of(after):
        assert n > 0
        assert te == INF or te - ts <= most + longest  # what is longer than that is not enlarged
    if most == INF:  # nothing is left that could be merged
        begun, ended = Counter(), Counter()
        for record, ts, te, n in rows_of(after):
            begun[record, ts] += n
            ended[record, te] += n
        assert not begun & ended


@settings(max_examples=120, deadline=None)
@given(ROWS, st.booleans(), st.integers(1, 7))
def test_split_is_snapshot_equivalent(rows, endless, length):
    before = intervals(rows, endless)
    after = split(before, length)
    assert snapshots(after) == snapshots(before)
    assert all(te == INF or 1 <= te - ts <= length for _, ts, te, _ in rows_of(after))


@settings(max_examples=80, deadline=None)
@given(ROWS, st.integers(1, 7))
def test_coalesce_undoes_split(rows, length):
    """Pieces of one copy of one record come together again (of several copies in one of the equivalent ways)."""
    apart = [row for i, row in enumerate(rows) if not any(brute.plain(row[0]) == brute.plain(r[0]) for r in rows[:i])]
    before = intervals([(v, ts, te, 1) for v, ts, te, _ in apart], False)
    again = coalesce(split(before, length), ["v"])
    assert Counter(rows_of(again)) == Counter(rows_of(before))


def test_records_without_columns_and_empty_bags():
    empty = bag([])
    assert coalesce(empty, ["v"]).num_rows == split(empty, 3).num_rows == 0
    plain = bag([(1.0, 1, 3, 1), (2.0, 3, 5, 1)]).drop_columns(["v"])
    assert coalesce(plain, []).to_pylist() == [{"__ts": 1, "__te": 5, "__n": 1}]


def test_a_piece_has_a_length():
    with pytest.raises(DataError, match="at least one"):
        split(bag([]), 0)
