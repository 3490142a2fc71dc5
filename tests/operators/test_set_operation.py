"""What EXCEPT and INTERSECT have in common: they compare whole records, by position."""

from __future__ import annotations

import pytest

from sweeparea.operators.nodes import Difference, Intersect, Project, RelationScan
from sweeparea.operators.sql.expressions import Column

V, W, A, B = (Column(f"c{i}", name, "bigint") for i, name in enumerate("vwab"))
LEFT, RIGHT = RelationScan("L", ((V, "v"), (W, "w"))), RelationScan("R", ((A, "a"), (B, "b")))
OUT = Column("c8", "v"), Column("c9", "w")
BOTH = pytest.mark.parametrize("kind", [Difference, Intersect])


@BOTH
def test_no_column_is_cut_since_values_are_compared_whole(kind):
    node = kind(LEFT, RIGHT, OUT)
    assert list(node.needs(frozenset({"c8"}))) == [frozenset({"c0", "c1"}), frozenset({"c2", "c3"})]
    wider = (RelationScan("L", ((V, "v"), (Column("c7", "z"), "z"), (W, "w"))), RIGHT)
    cut = node.cut(wider, frozenset({"c8"}))
    assert cut.columns == OUT
    assert [(type(side), side.columns) for side in cut.inputs] == [(Project, (V, W)), (RelationScan, (A, B))]


@BOTH
def test_a_key_that_the_left_side_carries_is_carried(kind):
    node = kind(LEFT, RIGHT, OUT)
    found = node.carriers([{"c0": frozenset({"c0"})}, {"c2": frozenset({"c2"}), "c3": frozenset({"c3"})}])
    assert found == {"c8": frozenset({"c8", "c0", "c2"})}


@BOTH
def test_what_it_keeps_and_that_it_replaces_rows(kind):
    class Ends:
        def __init__(self, known):
            self.static, self.known = (), known

        def expiry_known(self, node):
            return self.known

    node = kind(LEFT, RIGHT, OUT)
    assert node.replaces
    assert not node.readable_again
    counts = "the counts of each value that is valid after h1, on both sides"
    assert [node.kept(Ends(known)) for known in (False, True)] == [counts, f"{counts}, and their known ends"]
