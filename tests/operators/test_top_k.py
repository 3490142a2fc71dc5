"""Top-k by its definition: at every instant, in any slicing, the first rows of each group in their order."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.kernels import top_k as kernel
from sweeparea.operators.sweeps import top_k
from sweeparea.operators.sweeps.snapshot import SnapshotSpec
from sweeparea.operators.sweeps.top_k import TopKSpec
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.values.order import OrderKey
from tests.operators.test_snapshot import LAST, SCHEMA, signed_rows, table_of
from tests.replay.bags import ordered

ORDER = (OrderKey("v", descending=True, nulls_first=False), OrderKey("k"))


def _key(row: tuple) -> tuple:
    return tuple(repr(v + 0.0) if isinstance(v, float) else repr(v) for v in row)


def _swept(rows: list[tuple], spec: TopKSpec, cuts: list[int]) -> tuple[list[dict], list[int]]:
    h0, carry, found, sizes = -1, SCHEMA.empty_table(), [], []
    for h1 in cuts:
        new = table_of([row for row in rows if h0 < row[2] <= h1])
        delta, carry = top_k.sweep(pa.concat_tables([carry.select(SCHEMA.names), new]), spec, h0, h1)
        found += delta.to_pylist()
        assert all(h0 < row[TS] <= h1 and row[TE] == INF for row in delta.to_pylist())
        sizes.append(carry.num_rows)
        h0 = h1
    return found, sizes


@settings(deadline=None, max_examples=200)
@given(
    st.randoms(use_true_random=False), st.booleans(), st.sampled_from([0, 1, 2, 5, None]), st.sampled_from([0, 1, 3])
)
def test_every_instant_in_every_slicing(rng: random.Random, keyed: bool, limit: int | None, offset: int):
    rows = signed_rows(rng, rng.randint(0, 12))
    cuts = sorted({rng.randint(0, LAST) for _ in range(rng.randint(0, 4))} | {LAST})
    # the key is a column of its own, as PARTITION BY has it
    spec = TopKSpec(SnapshotSpec(("k",) if keyed else (), ("v",) if keyed else ("k", "v"), (ORDER,)), limit, offset)
    delta, sizes = _swept(rows, spec, cuts)
    for tau in range(LAST + 1):
        got: Counter = Counter()
        for row in delta:
            if row[TS] <= tau:
                got[_key((row["v"],) if keyed else (row["k"], row["v"]))] += row[N]
        bag: Counter = Counter()
        for key, value, ts, te, n in rows:
            if ts <= tau < te:
                bag[_key((key, value))] += n
        records = {_key(row[:2]): row[:2] for row in rows}
        alive = [records[key] for key in (+bag).elements()]
        parts = [[r for r in alive if r[0] == k] for k in ("a", "b", None)] if keyed else [alive]
        expected: Counter = Counter()
        for part in parts:
            last = None if limit is None else offset + limit
            expected.update(_key(r[1:] if keyed else r) for r in ordered(part, [(1, True), (0, False)])[offset:last])
        assert +got == +expected
        assert min(got.values(), default=0) >= 0
    for h1, size in zip(cuts, sizes, strict=True):
        assert size <= 2 * sum(1 for row in rows if row[2] <= h1 < row[3] and row[4] > 0)


def test_only_the_first_rows_of_a_large_group_are_touched():
    rows = table_of([("a", float(i), i, INF, 1) for i in range(20_000)])
    spec = TopKSpec(SnapshotSpec((), ("k", "v"), (ORDER,)), 3)
    delta, _ = top_k.sweep(rows, spec, -1, 30_000)
    assert delta.num_rows == 20_000 + 19_997  # each comes once, and leaves when three larger ones are there


def test_a_row_joins_the_last_ones_while_there_are_fewer_than_asked_for():
    numbers = [[0, 1, 2], [0, 0, 1], [2, 2, 2], [1, 1, 1], [0, 1, 2], [0, 1, 2]]
    place, begin, end, copies, by_begin, by_end = (np.array(column, np.int64) for column in numbers)
    opens = np.array([True, False])
    found = kernel.changes(place, begin, end, copies, by_begin, by_end, opens, 1, 2)
    assert found.T.tolist() == [[2, 1, 1]]
