"""What maps row by row keeps all that is known of its input (rule 1 of Golab & Oezsu 2005, section 5.2)."""

from __future__ import annotations

import pytest

from sweeparea.operators.nodes import Generate, Project, RelationScan, Select, StreamScan, Window
from sweeparea.operators.plan.edge import MONOTONIC, STRICT, Edge
from sweeparea.operators.sql.expressions import Column, Expr, kept_as_they_are
from sweeparea.operators.windows import Range, Unbounded

V = Column("c0", "v", "bigint")
STREAM, RELATION = StreamScan("S", ((V, "v"),)), RelationScan("R", ((V, "v"),))
INPUTS = [STREAM, RELATION, Window(STREAM, Range(5)), Window(STREAM, Unbounded())]
MAPS = {
    "select": lambda node: Select(node, Expr("`c0` > 1")),
    "project": lambda node: Project(node, kept_as_they_are([V])),
    "generate": lambda node: Generate(node, Expr("explode(`c0`)"), (Column("c1", "x"),)),
}


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("below", INPUTS, ids=["stream", "relation", "range", "unbounded"])
def test_what_is_known_of_the_input_is_known_of_the_output(kind, below):
    node = MAPS[kind](below)
    assert [node.edge([edge], ()) for edge in (MONOTONIC, STRICT, Edge("WK", True))] == [
        MONOTONIC,
        STRICT,
        Edge("WK", True),
    ]
    asked = ("ends", "monotonic", "is_stream", "lengthens", "readable_again")
    assert [getattr(node, name) for name in asked] == [getattr(below, name) for name in asked]
    assert node.reaches({"S": 7}) == {"S": 7}
    assert node.carriers([{"c0": frozenset({"c0"})}]) == {"c0": frozenset({"c0"})}
