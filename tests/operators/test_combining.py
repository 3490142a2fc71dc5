"""Combining rows where they are made (``bridge.CombineTask``): whatever the chunks, they say the same.

What the sweep of an aggregation makes of combined rows is part of its own test (`test_aggregate.py`).
"""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators import bridge
from sweeparea.operators.bridge import CombineTask
from sweeparea.operators.values.netting import gathered

SCHEMA = pa.schema([("k", pa.int64()), ("__ts", pa.int64()), ("__n", pa.int64())])
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 3), st.integers(0, 2), st.integers(-2, 2)), max_size=6)


def batches(parts) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in p], SCHEMA) for p in parts]


def told(found) -> Counter:
    counted: Counter = Counter()
    for batch in found:
        for row in batch.to_pylist():
            counted[row["k"], row["__ts"]] += row["__n"]
    return Counter({record: n for record, n in counted.items() if n})


def combined(parts, at_once: int, combine=gathered) -> list[pa.RecordBatch]:
    with mock.patch.object(bridge, "COMBINED_AT_ONCE", at_once):
        return list(CombineTask(combine, SCHEMA)(iter(batches(parts))))


@settings(deadline=None)
@given(st.lists(ROWS, max_size=8), st.integers(1, 20))
def test_the_copies_of_each_row_are_those_that_were_given(parts, at_once):
    assert told(combined(parts, at_once)) == told(batches(parts))


def test_equal_rows_of_several_batches_become_one():
    found = combined([[(1, 0, 1)] * 50] * 9, 100)
    assert [batch.to_pylist() for batch in found] == [[{"k": 1, "__ts": 0, "__n": 450}]]


def test_rows_that_do_not_become_fewer_pass_on_as_they_come():
    given_rows = [[(k, 0, 1) for k in range(10 * i, 10 * i + 10)] for i in range(5)]
    found = combined(given_rows, 10)
    assert [batch.num_rows for batch in found] == [10] * 5
    calls: list[int] = []

    def noted(rows: pa.Table) -> pa.Table:
        calls.append(rows.num_rows)
        return rows

    assert told(combined(given_rows, 10, noted)) == told(batches(given_rows))
    assert calls == [10]


def test_where_it_is_seldom_worth_its_time_few_rows_tell():
    calls: list[int] = []

    def noted(rows: pa.Table) -> pa.Table:
        calls.append(rows.num_rows)
        return gathered(rows)

    apart = [[(k, 0, 1) for k in range(10 * i, 10 * i + 10)] for i in range(5)]
    for parts in (apart, [[row for part in apart for row in part]], [[(1, 0, 1)] * 10] * 5):
        assert told(CombineTask(noted, SCHEMA, 20)(iter(batches(parts)))) == told(batches(parts))
    assert calls == [20, 20, 20, 31]
