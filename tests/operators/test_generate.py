"""LATERAL VIEW: at every instant each copy of a record beside each of the rows that a generator makes of it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.linear import generate
from sweeparea.operators.nodes import Generate, RelationScan
from sweeparea.operators.sql.expressions import Column, Expr
from tests.operators import brute
from tests.operators.frames import LAST, ROWS, frame, rows_of

LIST, EACH = Column("c0", "l", "array<bigint>"), Column("c1", "x", "bigint")
R = RelationScan("R", ((LIST, "l"),))
LISTS = [(1,), (1, 1, 2), (None, 3), (), None]


@pytest.mark.parametrize("outer", [False, True])
@settings(max_examples=20, deadline=None)
@given(slices=st.lists(st.lists(st.tuples(st.sampled_from(LISTS), ROWS), max_size=3), min_size=1, max_size=2))
def test_every_instant_however_sliced(database, outer, slices):
    node = Generate(R, Expr("explode(`c0`)", "explode(l)", frozenset({"c0"})), (EACH,), outer)
    found, every = [], []
    for drawn in slices:
        rows = [((made,), ts, te, n) for made, intervals in drawn for _, ts, te, n in intervals]
        bag = rows_of(generate.apply(node, frame(database, rows, ("c0",), [pa.list_(pa.int64())])))
        found += [((None if made is None else tuple(made), x), *rest) for (made, x), *rest in bag]
        every += rows
    for tick in range(LAST + 10):
        wanted: Counter = Counter()
        for (made,), n in brute.at(every, tick).items():
            for x in made or ([None] if outer else []):
                wanted[made, x] += n
        assert brute.at(found, tick) == wanted, tick


def test_outer_is_asked_of_generators_that_may_make_nothing():
    calls = ["explode(x)", "POSEXPLODE (x)", "inline(x)", "stack(1, x)", "json_tuple(x, 'a')"]
    assert [generate.outer_call(call) for call in calls] == [
        "explode_outer(x)",
        "POSEXPLODE_outer(x)",
        "inline_outer(x)",
        "stack(1, x)",
        "json_tuple(x, 'a')",
    ]


def test_the_input_s_columns_come_first_and_the_generator_s_are_needed_of_nobody():
    node = Generate(R, Expr("explode(`c0`)", "explode(l)", frozenset({"c0"})), (EACH,))
    assert node.columns == (LIST, EACH)
    assert list(node.needs(frozenset({"c1"}))) == [frozenset({"c0"})]
