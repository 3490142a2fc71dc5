"""Istream, Dstream and the published history against Arasu's definitions at every instant, however the timeline is
cut.
"""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators.sweeps.relation_to_stream import MaterializeSpec, sweep
from sweeparea.operators.time.ticks import INF
from tests.operators import brute

LAST = 24
SCHEMA = pa.schema([("a", pa.float64()), ("b", pa.string()), ("ok", pa.bool_())]
                   + [(c, pa.int64()) for c in ("__ts", "__te", "__n")])  # fmt: skip
SPEC = MaterializeSpec(("a", "b"), istream=True, dstream=True, relation=True, checks=("ok",))


def table(bag) -> pa.Table:
    rows = [dict(zip(SCHEMA.names, (*r, r[1] != "x", ts, te, n), strict=True)) for r, ts, te, n in bag]
    return pa.Table.from_pylist(rows, SCHEMA)


def record(row):
    assert row["ok"] == (row["b"] != "x")
    return brute.plain((row["a"], row["b"]))


def run(spec, arrivals, cuts):
    """Istream and Dstream as counters of (record, tick), the closed rows, and what is open at the end."""
    streams, closed, opened, carry = (Counter(), Counter()), Counter(), Counter(), table([])
    h0 = -1
    for h1 in cuts:
        out = sweep(pa.concat_tables([carry, table([r for due, r in arrivals if h0 < due <= h1])]), spec, h0, h1)
        for stream, part in zip(streams, (out.istream, out.dstream), strict=True):
            for row in part.to_pylist():
                assert h0 < row["__tick"] <= h1
                stream[record(row), row["__tick"]] += 1
        for row in out.closed.to_pylist():
            assert row["__from"] < row["__to"]
            assert h0 < row["__to"] <= h1
            closed[record(row), row["__from"], row["__to"]] += 1
        opened = Counter((record(row), row["__from"], None) for row in out.opened.to_pylist())
        carry, h0 = out.carry, h1
    return streams, closed, opened, carry


@st.composite
def arrivals(draw):
    rows = []
    for _ in range(draw(st.integers(0, 14))):
        r = draw(st.sampled_from([0.0, -0.0, math.nan, None, 1.5])), draw(st.sampled_from(["x", "y", None]))
        s, n = draw(st.integers(0, LAST)), draw(st.sampled_from([1, 1, 3]))
        e = s + draw(st.integers(1, 10))
        match draw(st.sampled_from(["te", "pending", "never", "negative", "negative later"])):
            case "te":
                rows.append((s, (r, s, e, n)))
            case "pending":
                rows.append((draw(st.integers(0, s)), (r, s, e, n)))
            case "never":
                rows.append((s, (r, s, INF, n)))
            case "negative":
                rows += [(s, (r, s, INF, n)), (e, (r, e, INF, -n))]
            case _:
                rows += [(s, (r, s, INF, n)), (s, (r, e, INF, -n))]
    return draw(st.permutations(rows))


CUTS = st.sets(st.integers(0, LAST - 1), max_size=6).map(lambda s: [*sorted(s), LAST])


@settings(max_examples=100, deadline=None)
@given(arrivals(), CUTS)
def test_every_instant_however_sliced(rows, cuts):
    (istream, dstream), closed, opened, _ = run(SPEC, rows, cuts)
    bag = [(brute.plain(r), ts, te, n) for _, (r, ts, te, n) in rows]
    rebuilt: Counter = Counter()
    for tick in range(LAST + 1):
        plus = Counter({r: n for (r, t), n in istream.items() if t == tick})
        minus = Counter({r: n for (r, t), n in dstream.items() if t == tick})
        assert plus == brute.istream(bag, tick)
        assert minus == brute.dstream(bag, tick)
        # law R1, law R2
        now, before = brute.at(bag, tick), brute.at(bag, tick - 1)
        assert now.total() == before.total() + plus.total() - minus.total()
        assert not plus.keys() & minus.keys()
        rebuilt = rebuilt + plus - minus
        assert rebuilt == now
    assert closed + opened == brute.history(bag, 0, LAST)


@settings(max_examples=80, deadline=None)
@given(arrivals(), CUTS)
def test_every_slice_leaves_open_levels_and_changes_to_come(rows, cuts):
    """At each compaction one row for a record and the beginning of a level that is open, and one for each later instant
    at which its number of copies is known to change: nothing of what has ended.
    """
    carry, h0 = table([]), -1
    for h1 in cuts:
        new = [row for due, row in rows if h0 < due <= h1]
        carry = sweep(pa.concat_tables([carry, table(new)]), SPEC, h0, h1).carry
        told = [(brute.plain(r), ts, te, n) for due, (r, ts, te, n) in rows if due <= h1]
        wanted = Counter({(r, since): n for (r, since, end), n in brute.history(told, 0, h1).items() if end is None})
        changes_: Counter = Counter()
        for r, ts, te, n in told:
            changes_[r, ts] += n * (ts > h1)
            changes_[r, te] -= n * (h1 < te < INF)
        wanted.update({at: n for at, n in changes_.items() if n})
        kept = Counter()
        for row in carry.to_pylist():
            assert row["__te"] == INF
            assert (record(row), row["__ts"]) not in kept
            kept[record(row), row["__ts"]] = row["__n"]
        assert kept == wanted
        h0 = h1


@settings(max_examples=50, deadline=None)
@given(arrivals(), CUTS)
def test_streams_alone_need_no_levels(rows, cuts):
    spec = MaterializeSpec(("a", "b"), istream=True, dstream=True, checks=("ok",))
    streams, closed, opened, carry = run(spec, rows, cuts)
    assert streams == run(SPEC, rows, cuts)[0]
    assert not closed
    assert not opened
    assert all(t > LAST for t in carry.column("__ts").to_pylist())


def test_rows_5_joined_with_r_does_not_emit_again():
    """Arasu section 5.2: a1..a6 at ticks 1..6, first and sixth equal; Istream(S[Rows 5] join R) is silent at tick 6."""
    values = ["a", "b", "c", "d", "e", "a"]
    bag = [((1.0, v), t, t + 5 if t == 1 else INF, 1) for t, v in enumerate(values, start=1)]
    (istream, dstream), closed, _, _ = run(SPEC, [(ts, (r, ts, te, n)) for r, ts, te, n in bag], [*range(1, 7)])
    assert [t for _, t in sorted(istream, key=lambda x: x[1])] == [1, 2, 3, 4, 5]
    assert not dstream
    assert not closed


def test_a_fall_closes_the_levels_that_opened_last():
    out = sweep(table([((1.0, "y"), 1, INF, 2), ((1.0, "y"), 3, INF, 1), ((1.0, "y"), 5, INF, -2)]), SPEC, 0, 9)
    assert out.closed.select(["__from", "__to"]).to_pylist() == [{"__from": 3, "__to": 5}, {"__from": 1, "__to": 5}]
    assert out.opened.column("__from").to_pylist() == [1]
    assert out.carry.select(["__ts", "__te", "__n"]).to_pylist() == [{"__ts": 1, "__te": INF, "__n": 1}]


def test_unwanted_outputs_are_empty_but_have_their_schemas():
    out = sweep(table([((1.0, "y"), 1, 3, 1)]), MaterializeSpec(("a", "b"), relation=True, checks=("ok",)), 0, 2)
    assert out.istream.num_rows == 0
    assert out.istream.schema.names == ["a", "b", "ok", "__tick"]
    assert out.opened.schema.names == ["a", "b", "ok", "__from"]
    assert out.closed.schema.names[-2:] == ["__from", "__to"]
    assert sweep(table([]), SPEC, 0, 2).carry.schema.equals(SCHEMA)


def test_below_zero_names_the_record_and_the_instant():
    with pytest.raises(DataError, match=r"'b': 'y'.*below zero at tick 4"):
        sweep(table([((1.0, "y"), 1, INF, 1), ((1.0, "y"), 4, INF, -2)]), SPEC, 0, 9)


def test_a_relation_without_columns_is_a_count():
    bag = pa.table({"__ts": [1, 2], "__te": [INF, 5], "__n": [1, 1]})
    out = sweep(bag, MaterializeSpec((), istream=True, relation=True), 0, 9)
    assert out.istream.column("__tick").to_pylist() == [1, 2]
    assert out.opened.num_rows == 1
