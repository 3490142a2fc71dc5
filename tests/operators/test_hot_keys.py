"""Keys that several workers share, by stretches of time and by values: the rows say what those of one worker say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators import bridge, exchange, hot_keys
from sweeparea.operators.aggregates.calls import BaseCall
from sweeparea.operators.hot_keys import within
from sweeparea.operators.ordered import top_k
from sweeparea.operators.ordered.snapshot import SnapshotSpec
from sweeparea.operators.state.due import bag_due
from sweeparea.operators.state.sweep import Sweep
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.stretches import HotKey, KeyStretch, stretches, uneven
from sweeparea.operators.sweeps import aggregate, counted_values
from sweeparea.operators.sweeps.aggregate import AggregateSpec, combined, rows_schema
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.order import OrderKey
from tests.operators import brute
from tests.operators.test_aggregate import F64, I64, LAST, NASTY, START, arrivals, cuts, spec_of, table


def cut_into(h0: int, h1: int, chance: random.Random) -> list[KeyStretch]:
    ends = sorted(chance.sample(range(h0 + 1, h1), min(chance.randint(0, 3), max(0, h1 - h0 - 1))))
    begins = [h0, *ends]
    pairs = list(zip(begins, [*ends, h1], strict=True))
    return [KeyStretch(0, b, e, 0, b == h0, e == h1) for b, e in pairs]


def shared(rows: pa.Table, parts: int, chance: random.Random) -> list[pa.Table]:
    place = np.array([chance.randrange(parts) for _ in range(rows.num_rows)], np.int64)
    return [rows.filter(pa.array(place == part)) for part in range(parts)]


def swept(sweep: Sweep, carry: pa.Table, new: pa.Table, h0: int, h1: int, chance: random.Random):
    """(delta, carry) of the slice, each of whose stretches has a worker; ``new`` is in several files."""
    deltas, files = [], shared(new, 2, chance)
    for stretch in cut_into(h0, h1, chance):
        parts = [part for file in files for part in within(file, stretch, sweep)]
        delta, left = sweep.run(pa.concat_tables([carry, *parts]), h0=stretch.begin, h1=stretch.end)
        deltas.append(delta)
    return pa.concat_tables(deltas), left


def swept_by_value(spec: AggregateSpec, carry: pa.Table, new: pa.Table, h0: int, h1: int, chance: random.Random):
    """The same, where three workers count values before."""
    then = counted_values.summed(spec)
    assert then is not None
    rows = pa.concat_tables([carry, *(combined(part, spec, h0) for part in shared(new, 2, chance))])
    places = counted_values.places(rows, 3, spec)
    found = [counted_values.counted(rows.filter(pa.array(places == part)), h0, h1, spec) for part in range(3)]
    made = pa.concat_tables([rows for rows, _ in found])
    delta, left = swept(counted_values.sweep_of(then), rows_schema(then).empty_table(), made, h0, h1, chance)
    return delta, pa.concat_tables([counted_values.remembered(left, spec), *(carried for _, carried in found)])


def agree(spec: AggregateSpec, come, ends, chance: random.Random) -> None:
    """Both ways of each slice say the same at each of its instants; each goes on from what the other has carried."""
    by_value = counted_values.summed(spec) is not None
    h0, carries = spec.start - 1, [rows_schema(spec).empty_table()] * 2
    for h1 in ends:
        new = table(spec, [row for due, row in come if h0 < due <= h1])
        plain, left = aggregate.sweep(pa.concat_tables([carries[0], new]), spec, h0, h1)
        if by_value:
            divided, carry = swept_by_value(spec, carries[1], new, h0, h1, chance)
        else:
            divided, carry = swept(counted_values.sweep_of(spec), carries[1], new, h0, h1, chance)
        for tick in range(h0 + 1, h1 + 1):
            assert at(divided, tick) == at(plain, tick), (h0, h1, tick)
        carries, h0 = [carry, left] if chance.random() < 0.5 else [left, carry], h1


def at(delta: pa.Table, tick: int) -> Counter:
    found: Counter = Counter()
    for row in delta.to_pylist():
        start, end, n = (row.pop(name) for name in ("__ts", "__te", "__n"))
        if start <= tick < end:
            found[tuple(map(brute.plain, row.values()))] += n
    return Counter({record: n for record, n in found.items() if n})


DISTINCT = (
    BaseCall("n", "COUNT", I64),
    BaseCall("d", "COUNT", I64, "v", I64, distinct=True),
    BaseCall("s", "SUM", I64, "v", I64),
)


@pytest.mark.parametrize("global_", [False, True])
@pytest.mark.parametrize("known", [False, True])
class TestHotKeys:
    @settings(deadline=None, max_examples=30)
    @given(data=st.data())
    def test_stretches_of_sums_and_extremes_say_what_the_slice_says(self, data, known, global_):
        functions = ("COUNT(*)", "COUNT", "SUM", "MIN", "MAX") if known else ("COUNT(*)", "COUNT", "SUM")
        kind, values = data.draw(st.sampled_from([(I64, st.integers(-4, 4)), (F64, st.sampled_from(NASTY))]))
        spec = spec_of(kind, functions, known=known, global_=global_)
        agree(spec, data.draw(arrivals(values, known)), data.draw(cuts()), data.draw(st.randoms()))

    @settings(deadline=None, max_examples=30)
    @given(data=st.data())
    def test_values_that_several_count_are_as_many_as_one_finds(self, data, known, global_):
        spec = AggregateSpec(() if global_ else (("k", I64),), DISTINCT, global_, known, START)
        agree(spec, data.draw(arrivals(st.integers(-4, 4), known)), data.draw(cuts()), data.draw(st.randoms()))


def test_what_is_carried_of_counted_values_holds_no_rows_of_nothing():
    spec = AggregateSpec((("k", I64),), DISTINCT[1:2], expiry_known=True)
    rows = table(spec, [((1, v), 1, 30, 1) for v in range(6)] + [((1, 9), 1, 5, 1)])
    _, carry = swept_by_value(spec, rows_schema(spec).empty_table(), rows, 0, LAST, random.Random(1))
    said = [(row["__kind"], row["a0"], row["__te"]) for row in carry.to_pylist()]
    assert sorted(row[1] for row in said if row[0] == 2) == list(range(6))
    assert {row[0] for row in said} == {1, 2}
    assert len([row for row in said if row[0] == 1]) == 1


def test_values_that_are_taken_away_too_often_are_refused():
    spec = AggregateSpec((("k", I64),), DISTINCT, start=START)
    rows = table(spec, [((1, 5), 3, INF, 1), ((1, 5), 4, INF, -2)])
    with pytest.raises(DataError, match="copies of a value"):
        swept_by_value(spec, rows_schema(spec).empty_table(), rows, 0, 9, random.Random(1))


@settings(deadline=None, max_examples=30)
@given(come=arrivals(st.integers(-4, 4), True), ends=cuts(), chance=st.randoms(), limit=st.integers(1, 3))
def test_stretches_of_a_top_k_say_what_the_slice_says(come, ends, chance, limit):
    order = (OrderKey("v"), OrderKey("k"))
    spec = top_k.TopKSpec(SnapshotSpec(("g",), ("k", "v"), (order,)), limit, expiry_known=True)
    names = ["k", "v", "__ts", "__te", "__n"]
    schema = pa.schema([(name, I64) for name in ("g", *names)])
    run = partial(top_k.sweep, spec=spec)
    sweep = Sweep(("g",), schema, schema, bag_due, run, partial(top_k.carried, spec=spec))
    h0, carries = START - 1, [schema.empty_table()] * 2
    for h1 in ends:
        rows = [(record[0], *record, *bag) for due, (record, *bag) in come if h0 < due <= h1]
        new = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        plain, carries[0] = run(pa.concat_tables([carries[0], new]), h0=h0, h1=h1)
        divided, carries[1] = swept(sweep, carries[1], new, h0, h1, chance)
        for tick in range(h0 + 1, h1 + 1):
            assert at(divided.select(names), tick) == at(plain.select(names), tick), (h0, h1, tick)
        h0 = h1


@settings(deadline=None)
@given(
    rest=st.lists(st.integers(0, 1000), min_size=2, max_size=9),
    sizes=st.lists(st.integers(1, 4000), min_size=1, max_size=3),
    chance=st.randoms(),
    length=st.integers(1, 50),
)
def test_each_instant_of_a_hot_key_is_in_one_stretch(rest, sizes, chance, length):
    home = [chance.randrange(len(rest)) for _ in sizes]
    keys, rows = [], list(rest)
    for number, (size, worker) in enumerate(zip(sizes, home, strict=True)):
        start = np.array([chance.randint(-5, 120) for _ in range(min(size, 300))])
        keys.append(HotKey(number, worker, float(size), start, start + length))
        rows[worker] += size
    found = stretches(rows, keys, -1, 99)
    for key in keys:
        own = [s for s in found if s.hash == key.hash]
        assert [own[0].begin, *(s.end for s in own)] == [*(s.begin for s in own), 99]
        assert own[0].begin == -1
        assert [(s.first, s.last) for s in own] == [(s is own[0], s is own[-1]) for s in own]
        assert all(s.begin < s.end for s in own)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.95])
@pytest.mark.parametrize("workers", [2, 8, 50])
def test_workers_have_equally_much_behind_a_division(workers, share):
    chance, rows = np.random.default_rng(3), 100_000 * workers
    rest = [int(rows * (1 - share) / workers)] * workers
    start = chance.integers(0, 3_600_000, 8192)
    key = HotKey(5, 0, rows * share, start, start + 60_000)
    given_rows = [rest[0] + int(rows * share), *rest[1:]]
    assert uneven(given_rows, 1.2, 10_000) == [0]
    found = stretches(given_rows, [key], -1, 3_600_000)
    ticks = np.sort(np.append(all_starts := chance.integers(0, 3_600_000, 400_000), all_starts + 60_000))
    ticks = ticks[ticks <= 3_600_000]
    got = np.array(rest, float)
    for stretch in found:
        inside = np.searchsorted(ticks, stretch.end, "right") - np.searchsorted(ticks, stretch.begin, "right")
        got[stretch.worker] += key.rows * inside / len(ticks)
    assert got.max() <= 1.1 * got.mean() * (1.15 if workers == 50 else 1)


def numbers(*found: int) -> Iterator[pa.RecordBatch]:
    return iter([pa.RecordBatch.from_pydict({"id": pa.array(found, pa.int64())})])


def lines_of(batches: Iterator[pa.RecordBatch]) -> list[dict]:
    return [line for batch in batches for line in batch.to_pylist()]


def stored_rows(area: SweepArea) -> Counter:
    """What the files in an area's folder say: without keys that are gone, and without where a row lies."""
    files = [str(path) for path in Path(area.root).rglob("*.parquet")]
    rows = pa.concat_tables([pq.read_table(file).cast(area.stored) for file in files])
    current = rows.filter(rows.column("__due").is_valid()).select(area.schema.names)
    return Counter(tuple(row.values()) for row in current.to_pylist())


@pytest.mark.parametrize("calls", [DISTINCT, (DISTINCT[0], DISTINCT[2])], ids=["by value", "by time"])
def test_tasks_that_share_a_key_say_and_keep_what_one_does(tmp_path: Path, calls):
    spec = AggregateSpec((("k", I64),), calls, expiry_known=True)
    sweep = counted_values.sweep_of(spec)
    chance = random.Random(5)
    bag = [((0 if i % 3 else i % 7, chance.randrange(40)), t, t + 30, 1) for i in range(600) for t in [1 + i // 2]]
    rows, workers, h1 = table(spec, bag), 3, 300

    def area(name: str) -> SweepArea:
        (tmp_path / name).mkdir()
        return SweepArea(str(tmp_path / name), "op", sweep.rows, ("k",), bag_due, 1, 0, h1, partitions=workers)

    send = exchange.SendTask(sweep.rows, ("k",), workers, str(tmp_path / "sent"))
    sent = [line for part in shared(rows, 2, chance) for line in lines_of(send(iter(part.to_batches())))]
    shares = hot_keys.shares([tuple(line.values()) for line in sent], 4)
    every = range(len(shares))
    surveyed = lines_of(hot_keys.SurveyTask(shares, ("k",))(numbers(*every)))
    hot = hot_keys.hot_keys([tuple(line.values()) for line in surveyed], 100)
    assert [round(key.rows) for key in hot] == [Counter(record[0] for record, *_ in bag)[0]]
    given_rows = [sum(line["rows"] for line in sent if line["receiver"] == worker) for worker in range(workers)]
    found = tuple(stretches(given_rows, hot, 0, h1))
    assert {stretch.worker for stretch in found} == {0, 1, 2}
    folder, divided, plain = str(tmp_path / "divided"), area("divided_area"), area("plain")
    parts = lines_of(hot_keys.DivideTask(shares, sweep, found, folder, 0, workers)(numbers(*every)))
    files = exchange.by_receiver([p for p in parts if p["stretch"] == hot_keys.WHOLE], workers)
    if sweep.values is not None:
        values = exchange.by_receiver([p for p in parts if p["stretch"] == hot_keys.VALUES], workers)
        count = hot_keys.CountTask(sweep, 0, h1, divided, "a", values, found, folder)
        parts = lines_of(count(numbers(*range(workers))))
    by_worker = tuple(
        tuple(
            (stretch, tuple(p["path"] for p in parts if p["stretch"] == number))
            for number, stretch in enumerate(found)
            if stretch.worker == worker
        )
        for worker in range(workers)
    )
    task = hot_keys.StretchesTask(sweep, 0, h1, divided, "a", files, by_worker)
    deltas = [pa.Table.from_batches(list(task(numbers(worker)))) for worker in range(workers)]
    one = pa.Table.from_batches(list(bridge.SweepTask(sweep, 0, h1, plain, "a")(iter(rows.to_batches()))))
    both = pa.concat_tables(deltas)
    for tick in range(1, h1 + 1, 7):
        assert at(both, tick) == at(one, tick), tick
    assert min(delta.num_rows for delta in deltas) > 50
    assert stored_rows(divided) == stored_rows(plain)
