"""Law S4 for strategies: an end that travels with its row, one that comes as a negative tuple, and one that is expected
and corrected tell the same bag at every instant, however the timeline is cut.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import (
    Aggregate,
    AggregateCall,
    Difference,
    Intersect,
    Join,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    Window,
)
from sweeparea.operators.plan.encoding import CORRECTED, DELTA, INTERVAL, STRATEGIES, Edges, strategy_of
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.plan_identity import result_identity, state_identity, strategy_in
from sweeparea.operators.plan.stream_kind import StreamKind
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.sweeps.join import JoinKind
from sweeparea.operators.sweeps.two_counts import TwoCountsSpec
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.windows import Range, Rows, Unbounded
from tests.operators import brute
from tests.operators.two_bags import CUTS, DEFINITIONS, LAST, arrivals, expected


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_expected_ends_with_corrections_are_the_same_relation(name, data):
    operation, definition = DEFINITIONS[name]
    rows = data.draw(arrivals((True, True)))
    if name == "distinct":
        rows = [row for row in rows if row[1] == 0]
    spec = TwoCountsSpec(("a", "b"), operation, (True, True), expected=True)
    assert spec.ahead
    h0, carry, told = -1, two_counts.rows_schema([pa.field("a", pa.float64()), pa.field("b", pa.string())]), []
    carry = carry.empty_table()
    for h1 in data.draw(CUTS):
        new = [dict(zip(carry.schema.names, (*r, ts, te, n, side), strict=True)) for due, side, (r, ts, te, n) in rows
               if h0 < due <= h1]  # fmt: skip
        out, carry = two_counts.sweep(pa.concat_tables([carry, pa.Table.from_pylist(new, carry.schema)]), spec, h0, h1)
        for row in out.to_pylist():
            assert h0 < row["__ts"] < row["__te"]
            assert row["__n"] > 0 or not operation.grows
            told.append((brute.plain((row["a"], row["b"])), row["__ts"], row["__te"], row["__n"]))
        h0 = h1
    for tick in range(LAST + 12):  # also beyond the last slice: the ends that are expected
        assert brute.at(told, tick) == expected(rows, tick, definition), tick


# -- which encoding an edge has ----------------------------------------------------------------------------------------

A, B, COUNT = Column("a", "a", "int"), Column("b", "b", "int"), Column("n", "n", "bigint")
S, T = StreamScan("S", ((A, "a"),)), StreamScan("T", ((B, "b"),))
RECENT, OTHER = Window(S, Range(5)), Window(T, Range(9))
FOR_EVER, LAST_TWO = Window(S, Unbounded()), Window(S, Rows(2))
GROUPED = Aggregate(RECENT, (), ((COUNT, AggregateCall("COUNT")),), global_=True)
ANTI = Join(RECENT, OTHER, None, JoinKind.ANTI)
JOINED = Join(RECENT, OTHER)
MINUS = Difference(RECENT, OTHER, (A,))
ON_TOP = Join(MINUS, OTHER, None, JoinKind.LEFT)


@pytest.mark.parametrize(
    ("node", "upa", "negative", "direct"),
    [
        (RECENT, INTERVAL, DELTA, INTERVAL),
        (FOR_EVER, INTERVAL, INTERVAL, INTERVAL),
        (LAST_TWO, DELTA, DELTA, DELTA),
        (JOINED, INTERVAL, DELTA, INTERVAL),
        (GROUPED, DELTA, DELTA, DELTA),
        (MINUS, DELTA, DELTA, CORRECTED),
        (ANTI, DELTA, DELTA, CORRECTED),
        (ON_TOP, DELTA, DELTA, DELTA),
        (RelationScan("R", ((A, "a"),)), DELTA, DELTA, DELTA),
        (S, INTERVAL, INTERVAL, INTERVAL),
    ],
)
def test_encoding_of_an_edge(node, upa, negative, direct):
    assert [Edges((), s).encoding(node) for s in STRATEGIES] == [upa, negative, direct]


def test_edges_whose_records_come_in_pieces_that_follow_each_other():
    once = Aggregate(RECENT, ((B, Expr("`a`", "a", frozenset({"a"}))),), ())
    for node in (once, Join(once, OTHER), Intersect(RECENT, OTHER, (A,)), Join(RECENT, OTHER, None, JoinKind.SEMI)):
        assert node.lengthens
    for node in (RECENT, JOINED, GROUPED, Window(RelationToStream(once, StreamKind.ISTREAM), Range(5))):
        assert not node.lengthens


def test_w_expire_stands_at_the_windows_that_forget():
    edges = Edges((), "negative")
    assert [edges.expires(n) for n in (RECENT, FOR_EVER, LAST_TWO, JOINED)] == [True, False, True, False]
    assert edges.sweeps(ON_TOP)
    assert edges.cheap(FOR_EVER)
    assert not edges.cheap(RECENT)
    assert not any(Edges((), s).sweeps(ON_TOP) for s in ("upa", "direct"))


def test_edges_say_how_ends_travel():
    assert Edges((), "upa").describe(RECENT) == "WKS, expiry known"
    assert Edges((), "negative").describe(JOINED) == "WK, expiry by negative tuples"
    assert Edges((), "direct").describe(JOINED) == "WK, expiry known"
    assert Edges((), "direct").describe(GROUPED) == "WK, expiry unknown: negative tuples, its ends cannot travel"
    expected_ = "STR, expiry unknown: expected ends travel, earlier ones by negative tuples"
    assert Edges((), "direct").describe(ANTI) == expected_
    assert Edges((), "negative").describe(S) == Edges((), "direct").describe(FOR_EVER) == "monotonic, expiry known"


def plan(strategy: str | None, **more) -> Plan:
    settings_ = () if strategy is None else (("strategy", strategy),)
    return Plan("q", Select(RECENT, None), None, TimeDomain(), settings=settings_, **more)  # type: ignore[arg-type]


def test_a_change_of_strategy_is_another_plan_with_the_same_results():
    plans = [plan(s) for s in (None, *STRATEGIES)]
    states = [state_identity(p) for p in plans]
    assert states[0] == states[1]  # upa is the default
    assert len(set(states)) == 3
    assert [strategy_in(state) for state in states] == ["upa", *STRATEGIES]
    assert len({result_identity(p) for p in plans}) == 1


def test_rows_that_are_emitted_one_by_one_do_not_expire():
    assert strategy_of(plan("negative")) == "negative"
    assert strategy_of(plan("negative", emits_each=True)) == "upa"
