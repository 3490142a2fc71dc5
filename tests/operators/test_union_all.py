"""Bag union: at every instant the copies of a record add up."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings

from sweeparea.operators.linear import union_all
from sweeparea.operators.nodes import Project, RelationScan, StreamScan, UnionAll, Window
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.windows import Range, Rows
from tests.operators import brute
from tests.operators.frames import LAST, SLICES, V, W, frame, rows_of

OUT = (Column("c4", "v"), Column("c5", "w"))
OTHER = (Column("c2", "a", "bigint"), Column("c3", "b", "string"))
R, S = RelationScan("R", ((V, "v"), (W, "w"))), RelationScan("S", ((OTHER[0], "a"), (OTHER[1], "b")))
UNION = UnionAll((R, S), OUT)


@settings(max_examples=25, deadline=None)
@given(left=SLICES, right=SLICES)
def test_every_instant_however_sliced(database, left, right):
    found = []
    for i in range(max(len(left), len(right))):
        # a part without rows in a slice is left out
        sides = [(0, left, ("c0", "c1")), (1, right, ("c2", "c3"))]
        bags = [(part, frame(database, side[i], names)) for part, side, names in sides if i < len(side)]
        found += rows_of(union_all.apply(UNION, bags))
    sides = [[row for rows in side for row in rows] for side in (left, right)]
    for tick in range(LAST + 10):
        wanted = brute.at(sides[0], tick)
        wanted.update(brute.at(sides[1], tick))  # signed: + would drop what is below zero
        assert brute.at(found, tick) == Counter({record: n for record, n in wanted.items() if n}), tick


def test_what_is_not_needed_is_needed_of_no_part():
    needed = frozenset({"c5"})
    assert list(UNION.needs(needed)) == [frozenset({"c1"}), frozenset({"c3"})]
    cut = UNION.cut((R, S), needed)
    assert cut.columns == (OUT[1],)
    assert [(type(part), part.columns) for part in cut.inputs] == [(Project, (W,)), (Project, (OTHER[1],))]


def test_only_elements_that_one_time_window_ends_leave_in_order():
    """Rule 2 of Golab & Oezsu 2005, section 5.2: the more complex of the inputs."""
    one, other = StreamScan("S", ((V, "v"),)), StreamScan("T", ((OTHER[0], "a"),))

    def edge(*windows):
        parts = tuple(Window(stream, window) for stream, window in zip((one, other), windows, strict=True))
        return UnionAll(parts, OUT[:1]).edge([part.edge([], ()) for part in parts], ())

    assert edge(Range(5), Range(5)) == Edge("WKS", True)
    assert edge(Range(5), Range(6)) == Edge("WK", True)
    assert edge(Rows(2), Rows(2)).expiry_known is False
    assert UNION.edge([STRICT, Edge("monotonic", True)], ()) == STRICT
