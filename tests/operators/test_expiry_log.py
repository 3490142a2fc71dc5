"""A join's side in a log by expiry: each slice finds there what is alive, and little else."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators import bridge
from sweeparea.operators.state import expiry_log
from sweeparea.operators.state.expiry_log import Division, LoggedFile
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys
from tests.operators import brute

LAST = 30
SCHEMA = pa.schema([(c, pa.int64()) for c in ("k", "__ts", "__te", "__n")])


def table(rows) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def rows_of(bag: pa.Table) -> list[tuple]:
    return [tuple(row.values()) for row in bag.to_pylist()]


class Log:
    """The files of a log over several slices, as ``areas.SweepAreas`` and ``bridge.HoldTask`` keep them."""

    def __init__(self, reach: int, net: bool, touching: bool = False, partitions: tuple[int, ...] = (10,)) -> None:
        self.reach, self.net, self.touching = reach, net, touching
        self.partitions = itertools.cycle(partitions)
        self.files: dict[str, pa.Table] = {}

    def described(self) -> list[LoggedFile]:
        return [
            LoggedFile(name, bag.num_rows, int(keys.int64_of(bag.column("__te")).max()))
            for name, bag in self.files.items()
        ]

    def live(self, h: int) -> list[tuple]:
        """What the slice after h finds."""
        gone = {file.path for file in expiry_log.expired(self.described(), h)}
        return [row for name, bag in self.files.items() if name not in gone for row in rows_of(bag) if row[2] > h + 1]

    def slice(self, rows, h1: int) -> None:
        if not rows:
            return
        described = self.described()
        gone = expiry_log.expired(described, h1)
        division = Division.of(self.reach, next(self.partitions))
        merged = expiry_log.merges([file for file in described if file not in gone], division)
        bag = pa.concat_tables([table(rows), *(self.files[file.path] for file in merged)])
        for file in (*gone, *merged):
            del self.files[file.path]
        for number, part in enumerate(expiry_log.divided(bag, h1, division, self.net, self.touching)):
            self.files[f"{h1}.{number}"] = part

    @property
    def rows(self) -> int:
        return sum(bag.num_rows for bag in self.files.values())


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, LAST), st.integers(1, 9) | st.just(INF)), max_size=25)


@settings(max_examples=80, deadline=None)
@given(
    ROWS,
    st.sets(st.integers(0, LAST), max_size=16),
    st.sampled_from([1, 9, 40, INF]),
    st.sampled_from([(False, False), (False, True), (True, False)]),
    st.sampled_from([(10,), (2, 16, 4)]),
)
def test_each_slice_finds_what_is_alive(rows, cuts, reach, how, partitions):
    net, touching = how
    bag = [(k, s, s + d if d < INF else INF, 1) for k, s, d in rows]
    if net:  # every end is told by a negative tuple
        bag = [row for k, s, e, n in bag for row in ((k, s, INF, n), (k, e, INF, -n)) if row[1] < INF]
    log, h0 = Log(reach, net, touching, partitions), -1
    for h1 in sorted({*cuts, LAST}):
        told = [row for row in bag if row[1] <= h0]
        found = log.live(h0)
        for tick in range(h0 + 1, LAST + 12):
            assert brute.at(found, tick) == brute.at(told, tick), (h0, tick)
        log.slice([row for row in bag if h0 < row[1] <= h1], h1)
        assert not net or all(row[3] for row in log.live(h1))
        h0 = h1


def test_what_stays_for_one_instant_more_is_kept_and_no_longer():
    log = Log(10, False)
    log.slice([(1, 3, 7, 1), (2, 3, 6, 1), (3, 5, INF, 1)], 5)
    assert sorted(log.live(5)) == [(1, 3, 7, 1), (3, 5, INF, 1)]
    assert log.live(6) == [(3, 5, INF, 1)]
    assert expiry_log.expired([LoggedFile("a", 1, 7)], 5) == []
    assert expiry_log.expired([LoggedFile("a", 1, 7)], 6) == [LoggedFile("a", 1, 7)]


@pytest.mark.parametrize("net", [False, True])
def test_files_and_rows_stay_few_however_long_it_runs(net):
    chance, log, ends = random.Random(3), Log(50, net), []
    for h1 in range(1, 400):
        rows = [(chance.randrange(9), h1, h1 + chance.randrange(1, 51), 1) for _ in range(5)]
        if net:
            ends += [(k, e, INF, -1) for k, _, e, _ in rows]
            rows = [(k, s, INF, n) for k, s, _, n in rows] + [row for row in ends if row[1] == h1]
        log.slice(rows, h1)
        live = 5 * 50
        assert len(log.files) <= 12 * 8
        assert log.rows <= (4 if net else 2) * live
    log.slice([(0, 500, INF, 1)] + [row for row in ends if row[1] >= 400], 500)
    log.slice([(0, 501, INF, 1)], 501)
    if not net:  # whole partitions have gone, unread
        assert log.rows == 2


def test_what_is_lengthened_in_every_slice_stays_few_rows():
    """DISTINCT of a value that comes all the time tells each slice a further piece of one interval."""
    logs = [Log(1000, net=False, touching=touching) for touching in (False, True)]
    most = [0, 0]
    for h1 in range(10, 3000, 10):
        for i, log in enumerate(logs):
            log.slice([(1, h1 - 9 if h1 == 10 else h1 + 990, h1 + 1000, 1)], h1)
            most[i] = max(most[i], len(log.live(h1)))
    assert most[0] >= 99
    assert most[1] <= 3 * 10


def test_a_join_is_given_what_changes_in_the_end(tmp_path):
    """A group's row that a projection maps to the same record as before has neither ended nor begun."""
    schema = SCHEMA.append(pa.field("__new", pa.bool_()))
    told = [
        (7, 3, INF, -1, True),
        (7, 3, 5, 1, True),
        (7, 5, INF, 1, True),
        (8, 4, INF, 1, True),
        (9, 1, INF, 1, False),
    ]
    rows = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in told], schema)
    target = bridge.Target(str(tmp_path), SCHEMA, "hold")
    task = bridge.HoldTask(6, schema, target, Division.of(10, 10), "a", net=True, delta=True)
    given = [row for batch in task(iter(rows.to_batches())) for row in batch.to_pylist()]
    assert given == [{"k": 8, "__ts": 4, "__te": INF, "__n": 1, "__new": True}]
    kept = [row for file in tmp_path.rglob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
    assert sorted((row["k"], row["__n"]) for row in kept) == [(8, 1), (9, 1)]
