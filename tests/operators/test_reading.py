"""Rows read as bags by workers, and sent to the workers of their keys, against plain Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators import exchange, reading
from sweeparea.operators.state.area_files import DUE, HASH, SEQ
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.operators.windows import Calendar, Hopping, Range, Unbounded
from tests.operators.window_scopes import LAGS, LENGTHS, TICKS, bucket_windows, time_windows

ELEMENTS = st.lists(st.tuples(st.integers(0, 5), TICKS, st.integers(-2, 2).filter(bool)), max_size=30)


def numbers(count: int):
    return iter([pa.RecordBatch.from_pydict({"id": np.arange(count)})])


def rows_of(batches) -> list[tuple]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@settings(deadline=None)
@given(time_windows(LENGTHS, TICKS, LAGS) | bucket_windows(LENGTHS, TICKS), ELEMENTS)
def test_an_element_of_a_bag_is_valid_in_its_interval(window, elements):
    values, ticks, copies = ([e[i] for e in elements] for i in range(3))
    rows = pa.table(
        {"v": pa.array(values, pa.int32()), "t": pa.array(ticks, pa.int64()), "n": pa.array(copies, pa.int64())}
    )
    bag = reading.BagOf((("c0", "v"),), "t", "n", 0, "c1", window).of(rows)
    wanted = [(v, s, *window.interval(s), n) for v, s, n in elements if window.interval(s) is not None]
    assert bag.schema.names == ["c0", "c1", *BAG]
    assert rows_of(bag.to_batches()) == wanted


@settings(deadline=None)
@given(bucket_windows(LENGTHS, TICKS).filter(lambda window: reading.seen_by(window, bounds=True)), ELEMENTS)
def test_an_element_is_shown_with_the_bounds_of_its_bucket(window, elements):
    values, ticks, copies = (pa.array([e[i] for e in elements], pa.int64()) for i in range(3))
    rows = pa.table({"v": values, "t": ticks, "n": copies})
    bag = reading.BagOf((("c0", "v"),), "t", "n", 0, None, window, ("c1", "c2")).of(rows)
    wanted = [(v, *bounds, n) for v, s, n in elements for bounds in window.buckets(s)]
    assert rows_of([bag.select(["c0", "c1", "c2", *BAG])]) == wanted


def test_bounds_of_the_clock_beyond_its_last_instant_are_refused():
    elements = pa.table({"__ts": [0, 1 << 50], "__te": [1, 1 << 51]})
    found = reading.through(elements.slice(0, 1), Hopping(10, 10), ("c1", "c2"), 1_000_000)
    assert found.column("c2").cast(pa.int64()).to_pylist() == [10_000_000]
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        reading.through(elements, Hopping(10, 10), ("c1", "c2"), 1_000_000)


def test_without_a_window_elements_last_a_tick():
    rows = pa.table({"t": pa.array([3, 5], pa.int64())})
    assert rows_of(reading.BagOf((), "t", None, 0).of(rows).to_batches()) == [(3, 4, 1), (5, 6, 1)]


def test_instants_of_the_clock_are_told_in_its_chronons():
    stamps = pa.array([-3_000_000, 7_000_000], pa.timestamp("us", "UTC"))
    bag = reading.BagOf((("c0", "ts"),), "ts", None, 1_000_000, "c1", Range(2)).of(pa.table({"ts": stamps}))
    assert [tuple(bag.column(c).to_pylist()) for c in BAG] == [(-3, 7), (-1, 9), (1, 1)]
    assert bag.column("c1").to_pylist() == stamps.to_pylist()


def test_a_calendar_is_known_to_spark_sql_alone():
    assert Calendar("MONTH", "Europe/Berlin", 1).intervals(np.zeros(0, np.int64)) is None


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    workers=st.integers(1, 5),
    low=st.integers(0, 60) | st.none(),
    group=st.integers(1, 9),
)
def test_shares_have_each_row_in_range_once(tmp_path_factory, sizes, workers, low, group):
    folder = tmp_path_factory.mktemp("files")
    files, wanted, tick = [], [], 0
    for i, size in enumerate(sizes):
        ticks = list(range(tick, tick + size))
        tick += size
        path = str(folder / f"{i}.parquet")
        pq.write_table(pa.table({"t": pa.array(ticks, pa.int64())}), path, row_group_size=group)
        files.append((path, size))
        wanted += [t for t in ticks if low is None or t >= low]
    shares = reading.shares(files, workers)
    schema = pa.schema([("t", pa.int64()), ("since", pa.string())])  # of a column that files lack all is NULL
    bag = reading.BagOf((("c0", "since"),), "t", None, 0, None, Unbounded())
    found = rows_of(reading.ReadTask(shares, schema, (("t", low, None),), bag)(numbers(workers)))
    assert sorted(found, key=lambda row: row[1]) == [(None, t, INF, 1) for t in wanted]


@settings(deadline=None, max_examples=30)
@given(
    rows=st.lists(st.tuples(st.sampled_from([0.0, -0.0, 1.5, float("nan"), None]), st.integers(0, 9)), max_size=40),
    senders=st.integers(1, 3),
    receivers=st.integers(1, 4),
)
def test_rows_arrive_once_with_all_of_their_key(tmp_path_factory, rows, senders, receivers):
    schema = pa.schema([("k", pa.float64()), ("v", pa.int64())])
    send = exchange.SendTask(schema, ("k",), receivers, str(tmp_path_factory.mktemp("exchange") / "op"))
    lines = []
    for sender in range(senders):
        mine = rows[sender::senders]
        batch = pa.RecordBatch.from_arrays(
            [pa.array([k for k, _ in mine], pa.float64()), pa.array([v for _, v in mine], pa.int32())], names=["k", "v"]
        )
        for found in send(iter([batch, batch.slice(0, 0)])):
            lines += found.to_pylist()
    files = exchange.by_receiver(lines, receivers)
    homes: dict[int, int] = {}
    arrived = []
    for receiver in range(receivers):
        asked = iter([pa.RecordBatch.from_pydict({"id": [receiver]})])
        for batch in exchange.ReceiveTask(files)(asked):
            assert batch.schema == schema
            arrived += batch.column(1).to_pylist()
            for h in key_hash([batch.column(0)], batch.num_rows).tolist():
                assert homes.setdefault(h, receiver) == receiver  # equal keys, equal hashes
    assert sorted(arrived) == sorted(v for _, v in rows)


def test_keys_that_are_due_are_named(tmp_path):
    stored = pa.schema([("k", pa.string()), ("v", pa.int64()), *((name, pa.int64()) for name in (HASH, DUE, SEQ))])
    path = str(tmp_path / "area.parquet")
    columns = [["a", "b", "c", "d"], [1, 2, 3, 4], [0, 0, 0, 0], [5, 6, 9, None], [1, 1, 1, 1]]
    pq.write_table(pa.table(columns, schema=stored), path)
    sent = pa.schema([("k", pa.string()), ("v", pa.int64()), ("__n", pa.int64())])
    task = exchange.DueTask(((reading.FilePart(path),), ()), stored, sent, ("k",), 5, 9)
    assert rows_of(task(numbers(2))) == [("b", None, None), ("c", None, None)]


@pytest.mark.parametrize("asked", [0, 1])
def test_rows_that_travel_with_the_task_come_once(asked):
    task = reading.GivenTask(pa.table({"v": [1, 2]}))
    assert rows_of(task(numbers(asked))) == [(1,), (2,)] * asked
