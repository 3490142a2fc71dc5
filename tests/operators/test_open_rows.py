"""Open rows in leaves and fresh files against a list of them: whatever opens and ends, whoever puts files together."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.state import open_rows
from sweeparea.operators.state.leaves import leaf_range
from sweeparea.operators.state.open_rows import OpenRows
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.tables.log.files import DataFile, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("k", pa.string()), ("x", pa.float64()), ("valid_from", pa.int64()), ("valid_to", pa.int64())])
NAMES = SCHEMA.names[:-1]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(open_rows, "LEAF_ROWS", 4)
    monkeypatch.setattr(open_rows, "FRESH_ROWS", 8)
    monkeypatch.setattr(open_rows, "PART_ROWS", 24)
    monkeypatch.setattr(open_rows, "SAMPLE", 2)
    monkeypatch.setenv("SWEEPAREA_SYNC", "off")


def table(rows, ends=None):
    columns = [list(c) for c in zip(*rows, strict=True)] if rows else [[], [], []]
    return pa.table([*columns, ends or [None] * len(rows)], schema=SCHEMA)


class Table:
    """The files of a table, and the rows that they should hold."""

    def __init__(self, root: str) -> None:
        self.root, self.files, self.open, self.ended, self.tick = root, [], Counter(), 0, 0

    def read(self, file: DataFile) -> pa.Table:
        return pq.ParquetFile(f"{self.root}/{file.path}").read().select(SCHEMA.names).cast(SCHEMA)

    def slice(self, ended: list, opened: list, many: bool = False) -> open_rows.Exchange:
        self.tick += 1
        attempt = f"a{self.tick}"
        staged = [write_file(table(opened), self.root, attempt, "open-0")] if opened else []
        gone_rows = table(ended).select(NAMES)

        def read(low: int, high: int) -> pa.Table:
            starts = gone_rows["valid_from"].to_numpy()
            return gone_rows.filter(pa.array((starts >= low) & (starts <= high)))

        done = OpenRows(self.root, SCHEMA, self.files, attempt).exchange(read if many else gone_rows, staged)
        assert {file.path for file in done.removes} <= {file.path for file in self.files}
        gone = {file.path for file in done.removes}
        self.files = [file for file in self.files if file.path not in gone] + done.adds
        assert len({file.path for file in self.files}) == len(self.files)
        self.open.update(opened)
        self.open.subtract(ended)
        self.open = +self.open
        return done

    def optimize(self, chosen: list[DataFile], closed: int) -> None:
        """Puts files together under a name that says nothing, with rows that have ended."""
        rows = pa.concat_tables([*map(self.read, chosen), table([("gone", 0.0, 0)] * closed, [1] * closed)])
        self.tick += 1
        self.files = [file for file in self.files if file not in chosen]
        self.files.append(write_file(rows, self.root, f"o{self.tick}", "part-0"))
        self.ended += closed

    def check(self) -> None:
        found: Counter = Counter()
        ended = 0
        for file in self.files:
            rows = self.read(file)
            assert rows.num_rows == file.rows
            alive = rows.filter(rows["valid_to"].is_null())
            ended += rows.num_rows - alive.num_rows
            found.update(tuple(row[n] for n in NAMES) for row in alive.to_pylist())
            if (bounds := leaf_range(file.path)) is not None:
                hashes = key_hash([alive[n] for n in NAMES], alive.num_rows).view(np.uint64)
                starts = alive["valid_from"].to_pylist()
                found_at = [(t + (1 << 63)) << 64 | int(h) for t, h in zip(starts, hashes, strict=True)]
                assert found_at == sorted(found_at)
                assert bounds[0] <= found_at[0] <= found_at[-1] <= bounds[1]
        assert found == self.open
        assert ended == self.ended
        leaves = sorted(bounds for file in self.files if (bounds := leaf_range(file.path)) is not None)
        assert all(a[1] < b[0] for a, b in pairwise(leaves))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 40), st.integers(1, 15))
def test_any_history(tmp_path_factory, seed, most, slices):
    chance = random.Random(seed)
    one = Table(str(tmp_path_factory.mktemp("open")))
    for _ in range(slices):
        alive = list(one.open.elements())
        ended = chance.sample(alive, chance.randint(0, min(len(alive), most)))
        tick = one.tick + 1
        keys = [None, "", "ä" * 50, *map(str, range(chance.choice([2, 300])))]
        opened = [(chance.choice(keys), chance.choice([None, 0.0, 1.5]), tick) for _ in range(chance.randint(0, most))]
        one.slice(ended, opened, many=chance.random() < 0.3)
        if one.files and chance.random() < 0.2:
            one.optimize(chance.sample(one.files, chance.randint(1, len(one.files))), chance.randint(0, 3))
        one.check()


def test_a_slice_writes_leaves_of_what_ended_and_no_others(tmp_path):
    one = Table(str(tmp_path))
    rows = [(str(i), 0.0, 1) for i in range(1000)]
    first = one.slice([], rows)
    assert len(first.unused) == 1
    assert len(one.files) > 200
    done = one.slice(rows[:3], [("new", 1.0, 2)])
    one.check()
    assert len(done.removes) <= 3
    assert sum(file.rows for file in done.adds) <= 3 * 8 + 1
    # what is fresh is looked for there first, and goes into leaves that are written anyhow
    done = one.slice([("new", 1.0, 2)], [])
    assert len(done.removes) == 1
    assert not done.adds
    one.check()


def test_what_ends_in_the_order_in_which_it_began_lies_together(tmp_path):
    one = Table(str(tmp_path))
    rows = [(str(i % 7), 0.0, i // 10) for i in range(600)]
    one.slice([], rows)
    for begin in range(600, 900, 10):
        rows += [(str(i % 7), 0.0, i // 10) for i in range(begin, begin + 10)]
        done = one.slice(rows[begin - 600 : begin - 590], rows[begin:])
        # about ten rows have ended, ten have come: nothing else is touched but what is fresh
        assert sum(file.rows for file in done.removes) <= 10 + 2 * 2 * 4 + 8
        one.check()


def test_few_rows_of_many_come_together_again(tmp_path):
    one = Table(str(tmp_path))
    rows = [(str(i), 0.0, 1) for i in range(400)]
    one.slice([], rows)
    for i in range(0, 400, 20):
        one.slice(rows[i : i + 19], [])
    one.check()
    assert len(one.files) <= 20


def test_a_row_that_is_not_there_is_told(tmp_path):
    one = Table(str(tmp_path))
    one.slice([], [(str(i), 0.0, 1) for i in range(100)])
    with pytest.raises(SweepAreaError, match=r"2 rows or more that were open have ended.*check. with --rebuild"):
        one.slice([("3", 0.0, 1), ("3", 0.0, 1), ("nobody", 0.0, 1)], [])
    few = Table(str(tmp_path / "few"))
    few.slice([], [("a", 0.0, 1)])
    with pytest.raises(SweepAreaError, match=r"1 rows or more"):
        few.slice([("b", 0.0, 1)], [])


@pytest.mark.parametrize("told", ['{"numRecords":40,"nullCount":{}}', "{}"])
def test_a_file_of_which_the_log_does_not_tell_what_is_open(tmp_path, told):
    one = Table(str(tmp_path))
    rows = [(str(i), 0.0, 1) for i in range(30)]
    one.slice([], rows)
    one.optimize(one.files, 10)
    one.files = [replace(file, stats=told) for file in one.files]
    one.slice(rows[:5], [("new", 1.0, 2)])
    one.check()


def test_instants_of_sparks_own_form_in_years_that_nanoseconds_lack(tmp_path):
    kind = pa.timestamp("us", tz="UTC")
    schema = pa.schema([("d", kind), ("valid_from", kind), ("valid_to", kind)])
    years = [datetime(year, 12, 31, tzinfo=UTC) for year in (1, 1500, 2024, 9999)]
    rows = pa.table([years, years, [None] * 4], schema=schema)
    pq.write_table(rows, tmp_path / "part-0.parquet", use_deprecated_int96_timestamps=True)
    stats = '{"numRecords":4,"nullCount":{"valid_to":4}}'
    held = [DataFile("part-0.parquet", 1, 4, stats)]
    ended = rows.slice(3).select(["d", "valid_from"])
    done = OpenRows(str(tmp_path), schema, held, "a").exchange(ended, [])
    assert done.removes == held
    left = pa.concat_tables([pq.read_table(tmp_path / file.path) for file in done.adds])
    assert left["valid_from"].to_pylist() == years[:3]


@pytest.mark.spark
def test_spark_filters_leaves_of_many_texts(spark: SparkSession, tmp_path, monkeypatch):
    for limit in ("LEAF_ROWS", "PART_ROWS"):
        monkeypatch.setattr(open_rows, limit, 4000)
    one = Table(str(tmp_path))
    one.slice([], [(f"key {i:06d}", 0.0, 1) for i in range(4000)])
    assert [leaf_range(file.path) is None for file in one.files] == [False]
    rows = spark.read.parquet(*(f"{tmp_path}/{file.path}" for file in one.files))
    assert rows.where("k = 'key 000007'").count() == 1
