"""Scans: nothing leaves a stream, a relation's changes take rows back, and no column is read that nobody needs."""

from __future__ import annotations

from sweeparea.operators.nodes import RelationScan, StreamScan
from sweeparea.operators.plan.edge import MONOTONIC, STRICT
from sweeparea.operators.plan.stretch import Stretch
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.ticks import INF

V, W, INSTANT = Column("c0", "v", "bigint"), Column("c1", "w", "string"), Column("c2", "ts", "timestamp")
STREAM = StreamScan("S", ((V, "v"), (W, "w")), INSTANT)
RELATION = RelationScan("R", ((V, "v"), (W, "w")))


def test_what_is_known_where_a_plan_begins():
    assert STREAM.edge([], ()) == MONOTONIC
    assert RELATION.edge([], ()) == STRICT
    assert RELATION.edge([], ("R",)) == MONOTONIC
    assert [node.settled(("R", "S")) for node in (STREAM, RELATION)] == [False, True]
    assert (STREAM.is_stream, RELATION.is_stream) == (True, False)


def test_an_element_matters_at_its_instant_and_a_change_for_ever():
    assert STREAM.reaches({}) == {"S": 1}
    assert RELATION.reaches({}) == {"R": INF}
    stretch = Stretch(3, 9)
    assert STREAM.touched([], {"S": stretch}) == stretch
    assert STREAM.touched([], {"R": stretch}) is None


def test_only_needed_columns_are_read():
    assert STREAM.columns == (V, W, INSTANT)
    assert STREAM.cut((), frozenset({"c1"})) == StreamScan("S", ((W, "w"),), None)
    assert STREAM.cut((), frozenset({"c2"})) == StreamScan("S", (), INSTANT)
    assert RELATION.cut((), frozenset({"c0"})) == RelationScan("R", ((V, "v"),))
