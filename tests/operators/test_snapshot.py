"""Snapshot expansion by its definition: at every instant the rows sum up to what the instantaneous rows give."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators.ordered import snapshot
from sweeparea.operators.ordered.snapshot import PRESENT, SnapshotSpec, expand
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.operators.values.order import OrderKey

LAST = 30
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.float64()), *((name, pa.int64()) for name in BAG)])
BY_KEY = SnapshotSpec(("k",), ("v",), ((OrderKey("v", descending=True, nulls_first=False),),), start=0)
GLOBAL = SnapshotSpec((), ("k", "v"), global_=True, start=0)


def signed_rows(rng: random.Random, size: int) -> list[tuple]:
    """Elements, some of which are taken away before their end by a negative tuple."""
    found = []
    for _ in range(size):
        key, value = rng.choice(["a", "b", None]), rng.choice([1.0, 2.0, None, float("nan"), -0.0])
        ts = rng.randint(0, LAST)
        te = rng.choice([INF, rng.randint(ts + 1, LAST + 6)])
        found.append((key, value, ts, te, rng.choice([1, 1, 2])))
        if rng.random() < 0.3 and te > ts + 1:
            found.append((key, value, rng.randint(ts + 1, min(te, LAST + 1) - 1 + (te > LAST)), te, -found[-1][4]))
    return [row for row in found if row[2] < row[3]]


def table_of(rows: list[tuple]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [[]] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def _shown(value: object) -> str:
    return repr(value + 0.0) if isinstance(value, float) else repr(value)


def _bag(rows: list[tuple], tau: int) -> dict[str, Counter]:
    found: dict[str, Counter] = {}
    for key, value, ts, te, n in rows:
        if ts <= tau < te:
            found.setdefault(_shown(key), Counter())[_shown(value)] += n
    return {key: +bag for key, bag in found.items() if +bag}


def _swept(rows: list[tuple], spec: SnapshotSpec, cuts: list[int]) -> tuple[list[tuple], list[pa.Table]]:
    """All results over the slices, each the sorted values of its segment; and the carries."""
    h0, carry, results, carries = -1, SCHEMA.empty_table(), [], []
    for h1 in cuts:
        new = [row for row in rows if h0 < row[2] <= h1]
        table = pa.concat_tables([carry, table_of(new)])
        pieces, carry = expand(table, spec, h0, h1)
        carry = carry.select(SCHEMA.names)
        carries.append(carry)
        grouped: dict[tuple, list[str]] = {}
        for piece in pieces:
            assert piece.schema == snapshot.expanded_schema(SCHEMA, spec)
            for row in piece.to_pylist():
                assert h0 < row[TS] <= h1
                values = grouped.setdefault((_shown(row["k"]) if spec.keys else "", row[TS], row[TE], row[N]), [])
                if row.get(PRESENT, True):
                    values.append(_shown((row["k"], _shown(row["v"]))) if not spec.keys else _shown(row["v"]))
        results += [(key, tuple(sorted(values)), *bag) for (key, *bag), values in grouped.items()]
        h0 = h1
    return results, carries


@settings(deadline=None, max_examples=150)
@given(st.randoms(use_true_random=True), st.booleans())
def test_every_instant_in_every_slicing(rng: random.Random, global_: bool):
    rows = signed_rows(rng, rng.randint(0, 12))
    cuts = sorted({rng.randint(0, LAST) for _ in range(rng.randint(0, 4))} | {LAST})
    results, carries = _swept(rows, GLOBAL if global_ else BY_KEY, cuts)
    for tau in range(LAST + 1):
        got: Counter = Counter()
        for key, values, ts, te, n in results:
            if ts <= tau < te:
                got[(key, values)] += n
        bags = _bag(rows, tau)
        if global_:
            every = [_shown((eval(k), v)) for k, bag in bags.items() for v in bag.elements()]
            assert +got == Counter({("", tuple(sorted(every))): 1})
        else:
            assert +got == Counter({(k, tuple(sorted(bag.elements()))): 1 for k, bag in bags.items()})
        assert min(got.values(), default=0) >= 0
    for h1, carry in zip(cuts, carries, strict=True):
        live = sum(1 for row in rows if row[2] <= h1 < row[3] and row[4] > 0)
        assert carry.num_rows <= 2 * live


@settings(deadline=None, max_examples=150)
@given(st.randoms(use_true_random=True))
def test_ranks_follow_the_order(rng: random.Random):
    rows = signed_rows(rng, 8)
    pieces, _ = expand(table_of(rows), BY_KEY, -1, LAST)
    ranked = {(_shown(r["v"]), r["__r0"]) for piece in pieces for r in piece.to_pylist()}
    descending = ["nan", "2.0", "1.0", "0.0", "None"]
    for value, rank in ranked:
        for other, place in ranked:
            assert (descending.index(value) < descending.index(other)) == (rank < place)


def test_a_key_that_does_not_change_is_not_expanded():
    rows = table_of([("a", 1.0, 0, INF, 1), ("b", 2.0, 5, INF, 1)])
    pieces, carry = expand(rows, BY_KEY, 3, 9)
    assert [r["k"] for piece in pieces for r in piece.to_pylist()] == ["b"]
    assert carry.num_rows == 2


def test_an_end_and_an_equal_start_are_no_change():
    rows = table_of([("a", 1.0, 0, 5, 1), ("a", 1.0, 5, INF, 1)])
    pieces, carry = expand(rows, BY_KEY, 3, 9)
    assert not list(pieces)
    assert carry.to_pylist() == [{"k": "a", "v": 1.0, TS: 9, TE: INF, N: 1}]


def test_a_negative_tuple_leaves_no_trace_in_the_carry():
    rows = table_of([("a", 1.0, 0, INF, 1), ("a", 1.0, 5, INF, -1)])
    assert expand(rows, BY_KEY, 3, 9)[1].num_rows == 0


def test_pieces_are_small_whatever_the_size():
    rows = table_of([("a", float(i), 0, INF if i % 2 else i + 1, 1) for i in range(1000)])
    sizes = [piece.num_rows for piece in expand(rows, BY_KEY, -1, 2000)[0]]
    assert sum(sizes) > 300_000
    assert max(sizes) <= 1 << 16


def test_more_taken_away_than_there_is():
    with pytest.raises(DataError, match="below zero at tick 4"):
        expand(table_of([("a", 1.0, 4, INF, -1)]), BY_KEY, 3, 9)
