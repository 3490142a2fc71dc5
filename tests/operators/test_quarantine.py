"""Rows that constraints keep out of a result: the relation is divided, and each part is what it would be alone."""

from __future__ import annotations

import random
from itertools import pairwise

import pyarrow as pa
import pytest

from sweeparea.operators.sweeps import istream, relation_to_stream
from sweeparea.operators.sweeps.quarantine import BROKEN, KeptOutBy, Quarantine, parted
from sweeparea.operators.sweeps.relation_to_stream import MaterializeSpec
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG

RULES = Quarantine(
    (KeptOutBy("a;", "a", "a is violated"), KeptOutBy("a!", "a", "a fails"), KeptOutBy("b;", "b", "b is violated"))
)
SPEC = MaterializeSpec(("v",), istream=True, dstream=True, relation=True, checks=(BROKEN,))
STREAM = MaterializeSpec(("v",), istream=True, checks=(BROKEN,))


def broken(v: int) -> str | None:
    """What record ``v`` breaks: 1 the first rule, 2 another, 3 nothing that keeps rows out, others nothing."""
    return {1: "a;", 2: "a!b;", 3: "c;", 4: None}.get(v, "")


def bag(rows: list[tuple[int, int, int, int]]) -> pa.Table:
    values = [[v for v, *_ in rows], [broken(v) for v, *_ in rows], *([row[i] for row in rows] for i in (1, 2, 3))]
    kinds = [pa.int64(), pa.string(), *[pa.int64()] * 3]
    arrays = [pa.array(column, kind) for column, kind in zip(values, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=["v", BROKEN, *BAG])


def plain(table: pa.Table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.drop_columns([BROKEN]).to_pylist())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("spec", [SPEC, STREAM], ids=["all tables", "a stream"])
def test_each_part_is_what_it_would_be_alone_in_any_slicing(seed: int, spec: MaterializeSpec):
    chance = random.Random(seed)
    rows = [(chance.randint(0, 4), at := chance.randint(1, 19), at + chance.randint(1, 9), 1) for _ in range(30)]
    cuts = [0, *sorted(chance.sample(range(1, 29), 3)), 30]
    kept = [r for r in rows if r[0] not in (1, 2)]
    out = [r for r in rows if r[0] in (1, 2)]
    history = MaterializeSpec(("v",), relation=True, checks=(BROKEN,))
    carries = [bag([]) for _ in range(3)]
    for h0, h1 in pairwise(cuts):
        new = [[r for r in part if h0 < r[1] <= h1] for part in (rows, kept, out)]
        given = [pa.concat_tables([carry, bag(part)]) for carry, part in zip(carries, new, strict=True)]
        got, quarantined = parted(relation_to_stream.sweep, given[0], spec, RULES, h0, h1)
        good = relation_to_stream.sweep(given[1], spec, h0, h1)
        bad = relation_to_stream.sweep(given[2], history, h0, h1)
        for name in ("istream", "dstream", "closed", "opened"):
            assert plain(getattr(got, name)) == plain(getattr(good, name))
        for name in ("closed", "opened"):
            assert plain(getattr(quarantined, name)) == plain(getattr(bad, name))
        assert plain(got.carry) == sorted([*plain(good.carry), *plain(bad.carry)])
        carries = [each.carry.select(["v", BROKEN, *BAG]).cast(bag([]).schema) for each in (got, good, bad)]


def test_of_rows_that_never_go_nothing_is_carried():
    spec = MaterializeSpec(("v",), istream=True, each=True, checks=(BROKEN,))
    got, quarantined = parted(istream.emit, bag([(1, 3, 4, 2), (5, 3, 4, 1)]), spec, RULES, 0, 9)
    assert plain(got.istream) == [(5, 3)]
    assert plain(quarantined.opened) == [(1, 3), (1, 3)]
    assert not got.carry.num_rows
    # computed beside what is published, an earlier row comes as a level
    _, again = parted(istream.emit, bag([(1, 3, INF, 1), (1, 12, 13, 1)]), spec, RULES, 9, 20)
    assert plain(again.opened) == [(1, 3), (1, 12)]


def test_a_row_says_by_which_constraint_and_why():
    rows = bag([(1, 1, 2, 1), (2, 1, 2, 1)]).select(["v", BROKEN])
    assert RULES.named(rows).to_pylist() == [
        {"v": 1, "__constraint": "a", "__reason": "a is violated"},
        {"v": 2, "__constraint": "a", "__reason": "a fails; b is violated"},
    ]
    assert RULES.named(rows.slice(0, 0)).num_rows == 0
