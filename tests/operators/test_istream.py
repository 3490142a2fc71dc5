"""Streams that need no difference of neighbouring instants: those of rows that only come, and of net changes."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.aggregates.calls import BaseCall
from sweeparea.operators.sweeps import aggregate
from sweeparea.operators.sweeps.istream import changes, emit
from sweeparea.operators.sweeps.relation_to_stream import Every, MaterializeSpec, sweep
from sweeparea.operators.time.ticks import INF
from tests.operators.test_relation_to_stream import CUTS, LAST, record, table

ELEMENTS = st.lists(
    st.tuples(
        st.tuples(st.sampled_from([0.0, -0.0, math.nan, None, 1.5]), st.sampled_from(["x", "y", None])),
        st.integers(0, LAST),
        st.sampled_from([1, 1, 3]),
    ),
    max_size=14,
)
"""(record, instant, copies)"""


def counted(stream: pa.Table) -> Counter:
    return Counter((record(row), row["__tick"]) for row in stream.to_pylist())


@settings(max_examples=60, deadline=None)
@given(ELEMENTS, CUTS)
def test_what_only_comes_is_an_element_when_it_begins(elements, cuts):
    """Arasu et al. 2003, section 7.2.1: Istream(L(S [Range Unbounded])) is Rstream(L(S [Now]))."""
    each = MaterializeSpec(("a", "b"), checks=("ok",), each=True)
    istream = MaterializeSpec(("a", "b"), checks=("ok",), istream=True)
    rstream = MaterializeSpec(("a", "b"), checks=("ok",), rstream=Every())
    found, unbounded, now = Counter(), Counter(), Counter()
    carry, h0 = table([]), -1
    for h1 in cuts:
        new = [(r, s, n) for r, s, n in elements if h0 < s <= h1]
        out = emit(table([(r, s, s + 1, n) for r, s, n in new]), each, h0, h1)
        assert out.dstream.num_rows == out.closed.num_rows == out.opened.num_rows == out.carry.num_rows == 0
        found += counted(out.istream)
        whole = sweep(pa.concat_tables([carry, table([(r, s, INF, n) for r, s, n in new])]), istream, h0, h1)
        unbounded += counted(whole.istream)
        now += counted(sweep(table([(r, s, s + 1, n) for r, s, n in new]), rstream, h0, h1).rstream)
        carry, h0 = whole.carry, h1
    assert found == unbounded == now


@pytest.mark.parametrize(("start", "n"), [(3, 1), (10, 1), (5, -1)])
def test_a_row_that_is_taken_back_or_belongs_to_another_slice_is_refused(start, n):
    with pytest.raises(SweepAreaError, match="A row was taken back"):
        emit(table([((1.0, "y"), start, INF, n)]), MaterializeSpec(("a", "b"), checks=("ok",), each=True), 3, 9)


DOUBLES, WHOLE = pa.float64(), pa.int64()
CALLS = [
    ("COUNT", WHOLE, WHOLE, False),
    ("COUNT", WHOLE, WHOLE, True),
    ("SUM", WHOLE, WHOLE, False),
    ("SUM", DOUBLES, DOUBLES, False),
    ("SUM", pa.decimal128(12, 2), pa.decimal128(22, 2), False),
    ("MIN", DOUBLES, DOUBLES, False),
    ("MAX", pa.string(), pa.string(), False),
    ("MODE", DOUBLES, DOUBLES, False),
    ("PERCENTILE", DOUBLES, DOUBLES, False),
    ("BIT_XOR", WHOLE, WHOLE, False),
    ("VAR_POP", DOUBLES, DOUBLES, False),
]
VALUES = {
    WHOLE: [1, 2, -2, None],
    DOUBLES: [0.0, -0.0, math.nan, 1.5, -1.5, None],
    pa.string(): ["", "a", "b", None],
    pa.decimal128(12, 2): [Decimal("0.10"), Decimal("-0.10"), None],
}


@settings(max_examples=100, deadline=None)
@given(st.data(), st.booleans(), st.sets(st.integers(0, LAST), max_size=4))
def test_the_delta_of_an_aggregation_needs_no_netting(data, global_, cuts):
    function, t, result, distinct = data.draw(st.sampled_from(CALLS))
    call = BaseCall("o", function, result, "v", t, distinct)
    spec = aggregate.AggregateSpec(() if global_ else (("a", DOUBLES),), (call,), global_)
    schema = aggregate.rows_schema(spec)
    element = st.tuples(
        st.sampled_from([0.0, -0.0, math.nan, None]),
        st.sampled_from(VALUES[t]),
        st.integers(0, LAST),
        st.integers(1, 6),
    )
    bag = [
        {"a": a, "a0": v, "__ts": s, "__te": s + d, "__n": 1} for a, v, s, d in data.draw(st.lists(element, max_size=9))
    ]
    wanted = MaterializeSpec(("o",) if global_ else ("a", "o"), istream=True, dstream=True, net=True)
    kept, h0 = schema.empty_table(), -1
    for h1 in (*sorted(cuts - {LAST + 8}), LAST + 8):
        rows = [{f: row.get(f) for f in schema.names} for row in bag if h0 < row["__ts"] <= h1]
        delta, kept = aggregate.sweep(pa.concat_tables([kept, pa.Table.from_pylist(rows, schema)]), spec, h0, h1)
        out = sweep(delta, wanted, h0, h1)
        assert out.carry.num_rows == 0
        found = changes(delta, wanted, h0, h1)
        for one, other in ((found.istream, out.istream), (found.dstream, out.dstream)):
            assert one.schema == other.schema
            assert sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist()))
        for name in ("closed", "opened", "rstream", "carry"):
            assert getattr(found, name).num_rows == 0
            assert getattr(found, name).schema == getattr(out, name).schema
        h0 = h1


def test_what_a_delta_says_of_other_slices_is_no_change_of_this_one():
    rows = pa.table({"a": [1], "__ts": [3], "__te": [9], "__n": [1]})
    with pytest.raises(SweepAreaError, match="outside of the slice"):
        changes(rows, MaterializeSpec(("a",), istream=True, dstream=True, net=True), 0, 8)
