"""Projection without duplicate elimination: at every instant the copies of all that is mapped to a record add up."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from sweeparea.operators.linear import project
from sweeparea.operators.linear.project import narrowed
from sweeparea.operators.nodes import Project, RelationScan
from sweeparea.operators.sql.expressions import Column, Expr, kept_as_they_are
from tests.operators import brute
from tests.operators.frames import LAST, SLICES, V, W, frame, rows_of

R = RelationScan("R", ((V, "v"), (W, "w")))
OUT = [Column("c2", "first"), Column("c3", "second")]
PROJECTIONS = {
    ("`c1`",): lambda v, w: (w,),
    ("`c0` + 1", "`c0`"): lambda v, w: (None if v is None else v + 1, v),
    ("`c0` IS NULL",): lambda v, w: (v is None,),
    (): lambda v, w: (),
}


@pytest.mark.parametrize("expressions", PROJECTIONS)
@settings(max_examples=15, deadline=None)
@given(slices=SLICES)
def test_every_instant_however_sliced(database, expressions, slices):
    node = Project(R, tuple((column, Expr(sql)) for column, sql in zip(OUT, expressions, strict=False)))
    found = [row for rows in slices for row in rows_of(project.apply(node, frame(database, rows)))]
    every = [row for rows in slices for row in rows]
    for tick in range(LAST + 10):
        wanted: Counter = Counter()
        for record, n in brute.at(every, tick).items():
            wanted[PROJECTIONS[expressions](*record)] += n
        assert brute.at(found, tick) == Counter({record: n for record, n in wanted.items() if n}), tick


def test_only_what_is_needed_is_computed():
    both = Project(
        R, ((OUT[0], Expr("`c0` + 1", "", frozenset({"c0"}))), (OUT[1], Expr("`c1`", "", frozenset({"c1"}))))
    )
    assert list(both.needs(frozenset({"c3"}))) == [frozenset({"c1"})]
    assert both.cut((R,), frozenset({"c3"})).columns == (OUT[1],)


def test_a_column_that_is_kept_carries_its_key_under_its_new_id():
    renamed = Project(R, ((OUT[0], Expr("`c0`")), (OUT[1], Expr("`c1` || 'x'"))))
    assert renamed.carriers([R.carriers([])]) == {"c2": frozenset({"c0", "c2"})}


def test_narrowed_to_the_columns_that_it_has_a_node_stays():
    assert narrowed(R, [V, W]) is R
    assert narrowed(R, [W]) == Project(R, kept_as_they_are([W]))
