"""Aggregates of frames by their definition: at every instant, in any slicing, over rows, peers, keys and partitions."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators import user
from sweeparea.operators.aggregates.calls import BaseCall
from sweeparea.operators.ordered import framed
from sweeparea.operators.ordered.framed import (
    FrameBound,
    FramedCall,
    FramedSpec,
    FrameEdge,
    Pick,
    PlacedFrame,
    WrittenFrame,
    frame_of,
    is_framed,
)
from sweeparea.operators.ordered.snapshot import SnapshotSpec
from sweeparea.operators.ordered.window_function import WindowFunction
from sweeparea.operators.sql.expressions import Expr, SortKey
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.operators.values.order import OrderKey
from tests.operators import brute
from tests.replay import bags

LAST = 24
BY = pa.struct([("o0", pa.int64()), ("v", pa.string())])
ARGS = pa.struct([("a0", pa.string()), ("a1", pa.int64())])
PAIR = pa.struct([("x", pa.float64()), ("y", pa.float64())])
SCHEMA = pa.schema(
    [
        *[
            ("k", pa.string()),
            ("g", pa.string()),
            ("v", pa.int64()),
            ("w", pa.string()),
            ("x", pa.float64()),
            ("i", pa.int64()),
        ],
        *[("d", pa.decimal128(38, 2)), ("by", BY), ("xy", PAIR), ("valid", pa.bool_()), ("other", pa.string())],
        *[("big", pa.int64()), ("args", ARGS), ("less", pa.int64()), ("more", pa.int64())],
        *((name, pa.int64()) for name in BAG),
    ]
)
G, V, W, X, I, D, TOP = range(7)  # noqa: E741
TOP = 9
"""Keys end here: further ones are past what their type holds."""
NUMBERS = [0.1, 1e300, -1e300, 5e-324, -0.0, 2.5, 1e16, math.nan, math.inf, -math.inf, None]
BIG: dict[int | None, int | None] = {5: 1 << 62, -5: (1 << 62) + 1, 7: -3, None: None}
Row = tuple[Any, ...]
Of = Callable[[Sequence[Row]], Any]


def _record(rng: random.Random, numbers: Sequence[float | None]) -> Row:
    value, text, whole = rng.choice([1, 2, 3, 8, TOP, None]), rng.choice(["x", "y", None]), rng.choice([5, -5, 7, None])
    return (
        rng.choice("ab"),
        value,
        text,
        rng.choice(numbers),
        whole,
        rng.choice([Decimal("0.01"), Decimal(10**30), None]),
    )


def _table(rows: Sequence[Row]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for (g, v, w, x, i, d), ts, te, n in rows:
        given = {
            "k": g,
            "g": g,
            "v": v,
            "w": w,
            "x": x,
            "i": i,
            "d": d,
            "valid": w is not None,
            "other": f"{i}",
            "big": BIG[i],
        }
        given["by"] = None if i is None else {"o0": i, "v": w}
        given["xy"] = None if x is None or i is None else {"x": x, "y": float(i)}
        given["args"] = None if i == 7 else {"a0": w, "a1": i}
        given["less"] = None if v is None or v - 1 < 1 else v - 1
        given["more"] = None if v is None or v + 2 > TOP else v + 2
        for name, value in {**given, TS: ts, TE: te, N: n}.items():
            columns[name].append(value)
    return pa.table([pa.array(columns[f.name], f.type) for f in SCHEMA], schema=SCHEMA)


def _sum(kind: str, column: int) -> Of:
    def of(rows: Sequence[Row]) -> Any:
        kept = [(r[column], 1) for r in rows if r[column] is not None]
        return brute.exact_sum(kept, kind) if kept else None

    return of


def _first_by(rows: Sequence[Row]) -> Any:
    kept = [r for r in rows if r[I] is not None]
    return min(kept, key=lambda r: (-r[I], bags.rank(r[W])))[W] if kept else None


class _Tally:
    """How often each text is there, and a sum."""

    def __init__(self) -> None:
        self.seen, self.total = Counter(), 0

    def add(self, text: str | None, number: int | None) -> None:
        self.seen[text] += 1
        self.total += number or 0

    def remove(self, text: str | None, number: int | None) -> None:
        self.seen[text] -= 1
        self.total -= number or 0

    def merge(self, other: _Tally) -> None:
        self.seen += other.seen
        self.total += other.total

    def value(self) -> str | None:
        return f"{max(self.seen.values())} {self.total}" if any(self.seen.values()) else None


def _tallied(rows: Sequence[Row]) -> str | None:
    kept = [r for r in rows if r[I] != 7]
    return f"{max(Counter(r[W] for r in kept).values())} {sum(r[I] or 0 for r in kept)}" if kept else None


TALLY = UserAggregate("tally", user.aggregate(returns="string", state=_Tally)(len), pa.string())
CALLS: list[tuple[BaseCall, str | None, Of]] = [
    (BaseCall("c", "COUNT", pa.int64()), None, len),
    (BaseCall("c", "COUNT", pa.int64(), "x", pa.float64()), "x", lambda rows: sum(r[X] is not None for r in rows)),
    (BaseCall("c", "SUM", pa.float64(), "x", pa.float64()), "x", _sum("double", X)),
    (BaseCall("c", "SUM", pa.float64(), "x", pa.float64()), "x", _sum("double", X)),
    (BaseCall("c", "SUM", pa.int64(), "i", pa.int64()), "i", _sum("integer", I)),
    (
        BaseCall("c", "SUM", pa.float64(), "big", pa.int64()),
        "big",
        lambda rows: float(sum(BIG[r[I]] or 0 for r in rows)) if any(r[I] for r in rows) else None,
    ),
    (BaseCall("c", "SUM", pa.decimal128(38, 2), "d", pa.decimal128(38, 2)), "d", _sum("decimal", D)),
    (
        BaseCall("c", "MIN", pa.float64(), "x", pa.float64()),
        "x",
        lambda rows: min(bags.known([r[X] for r in rows]), key=bags.rank, default=None),
    ),
    (
        BaseCall("c", "MAX", pa.string(), "w", pa.string()),
        "w",
        lambda rows: max(bags.known([r[W] for r in rows]), key=bags.rank, default=None),
    ),
    (BaseCall("c", "VAR_SAMP", pa.float64(), "x", pa.float64()), "x", lambda rows: bags.var_samp([r[X] for r in rows])),
    (BaseCall("c", "KURTOSIS", pa.float64(), "x", pa.float64()), "x", lambda rows: bags.kurtosis([r[X] for r in rows])),
    (
        BaseCall("c", "CORR", pa.float64(), "xy", PAIR),
        "xy",
        lambda rows: bags.corr([r[X] for r in rows], [None if r[I] is None else float(r[I]) for r in rows]),
    ),
    (
        BaseCall("c", "FIRST", pa.string(), "by", BY, order=(OrderKey("o0", True), OrderKey("v"))),
        "by",
        _first_by,
    ),
]
ROWS = [(-1, 0), (-2, 1), (0, 2), (1, 2), (-3, -1), (None, 0), (None, None), (0, None), (None, -1), (2, None)]
ROWS += [(None, 1), (-1, None), (0, 0), (1, None), (None, -2)]
EDGES: list[int | FrameBound | None] = [None, 0, FrameBound("less", True), FrameBound("more", False)]


def _call(rng: random.Random, descending: bool) -> tuple[FramedCall, Callable[[Sequence[Row], int], Any]]:
    if rng.random() < 0.6:
        low, high = rng.choice(ROWS)
        frame = PlacedFrame(True, low, high)

        def near(part: Sequence[Row], i: int) -> Sequence[Row]:
            first = 0 if low is None else max(0, i + low)
            return part[first : len(part) if high is None else max(0, i + high + 1)]

        held = near
        if rng.random() < 0.4:
            return _pick(rng, frame, near)
    else:
        # with keys that descend what comes before a row has greater ones
        before, behind = (FrameBound("more", True), FrameBound("less", False)) if descending else EDGES[2:]
        assert isinstance(before, FrameBound)
        assert isinstance(behind, FrameBound)
        edges: list[tuple[int | FrameBound | None, int | FrameBound | None]] = [
            *[(None, 0), (None, 0), (0, None), (0, 0), (None, None), (before, 0), (before, behind)],
            *[(0, behind), (None, before), (behind, None), (None, behind), (before, None), (before, before)],
        ]
        low, high = rng.choice(edges)
        peers = rng.choice([1, 2]) if not isinstance(low, FrameBound) and not isinstance(high, FrameBound) else 1
        frame = PlacedFrame(False, low, high, peers)
        sign = -1 if descending else 1

        def reached(part: Sequence[Row], i: int) -> Sequence[Row]:
            def standing(row: Row) -> tuple:
                # by the keys' order, NULL before or behind all
                last = descending
                return (
                    (row[V] is None) == last,
                    0 if row[V] is None else sign * row[V],
                    *((bags.rank(row[W]),) * (peers - 1)),
                )

            def edge(bound: int | FrameBound | None, end: int) -> tuple:
                if not isinstance(bound, FrameBound) or part[i][V] is None:
                    return standing(part[i]) if bound is not None else (end,)
                step = (1 if bound.column == "less" else 2) * (-1 if bound.preceding else 1)
                return (not descending, sign * part[i][V] + step)

            first, last = edge(low, -1), edge(high, 2)
            return [r for r in part if first <= standing(r)[: len(first)] and standing(r)[: len(last)] <= last]

        held = reached
    if rng.random() < 0.2:
        return FramedCall("", frame, TALLY, "args"), lambda part, i: _tallied(held(part, i))
    call, argument, of = rng.choice(CALLS)
    return FramedCall("", frame, call, argument), lambda part, i: of(held(part, i))


def _pick(
    rng: random.Random, frame: PlacedFrame, held: Callable[[Sequence[Row], int], Sequence[Row]]
) -> tuple[FramedCall, Callable[[Sequence[Row], int], Any]]:
    skip, last, default = rng.choice([0, 0, 1, 2]), rng.random() < 0.5, rng.choice([None, None, "other"])

    def of(part: Sequence[Row], i: int) -> Any:
        rows = [r for r in held(part, i) if r[W] is not None]
        rows = rows[::-1] if last else rows
        return rows[skip][W] if skip < len(rows) else None if default is None else f"{part[i][I]}"

    return FramedCall("", frame, Pick("w", "valid", skip, last, default)), of


@settings(deadline=None, max_examples=100)
@given(st.randoms(use_true_random=True), st.booleans(), st.booleans())
def test_every_instant_in_every_slicing(rng: random.Random, known: bool, descending: bool):
    _check(rng, known, descending)


@pytest.mark.slow
@settings(deadline=None, max_examples=2000)
@given(st.randoms(use_true_random=True), st.booleans(), st.booleans())
def test_many_cases_in_every_slicing(rng: random.Random, known: bool, descending: bool):
    _check(rng, known, descending)


def _check(rng: random.Random, known: bool, descending: bool) -> None:
    ticks = rng.choice([range(LAST), range(0, LAST, 9)])  # now and then many changes at one instant
    numbers = rng.choice([NUMBERS, NUMBERS[:7], [0.5, 0.25, 3.0, None]])
    rows: list[tuple[Row, int, int, int]] = []
    for _ in range(rng.randint(0, 12)):
        ts, copies = rng.choice(ticks), rng.choice([1, 1, 1, 3])
        ends = [tick for tick in (*ticks, LAST + 6) if tick > ts]
        te = rng.choice([INF, rng.choice(ends), rng.choice(ends[:3])])
        rows.append((_record(rng, numbers), ts, te, copies))
        earlier = [tick for tick in ends if tick < min(te, LAST)]
        if not known and earlier and rng.random() < 0.3:
            rows.append((rows[-1][0], rng.choice(earlier), te, -copies))
    cuts = sorted({rng.randint(0, LAST) for _ in range(rng.randint(0, 4))} | {LAST})
    made = [_call(rng, descending) for _ in range(rng.choice([1, 1, 2, 3]))]
    calls = tuple(replace(call, name=f"c{i}") for i, (call, _) in enumerate(made))
    columns = tuple(name for name in SCHEMA.names if name not in (*BAG, "k"))
    # of copies of one record all calls tell the same apart, so the order ends with the record
    order = (OrderKey("v", descending, not descending), *(OrderKey(c) for c in ("w", "g", "x", "i", "d")))
    spec = FramedSpec(SnapshotSpec(("k",), columns, (order,)), ("g", "v", "w", "x", "i", "d"), calls)
    h0, carry, delta = -1, SCHEMA.empty_table(), list[dict[str, Any]]()
    for h1 in cuts:
        new = [row for row in rows if h0 < row[1] <= h1]
        found, carry = framed.sweep(pa.concat_tables([carry.select(SCHEMA.names), _table(new)]), spec, h0, h1)
        delta += found.to_pylist()
        assert all(h0 < row[TS] <= h1 and row[TE] == INF and row[N] for row in found.to_pylist())
        assert carry.num_rows <= len([row for row in rows if row[1] <= h1 < row[2]])
        h0 = h1
    names = [*spec.columns, *(call.name for call in calls)]
    told: Counter = Counter()
    for row in delta:
        told[(*(brute.plain(row[c]) for c in names), row[TS])] += 1
    assert max(told.values(), default=1) <= 2  # of each row at an instant, as it was and as it is at most
    for tau in range(LAST + 1):
        got: Counter = Counter()
        for row in delta:
            if row[TS] <= tau:
                got[tuple(brute.plain(row[c]) for c in names)] += row[N]
        assert min(got.values(), default=0) >= 0
        bag: Counter = Counter()
        given_rows = {}
        for record, ts, te, n in rows:
            if ts <= tau < te:
                given_rows[repr(brute.plain(record))] = record
                bag[repr(brute.plain(record))] += n
        alive = [given_rows[key] for key in (+bag).elements()]
        expected: Counter = Counter()
        for key in "ab":
            part = bags.ordered([r for r in alive if r[G] == key], [(V, descending), (W, False), (G, False)])
            for i, row in enumerate(part):
                expected[tuple(brute.plain(v) for v in (*row, *(of(part, i) for _, of in made)))] += 1
        assert +got == expected, tau


def _running(table: pa.Table, h0: int, h1: int, *calls: FramedCall) -> pa.Table:
    rows = SnapshotSpec((), ("v", "x"), ((OrderKey("v"),),))
    return framed.sweep(table, FramedSpec(rows, ("v",), calls), h0, h1)[0]


def test_only_rows_are_told_whose_values_change():
    size = 50_000
    values = [float(i % 1000) for i in range(size)]
    there = {"v": [*range(size), 10, size // 2], "x": [*values, 3.0, None], TS: [*[0] * size, 1, 2]}
    table = pa.table({**there, TE: [INF] * (size + 2), N: [1] * (size + 2)})
    total = BaseCall("s", "SUM", pa.float64(), "x", pa.float64())
    least, most = (BaseCall("m", f, pa.float64(), "x", pa.float64()) for f in ("MIN", "MAX"))
    for what, frame, changes in (
        (total, PlacedFrame(False, None, 0, 1), 1 + 2 * (size - 10) + 1),  # the NULL that comes then changes nothing
        (total, PlacedFrame(True, -2, 0), 1 + 2 * 2 + 1 + 2 * 2),
        (most, PlacedFrame(True, None, 0), 2),
        (most, PlacedFrame(True, 0, None), 2),
        (least, PlacedFrame(False, None, None), 2),
        (total, PlacedFrame(False, None, None), 1 + 2 * size + 1),
    ):
        found = _running(table, 0, 5, FramedCall("c", frame, what, "x"))
        assert found.num_rows <= changes


def test_another_row_in_the_place_of_one_that_counted_is_told_to_all_that_pick_it():
    # the second last row that counts is the first one for the NULL, but the one that changes for the row behind it
    rows = [(1, "a", 0, INF), (2, "b", 0, 3), (2, "c", 3, INF), (3, None, 0, INF), (4, "d", 0, INF)]
    columns = {"v": [r[0] for r in rows], "w": [r[1] for r in rows], "counted": [r[1] is not None for r in rows]}
    table = pa.table({**columns, TS: [r[2] for r in rows], TE: [r[3] for r in rows], N: [1] * len(rows)})
    for descending, last, frame in (
        (False, True, PlacedFrame(True, None, 0)),
        (True, False, PlacedFrame(True, 0, None)),
    ):
        order = (OrderKey("v", descending), OrderKey("w"))
        call = FramedCall("c", frame, Pick("w", "counted", 1, last))
        spec = FramedSpec(SnapshotSpec((), ("v", "w", "counted"), (order,)), ("v",), (call,))
        found = framed.sweep(table, spec, 0, 5)[0].to_pylist()
        assert {(r["v"], r["c"], r[N]) for r in found if r["v"] == 4} == {(4, "b", -1), (4, "c", 1)}


def test_a_sum_beyond_its_type_is_refused_where_it_is_shown():
    table = pa.table({"v": [1, 2], "x": [1 << 62, 1 << 62], TS: [0, 3], TE: [9, INF], N: [1, 1]})
    total = BaseCall("s", "SUM", pa.int64(), "x", pa.int64())
    for frame in (PlacedFrame(False, None, 0, 1), PlacedFrame(True, -1, 0)):
        with pytest.raises(DataError, match=r"SUM overflow: SUM\(x\) does not fit in int64 at tick 3"):
            _running(table, -1, 5, FramedCall("c", frame, total, "x"))
        _running(table, -1, 2, FramedCall("c", frame, total, "x"))
        _running(table, 3, 10, FramedCall("c", frame, total, "x"))
        attempt = _running(table, -1, 5, FramedCall("c", frame, replace(total, function="TRY_SUM"), "x"))
        assert attempt.column("c").null_count == 1


X_, V_ = Expr("`x`", "x", frozenset({"x"})), SortKey(Expr("`v`", "v", frozenset({"v"})))


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        ("", WrittenFrame(False, None, FrameEdge(""))),
        ("ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", WrittenFrame(True, FrameEdge("2", True), FrameEdge(""))),
        ("ROWS BETWEEN UNBOUNDED PRECEDING AND 1 + 1 FOLLOWING", None),
        (
            "RANGE BETWEEN INTERVAL '5' MINUTE PRECEDING AND UNBOUNDED FOLLOWING",
            WrittenFrame(False, FrameEdge("INTERVAL '5' MINUTE", True), None),
        ),
    ],
)
def test_frames(frame: str, found: WrittenFrame | None):
    assert frame_of(WindowFunction("SUM", (X_,), order=(V_,), frame=frame)) == found


def test_which_calls_are_kept_up_to_date():
    whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    for call, kept in (
        (WindowFunction("SUM", (X_,)), True),
        (WindowFunction("SUM", (X_,), filter=X_), True),
        (WindowFunction("PERCENTILE", (X_,)), False),
        (WindowFunction("MAX_BY", (X_, X_)), True),
        (WindowFunction("MAX_BY", (X_, X_, X_)), False),
        (WindowFunction("LAG", (X_,), order=(V_,)), False),
        (WindowFunction("LAG", (X_,), order=(V_,), ignore_nulls=True), True),
        (WindowFunction("LAG", (X_, Expr("0")), order=(V_,), ignore_nulls=True), False),
        (WindowFunction("LAST", (X_,), order=(V_,), frame=whole, filter=X_), True),
        (WindowFunction("LAST", (X_,), order=(V_,), ignore_nulls=True), False),
        (WindowFunction("NTH_VALUE", (X_, Expr("2")), order=(V_,), frame=whole, ignore_nulls=True), True),
        (WindowFunction("SUM", (X_,), order=(V_, V_), frame="RANGE BETWEEN 1 PRECEDING AND CURRENT ROW"), False),
    ):
        assert is_framed(call) == kept, call
