"""Difference, intersection and their kin against their definitions at every instant, however the timeline is cut."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.sweeps.two_counts import Operation, TwoCountsSpec, rows_schema, sweep
from sweeparea.operators.time.ticks import INF
from tests.operators import brute

LAST = 24
RECORD = [pa.field("a", pa.float64()), pa.field("b", pa.string())]
SCHEMA = rows_schema(RECORD)
DEFINITIONS = {
    "difference": (two_counts.DIFFERENCE, lambda n1, n2: max(0, n1 - n2)),
    "except": (two_counts.EXCEPT, lambda n1, n2: int(n1 > 0 and n2 == 0)),
    "strict": (two_counts.STRICT_DIFFERENCE, lambda n1, n2: n1 if n2 == 0 else 0),
    "intersect all": (two_counts.INTERSECT_ALL, min),
    "intersect": (two_counts.INTERSECT, lambda n1, n2: int(n1 > 0 and n2 > 0)),
    "semi": (two_counts.SEMI, lambda n1, n2: n1 if n2 > 0 else 0),
    "max-union": (two_counts.MAX_UNION, max),
    "distinct": (two_counts.DISTINCT, lambda n1, _: int(n1 > 0)),
}


def table(rows) -> pa.Table:
    """Rows ``(side, (record, ts, te, n))`` as the sweep takes them."""
    given = [dict(zip(SCHEMA.names, (*r, ts, te, n, side), strict=True)) for side, (r, ts, te, n) in rows]
    return pa.Table.from_pylist(given, SCHEMA)


def bag_of(result: pa.Table) -> list:
    return [(brute.plain((row["a"], row["b"])), row["__ts"], row["__te"], row["__n"]) for row in result.to_pylist()]


def run(spec: TwoCountsSpec, arrivals, cuts, carries=None) -> list:
    """All rows that the slices ending at ``cuts`` add; ``arrivals`` are (due, side, row)."""
    h0, carry, bag = -1, table([]), []
    for h1 in cuts:
        new = [(side, row) for due, side, row in arrivals if h0 < due <= h1]
        result, carry = sweep(pa.concat_tables([carry, table(new)]), spec, h0, h1)
        for record, ts, te, n in bag_of(result):
            assert h0 < ts < te
            assert n > 0 or not spec.ahead
            assert spec.ahead or (ts <= h1 and (te == INF or (n > 0 and te <= h1)))
            bag.append((record, ts, te, n))
        if carries is not None:
            carries.append(carry)
        h0 = h1
    return bag


def expected(arrivals, tick: int, definition) -> Counter:
    sides = [
        brute.at([(brute.plain(r), ts, te, n) for _, s, (r, ts, te, n) in arrivals if s == side], tick)
        for side in (0, 1)
    ]
    counts = {r: definition(sides[0][r], sides[1][r]) for r in sides[0] | sides[1]}
    return Counter({r: n for r, n in counts.items() if n})


@st.composite
def arrivals(draw, known=(False, False)):
    rows = []
    for _ in range(draw(st.integers(0, 14))):
        r = draw(st.sampled_from([0.0, -0.0, math.nan, None])), draw(st.sampled_from(["x", "y", None]))
        side = draw(st.sampled_from([0, 0, 1]))
        s, n = draw(st.integers(0, LAST)), draw(st.sampled_from([1, 1, 3]))
        e = s + draw(st.integers(1, 10))
        kinds = ["te", "pending", "never"] + ["negative", "negative later", "cut short"] * (not known[side])
        match draw(st.sampled_from(kinds)):
            case "te":
                rows.append((s, side, (r, s, e, n)))
            case "pending":
                rows.append((draw(st.integers(0, s)), side, (r, s, e, n)))
            case "never":
                rows.append((s, side, (r, s, INF, n)))
            case "negative":
                rows += [(s, side, (r, s, INF, n)), (e, side, (r, e, INF, -n))]
            case "cut short":  # its end was thought to be known
                rows += [(s, side, (r, s, e + 3, n)), (e, side, (r, e, e + 3, -n))]
            case _:
                rows += [(s, side, (r, s, INF, n)), (s, side, (r, e, INF, -n))]
    return draw(st.permutations(rows))


CUTS = st.sets(st.integers(0, LAST - 1), max_size=6).map(lambda s: [*sorted(s), LAST])
KNOWN = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize("known", KNOWN, ids=["unknown", "left known", "right known", "known"])
@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(name, known, data):
    operation, definition = DEFINITIONS[name]
    rows = data.draw(arrivals(known))
    if name == "distinct":
        rows = [row for row in rows if row[1] == 0]
    result = run(TwoCountsSpec(("a", "b"), operation, known), rows, data.draw(CUTS))
    for tick in range(LAST + 1):
        assert brute.at(result, tick) == expected(rows, tick, definition), tick


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_each_change_is_told_once(name, data):
    """Nothing is said where nothing changes, and no row is taken back within its own slice."""
    operation, definition = DEFINITIONS[name]
    rows = [row for row in data.draw(arrivals()) if name != "distinct" or row[1] == 0]
    told = Counter()
    for _, ts, te, n in run(TwoCountsSpec(("a", "b"), operation), rows, data.draw(CUTS)):
        told[ts] += abs(n)
        told[te] += abs(n) * (te != INF)
    changes, before = Counter(), Counter()
    for tick in range(LAST + 1):
        now = expected(rows, tick, definition)
        changes[tick] = sum(((now - before) + (before - now)).values())
        before = now
    assert +told == +changes


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_records_without_columns_are_counted(data):
    rows = [(due, side, ((0.0, "x"), ts, te, n)) for due, side, (_, ts, te, n) in data.draw(arrivals())]
    bag = table([(side, row) for _, side, row in rows]).select(["__ts", "__te", "__n", "__side"])
    result, _ = sweep(bag, TwoCountsSpec((), two_counts.DIFFERENCE), -1, LAST)
    assert result.column_names == ["__ts", "__te", "__n"]
    bag_ = [((), r["__ts"], r["__te"], r["__n"]) for r in result.to_pylist()]
    for tick in range(LAST + 1):
        wanted = expected(rows, tick, DEFINITIONS["difference"][1]).total()
        assert brute.at(bag_, tick).total() == wanted


def left(n, ts, te=INF):
    return 0, ((1.0, "x"), ts, te, n)


def right(n, ts, te=INF):
    return 1, ((1.0, "x"), ts, te, n)


def test_hammad_figure_7():
    """``S - R``: an arrival in R retracts A; when R's E expires, S's E becomes an answer at that instant."""
    rows = [(0, (("A",), 1, 11, 1)), (0, (("E",), 5, 15, 1)), (1, (("E",), 2, 8, 1)), (1, (("A",), 4, 14, 1))]
    schema = rows_schema([pa.field("v", pa.string())])
    bag = pa.Table.from_pylist(
        [{"v": r[0], "__ts": ts, "__te": te, "__n": n, "__side": side} for side, (r, ts, te, n) in rows], schema
    )
    spec = TwoCountsSpec(("v",), two_counts.DIFFERENCE, (True, True))
    first, carry = sweep(bag.filter(pc.less_equal(bag.column("__ts"), 3)), spec, 0, 3)
    assert first.to_pylist() == [{"v": "A", "__ts": 1, "__te": INF, "__n": 1}]
    rest = pa.concat_tables([carry, bag.filter(pc.greater(bag.column("__ts"), 3))])
    second, _ = sweep(rest, spec, 3, 20)
    assert second.sort_by("__ts").to_pylist() == [
        {"v": "A", "__ts": 4, "__te": INF, "__n": -1},
        {"v": "E", "__ts": 8, "__te": 15, "__n": 1},
    ]


def test_what_expires_together_changes_nothing():
    result, _ = sweep(table([left(2, 1, 9), right(1, 2, 9)]), TwoCountsSpec(("a", "b"), two_counts.DIFFERENCE), 0, 20)
    assert [t[1:] for t in bag_of(result)] == [(1, 2, 1), (1, 9, 1)]


@pytest.mark.parametrize("h1", [9, 4])
@pytest.mark.parametrize("side", [left, right])
def test_below_zero_names_the_record_and_the_instant(side, h1):
    rows = [left(1, 1), right(1, 1), side(-2, 4)]
    with pytest.raises(DataError, match=r"'b': 'x'.*below zero at tick 4"):
        sweep(table(rows), TwoCountsSpec(("a", "b"), two_counts.INTERSECT), 0, h1)
    sweep(table(rows), TwoCountsSpec(("a", "b"), two_counts.INTERSECT), 0, 3)  # not known to be so yet


def test_a_negative_tuple_where_expiry_is_known_is_refused():
    spec = TwoCountsSpec(("a", "b"), two_counts.INTERSECT, (True, True))
    with pytest.raises(DataError, match="the plan is wrong about expiry"):
        sweep(table([left(1, 1), left(-1, 4)]), spec, 0, 9)


def carry_of(operation: Operation, rows, known) -> pa.Table:
    return sweep(table(rows), TwoCountsSpec(("a", "b"), operation, known), 0, 100)[1]


class TestCarryBound:
    """What a slice leaves is bounded as the docstring says, also on input made to break it."""

    @pytest.mark.parametrize("operation", [two_counts.EXCEPT, two_counts.INTERSECT, two_counts.DISTINCT])
    def test_presence_of_known_expiry_keeps_one_interval_a_side(self, operation):
        rows = [side(1, i % 100, 200 + (i * 7919) % 1000) for i in range(1000) for side in (left, right)]
        carry = carry_of(operation, rows, (True, True))
        assert carry.select(["__te", "__side"]).to_pylist() == [{"__te": 1199, "__side": s} for s in (2, 3)]

    def test_pending_intervals_stay_only_where_a_gap_parts_them(self):
        rows = [left(1, 1, 300), left(1, 150, 250), left(1, 160, 400), left(1, 400, 450), left(1, 460, 470)]
        carry = carry_of(two_counts.DISTINCT, rows, (True, True))
        assert sorted(zip(*(carry.column(c).to_pylist() for c in ("__ts", "__te")), strict=True)) == [
            (100, 450),
            (460, 470),
        ]

    @pytest.mark.parametrize("known", KNOWN)
    @pytest.mark.parametrize("name", DEFINITIONS)
    @settings(max_examples=25, deadline=None)
    @given(st.data())
    def test_every_slice_leaves_the_least(self, name, known, data):
        """At each compaction, of what has been told: where presence is known to its end the intervals that do not
        touch, else a record's count at h1 and each later change of it.
        """
        operation, cut = DEFINITIONS[name][0], data.draw(CUTS)
        rows = [row for row in data.draw(arrivals(known)) if name != "distinct" or row[1] == 0]
        carries: list[pa.Table] = []
        run(TwoCountsSpec(("a", "b"), operation, known), rows, cut, carries)
        for h1, carry in zip(cut, carries, strict=True):
            kept = Counter(
                (row["__side"] - 2, r, ts, te)
                for row, (r, ts, te, _) in zip(carry.to_pylist(), bag_of(carry), strict=True)
            )
            wanted: Counter = Counter()
            for side in (0, 1):
                told = [
                    (brute.plain(r), max(ts, h1), te, n)
                    for due, s, (r, ts, te, n) in rows
                    if s == side and due <= h1 < te
                ]
                if known[side] and operation.presence[side]:
                    wanted += Counter((side, *one) for one in brute.united([row[:3] for row in told]))
                    continue
                changes: Counter = Counter()
                for r, ts, te, n in told:
                    changes[r, ts] += n
                    changes[r, te] -= n * (te != INF)
                wanted += Counter({(side, r, t, INF): 1 for (r, t), n in changes.items() if n})
            assert kept == wanted

    @pytest.mark.parametrize("name", DEFINITIONS)
    def test_negative_tuples_leave_nothing(self, name):
        rows = [row for i in range(500) for row in (left(1, i % 50), left(-1, 50 + i % 50), right(2, 3), right(-2, 9))]
        assert carry_of(DEFINITIONS[name][0], rows, (False, False)).num_rows == 0

    @pytest.mark.parametrize("known", KNOWN)
    def test_counts_are_one_row_a_record_and_a_future_instant(self, known):
        rows = [side(1, i % 100, 200 + i % 3) for i in range(3000) for side in (left, right)]
        carry = carry_of(two_counts.DIFFERENCE, rows, known)
        assert carry.num_rows == 2 * (1 + 3)

    def test_what_ended_is_gone(self):
        assert carry_of(two_counts.DIFFERENCE, [left(1, 1, 101), right(1, 1, 50)], (True, True)).num_rows == 2 * 1
