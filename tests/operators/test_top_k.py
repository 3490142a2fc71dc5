"""Top-k by its definition: at every instant, in any slicing, the first rows of each group in their order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.ordered import top_k
from sweeparea.operators.ordered.snapshot import SnapshotSpec
from sweeparea.operators.ordered.top_k import TopKSpec
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.operators.values.order import OrderKey
from tests.operators.test_snapshot import LAST, SCHEMA, signed_rows, table_of
from tests.replay.bags import ordered

ORDER = (OrderKey("v", descending=True, nulls_first=False), OrderKey("k"))


def _key(row: tuple) -> tuple:
    return tuple(repr(v + 0.0) if isinstance(v, float) else repr(v) for v in row)


def _swept(rows: list[tuple], spec: TopKSpec, cuts: list[int]) -> tuple[list[dict], list[int]]:
    h0, carry, found, sizes = -1, SCHEMA.empty_table(), [], []
    for h1 in cuts:
        new = table_of([row for row in rows if h0 < row[2] <= h1])
        delta, carry = top_k.sweep(pa.concat_tables([carry.select(SCHEMA.names), new]), spec, h0, h1)
        found += delta.to_pylist()
        assert all(h0 < row[TS] <= h1 and row[TE] == INF for row in delta.to_pylist())
        sizes.append(carry.num_rows)
        h0 = h1
    return found, sizes


@settings(deadline=None, max_examples=200)
@given(st.randoms(use_true_random=True), st.booleans(), st.sampled_from([0, 1, 2, 5, None]), st.sampled_from([0, 1, 3]))
def test_every_instant_in_every_slicing(rng: random.Random, keyed: bool, limit: int | None, offset: int):
    rows = signed_rows(rng, rng.randint(0, 12))
    cuts = sorted({rng.randint(0, LAST) for _ in range(rng.randint(0, 4))} | {LAST})
    # the key is a column of its own, as PARTITION BY has it
    spec = TopKSpec(SnapshotSpec(("k",) if keyed else (), ("v",) if keyed else ("k", "v"), (ORDER,)), limit, offset)
    delta, sizes = _swept(rows, spec, cuts)
    for tau in range(LAST + 1):
        got: Counter = Counter()
        for row in delta:
            if row[TS] <= tau:
                got[_key((row["v"],) if keyed else (row["k"], row["v"]))] += row[N]
        bag: Counter = Counter()
        for key, value, ts, te, n in rows:
            if ts <= tau < te:
                bag[_key((key, value))] += n
        records = {_key(row[:2]): row[:2] for row in rows}
        alive = [records[key] for key in (+bag).elements()]
        parts = [[r for r in alive if r[0] == k] for k in ("a", "b", None)] if keyed else [alive]
        expected: Counter = Counter()
        for part in parts:
            last = None if limit is None else offset + limit
            expected.update(_key(r[1:] if keyed else r) for r in ordered(part, [(1, True), (0, False)])[offset:last])
        assert +got == +expected
        assert min(got.values(), default=0) >= 0
    for h1, size in zip(cuts, sizes, strict=True):
        assert size <= 2 * sum(1 for row in rows if row[2] <= h1 < row[3] and row[4] > 0)


def test_only_the_first_rows_of_a_large_group_are_touched():
    rows = table_of([("a", float(i), i, INF, 1) for i in range(20_000)])
    spec = TopKSpec(SnapshotSpec((), ("k", "v"), (ORDER,)), 3)
    delta, _ = top_k.sweep(rows, spec, -1, 30_000)
    assert delta.num_rows == 20_000 + 19_997  # each comes once, and leaves when three larger ones are there


RANKED = pa.schema(
    [("k", pa.string()), ("g", pa.string()), ("v", pa.int64()), ("w", pa.string()), *((c, pa.int64()) for c in BAG)]
)
PEERS = (OrderKey("v", descending=True, nulls_first=False), OrderKey("w"))
Ranked = tuple[str | None, str | None, int | None, str | None, int, int, int]


def _elements(rng: random.Random, size: int, known: bool, unbounded: bool) -> list[Ranked]:
    """Rows with few values, so that many are peers; unless all ends are ``known`` some are taken away before theirs."""
    found: list[Ranked] = []
    ticks = rng.choice([range(LAST), range(0, LAST, 9)])  # now and then many changes at one instant
    for _ in range(size):
        key, value, text = rng.choice(["a", "b", None]), rng.choice([1, 2, 3, None]), rng.choice(["x", "y", None])
        ts = rng.choice(ticks)
        ends = [tick for tick in (*ticks, LAST + 6) if tick > ts]
        te = INF if unbounded else rng.choice([INF, rng.choice(ends), rng.choice(ends[:3])])
        found.append((key, key, value, text, ts, te, rng.choice([1, 1, 1, 3])))
        earlier = [tick for tick in ends if tick < min(te, LAST)]
        if not known and earlier and rng.random() < 0.3:
            found.append((key, key, value, text, rng.choice(earlier), te, -found[-1][6]))
    return found


def _numbered(alive: list[tuple], by: str, offset: int, limit: int | None) -> list[tuple]:
    """The rows of one group in their order with all numbers, cut: by the definition of the three functions."""
    found = []
    part = ordered(alive, [(2, True)])
    for i, row in enumerate(part):
        before = [other for other in part[:i] if other[2] != row[2]]
        numbers = {"ROW_NUMBER": i + 1, "RANK": len(before) + 1, "DENSE_RANK": len({r[2] for r in before}) + 1}
        numbers |= {top_k.ALL: len(part), top_k.UP_TO_PEERS: sum(r[2] == row[2] for r in part) + len(before)}
        if offset < numbers[by] and (limit is None or numbers[by] <= offset + limit):
            found.append((row, numbers))
    return found


def _parted(rng: random.Random, table: pa.Table, parts: int, apply: Callable[[pa.Table], pa.Table]) -> pa.Table:
    """What a function makes of the rows, shared among so many."""
    where = [rng.randrange(parts) for _ in range(table.num_rows)]
    return pa.concat_tables([apply(table.filter(pa.array([w == i for w in where], pa.bool_()))) for i in range(parts)])


@settings(deadline=None, max_examples=300)
@given(
    st.randoms(use_true_random=True),
    st.sampled_from(top_k.NUMBERINGS),
    st.sets(st.sampled_from(top_k.COUNTED)),
    st.sampled_from([0, 1, 2, 3, None]),
    st.sampled_from([0, 0, 1, 2]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 0, 1, 2]),
)
def test_numbers_at_every_instant_in_every_slicing(
    rng: random.Random,
    by: str,
    shown: set[str],
    limit: int | None,
    offset: int,
    known: bool,
    unbounded: bool,
    parts: int,
):
    rows = _elements(rng, rng.randint(0, 14), known, unbounded)
    cuts = sorted({rng.randint(0, LAST) for _ in range(rng.randint(0, 4))} | {LAST})
    numbers = tuple((f"n{i}", function) for i, function in enumerate(sorted(shown)))
    complete = by == "ROW_NUMBER" or "ROW_NUMBER" in shown
    order = PEERS if complete else PEERS[:1]  # what no number tells apart needs no order
    spec = TopKSpec(SnapshotSpec(("k",), ("g", "v", "w"), (order,)), limit, offset, by, 1, numbers, known)
    # rows whose ends are known may be told before they begin, as windows that lag behind do
    told = [max(0, row[4] - (rng.choice([0, 0, 4, 12]) if known else 0)) for row in rows]
    h0, carry, delta = -1, RANKED.empty_table(), []
    for h1 in cuts:
        new = [row for row, tick in zip(rows, told, strict=True) if h0 < tick <= h1]
        given = [pa.array([row[i] for row in new], f.type) for i, f in enumerate(RANKED)]
        table = pa.table(given, schema=RANKED)
        if parts and known and top_k.is_cut(limit, by, numbers):
            table = _parted(rng, table, parts, lambda part: top_k.shortened(part, spec, INF))
        table = pa.concat_tables([carry.select(RANKED.names), table])
        found, carry = top_k.sweep(table, spec, h0, h1)
        delta += found.to_pylist()
        assert all(h0 < row[TS] <= h1 and row[TE] == INF for row in found.to_pylist())
        alive = [row for row, tick in zip(rows, told, strict=True) if tick <= h1 < row[5]]
        assert carry.num_rows <= len(alive)
        if known and unbounded and limit is not None and by == "ROW_NUMBER" and not top_k.counts_behind(by, shown):
            pending = sum(n for ts, n in zip(carry[TS].to_pylist(), carry[N].to_pylist(), strict=True) if ts > h1)
            # three groups, three copies a row
            assert sum(carry.column(N).to_pylist()) - pending <= 3 * 3 * (offset + limit)
        h0 = h1
    for tau in range(LAST + 1):
        got: Counter = Counter()
        for row in delta:
            if row[TS] <= tau:
                got[(row["g"], row["g"], row["v"], row["w"], *(row[name] for name, _ in numbers))] += row[N]
        assert min(got.values(), default=0) >= 0
        bag: Counter = Counter()
        for *record, ts, te, n in rows:
            if ts <= tau < te:
                bag[tuple(record)] += n
        expected: Counter = Counter()
        for key in ("a", "b", None):
            part = [row for row in (+bag).elements() if row[0] == key]
            for row, values in _numbered(part, by, offset, limit):
                expected[(*row, *(values[function] for _, function in numbers))] += 1
        assert +got == expected


@settings(deadline=None, max_examples=200)
@given(
    st.randoms(use_true_random=True),
    st.sampled_from(top_k.NUMBERINGS),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0, 0, 1]),
)
def test_rows_that_others_of_their_interval_outdo_need_not_travel(rng: random.Random, by: str, limit: int, offset: int):
    # a net bag, as an aggregation makes it: what ends up to ``until`` has its final end, what is open may be taken away
    until, rows = 12, []
    for _ in range(rng.randint(0, 24)):
        ts = rng.choice([0, 4, 8])
        key, value, text = rng.choice(["a", None]), rng.choice([1, 2, 3, None]), rng.choice(["x", "y", None])
        n = rng.choice([1, 1, 2])
        rows.append((key, key, value, text, ts, rng.choice([ts + 4, ts + 4, INF]), n))
        if rows[-1][5] == INF and rng.random() < 0.5:
            rows.append((key, key, value, text, rng.randint(until + 1, 20), INF, -n))
    table = pa.table([pa.array([r[i] for r in rows], f.type) for i, f in enumerate(RANKED)], schema=RANKED)
    order = PEERS if by == "ROW_NUMBER" else PEERS[:1]
    spec = TopKSpec(SnapshotSpec(("k",), ("g", "v", "w"), (order,)), limit, offset, by, 1)
    fewer = _parted(rng, table, rng.choice([1, 2]), lambda part: top_k.shortened(part, spec, until))
    assert top_k.shortened(fewer, spec, until).num_rows <= fewer.num_rows <= table.num_rows

    def changes(of: pa.Table) -> Counter:
        found, _ = top_k.sweep(of, spec, -1, 30)
        total: Counter = Counter()
        for row in found.to_pylist():
            total[(row["g"], row["v"], row["w"], row[TS])] += row[N]
        return Counter({key: n for key, n in total.items() if n})

    assert changes(fewer) == changes(table)


def test_of_one_interval_only_the_first_rows_travel():
    rows = [("a", "a", i, "x", 0, 4, 1) for i in range(1000)]
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=RANKED)
    spec = TopKSpec(SnapshotSpec(("k",), ("v", "w"), (PEERS,)), 2, 1, "RANK", 1)
    assert top_k.shortened(table, spec, 4).column("v").to_pylist() == [997, 998, 999]
    assert top_k.shortened(table, spec, 3).num_rows == 1000


def _table(rows: list[Ranked]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=RANKED)


def test_peers_of_a_row_that_leaves_with_a_better_one_go_up():
    rows: list[Ranked] = [("a", "a", 9, "x", 0, 5, 1), ("a", "a", 8, "y", 0, 5, 1)]
    rows += [("a", "a", 8, text, 0, INF, 1) for text in ("x", "z")]
    spec = TopKSpec(SnapshotSpec(("k",), ("v", "w"), (PEERS[:1],)), None, 0, "RANK", 1, (("n", "RANK"),), True)
    delta, _ = top_k.sweep(_table(rows), spec, -1, 10)
    told = Counter((row["v"], row["w"], row["n"]) for row in delta.to_pylist() if row[TS] == 5 and row[N] > 0)
    assert told == Counter([(8, "x", 1), (8, "z", 1)])


def _one_group(size: int, **given: object) -> int:
    """How many changes ``size`` rows, each better than those before, make in one group."""
    values = {"k": ["a"] * size, "g": ["a"] * size, "v": list(range(size)), "w": ["x"] * size}
    bag = {TS: list(range(size)), TE: [INF] * size, N: [1] * size}
    spec = TopKSpec(SnapshotSpec(("k",), ("v", "w"), (PEERS,)), **given)  # type: ignore[arg-type]
    return top_k.sweep(pa.table(values | bag, schema=RANKED), spec, -1, size)[0].num_rows


def test_a_change_costs_what_it_changes_however_many_rows_its_group_has():
    # a hundred thousand rows: laid out anew at each instant they would be 5 * 10^9
    size = 100_000
    assert _one_group(size, limit=1) == 2 * size - 1
    assert _one_group(size, limit=1000) == 2 * size - 1000
    assert _one_group(size, limit=2, by="RANK", peers=1, numbers=(("n", "RANK"),)) == 4 * size - 4
    assert _one_group(size, limit=1, offset=size - 1, by="DENSE_RANK", peers=1) == 1


def test_what_can_never_be_shown_is_not_carried():
    rows = [("a", "a", v, "x", 0, te, n) for v, te, n in [(9, 50, 1), (8, INF, 1), (7, 40, 1), (6, 60, 5), (5, 70, 1)]]
    rows.append(("a", "a", 4, "x", 20, 60, 1))  # has still to begin, and two better ones outlive it
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=RANKED)
    spec = TopKSpec(SnapshotSpec(("k",), ("v", "w"), (PEERS,)), 2, expiry_known=True)
    _, carry = top_k.sweep(table, spec, -1, 10)
    assert sorted(carry.column("v").to_pylist()) == [5, 6, 8, 9]
    _, ranked = top_k.sweep(table, replace(spec, by="DENSE_RANK", peers=1), -1, 10)
    assert sorted(ranked.column("v").to_pylist()) == [5, 6, 8, 9]
    _, all_ = top_k.sweep(table, replace(spec, expiry_known=False), -1, 10)
    assert all_.num_rows == len(rows)
    # what ends with those before it will not be shown either
    same = _table([("a", "a", v, "x", 0, 50, 1) for v in (9, 8, 7)])
    for by in top_k.NUMBERINGS:
        _, kept = top_k.sweep(same, replace(spec, by=by, peers=1), -1, 10)
        assert sorted(kept.column("v").to_pylist()) == [8, 9]
    # until the best one begins at 55 that of 60 is shown, from 50 on
    rows = [("a", "a", 9, "x", 0, 50, 1), ("a", "a", 8, "x", 0, INF, 1), ("a", "a", 6, "x", 0, 60, 1)]
    rows.append(("a", "a", 10, "x", 55, INF, 1))
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=RANKED)
    for by in top_k.NUMBERINGS:
        _, carry = top_k.sweep(table, replace(spec, by=by, peers=1), -1, 10)
        assert sorted(carry.column("v").to_pylist()) == [6, 8, 9, 10]


def test_peers_that_are_never_shown_are_counted_in_later_slices():
    order = (OrderKey("v"), OrderKey("r"))
    numbers = (("peers", top_k.UP_TO_PEERS),)
    spec = TopKSpec(SnapshotSpec((), ("v", "r"), (order,)), 1, peers=1, numbers=numbers, expiry_known=True)
    rows = pa.table({"v": [7, 7], "r": ["a", "b"], TS: [1, 1], TE: [INF, INF], N: [1, 1]})
    first, carry = top_k.sweep(rows, spec, 0, 5)
    assert [tuple(row.values()) for row in first.to_pylist()] == [(7, "a", 2, 1, INF, 1)]
    new = pa.table({"v": [7], "r": ["c"], TS: [6], TE: [INF], N: [1]})
    second, _ = top_k.sweep(pa.concat_tables([carry.select(new.column_names), new]), spec, 5, 9)
    assert sorted(tuple(row.values()) for row in second.to_pylist()) == [
        (7, "a", 2, 6, INF, -1),
        (7, "a", 3, 6, INF, 1),
    ]
