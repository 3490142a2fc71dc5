"""Moments, order statistics, DISTINCT, FIRST and bits against their definitions at every instant, however sliced."""

from __future__ import annotations

import functools
import math
import operator
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators import user
from sweeparea.operators.aggregates.calls import BaseCall
from sweeparea.operators.aggregates.moment_sums import powers_of
from sweeparea.operators.aggregates.names import OF_VALUES, SUMS_OF_POWERS
from sweeparea.operators.kernels.events import Segments, Terms
from sweeparea.operators.kernels.sums import fixed
from sweeparea.operators.sweeps.aggregate import AggregateSpec, rows_schema, sweep
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.user_code.user_aggregate import UserAggregate
from sweeparea.operators.values.order import OrderKey
from tests.operators import brute
from tests.replay import bags

START, LAST = 0, 20
I64, F64 = pa.int64(), pa.float64()
PAIR = pa.struct([("x", F64), ("y", F64)])
V, W = 0, 1
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A call, what of a row (v, w) is its argument, and its value of the rows of an instant."""

    call: BaseCall
    argument: Callable[[tuple[Any, ...]], Any]
    value: Callable[[Rows], Any]


def case(function: str, t: pa.DataType, result: pa.DataType, argument, value, **given) -> Case:
    return Case(BaseCall("", function, result, "v", t, **given), argument, value)


@functools.cache  # calls share state where they have one argument
def column(i: int) -> Callable[[tuple[Any, ...]], Any]:
    return lambda row: row[i]


def col(rows: Rows, i: int) -> list[Any]:
    return [r[i] for r in rows]


def _pair(row: tuple[Any, ...]) -> Any:
    return None if None in row else {"x": row[V], "y": float(row[W])}


def _both(rows: Rows, formula) -> Any:
    return formula(col(rows, V), col(rows, W))


def _folded(rows: Rows, fold) -> Any:
    given = bags.known(col(rows, W))
    return functools.reduce(fold, given) if given else None


def _by(descending: bool) -> Case:
    """MAX_BY(v, w) or MIN_BY(v, w), ties by the record."""
    t = pa.struct([("o0", I64), ("o1", F64), ("v", F64)])
    order = (OrderKey("o0", descending, nulls_first=False), OrderKey("o1"))
    return case(
        "FIRST", t, F64,
        lambda r: None if r[W] is None else {"o0": r[W], "o1": r[V], "v": r[V]},
        lambda rows: bags.by(rows, V, W, descending),
        order=order,
    )  # fmt: skip


def _first(rows: Rows) -> Any:
    return bags.ordered(rows, [])[0][W] if rows else None


class _Tally:
    """How often each v is there, and the sum of w."""

    def __init__(self) -> None:
        self.seen, self.total = Counter(), 0

    def add(self, v: float | None, w: int | None) -> None:
        self.seen[brute.plain(v)] += 1
        self.total += w or 0

    def remove(self, v: float | None, w: int | None) -> None:
        self.seen[brute.plain(v)] -= 1
        assert self.seen[brute.plain(v)] >= 0
        self.total -= w or 0

    def merge(self, other: _Tally) -> None:
        self.seen += other.seen
        self.total += other.total

    def value(self) -> str | None:
        return f"{max(self.seen.values(), default=0)} {self.total}" if any(self.seen.values()) else None


def _tallied(rows: Rows) -> str | None:
    tally = _Tally()
    for row in rows:
        tally.add(*row)
    return tally.value()


def _of_user(function, kept: Callable[[tuple[Any, ...]], bool], distinct: bool = False) -> Case:
    code = user.aggregate(returns="string", state=_Tally)(function)
    return case(
        "USER", pa.struct([("a0", F64), ("a1", I64)]), pa.string(),
        lambda r: {"a0": r[V], "a1": r[W]} if kept(r) else None,
        lambda rows: _tallied(_unique([r for r in rows if kept(r)]) if distinct else [r for r in rows if kept(r)]),
        user=UserAggregate("tally", code, pa.string()), distinct=distinct,
    )  # fmt: skip


def _unique(rows: Rows) -> Rows:
    return list({tuple(brute.plain(v) for v in r): r for r in rows}.values())


SINGLES = {
    "VAR_POP": bags.var_pop, "VAR_SAMP": bags.var_samp, "STDDEV_POP": bags.stddev_pop,
    "STDDEV_SAMP": bags.stddev_samp, "SKEWNESS": bags.skewness, "KURTOSIS": bags.kurtosis,
}  # fmt: skip
PAIRS = {
    "COVAR_POP": bags.covar_pop, "COVAR_SAMP": bags.covar_samp, "CORR": bags.corr,
    "REGR_SLOPE": lambda y, x: bags.slope(x, y), "REGR_INTERCEPT": lambda y, x: bags.intercept(x, y),
    "REGR_R2": lambda y, x: bags.determination(x, y), "REGR_SXY": bags.sxy,
}  # fmt: skip
CASES = {
    **{f: case(f, F64, F64, column(V), lambda r, g=g: g(col(r, V))) for f, g in SINGLES.items()},
    **{f: case(f, PAIR, F64, _pair, lambda r, g=g: _both(r, g)) for f, g in PAIRS.items()},
    "STDDEV DISTINCT": case(
        "STDDEV_POP", F64, F64, column(V), lambda r: bags.stddev_pop(bags.unique(col(r, V))), distinct=True
    ),
    "COUNT DISTINCT": case(
        "COUNT", F64, I64, column(V), lambda r: len(bags.unique(bags.known(col(r, V)))), distinct=True
    ),
    "SUM DISTINCT": case(
        "SUM", I64, I64, column(W), lambda r: bags.total(bags.unique(bags.known(col(r, W)))), distinct=True
    ),
    "SUM DISTINCT of doubles": case(
        "SUM", F64, F64, column(V), lambda r: bags.total(bags.unique(bags.known(col(r, V)))), distinct=True
    ),
    "MEDIAN": case("PERCENTILE", F64, F64, column(V), lambda r: bags.percentile(col(r, V), 0.5)),
    "PERCENTILE": case("PERCENTILE", I64, F64, column(W), lambda r: bags.percentile(col(r, W), 0.3), share=0.3),
    "PERCENTILE DISTINCT": case(
        "PERCENTILE", I64, F64, column(W), lambda r: bags.percentile(bags.unique(col(r, W)), 0.3), share=0.3,
        distinct=True,
    ),
    "PERCENTILE DESC": case(
        "PERCENTILE", F64, F64, column(V), lambda r: bags.percentile(col(r, V), 0.25, True), share=0.25, descending=True
    ),
    "PERCENTILE_DISC": case(
        "PERCENTILE_DISC", F64, F64, column(V), lambda r: bags.percentile_disc(col(r, V), 0.4), share=0.4
    ),
    "MODE": case("MODE", F64, F64, column(V), lambda r: bags.mode(col(r, V))),
    "MODE of whole numbers": case("MODE", I64, I64, column(W), lambda r: bags.mode(col(r, W))),
    "BIT_AND": case("BIT_AND", I64, I64, column(W), lambda r: _folded(r, operator.and_)),
    "BIT_OR": case("BIT_OR", I64, I64, column(W), lambda r: _folded(r, operator.or_)),
    "BIT_XOR": case("BIT_XOR", I64, I64, column(W), lambda r: _folded(r, operator.xor)),
    "MAX_BY": _by(True),
    "MIN_BY": _by(False),
    "FIRST": case(
        "FIRST", pa.struct([("o0", F64), ("o1", I64), ("v", I64)]), I64,
        lambda r: {"o0": r[V], "o1": r[W], "v": r[W]}, _first, order=(OrderKey("o0"), OrderKey("o1")),
    ),
    "USER": _of_user(lambda v, w: _tallied(list(zip(v, w, strict=True))), lambda r: True),
    "USER FILTER": _of_user(lambda v, w: _tallied(list(zip(v, w, strict=True))), lambda r: r[W] is not None),
    "USER DISTINCT": _of_user(lambda v, w: _tallied(list(zip(v, w, strict=True))), lambda r: True, distinct=True),
    "COUNT": case("COUNT", F64, I64, column(V), lambda r: len(bags.known(col(r, V)))),
    "SUM": case("SUM", F64, F64, column(V), lambda r: bags.total(col(r, V))),
    "MIN": case("MIN", F64, F64, column(V), lambda r: min(bags.known(col(r, V)), key=bags.rank, default=None)),
}  # fmt: skip


def plan(names: list[str], *, global_: bool, known: bool, shared: bool) -> tuple[AggregateSpec, list[Case]]:
    cases = [CASES[name] for name in names]
    calls: list[BaseCall] = []
    for i, one in enumerate(cases):
        like = [j for j in range(i) if shared and calls[j].column is None and _same_state(cases[j], one)]
        calls.append(replace(one.call, output=f"o{i}", column=like[0] if like else None))
    return AggregateSpec(() if global_ else (("k", I64),), tuple(calls), global_, known, START), cases


def _same_state(a: Case, b: Case) -> bool:
    return a.argument is b.argument and _state(a.call) == _state(b.call)


def _state(call: BaseCall) -> tuple:
    kept: object = call.function
    if call.function in OF_VALUES:
        kept = "values"
    elif call.function in SUMS_OF_POWERS:
        kept = powers_of(call.function)
    return kept, call.distinct, call.argument_type


def table(spec: AggregateSpec, cases: list[Case], bag) -> pa.Table:
    rows = []
    for key, record, ts, te, n in bag:
        row = {"k": key, "__ts": ts, "__te": te, "__n": n, "__kind": 0}
        row |= {f"a{i}": c.argument(record) for i, c in enumerate(cases) if spec.calls[i].column is None}
        rows.append(row)
    schema = rows_schema(spec)
    return pa.Table.from_pylist([{f: r.get(f) for f in schema.names} for r in rows], schema)


def run(spec: AggregateSpec, cases: list[Case], arrivals, cuts) -> list:
    h0, carry, bag = spec.start - 1, rows_schema(spec).empty_table(), []
    names = [k for k, _ in spec.keys] + [c.output for c in spec.calls]
    for h1 in cuts:
        new = [row for due, row in arrivals if h0 < due <= h1]
        delta, carry = sweep(pa.concat_tables([carry, table(spec, cases, new)]), spec, h0, h1)
        for row in delta.to_pylist():
            record = tuple(brute.plain(row[c]) for c in names)
            assert h0 < row["__ts"] <= h1
            bag.append(((None, *record) if spec.global_ else record, row["__ts"], row["__te"], row["__n"]))
        h0 = h1
    return bag


def expected(cases: list[Case], bag, tick: int, global_: bool) -> Counter:
    groups: dict[Any, Rows] = {None: []} if global_ else {}
    counts: Counter = Counter()
    for key, record, ts, te, n in bag:
        if ts <= tick < te:
            counts[(key, tuple(brute.plain(v) for v in record))] += n
    shown = {(key, tuple(brute.plain(v) for v in record)): record for key, record, *_ in bag}
    for (key, plain), n in counts.items():
        assert n >= 0
        groups.setdefault(key, []).extend([shown[key, plain]] * n)
    return Counter(
        (key, *(brute.plain(c.value(rows)) for c in cases)) for key, rows in groups.items() if rows or global_
    )


HOSTILE = [0.0, -0.0, 1.0, 0.1, 2.5, 1e16, -1e16, 1e300, 5e-324, math.nan, math.inf, -math.inf]
DOUBLES = st.none() | st.sampled_from(HOSTILE)
INTEGERS = st.none() | st.integers(-3, 3) | st.sampled_from([(1 << 62) - 1, -(1 << 61)])


@st.composite
def arrivals(draw, known: bool, global_: bool):
    """(due, row) pairs; unknown: also negative tuples."""
    rows = []
    pool = draw(st.lists(st.tuples(DOUBLES, INTEGERS), min_size=1, max_size=5))
    for _ in range(draw(st.integers(0, 12))):
        key = None if global_ else draw(st.sampled_from([1, 2, None]))
        record = draw(st.sampled_from(pool))
        s, n = draw(st.integers(START, LAST)), draw(st.sampled_from([1, 1, 2]))
        e = s + draw(st.integers(1, 10))
        how = draw(st.sampled_from(["te", "pending", "never"] + ["negative"] * (not known)))
        if how == "negative":
            rows.append((s, (key, record, s, INF, n)))
            rows.append((e, (key, record, e, INF, -n)))
        else:
            due = draw(st.integers(START, s)) if how == "pending" else s
            rows.append((due, (key, record, s, INF if how == "never" else e, n)))
    return draw(st.permutations(rows))


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@settings(max_examples=250, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(known: bool, data):
    global_ = data.draw(st.booleans())
    names = data.draw(st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=4))
    spec, cases = plan(names, global_=global_, known=known, shared=data.draw(st.booleans()))
    rows = data.draw(arrivals(known, global_))
    bag = [row for _, row in rows]
    wide = sum(abs(w or 0) * abs(n) for _, (_, w), _, _, n in bag) >= 1 << 63
    if wide and "SUM DISTINCT" in names:
        return
    cut = data.draw(st.sets(st.integers(START, LAST - 1), max_size=5).map(lambda s: [*sorted(s), LAST]))
    deltas = run(spec, cases, rows, cut)
    previous: Counter = Counter()
    for tick in range(START, LAST + 1):
        wanted = expected(cases, bag, tick, global_)
        assert brute.at(deltas, tick) == wanted, (names, tick)
        if tick:  # nothing is said where nothing changes
            said = {r for r, ts, te, _ in deltas if tick in (ts, te)}
            assert said <= set(wanted - previous) | set(previous - wanted), (names, tick)
        previous = wanted


def _swept(names: list[str], bag, *, known: bool, h1: int = LAST) -> pa.Table:
    spec, cases = plan(names, global_=False, known=known, shared=True)
    return sweep(table(spec, cases, bag), spec, START - 1, h1)[1]


class TestCarryBound:
    """What a slice leaves is bounded as the docstrings say, also on input made to break it."""

    def test_moments_are_one_row_for_each_end(self):
        bag = [(1, (v / 7, v), v % 20, 100 + v % 3, 1) for v in range(3000)]
        carry = _swept(["VAR_POP", "KURTOSIS", "CORR"], bag, known=True)
        assert carry.num_rows == 3
        # sums of powers of ordinary numbers are tens of bytes, however many there are
        assert all(len(state) < 400 for i in range(3) for state in carry.column(f"p{i}").to_pylist())

    def test_calls_over_one_argument_share_their_state(self):
        bag = [(1, (1.5, 2), 0, 100, 1), (1, (2.5, 3), 1, 100, 1)]
        carry = _swept(["VAR_POP", "STDDEV_SAMP", "MEDIAN", "PERCENTILE DESC", "MODE"], bag, known=False)
        assert [name for name in carry.schema.names if name[0] in "amp"] == ["a0", "m0", "p0", "a2"]
        assert carry.num_rows == 1 + 2

    def test_values_are_one_row_for_each_end(self):
        bag = [(1, (float(v % 10), v % 10), v % 20, 100 + v % 2, 1) for v in range(3000)]
        assert _swept(["MEDIAN"], bag, known=True).num_rows == 1 + 10
        assert _swept(["BIT_OR"], bag, known=False).num_rows == 2 + 10

    @pytest.mark.parametrize("name", ["COUNT DISTINCT", "SUM DISTINCT", "PERCENTILE DISTINCT", "STDDEV DISTINCT"])
    def test_distinct_values_are_one_interval_and_what_outlasts_it(self, name: str):
        bag = [(1, (float(v % 5), v % 5), v % 20, 100 + v, 1) for v in range(1000)]
        assert _swept([name], bag, known=True).num_rows == 1 + 5
        pending = [(1, (0.0, 0), LAST + 1 + v % 7, 2000 + v, 1) for v in range(100)]
        assert _swept([name], [*bag, *pending], known=True).num_rows <= (1 + 7) + (5 + 7)

    def test_first_keeps_what_may_yet_be_first(self):
        falling = [(1, (100.0 - v, 100 - v), v, v + 1000, 1) for v in range(20)]
        assert _swept(["MIN_BY", "FIRST"], falling, known=True).num_rows == 1 + 1 + 1
        rising = [(1, (float(v), v), v, v + 1000, 1) for v in range(20)]
        assert _swept(["MIN_BY"], rising, known=True).num_rows == 1 + 20

    def test_negative_tuples_leave_nothing(self):
        bag = [row for v in range(200) for row in ((1, (v / 3, v), 1, INF, 1), (1, (v / 3, v), 2, INF, -1))]
        names = ["KURTOSIS", "CORR", "MEDIAN", "MODE", "COUNT DISTINCT", "MAX_BY", "BIT_XOR"]
        assert _swept(names, bag, known=False).num_rows == 0

    def test_equal_sums_are_equal_bytes(self):
        rest = [(1, (0.2, 3), 4, 40, 1)]
        more = [(1, (1e16, 1), 3, 40, 1), (1, (0.1, 2), 0, 10, 1), (1, (math.nan, 5), 1, 40, 1)]
        gone = [(1, record, 6, te, -1) for _, record, _, te, _ in more if te > 6]
        for name in ("KURTOSIS", "COVAR_POP"):
            carries = [_swept([name], bag, known=False, h1=12) for bag in (rest, [*rest, *more, *gone])]
            assert carries[0] == carries[1]


@pytest.mark.parametrize("name", sorted(set(CASES) - {"COUNT", "SUM"}))
def test_more_of_a_value_taken_than_given(name: str):
    bag = [(1, (5.0, 5), 0, INF, 1), (1, (7.0, 7), 1, INF, 2), (1, (5.0, 5), 2, INF, -2)]
    additive = CASES[name].call.additive
    spec, cases = plan([name], global_=False, known=False, shared=False)
    if additive:  # sums tell no value apart, so only the number of elements can be wrong
        bag.append((1, (7.0, 7), 2, INF, -2))
    with pytest.raises(DataError, match=r"(below zero|of -1) at tick 2"):
        sweep(table(spec, cases, bag), spec, START - 1, LAST)


def test_a_large_group_is_not_listed_again_at_each_change():
    n = 20_000
    bag = [(1, (float(v * 7919 % n), v % 100), v, v + n, 1) for v in range(n)]
    for name in ("MEDIAN", "MODE", "VAR_SAMP", "CORR", "COUNT DISTINCT", "MAX_BY", "BIT_XOR"):
        spec, cases = plan([name], global_=False, known=True, shared=False)
        begin = time.process_time()
        delta, _ = sweep(table(spec, cases, bag), spec, START - 1, n)
        assert time.process_time() - begin < 5, name  # n * n / 2 rows listed would take minutes
        assert delta.num_rows >= 1


def test_try_sum_is_null_where_sum_is_an_error():
    call = BaseCall("o", "TRY_SUM", I64, "v", I64)
    spec = AggregateSpec((), (call,), True, True, START)
    rows = [{"__ts": s, "__te": s + 5, "__n": 1, "__kind": 0, "a0": 1 << 62} for s in (1, 3)]
    schema = rows_schema(spec)
    given = pa.Table.from_pylist([{f: r.get(f) for f in schema.names} for r in rows], schema)
    shown = [(r["o"], r["__ts"]) for r in sweep(given, spec, -1, LAST)[0].to_pylist()]
    assert shown == [(None, 0), (1 << 62, 1), (None, 3), (1 << 62, 6), (None, 8)]


class TestFixedPoint:
    """Sums of doubles whose exponents lie close, against ``math.fsum``; others must not get there."""

    NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-6)

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.tuples(NUMBERS, st.integers(0, LAST), st.integers(1, 12), st.integers(1, 3)), max_size=12),
           st.sets(st.integers(START, LAST - 1), max_size=4))  # fmt: skip
    def test_is_the_rounded_exact_sum(self, elements, cuts):
        spec, cases = plan(["SUM", "SUM DISTINCT of doubles"], global_=True, known=False, shared=False)
        bag = [(None, (v, None), s, s + length, n) for v, s, length, n in elements]
        deltas = run(spec, cases, [(row[2], row) for row in bag], [*sorted(cuts), LAST])
        for tick in range(START, LAST + 1):
            assert brute.at(deltas, tick) == expected(cases, bag, tick, True)

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.tuples(NUMBERS, st.integers(-(1 << 40), 1 << 40)), min_size=1, max_size=8))
    def test_any_number_of_copies(self, elements):
        bits, n = np.array([v for v, _ in elements]).view(np.int64), np.array([m for _, m in elements])
        none = np.zeros(0, np.int64)
        terms = Terms(none, n, none, none, np.zeros(0, np.uint8))
        fits, unit = fixed.unit_of(bits, terms)
        if not fits:
            return
        high, low = fixed.words(bits, terms, unit)
        size = len(bits)
        cut = Segments(2 * np.arange(size), np.arange(size + 1), np.zeros(size, np.int64), np.arange(size))
        found = fixed.running(cut, high, low, np.ones(size, np.int64), unit).view(np.float64)
        total = Fraction(0)
        for (v, m), value in zip(elements, found, strict=True):
            total += Fraction(v) * m
            assert value == total.numerator / total.denominator

    @pytest.mark.parametrize(
        ("numbers", "fits"),
        [([0.1, -3.0, 1e6], True), ([], True), ([0.0], True), ([1e-20, 1e20], False), ([math.nan], False),
         ([5e-324], True), ([1.7e308], True), ([math.inf, 1.0], False)],
    )  # fmt: skip
    def test_what_fits(self, numbers: list[float], fits: bool):
        bits = np.array(numbers, np.float64).view(np.int64)
        none, ones = np.zeros(0, np.int64), np.ones(len(bits), np.int64)
        terms = Terms(np.zeros(len(bits), np.int64), ones, none, none, np.zeros(0, np.uint8))
        assert fixed.unit_of(bits, terms)[0] == fits
