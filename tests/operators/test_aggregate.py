"""The aggregation sweep against its definition at every instant, however the timeline is cut."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators.aggregates.calls import BaseCall
from sweeparea.operators.sweeps.aggregate import AggregateSpec, combined, rows_schema, sweep
from sweeparea.operators.time.ticks import INF, MAX_TICK
from tests.operators import brute

START, LAST = 0, 24
I64, F64 = pa.int64(), pa.float64()
RESULT = {I64: I64, F64: F64, pa.float32(): F64, pa.decimal128(38, 2): pa.decimal128(38, 2)}
FUNCTIONS = ("COUNT(*)", "COUNT", "SUM", "MIN", "MAX")


def spec_of(t: pa.DataType, functions=FUNCTIONS, key=I64, *, global_=False, known=False, sum_type=None, start=START):
    calls = []
    for i, f in enumerate(functions):
        result = I64 if f.startswith("COUNT") else (sum_type or RESULT.get(t, t)) if f == "SUM" else t
        argument = (None, None) if f == "COUNT(*)" else ("v", t)
        calls.append(BaseCall(f"o{i}", f.removesuffix("(*)"), result, *argument))
    return AggregateSpec(() if global_ else (("k", key),), tuple(calls), global_, known, start)


def table(spec: AggregateSpec, bag) -> pa.Table:
    rows = []
    for (key, value), ts, te, n in bag:
        row = {"k": key, "__ts": ts, "__te": te, "__n": n, "__kind": 0}
        rows.append(row | {f"a{i}": value for i, c in enumerate(spec.calls) if c.argument})
    schema = rows_schema(spec)
    return pa.Table.from_pylist([{f: r.get(f) for f in schema.names} for r in rows], schema)


def given_rows(spec: AggregateSpec, new, h0: int) -> pa.Table:
    """New rows as they are, or combined, at once or by and by, as many workers would: by chance, by their number."""
    if len(new) % 3 == 0:
        return table(spec, new)
    at = len(new) // 2 if len(new) % 3 == 1 else 0
    made = combined(table(spec, new[at:]), spec, h0)
    both = pa.concat_tables([table(spec, new[:at]), made])
    return combined(both, spec, h0) if len(new) % 2 else both


def run(spec: AggregateSpec, arrivals, cuts, carries=None) -> list:
    """All deltas of the slices that end at ``cuts``; ``arrivals``: (tick by which the row must be known, row) pairs."""
    h0, carry, bag = spec.start - 1, rows_schema(spec).empty_table(), []
    names = [k for k, _ in spec.keys] + [c.output for c in spec.calls]
    for h1 in cuts:
        new = [row for due, row in arrivals if h0 < due <= h1]
        delta, carry = sweep(pa.concat_tables([carry, given_rows(spec, new, h0)]), spec, h0, h1)
        for row in delta.to_pylist():
            record = tuple(brute.plain(row[c]) for c in names)
            assert h0 < row["__ts"] <= h1
            assert row["__ts"] < row["__te"]
            assert row["__n"] in (1, -1)
            assert row["__te"] == INF or (row["__te"] <= h1 and row["__n"] == 1)
            bag.append(((None, *record) if spec.global_ else record, row["__ts"], row["__te"], row["__n"]))
        if carries is not None:
            carries.append(carry)
        h0 = h1
    return bag


def check(spec, functions, arrivals, cuts, sum_result="integer"):
    bag = [row for _, row in arrivals]
    deltas = run(spec, arrivals, cuts)
    previous = Counter()
    changes: Counter = Counter()
    for tick in range(spec.start, cuts[-1] + 1):
        expected = brute.aggregate(bag, tick, functions, sum_result, spec.global_)
        assert brute.at(deltas, tick) == expected, tick
        changes[tick] = sum(((expected - previous) + (previous - expected)).values())
        previous = expected
    # the delta says nothing where nothing changes: each change appears once
    ends = Counter(ts for _, ts, _, _ in deltas) + Counter(te for _, _, te, _ in deltas if te != INF)
    assert dict(ends) == {t: n for t, n in changes.items() if n}


def cuts() -> st.SearchStrategy:
    return st.sets(st.integers(START, LAST - 1), max_size=6).map(lambda s: [*sorted(s), LAST])


NASTY = [0.0, -0.0, 1.0, 0.1, 1e16, -1e16, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf]
VALUES = {
    I64: st.integers(-4, 4) | st.just((1 << 62) - 1),
    F64: st.sampled_from(NASTY) | st.floats(),
    pa.decimal128(38, 2): st.decimals(-(10**30), 10**30, places=2),
}


@st.composite
def arrivals(draw, values, known: bool):
    """(due, row) pairs. Known: rows with their te, announced any time before they start. Else also negative tuples
    later.
    """
    rows = []
    for _ in range(draw(st.integers(0, 12))):
        record = draw(st.sampled_from([1, 2, None])), draw(st.none() | values)
        s, n = draw(st.integers(START, LAST)), draw(st.sampled_from([1, 1, 2]))
        e = s + draw(st.integers(1, 12))
        how = draw(st.sampled_from(["te", "pending", "never"] + [] * known + ["negative"] * (not known)))
        if how == "negative":
            rows.append((s, (record, s, INF, n)))
            rows.append((e, (record, e, INF, -n)))
        else:
            due = draw(st.integers(START, s)) if how == "pending" else s
            rows.append((due, (record, s, INF if how == "never" else e, n)))
    return draw(st.permutations(rows))


@pytest.mark.parametrize("t", list(VALUES), ids=str)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(t, known, data):
    rows = data.draw(arrivals(VALUES[t], known))
    sum_result = {I64: "integer", F64: "double"}.get(t, "decimal")
    global_ = data.draw(st.booleans())
    if global_:
        rows = [(due, ((None, v), ts, te, n)) for due, ((_, v), ts, te, n) in rows]
    functions = data.draw(st.sampled_from([FUNCTIONS, ("MAX", "MIN"), ("COUNT(*)",), ("SUM", "COUNT"), ()]))
    wide = t == I64 and "SUM" in functions and sum(abs(v or 0) * n for _, ((_, v), _, _, n) in rows if n > 0) >= 1 << 63
    spec = spec_of(t, functions, global_=global_, known=known, sum_type=F64 if wide else None)
    check(spec, functions, rows, data.draw(cuts()), "double" if wide else sum_result)


@settings(max_examples=25, deadline=None)
@given(arrivals(st.sampled_from(["", "a", "Z", "é", "zz", "\U0001f600", "￿"]), True), cuts())
def test_extrema_of_strings_follow_utf8(rows, cut):
    spec = spec_of(pa.string(), ("MIN", "MAX"), known=True)
    check(spec, ("MIN", "MAX"), rows, cut)


def one(spec, bag, h0=START - 1, h1=LAST):
    delta, carry = sweep(table(spec, bag), spec, h0, h1)
    return delta.drop_columns([k for k, _ in spec.keys]).to_pylist(), carry


def test_sums_at_expiry_instants():
    """Hammad section 2.2: the sum is reported when 9 and when 6 expire, not at the next arrival."""
    spec = spec_of(I64, ("SUM",), global_=True, known=True)
    bag = [((None, v), s, s + 10, 1) for v, s in [(9, 0), (6, 1), (4, 5)]]
    delta, _ = one(spec, bag)
    got = [(r["o0"], r["__ts"]) for r in delta]
    assert got == [(9, 0), (15, 1), (19, 5), (10, 10), (4, 11), (None, 15)]


def test_average_of_kraemer():
    """Kraemer section 4.3.2.8: sliding AVG over 15 minutes as exact sum and count, seconds since 05:00:00 as ticks."""
    spec = spec_of(F64, ("SUM", "COUNT"), global_=True, known=True)
    bag = [((None, v), s, s + 900, 1) for v, s in [(18.28, 8), (21.33, 92), (19.69, 136)]]
    delta, _ = one(spec, bag, h1=2000)
    got = [(round(r["o0"] / r["o1"], 3), r["__ts"], r["__te"]) for r in delta if r["o1"]]
    assert got == [(18.28, 8, 92), (19.805, 92, 136), (19.767, 136, 908), (20.51, 908, 992), (19.69, 992, 1036)]


def test_global_aggregate_has_a_row_from_start_on():
    spec = spec_of(I64, ("COUNT(*)", "SUM"), global_=True, start=5)
    delta, carry = one(spec, [], 4, 9)
    assert delta == [{"o0": 0, "o1": None, "__ts": 5, "__te": INF, "__n": 1}]
    assert carry.num_rows == 0
    assert one(spec, [], 9, 20)[0] == []
    assert one(spec, [((None, 1), 1, INF, 1)], 4, 9)[0][0]["o0"] == 1  # what began before START is there at START


def test_seed_rows_say_nothing():
    delta, carry = one(spec_of(I64), [((None, None), 0, 0, 0)])
    assert delta == []
    assert carry.num_rows == 0


def test_a_finished_infinity_stops_mattering():
    spec = spec_of(F64, ("SUM",), global_=True, known=True)
    delta, _ = one(spec, [((None, 0.1), 0, 20, 1), ((None, math.inf), 1, 3, 1), ((None, math.nan), 2, 4, 1)])
    assert [str(r["o0"]) for r in delta] == ["0.1", "inf", "nan", "0.1", "None"]


@pytest.mark.parametrize(
    ("t", "sum_type", "value"),
    [(I64, I64, 1 << 62), (pa.decimal128(5, 2), pa.decimal128(5, 2), Decimal("500.00")),
     (pa.decimal128(38, 0), pa.decimal128(38, 0), Decimal(5 * 10**37))],
    ids=["bigint", "decimal(5,2)", "decimal(38,0)"],
)  # fmt: skip
def test_overflow_is_an_error_where_it_would_be_reported(t, sum_type, value):
    spec = spec_of(t, ("SUM",), sum_type=sum_type)
    meet = [((1, value), 0, 10, 1), ((1, value), 5, 15, 1)]
    with pytest.raises(DataError, match=r"SUM overflow: SUM\(v\) .* at tick 5 in group \(k = 1\)"):
        one(spec, meet)
    apart = [((1, value), 0, 5, 1), ((1, value), 5, 15, 1)]
    assert [r["o0"] for r in one(spec, apart)[0]] == [value]
    cancel = [*meet, ((1, -value), 5, 10, 1)]
    assert [r["o0"] for r in one(spec, cancel)[0]] == [value]


def test_extremes_of_the_sum_types_are_no_overflow():
    least = -(1 << 63)
    assert one(spec_of(I64, ("SUM",)), [((1, least), 0, INF, 1)])[0][0]["o0"] == least
    top, bottom = Decimal(10**38 - 1), Decimal(1 - 10**38)
    t = pa.decimal128(38, 0)
    delta, _ = one(spec_of(t, ("SUM",)), [((1, bottom), 0, 3, 1), ((1, top), 3, INF, 1)])
    assert [r["o0"] for r in delta] == [bottom, top]


@pytest.mark.parametrize("functions", [("COUNT(*)",), ("MIN",), ()])
def test_more_taken_than_given(functions):
    bag = [((1, 5), 0, INF, 1), ((1, 7), 1, INF, 1), ((1, 5), 2, INF, -2)]
    with pytest.raises(DataError, match=r"tick (2|3) in group"):
        one(spec_of(I64, functions), [*bag, ((1, 7), 3, INF, -1)])


def test_far_ends_of_time():
    spec = spec_of(I64, ("COUNT(*)", "MIN"), start=-MAX_TICK, known=True)
    bag = [((1, 1), -MAX_TICK, MAX_TICK, 1), ((1, 0), 0, INF, 2)]
    delta, carry = sweep(table(spec, bag), spec, -MAX_TICK - 1, MAX_TICK)
    got = [(r["o0"], r["o1"], r["__ts"]) for r in delta.to_pylist()]
    assert got == [(1, 1, -MAX_TICK), (3, 0, 0), (2, 0, MAX_TICK)]
    assert carry.column("__te").to_pylist() == [INF, INF]


def rows_kept(carry: pa.Table, kind: int, *value: str) -> Counter:
    """``(group, ts, te)`` of the carried rows of a kind, with the value where there is one."""
    names = ("k", "__ts", "__te", *value)
    return Counter(tuple(row[name] for name in names) for row in carry.to_pylist() if row["__kind"] == kind)


class TestCarryBound:
    """What a slice leaves is bounded as the docstring says, also on input made to break it."""

    def carry(self, functions, bag, *, known, t=I64, h1=LAST):
        return one(spec_of(t, functions, known=known), bag, h1=h1)[1]

    def test_min_of_increasing_values_keeps_those_that_may_yet_win(self):
        rising = [((1, v), v, v + 1000, 1) for v in range(20)]
        assert self.carry(("MIN",), rising, known=True).num_rows == 20 + 1
        falling = [((1, 100 - v), v, v + 1000, 1) for v in range(20)]
        assert self.carry(("MIN",), falling, known=True).num_rows == 1 + 1

    @settings(max_examples=150, deadline=None)
    @given(arrivals(st.integers(-3, 3), True), cuts())
    def test_of_known_expiry_every_slice_leaves_the_least(self, rows, cut):
        """At each compaction, of what has been told and will still be valid: sums a row for each group and end,
        extrema the undominated elements, presence and DISTINCT the intervals that do not touch.
        """
        for functions in (("SUM", "COUNT(*)"), ("MIN", "MAX"), ()):
            carries: list[pa.Table] = []
            run(spec_of(I64, functions, known=True), rows, cut, carries)
            for h1, carry in zip(cut, carries, strict=True):
                alive = [((k, v), max(ts, h1), te) for due, ((k, v), ts, te, _) in rows if due <= h1 < te]
                if functions and functions[0] == "SUM":
                    assert rows_kept(carry, 1) == Counter({(k, ts, te): 1 for (k, _), ts, te in alive})
                    continue
                present = Counter(brute.united([(k, ts, te) for (k, _), ts, te in alive]))
                assert rows_kept(carry, 1) == present
                for i, sign in enumerate((1, -1)[: len(functions)]):
                    ranked = [(k, ts, te, sign * v) for (k, v), ts, te in alive if v is not None]
                    least = Counter((k, ts, te, sign * v) for k, ts, te, v in brute.undominated(ranked))
                    assert rows_kept(carry, 2 + i, f"a{i}") == least

    @settings(max_examples=100, deadline=None)
    @given(arrivals(st.integers(-3, 3), True), cuts())
    def test_distinct_values_are_kept_as_intervals_that_do_not_touch(self, rows, cut):
        calls = (BaseCall("o0", "COUNT", I64, "v", I64, distinct=True), BaseCall("o1", "COUNT", I64))
        carries: list[pa.Table] = []
        run(AggregateSpec((("k", I64),), calls, expiry_known=True), rows, cut, carries)
        for h1, carry in zip(cut, carries, strict=True):
            alive = [((k, v), max(ts, h1), te) for due, ((k, v), ts, te, _) in rows if due <= h1 < te and v is not None]
            wanted = Counter((k, ts, te, v) for (k, v), ts, te in brute.united(alive))
            assert rows_kept(carry, 2, "a0") == wanted

    @settings(max_examples=100, deadline=None)
    @given(arrivals(st.integers(-3, 3), True), cuts())
    def test_order_statistics_keep_a_row_for_each_value_and_end(self, rows, cut):
        carries: list[pa.Table] = []
        calls = (BaseCall("o0", "PERCENTILE", F64, "v", I64), BaseCall("o1", "MODE", I64, "v", I64, column=0))
        run(AggregateSpec((("k", I64),), calls, expiry_known=True), rows, cut, carries)
        for h1, carry in zip(cut, carries, strict=True):
            alive = [(k, max(ts, h1), te, v) for due, ((k, v), ts, te, _) in rows if due <= h1 < te and v is not None]
            assert rows_kept(carry, 2, "a0") == Counter(set(alive))
            assert not rows_kept(carry, 3)

    @settings(max_examples=100, deadline=None)
    @given(arrivals(st.integers(-3, 3), True), cuts())
    def test_told_by_negative_tuples_every_slice_leaves_net_counts(self, rows, cut):
        """No row for what has come and gone: one a group, and one for each value that is there for MIN and MAX."""
        told = [(ts, (record, ts, INF, n)) for _, (record, ts, _, n) in rows]
        told += [(te, (record, te, INF, -n)) for _, (record, _, te, n) in rows if te != INF]
        carries: list[pa.Table] = []
        run(spec_of(I64, FUNCTIONS), told, cut, carries)
        for h1, carry in zip(cut, carries, strict=True):
            alive = {record for _, (record, ts, te, _) in rows if ts <= h1 < te}
            assert rows_kept(carry, 1) == Counter((k, h1, INF) for k in {k for k, _ in alive})
            values = Counter((k, h1, INF, v) for k, v in alive if v is not None)
            assert rows_kept(carry, 2 + 3, "a3") == rows_kept(carry, 2 + 4, "a4") == values

    def test_equal_ends_leave_one_extremum(self):
        bag = [((1, (v * 7919) % 1000), v % 20, 500, 1) for v in range(1000)]
        assert self.carry(("MIN", "MAX"), bag, known=True).num_rows == 2 + 1

    def test_pending_values_are_pruned_too(self):
        bag = [((1, v), 50 + v % 2, 100, 1) for v in range(100)] + [((1, -1), 0, 200, 1)]
        assert self.carry(("MIN",), bag, known=True).num_rows == 1 + 1

    def test_sums_keep_one_row_per_end(self):
        bag = [((1, v), v % 20, 100 + v % 3, 1) for v in range(3000)]
        assert self.carry(("COUNT(*)", "SUM"), bag, known=True).num_rows == 3

    def test_negative_tuples_leave_net_counts(self):
        bag = [row for v in range(500) for row in (((1, v % 5), 1, INF, 1), ((1, v % 5), 2, INF, -1))]
        assert self.carry(FUNCTIONS, bag, known=False).num_rows == 0
        assert self.carry(FUNCTIONS, [*bag, ((1, 3), 2, INF, 4)], known=False).num_rows == 1 + 2

    def test_distinct_keeps_one_interval_per_value(self):
        bag = [((1, None), v % 20, 100 + v, 1) for v in range(300)]
        carry = self.carry((), bag, known=True)
        assert carry.select(["__te", "__n"]).to_pylist() == [{"__te": 399, "__n": 1}]

    def test_what_ended_is_gone_and_equal_states_are_equal_bytes(self):
        bag = [((1, 0.1), 0, 10, 1), ((1, 1e16), 3, 40, 1), ((1, -1e16), 3, 40, 1), ((1, 0.2), 4, 40, 1)]
        carry = self.carry(("SUM",), bag, known=True, t=F64)
        assert carry.num_rows == 1
        assert carry.column("p0") == self.carry(("SUM",), [((1, 0.2), 4, 40, 1)], known=True, t=F64).column("p0")


def test_a_younger_duplicate_fills_in_without_a_gap():
    """Golab Fig. 2: when the reported x expires and a younger x is alive, x stays in the answer."""
    spec = spec_of(I64, (), known=True)
    first, carry = one(spec, [((1, None), 1, 6, 1)], h1=3)
    assert [(r["__ts"], r["__te"]) for r in first] == [(1, INF)]
    rows = pa.concat_tables([carry, table(spec, [((1, None), 4, 9, 1)])])
    delta, _ = sweep(rows, spec, 3, 20)
    assert delta.select(["__ts", "__te", "__n"]).to_pylist() == [{"__ts": 9, "__te": INF, "__n": -1}]


class TestSingleValue:
    """What a scalar subquery gives: the one row's value, NULL of none, an error of more, judged at each instant."""

    def spec(self, *, global_=False, known=False, t=I64):
        call = BaseCall("o0", "SINGLE_VALUE", t, "v", t)
        return AggregateSpec(() if global_ else (("k", I64),), (call,), global_, known)

    @pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
    @settings(max_examples=100, deadline=None)
    @given(st.data())
    def test_every_instant_however_sliced(self, known, data):
        rows = data.draw(arrivals(st.integers(0, 2), known))
        global_ = data.draw(st.booleans())
        if global_:
            rows = [(due, ((None, v), ts, te, n)) for due, ((_, v), ts, te, n) in rows]
        bag, wanted, crowded = [row for _, row in rows], {}, None
        for tick in range(START, LAST + 1):
            groups: dict = {None: Counter()} if global_ else {}
            for (key, value), n in brute.at(bag, tick).items():
                groups.setdefault(key, Counter())[value] += n
            if any(values.total() > 1 for values in groups.values()):
                crowded = tick
                break
            wanted[tick] = Counter((k, *(values or [None])) for k, values in groups.items())
        end = LAST if crowded is None else crowded - 1
        cut = [c for c in data.draw(cuts()) if c < end] + [end] * (end >= START)
        deltas = run(self.spec(global_=global_, known=known), rows, cut)
        for tick, expected in wanted.items():
            assert brute.at(deltas, tick) == expected, tick
        if crowded is not None:
            with pytest.raises(DataError, match=rf"more than one row \(\d+\) at tick {crowded}"):
                run(self.spec(global_=global_, known=known), rows, [*cut, crowded])

    def test_one_row_gives_way_to_another_at_one_instant(self):
        bag = [((1, 5), 0, 4, 1), ((1, None), 4, 9, 1), ((1, 7), 9, 12, 1)]
        delta, carry = one(self.spec(known=True), bag)
        assert [(r["o0"], r["__ts"], r["__te"]) for r in delta] == [(5, 0, 4), (None, 4, 9), (7, 9, 12)]
        assert carry.num_rows == 0

    def test_values_without_an_order_pass(self):
        t = pa.map_(pa.string(), I64)
        delta, _ = one(self.spec(t=t, global_=True), [((None, [("b", 1), ("a", 2)]), 3, 5, 1)])
        assert [r["o0"] for r in delta] == [None, [("a", 2), ("b", 1)], None]

    def test_two_copies_of_a_null_are_two_rows(self):
        with pytest.raises(DataError, match=r"more than one row \(2\) at tick 3 in group \(k = 1\)"):
            one(self.spec(), [((1, None), 3, 5, 2)])
