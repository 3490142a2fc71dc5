"""SQL window functions: at every instant the function's value over the rows of the instant, however time is cut.

They run by snapshot expansion: DuckDB evaluates the function over the expanded rows, segment by segment, and over the
rows of each instant.
"""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import Analytic, RelationScan, WindowFunction
from sweeparea.operators.ordered.snapshot import SnapshotSpec, expand
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.sql.expressions import Column, Expr, SortKey, reference
from sweeparea.operators.values.bag import BAG
from tests.operators import brute
from tests.operators.test_snapshot import LAST, SCHEMA, signed_rows, table_of

FUNCTIONS = ["rank()", "dense_rank()", "count(v)", "max(v)", "lag(v)"]
ORDER = "ORDER BY v NULLS FIRST"


@pytest.mark.parametrize("function", FUNCTIONS)
@settings(deadline=None, max_examples=15)
@given(rng=st.randoms(use_true_random=True))
def test_every_instant_however_sliced(database, function: str, rng: random.Random):
    rows = signed_rows(rng, rng.randint(0, 10))
    cuts = sorted({rng.randint(0, LAST) for _ in range(rng.randint(0, 3))} | {LAST})
    found, carry, h0 = [], SCHEMA.empty_table(), -1
    for h1 in cuts:
        new = table_of([row for row in rows if h0 < row[2] <= h1])
        pieces, kept = expand(pa.concat_tables([carry, new]), SnapshotSpec(("k",), ("v",)), h0, h1)
        for piece in pieces:
            found += valued(database, piece, function, ("k", *BAG))
        carry, h0 = kept.select(SCHEMA.names), h1
    told = [(brute.plain(record), ts, te, n) for *record, ts, te, n in found]
    for tick in range(LAST + 1):
        held = brute.at([(brute.plain(row[:2]), *row[2:]) for row in rows], tick)
        copies = [(k, float("nan") if v == "NaN" else v, tick, tick + 1, 1) for k, v in held.elements()]
        wanted = valued(database, table_of(copies), function, ("k", *BAG))
        assert brute.at(told, tick) == Counter(brute.plain((k, v, x)) for k, v, x, *_ in wanted), tick


def valued(database, rows: pa.Table, function: str, partition: tuple[str, ...]) -> list[tuple]:
    over = f"PARTITION BY {', '.join(partition)} {ORDER}"
    return database.from_arrow(rows).project(f"k, v, {function} OVER ({over}), {', '.join(BAG)}").fetchall()


K, V, X, Y = Column("c0", "k"), Column("c1", "v"), Column("c2", "x"), Column("c3", "y")
R = RelationScan("R", ((K, "k"), (V, "v")))
BY_KEY = WindowFunction("RANK", partition=(reference(K),), order=(SortKey(reference(V)),))
OVER_ALL = WindowFunction("MAX", (reference(V),))


def test_an_arrival_changes_the_values_of_rows_that_are_there():
    node = Analytic(R, ((X, BY_KEY),))
    assert node.edge([Edge("monotonic", True)], ()) == STRICT
    assert node.replaces
    assert not node.readable_again
    assert node.columns == (K, V, X)


def test_what_nobody_needs_is_not_computed():
    node = Analytic(R, ((X, BY_KEY), (Y, OVER_ALL)))
    assert list(node.needs(frozenset({"c0", "c3"}))) == [frozenset({"c0", "c1"})]
    assert node.cut((R,), frozenset({"c0", "c3"})) == Analytic(R, ((Y, OVER_ALL),))
    assert node.cut((R,), frozenset({"c0"})) is R


def test_selection_commutes_on_what_every_call_partitions_by():
    below = R.carriers([])
    assert Analytic(R, ((X, BY_KEY),)).carriers([below]) == {"c0": frozenset({"c0"})}
    assert Analytic(R, ((X, BY_KEY), (Y, OVER_ALL))).carriers([below]) == {}


def test_a_call_in_words():
    assert BY_KEY.words == "RANK() OVER (PARTITION BY k ORDER BY v)"
    call = WindowFunction("SUM", (Expr("`c1`", "v"),), frame="ROWS BETWEEN 1 PRECEDING AND CURRENT ROW")
    assert call.words == "SUM(v) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
