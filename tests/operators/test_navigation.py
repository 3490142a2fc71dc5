"""Values of other rows by their definition: at every instant, in any slicing, what each row refers to."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.ordered import navigation
from sweeparea.operators.ordered.navigation import NavigationSpec, Reference, reference_of
from sweeparea.operators.ordered.snapshot import SnapshotSpec
from sweeparea.operators.ordered.window_function import WindowFunction
from sweeparea.operators.sql.expressions import Expr, SortKey
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.operators.values.order import OrderKey
from tests.replay.bags import ordered

LAST = 24
SCHEMA = pa.schema(
    [
        *[("k", pa.string()), ("g", pa.string()), ("v", pa.int64()), ("w", pa.string())],
        *[("__v0", pa.string()), ("__v1", pa.int64()), ("__d1", pa.int64())],
        *((name, pa.int64()) for name in BAG),
    ]
)
ORDER = (OrderKey("v", descending=True, nulls_first=False), OrderKey("w"))
BOUNDS = [(-1, 0), (-2, 1), (0, 2), (1, 2), (-3, -1), (None, 0), (None, None), (0, None), (None, -1), (2, None)]


def _element(rng: random.Random, known: bool, ticks: range) -> list[tuple]:
    key, value, text = rng.choice(["a", "b"]), rng.choice([1, 2, 3, None]), rng.choice(["x", "y", None])
    ts, copies = rng.choice(ticks), rng.choice([1, 1, 1, 3])
    ends = [tick for tick in (*ticks, LAST + 6) if tick > ts]
    te = rng.choice([INF, rng.choice(ends), rng.choice(ends[:3])])
    default = None if value is None else 10 * value
    row = (key, key, value, text, text, value, default, ts, te, copies)
    earlier = [tick for tick in ends if tick < min(te, LAST)]
    if not known and earlier and rng.random() < 0.3:
        return [row, (*row[:7], rng.choice(earlier), te, -copies)]
    return [row]


def _reference(rng: random.Random, default: bool) -> Reference:
    if rng.random() < 0.4:
        return Reference("LAG", rng.choice([-2, -1, 0, 1, 3]), default=default)
    low, high = rng.choice(BOUNDS)
    kind = rng.choice(["FIRST", "FIRST", "LAST"])
    return Reference(kind, low, high, rng.choice([0, 1, 2]) if kind == "FIRST" else 0, default)


def _row_of(reference: Reference, i: int, rows: int) -> int | None:
    """By the definitions of the functions, in plain Python."""
    if reference.kind == "LAG":
        assert reference.low is not None
        return i + reference.low if 0 <= i + reference.low < rows else None
    low = 0 if reference.low is None else i + reference.low
    high = rows - 1 if reference.high is None else i + reference.high
    frame = [j for j in range(rows) if low <= j <= high]
    frame = frame if reference.kind == "FIRST" else frame[::-1]
    return frame[reference.skip] if reference.skip < len(frame) else None


@settings(deadline=None, max_examples=300)
@given(st.randoms(use_true_random=True), st.booleans())
def test_every_instant_in_every_slicing(rng: random.Random, known: bool):
    ticks = rng.choice([range(LAST), range(0, LAST, 9)])  # now and then many changes at one instant
    rows = [row for _ in range(rng.randint(0, 30)) for row in _element(rng, known, ticks)]
    cuts = sorted({rng.randint(0, LAST) for _ in range(rng.randint(0, 4))} | {LAST})
    references = [_reference(rng, False), _reference(rng, True)]
    columns = ("g", "v", "w", "__v0", "__v1", "__d1")
    calls = (("r0", references[0]), ("r1", references[1]))
    spec = NavigationSpec(SnapshotSpec(("k",), columns, (ORDER,)), ("g", "v", "w"), calls)
    h0, carry, delta = -1, SCHEMA.empty_table(), list[dict[str, Any]]()
    for h1 in cuts:
        new = [row for row in rows if h0 < row[7] <= h1]
        table = pa.table([pa.array([row[i] for row in new], f.type) for i, f in enumerate(SCHEMA)], schema=SCHEMA)
        found, carry = navigation.sweep(pa.concat_tables([carry.select(SCHEMA.names), table]), spec, h0, h1)
        assert found.column("r0").type == pa.string()
        assert found.column("r1").type == pa.int64()
        delta += found.to_pylist()
        assert all(h0 < row[TS] <= h1 and row[TE] == INF and row[N] for row in found.to_pylist())
        assert carry.num_rows <= len([row for row in rows if row[7] <= h1 < row[8]])
        h0 = h1
    for tau in range(LAST + 1):
        got: Counter = Counter()
        for row in delta:
            if row[TS] <= tau:
                got[tuple(row[c] for c in ("g", "v", "w", "r0", "r1"))] += row[N]
        assert min(got.values(), default=0) >= 0
        bag: Counter = Counter()
        for row in rows:
            if row[7] <= tau < row[8]:
                bag[row[1:7]] += row[9]
        expected: Counter = Counter()
        for key in "ab":
            part = ordered([row for row in (+bag).elements() if row[0] == key], [(1, True)])
            for i, row in enumerate(part):
                others = [_row_of(reference, i, len(part)) for reference in references]
                first = None if others[0] is None else part[others[0]][3]
                second = row[5] if others[1] is None else part[others[1]][4]
                expected[(*row[:3], first, second)] += 1
        assert +got == expected


def test_a_change_costs_what_it_changes_however_many_rows_its_group_has():
    size = 50_000
    values = {"k": ["a"] * size, "v": list(range(size)), "__v0": list(range(size))}
    table = pa.table({**values, TS: list(range(size)), TE: [INF] * size, N: [1] * size})
    for reference, changes in (
        (Reference("LAG", -1), 2 * size - 1 + size - 1),  # each row comes before all others
        (Reference("LAST", None, 0), size),
        (Reference("FIRST", -3, 0), 0),
    ):
        rows = SnapshotSpec(("k",), ("v", "__v0"), ((OrderKey("v", descending=True),),))
        delta, _ = navigation.sweep(table, NavigationSpec(rows, ("v",), (("r", reference),)), -1, size)
        if changes:
            assert delta.num_rows == changes
        else:
            assert delta.num_rows <= 9 * size


X, BY = Expr("`x`", "x", frozenset({"x"})), (SortKey(Expr("`v`", "v", frozenset({"v"}))),)


@pytest.mark.parametrize(
    ("call", "reference"),
    [
        (WindowFunction("LAG", (X,), order=BY), Reference("LAG", -1)),
        (WindowFunction("LEAD", (X, Expr("(2)"), X), order=BY), Reference("LAG", 2, default=True)),
        (WindowFunction("LAG", (X, Expr("-2")), order=BY), Reference("LAG", 2)),
        (
            WindowFunction("NTH_VALUE", (X, Expr("3")), order=BY, frame="ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
            Reference("FIRST", -1, 0, 2),
        ),
        (
            WindowFunction("LAST", (X,), order=BY, frame="ROWS BETWEEN UNBOUNDED PRECEDING AND 4 FOLLOWING"),
            Reference("LAST", None, 4),
        ),
        (WindowFunction("LAG", (X, Expr("1 + 1")), order=BY), None),
        (WindowFunction("LAG", (X,), order=BY, ignore_nulls=True), None),
        (WindowFunction("LAST", (X,), order=BY, filter=X, frame="ROWS BETWEEN CURRENT ROW AND CURRENT ROW"), None),
        (WindowFunction("LAST", (X,), order=BY, frame="RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING"), None),
        (WindowFunction("SUM", (X,), order=BY, frame="ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING"), None),
    ],
)
def test_what_a_call_refers_to(call: WindowFunction, reference: Reference | None):
    assert reference_of(call) == reference
