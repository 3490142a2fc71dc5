"""What runs incrementally after a rewriting, and what is left to snapshot expansion."""

from __future__ import annotations

import pytest

from sweeparea.operators.nodes import (
    Aggregate,
    AggregateCall,
    Analytic,
    Framed,
    Join,
    Navigation,
    Project,
    RelationScan,
    TopK,
    WindowFunction,
)
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.lowering import expansion, lower
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr, SortKey

A, B = Column("a", "a", "int"), Column("b", "b", "double")
INPUT = RelationScan("R", ((A, "a"), (B, "b")))
KEY = (Column("k", "a", "int"), Expr("a", "a", frozenset({"a"})))
VALUE = Expr("b", "b", frozenset({"b"}))
CONDITION = Expr("a > 1", "a > 1", frozenset({"a"}))


def _grouped(*calls: AggregateCall, global_: bool = False) -> Aggregate:
    outputs = tuple((Column(f"o{i}", f"o{i}"), call) for i, call in enumerate(calls))
    return Aggregate(INPUT, () if global_ else (KEY,), outputs, global_)


def _aggregates(node: Node) -> list[Aggregate]:
    return [n for n in node.walk() if isinstance(n, Aggregate)]


def test_filters_become_conditions():
    node = _grouped(AggregateCall("COUNT", filter=CONDITION), AggregateCall("SUM", VALUE, filter=CONDITION))
    assert expansion(node) is None
    [lowered] = _aggregates(lower(node))
    assert [call.argument and call.argument.sql for _, call in lowered.calls] == [
        "IF((a > 1), (1), NULL)",
        "IF((a > 1), (b), NULL)",
    ]
    assert all(call.filter is None and call.reads >= {"a"} for _, call in lowered.calls)


def test_distinct_values_are_eliminated_first():
    calls = [AggregateCall(f, VALUE, distinct=f != "MAX") for f in ("COUNT", "AVG", "MAX")]
    for global_ in (False, True):
        node = _grouped(*calls, global_=global_)
        assert expansion(node) is None
        lowered = lower(node)
        assert lowered.columns == node.columns
        below, above = _aggregates(lowered)
        assert not below.calls
        assert not below.global_
        assert len(below.keys) == 1 + (not global_)
        assert above.global_ == global_
        assert not any(call.distinct for _, call in above.calls)


def test_distinct_beside_others_is_told_apart_by_the_sweep():
    node = _grouped(AggregateCall("COUNT", VALUE, distinct=True), AggregateCall("COUNT"))
    assert lower(node) == node
    assert expansion(node) is None


def test_conditions_of_what_keeps_values():
    calls = [AggregateCall(f, VALUE, (VALUE,), filter=CONDITION) for f in ("CORR", "PERCENTILE", "VAR_POP")]
    node = _grouped(*calls, AggregateCall("FIRST", VALUE, filter=CONDITION))
    assert expansion(node) is None
    [lowered] = _aggregates(lower(node))
    # FIRST does not leave out NULLs: its condition stays
    assert [call.filter for _, call in lowered.calls] == [None, None, None, CONDITION]


def test_what_is_expanded_is_named_once():
    node = _grouped(*(AggregateCall(f, VALUE) for f in ("SUM", "COLLECT_LIST", "BITMAP_OR_AGG", "COLLECT_LIST")))
    assert expansion(node) == "the aggregate COLLECT_LIST, the aggregate BITMAP_OR_AGG"
    assert expansion(_grouped(AggregateCall("PERCENTILE", VALUE, (VALUE, VALUE)))) == "PERCENTILE(.., .., frequency)"
    assert expansion(_grouped(AggregateCall("MAX_BY", VALUE, (VALUE, VALUE)))) == "MAX_BY(.., .., number)"
    by_a, by_b = (WindowFunction("COLLECT_LIST", (VALUE,), partition=(key,)) for key in (KEY[1], VALUE))
    for calls in ((by_a,), (by_a, by_b), (WindowFunction("RANK"), by_a)):  # of several nodes each counts
        node = Analytic(INPUT, tuple((Column(f"o{i}", "o"), call) for i, call in enumerate(calls)))
        assert expansion(node) == "window functions (OVER)"
    assert expansion(Analytic(INPUT, ((A, WindowFunction("RANK")),))) is None
    assert expansion(TopK(INPUT, (), 3)) is None


def test_window_functions_of_several_partitions():
    by_a, by_b = (WindowFunction("COLLECT_LIST", (VALUE,), partition=(key,)) for key in (KEY[1], VALUE))
    node = Analytic(INPUT, tuple((Column(f"o{i}", "o"), call) for i, call in enumerate((by_a, by_b, by_a))))
    lowered = lower(node)
    assert isinstance(lowered, Project)
    assert lowered.columns == node.columns
    assert [len(n.calls) for n in lowered.walk() if isinstance(n, Analytic)] == [2, 1]


def test_copies_that_two_nodes_tell_apart_are_numbered_once():
    order = (SortKey(VALUE),)
    number, rank = WindowFunction("ROW_NUMBER", order=order), WindowFunction("RANK", order=order)
    lag, lead = WindowFunction("LAG", (VALUE,), order=order), WindowFunction("LEAD", (VALUE,), (KEY[1],), order)
    moving = WindowFunction("SUM", (VALUE,), order=order, frame="ROWS BETWEEN 1 PRECEDING AND CURRENT ROW")

    def nodes(*calls: WindowFunction) -> list[Node]:
        node = Analytic(INPUT, tuple((Column(f"o{i}", "o", "int"), call) for i, call in enumerate(calls)))
        found = lower(node)
        assert found.columns == node.columns
        return [n for n in found.walk() if isinstance(n, TopK | Navigation | Framed | Analytic)]

    def last(node: Node) -> str:
        assert isinstance(node, Navigation | Framed | Analytic)
        return node.calls[0][1].order[-1].expr.sql

    assert [type(n) for n in nodes(rank, lag)] == [TopK, Navigation]
    [_, above] = nodes(rank, lag)
    assert last(above) == VALUE.sql
    [_, above] = nodes(lag, number)
    assert last(above) == "`o1`"
    copies, first, second = nodes(lag, lead)
    assert isinstance(copies, TopK)
    assert [e.sql for e in copies.keys] == [f"`{c.id}`" for c in INPUT.columns]
    assert {last(first), last(second)} == {"`o0_copy`"}
    copies, first, second = nodes(moving, lag)
    assert (type(first), type(second)) == (Navigation, Framed)
    assert {last(first), last(second)} == {"`o0_copy`"}


def test_frames_of_one_order_are_one_node():
    by_value = WindowFunction("SUM", (VALUE,), order=(SortKey(VALUE),))
    by_rows = WindowFunction(
        "SUM", (VALUE,), order=(SortKey(VALUE), SortKey(KEY[1])), frame="ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
    )
    whole = WindowFunction("MAX", (VALUE,))
    other = WindowFunction("SUM", (VALUE,), order=(SortKey(KEY[1]),))
    listed = WindowFunction("COLLECT_LIST", (VALUE,))

    def nodes(*calls: WindowFunction) -> list[tuple[str, int]]:
        node = Analytic(INPUT, tuple((Column(f"o{i}", "o", "int"), call) for i, call in enumerate(calls)))
        found = lower(node)
        assert found.columns == node.columns
        return [(type(n).__name__, len(n.calls)) for n in found.walk() if isinstance(n, Framed | Analytic)]

    assert nodes(by_value, by_rows, whole) == [("Framed", 3)]
    assert nodes(by_value, other, whole) == [("Framed", 2), ("Framed", 1)]
    assert nodes(by_value, listed) == [("Framed", 1), ("Analytic", 1)]
    [framed] = [n for n in lower(Analytic(INPUT, ((Column("o0", "o"), by_value),))).walk() if isinstance(n, Framed)]
    assert expansion(framed) is None


@pytest.mark.parametrize(
    ("left", "right", "by_key"),
    [
        ("int", "int", True),
        ("int", "bigint", False),
        ("int", "string", False),
        ("array<int>", "array<int>", False),
        (None, "int", True),  # what only Spark can tell, a slice decides
    ],
)
def test_semi_joins_are_swept_by_key_unless_their_types_forbid_it(left: str | None, right: str | None, by_key: bool):
    of_left, of_right = (
        RelationScan("L", ((Column("x", "x", left), "x"),)),
        RelationScan("R", ((Column("y", "y", right), "y"),)),
    )
    join = Join(of_left, of_right, Expr("x = y", columns=frozenset("xy")), JoinKind.SEMI)
    lowered = lower(join)
    assert isinstance(lowered, Join)
    assert lowered.by_key is by_key
    told = lowered.kept(Edges())
    assert told is not None
    assert told.startswith("by key") is by_key
