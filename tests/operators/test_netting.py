"""What is kept of a bag means the same from then on, and is no larger than what is alive; equal subplans are one."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.nodes import Project, RelationScan, Select, UnionAll
from sweeparea.operators.plan.sharing import nodes, read_twice, shared
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.netting import compacted, net_changes
from tests.operators import brute

LAST = 20
SCHEMA = pa.schema([("k", pa.int64()), *((c, pa.int64()) for c in ("__ts", "__te", "__n"))])
ROWS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, None]),
        st.integers(0, LAST),
        st.integers(1, 8) | st.just(INF),
        st.sampled_from([1, 1, -1, 2, 0]),
    ),
    max_size=14,
)


def table(rows) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@settings(max_examples=200, deadline=None)
@given(ROWS, st.integers(0, LAST))
def test_compacting_changes_nothing_after_the_slice(rows, h1):
    rows = [(k, ts, te if te == INF else ts + te, n) for k, ts, te, n in rows]
    kept = [tuple(row.values()) for row in compacted(table(rows), h1).to_pylist()]
    for tick in range(h1 + 1, LAST + 12):
        assert brute.at(kept, tick) == brute.at(rows, tick)
    assert len({(k, ts, te) for k, ts, te, _ in kept}) == len(kept)
    assert all(n and ts >= h1 and te > h1 + 1 for _, ts, te, n in kept)


@settings(max_examples=200, deadline=None)
@given(ROWS)
def test_net_changes_are_the_same_bag_and_no_more(rows):
    rows = [(k, ts, te if te == INF else ts + te, n) for k, ts, te, n in rows]
    told = [tuple(row.values()) for row in net_changes(table(rows)).to_pylist()]
    for tick in range(LAST + 12):
        assert brute.at(told, tick) == brute.at(rows, tick)
    assert len({(k, ts) for k, ts, _, _ in told}) == len(told)
    assert all(n and te == INF for _, _, te, n in told)


def test_a_record_that_follows_itself_is_no_change():
    """What a projection of changing groups gives: the same record again and again."""
    rows = [row for t in range(1, 500) for row in ((7, t, INF, 1), (7, t + 1, INF, -1))]
    assert net_changes(table([*rows, (7, 0, 1, 1)])).to_pylist() == [
        {"k": 7, "__ts": 0, "__te": INF, "__n": 1},
        {"k": 7, "__ts": 500, "__te": INF, "__n": -1},
    ]


def test_a_side_fed_with_negative_tuples_stays_as_small_as_what_is_alive():
    rows = [row for i in range(500) for row in ((i % 7, i, INF, 1), (i % 7, i + 1, INF, -1))]
    assert compacted(table([*rows, (3, 9, INF, 2)]), 1000).to_pylist() == [
        {"k": 3, "__ts": 1000, "__te": INF, "__n": 2}
    ]


def scan() -> RelationScan:
    return RelationScan("R", ((Column("c0", "a", "int"), "a"),))


def test_equal_subplans_are_one_node_read_twice():
    def part():
        return Select(scan(), Expr("`c0` > 1", columns=frozenset(["c0"])))

    renamed = Project(part(), ((Column("c1", "b"), Expr("`c0`", columns=frozenset(["c0"]))),))
    plan = shared(UnionAll((part(), renamed), (Column("c2", "a"),)))
    assert plan.inputs[0] is plan.inputs[1].inputs[0]
    assert read_twice(plan) == {id(plan.inputs[0])}
    assert [type(node).__name__ for node in nodes(plan)] == ["RelationScan", "Select", "Project", "UnionAll"]


def test_a_plan_that_shares_nothing_stays_the_same_object():
    plan = Select(scan(), Expr("TRUE"))
    assert shared(plan) is plan
    assert read_twice(plan) == set()
    assert list(nodes(plan)) == list(plan.walk())


def test_many_levels_of_sharing_are_walked_once():
    node = scan()
    for _ in range(60):
        node = UnionAll((node, node), (Column("c0", "a", "int"),))
    assert len(list(nodes(shared(node)))) == 61
