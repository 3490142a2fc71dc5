"""Selection: at every instant each record for which the condition is TRUE has its copies, any other has none."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from sweeparea.operators.linear import select
from sweeparea.operators.nodes import RelationScan, Select
from sweeparea.operators.sql.expressions import Expr
from tests.operators import brute
from tests.operators.frames import LAST, SLICES, V, W, frame, rows_of

R = RelationScan("R", ((V, "v"), (W, "w")))
CONDITIONS = {
    "`c0` > 1": lambda v, w: v is not None and v > 1,
    "`c0` > 1 OR `c1` = 'x'": lambda v, w: (v is not None and v > 1) or w == "x",
    "NOT `c0` > 1": lambda v, w: v is not None and v <= 1,
    "`c0` <=> 1 AND `c1` IS NULL": lambda v, w: v == 1 and w is None,
    "NULL": lambda v, w: False,
}


@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=15, deadline=None)
@given(slices=SLICES)
def test_every_instant_however_sliced(database, condition, slices):
    node = Select(R, Expr(condition))
    found = [row for rows in slices for row in rows_of(select.apply(node, frame(database, rows)))]
    every = [row for rows in slices for row in rows]
    for tick in range(LAST + 10):
        kept = {record: n for record, n in brute.at(every, tick).items() if CONDITIONS[condition](*record)}
        assert brute.at(found, tick) == Counter(kept), tick


def test_the_condition_is_needed_and_no_more():
    node = Select(R, Expr("`c0` > 1", columns=frozenset({"c0"})))
    assert list(node.needs(frozenset({"c1"}))) == [frozenset({"c0", "c1"})]
    assert [(e.sql, e.condition) for e in node.evaluated()] == [("(`c0` > 1)", True)]
