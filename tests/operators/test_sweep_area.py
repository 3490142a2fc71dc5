"""A keyed SweepArea on disk gives every sweep what it would have had of all rows, whatever the files are merged to."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.state import area_files, sweep_area
from sweeparea.operators.state.area_files import DUE, AreaFile, growth, to_merge
from sweeparea.operators.state.due import Later, bag_due, never
from sweeparea.operators.state.sweep_area import SweepArea
from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values import keys, shared_rows
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.operators.windows import session_window
from sweeparea.operators.windows.arrivals import ArrivalSpec
from sweeparea.tables.log.files import describe_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPT = "a"


class Kept:
    """A SweepArea over several slices, as the driver and the workers of each slice use it, the first of which is task
    ``first`` of its stage. ``shares``: the sweep's rows share their keys' values, as those of a top-k.
    """

    shares = False

    def __init__(self, root: str, schema: pa.Schema, key: tuple[str, ...], due, workers: int, first: int = 0) -> None:
        self.root, self.workers, self.first = root, workers, first
        self.area = SweepArea(root, "op", schema, key, due, 0, 0, 0, partitions=workers)
        self.described: dict[str, int] = {}
        self.live = 0

    def slice(self, rows: pa.Table, h0: int, h1: int, sweep) -> pa.Table:
        area = self.area = replace(self.area, seq=self.area.seq + 1, h0=h0, h1=h1, merge=self._merge())
        place = key_hash([rows.column(k) for k in area.key_columns], rows.num_rows) % self.workers
        deltas, attempt = [], f"s{area.seq}"
        named = self._due(h0) if self.workers > 1 else rows.slice(0, 0)
        where = key_hash([named.column(k) for k in area.key_columns], named.num_rows) % self.workers
        for worker in range(self.workers):
            mine = rows.filter(pa.array(place == worker))
            hints = named.filter(pa.array(where == worker))
            held = area.held(pa.concat_tables([mine, hints.select(mine.column_names)]))
            delta, carry = sweep(pa.concat_tables([mine, held.select(mine.column_names)]), h0, h1)
            carry = self._shared(carry) if self.shares else carry
            area.stage(carry, held, attempt, self.first + worker)
            deltas.append(delta)
        kept = [f for f in area.files if f not in area.merge]
        folder = Path(self.root, "data", attempt)
        added = [describe_file(self.root, f"data/{attempt}/{p.name}") for p in folder.glob("*.parquet")]
        self.described |= {f"{self.root}/{f.path}": area.seq for f in added if ".c-" in f.path}
        self.live += sum(growth(f) for f in added if ".c-" in f.path)
        merged = max((self.described.get(f.path, 0) for f in area.merge), default=0)
        self.described |= {f"{self.root}/{f.path}": merged for f in added if ".m-" in f.path}
        files = (*kept, *(AreaFile.of(self.root, f) for f in added if f.rows))
        self.area = replace(area, files=files)
        return pa.concat_tables(deltas)

    def _shared(self, carry: pa.Table) -> pa.Table:
        named = carry.select(list(self.area.key_columns)).combine_chunks()
        shared = shared_rows.shared(named, np.arange(named.num_rows))
        columns = [(shared if n in shared.column_names else carry).column(n) for n in carry.column_names]
        return pa.table(columns, names=carry.column_names)

    def _merge(self) -> tuple[AreaFile, ...]:
        files = sorted(self.area.files, key=lambda f: -self.described[f.path])
        return tuple(files[: to_merge([f.rows for f in files], self.live)])

    def _due(self, h0: int) -> pa.Table:
        due = [f for f in self.area.files if f.due <= self.area.h1]
        tables = [pq.read_table(f.path) for f in due]
        rows = pa.concat_tables(tables) if tables else self.area.stored.empty_table()
        at = keys.numpy_of(keys.one_array(rows.column(DUE)), INF)
        return (
            rows.filter(pa.array((at > h0) & (at <= self.area.h1)))
            .cast(self.area.stored)
            .select(self.area.schema.names)
        )

    def rows(self) -> pa.Table:
        """All that counts."""
        tables = [pq.read_table(f.path).cast(self.area.stored) for f in self.area.files]
        everything = pa.concat_tables([self.area.stored.empty_table(), *tables])
        return replace(self.area, partitions=1, files=self.area.files).held(everything)


def bag(rows, schema):
    columns = list(zip(*rows, strict=True)) or [[] for _ in schema]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def sorted_rows(table: pa.Table, names) -> list[tuple]:
    return sorted(tuple(r[n] for n in names) for r in table.select(list(names)).to_pylist())


def signed(table: pa.Table, columns) -> dict:
    """The instants' multiplicities that a delta tells."""
    total: dict = {}
    for row in table.to_pylist():
        record = tuple(row[c] for c in columns)
        for at, n in ((row["__ts"], row["__n"]), (row["__te"], -row["__n"])):
            total[record, at] = total.get((record, at), 0) + n
    return {k: n for k, n in total.items() if n and k[1] != INF}


TICKS = 40
element = st.tuples(st.integers(0, 7), st.integers(1, TICKS), st.integers(1, 9))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(element, max_size=40),
    st.lists(st.integers(1, TICKS), max_size=14),
    st.sampled_from([1, 3]),
    st.booleans(),
    st.booleans(),
)
def test_duplicate_elimination_over_slices(tmp_path_factory, elements, cuts, workers, known, shares):
    root = str(tmp_path_factory.mktemp("area"))
    schema = two_counts.rows_schema([pa.field("k", pa.int64())])
    spec = two_counts.TwoCountsSpec(("k",), two_counts.DISTINCT, (known, True))
    kept = Kept(root, schema, ("k",), bag_due, workers)
    kept.shares = shares
    whole, deltas, h0 = schema.empty_table(), [], 0
    for h1 in sorted({*cuts, TICKS, TICKS + 5, TICKS + 30}):
        rows = bag([(k, s, s + d, 1, 0) for k, s, d in elements if h0 < s <= h1], schema)
        delta, whole = spec.sweep(pa.concat_tables([rows, whole]), h0, h1)
        mine = kept.slice(rows, h0, h1, spec.sweep)
        assert signed(mine, ["k"]) == signed(delta, ["k"])
        current = kept.rows()
        assert kept.live == current.num_rows
        # rows of keys that nothing has happened to begin earlier
        names = ["k", "__te", "__n", "__side"]
        assert sorted_rows(current, names) == sorted_rows(whole, names)
        deltas.append(mine)
        h0 = h1
    assert kept.rows().num_rows == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(element, max_size=40), st.lists(st.integers(1, TICKS), max_size=14), st.sampled_from([1, 3]))
def test_sessions_over_slices(tmp_path_factory, elements, cuts, workers):
    root = str(tmp_path_factory.mktemp("area"))
    schema = pa.schema([("v", pa.int64()), ("p", pa.int64()), ("__ts", pa.int64()), ("__n", pa.int64())])
    spec = session_window.SessionSpec(ArrivalSpec(("v",), ("p",), ("v",)), gap=4)
    kept = Kept(root, schema, ("p",), Later(3), workers)
    names, h0, whole = ["v", "__first", "__ts", "__n"], 0, schema.empty_table()

    def sweep(rows, h0, h1):
        return session_window.sweep(rows, spec, h0, h1)

    for h1 in sorted({*cuts, TICKS, TICKS + 9}):
        rows = bag([(v, k, s, 1) for k, s, v in elements if h0 < s <= h1], schema)
        delta, whole = sweep(pa.concat_tables([rows, whole]), h0, h1)
        assert sorted_rows(kept.slice(rows, h0, h1, sweep), names) == sorted_rows(delta, names)
        h0 = h1
    assert kept.rows().num_rows == 0


def test_a_slice_reads_and_writes_only_its_keys(tmp_path):
    schema = two_counts.rows_schema([pa.field("k", pa.int64())])
    spec = two_counts.TwoCountsSpec(("k",), two_counts.DISTINCT, (True, True))
    kept = Kept(str(tmp_path), schema, ("k",), bag_due, 1)
    kept.slice(bag([(k, 1, INF, 1, 0) for k in range(5000)], schema), 0, 1, spec.sweep)
    kept.slice(bag([(k, 2, INF, 1, 0) for k in (3, 7777)], schema), 1, 2, spec.sweep)
    assert [f.rows for f in kept.area.files] == [5000, 2]
    assert kept.area.files[0].due == INF
    assert kept.live == 5001


def test_what_was_seen_to_is_not_looked_at_again(tmp_path):
    schema = two_counts.rows_schema([pa.field("k", pa.int64())])
    spec = two_counts.TwoCountsSpec(("k",), two_counts.DISTINCT, (False, True))
    kept = Kept(str(tmp_path), schema, ("k",), bag_due, 1)
    kept.slice(bag([(k, 1, 5 if k < 10 else INF, 1, 0) for k in range(5000)], schema), 0, 1, spec.sweep)
    kept.slice(bag([], schema), 1, 5, spec.sweep)
    assert [f.rows for f in kept.area.files] == [5010, 10]  # counts and known ends, then keys that are gone
    kept.slice(bag([(7777, 6, INF, 1, 0)], schema), 5, 6, spec.sweep)
    assert [f.rows for f in kept.area.files] == [5010, 10, 1]


def test_a_file_is_due_again_only_when_another_of_its_rows_is(tmp_path):
    schema = two_counts.rows_schema([pa.field("k", pa.int64())])
    spec = two_counts.TwoCountsSpec(("k",), two_counts.DISTINCT, (False, True))
    kept = Kept(str(tmp_path), schema, ("k",), bag_due, 1)
    kept.slice(bag([(k, 1, {0: 5, 1: 9}.get(k, INF), 1, 0) for k in range(500)], schema), 0, 1, spec.sweep)
    [file] = kept.area.files
    assert file.due == 5
    spans = [(1, 4), (1, 5), (4, 7), (5, 8), (5, 9), (9, 99)]
    assert [file.is_due(*span) for span in spans] == [False, True, True, False, True, False]


def test_files_are_few_and_hold_little_that_is_gone(tmp_path):
    schema = two_counts.rows_schema([pa.field("k", pa.int64())])
    spec = two_counts.TwoCountsSpec(("k",), two_counts.DISTINCT, (True, True))
    kept, rng = Kept(str(tmp_path), schema, ("k",), bag_due, 1), np.random.default_rng(1)
    for at in range(1, 200):
        keys_ = rng.integers(0, 300, 20)
        kept.slice(bag([(int(k), at, at + 10, 1, 0) for k in keys_], schema), at - 1, at, spec.sweep)
        live = kept.rows().num_rows
        assert len(kept.area.files) <= 16
        assert sum(f.rows for f in kept.area.files) <= 4 * live + 8 * 40


@pytest.mark.parametrize("workers", [1, 3])
def test_what_has_expired_goes_though_little_comes_after_it(tmp_path, monkeypatch, workers):
    monkeypatch.setattr(sweep_area, "_GROUP", 64)
    monkeypatch.setattr(area_files, "_SLACK", 64)
    schema = two_counts.rows_schema([pa.field("k", pa.int64())])
    spec = two_counts.TwoCountsSpec(("k",), two_counts.DISTINCT, (True, True))
    kept = Kept(str(tmp_path), schema, ("k",), bag_due, workers)
    burst = [(k, 1, INF if k < 40 else 5 + k % 5, 1, 0) for k in range(5000)]
    kept.slice(bag(burst, schema), 0, 1, spec.sweep)
    for at in range(2, 16):
        kept.slice(bag([(at % 3, at, INF, 1, 0)], schema), at - 1, at, spec.sweep)
        assert kept.live == kept.rows().num_rows
        assert at < 12 or sum(f.rows for f in kept.area.files) <= 4 * 40 + 64 + 2
    assert kept.rows().num_rows == 40


@pytest.mark.parametrize(("workers", "first"), [(1, 0), (3, 0), (1, 2), (3, 3), (3, 2)])
def test_a_merge_loses_no_hash_at_the_edges_of_the_shares(tmp_path, monkeypatch, workers, first):
    cuts = [(i << 64) // 3 - (1 << 63) for i in range(4)]
    edges = np.array([*cuts[:3], *(cut - 1 for cut in cuts[1:]), -1, 0], np.int64)
    monkeypatch.setattr(sweep_area, "key_hash", lambda columns, size: edges[keys.int64_of(columns[0])])
    schema = two_counts.rows_schema([pa.field("k", pa.int64())])
    spec = two_counts.TwoCountsSpec(("k",), two_counts.DISTINCT, (True, True))
    kept, everything = Kept(str(tmp_path), schema, ("k",), bag_due, workers, first), range(len(edges))
    for at in range(1, 9):
        kept.slice(
            bag([(k, at, INF, 1, 0) for k in everything if at == 1 or k % 4 == at % 4], schema), at - 1, at, spec.sweep
        )
        assert sorted(kept.rows().column("k").to_pylist()) == [*everything]
    assert any(".m-" in f.path for f in kept.area.files)


def test_a_group_of_many_rows_that_ends_at_once_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_area, "_GROUP", 64)
    monkeypatch.setattr(area_files, "_SLACK", 64)
    schema = pa.schema([("v", pa.int64()), ("p", pa.int64()), ("__ts", pa.int64()), ("__n", pa.int64())])
    spec = session_window.SessionSpec(ArrivalSpec(("v",), ("p",), ("v",)), gap=4)
    kept = Kept(str(tmp_path), schema, ("p",), Later(3), 1)

    def sweep(rows, h0, h1):
        return session_window.sweep(rows, spec, h0, h1)

    kept.slice(bag([(v, v % 2, 1, 1) for v in range(3000)], schema), 0, 1, sweep)
    for at in range(2, 9):
        kept.slice(bag([(0, 5, at, 1)], schema), at - 1, at, sweep)
    assert kept.live == kept.rows().num_rows == 7
    assert sum(f.rows for f in kept.area.files) <= 4 * 7 + 64 + 7


def test_keys_of_every_type(tmp_path):
    nested = pa.struct([("a", pa.list_(pa.float64())), ("b", pa.map_(pa.string(), pa.int64()))])
    values = [
        {"a": [0.0, math.nan], "b": [("x", 1), ("y", 2)]},
        {"a": [-0.0, -math.nan], "b": [("y", 2), ("x", 1)]},  # equal to the first
        {"a": [], "b": None},
        None,
    ]
    columns = [pa.array(values, nested), pa.array([Decimal("1.50")] * 4, pa.decimal128(20, 2))]
    found = key_hash(columns, 4)
    assert found[0] == found[1]
    assert len({*found.tolist()}) == 3
    sliced = [c.slice(1, 3) for c in columns]
    assert key_hash(sliced, 3).tolist() == found[1:].tolist()


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None, -1]), [-2529857523242969672, 7905728728188956330, 4922461756044938104]),
        (pa.array(["", "é", "x" * 20]), [0, 6493319048867622815, -5806292082760925777]),
        (pa.array([b"", b"\x00", b"\x00\x00"]), None),
        (pa.array([True, False, None]), None),
    ],
)
def test_hashes_do_not_change_and_tell_values_apart(array, expected):
    found = key_hash([array], 3).tolist()
    assert len({*found}) == 3
    again = key_hash([pa.chunked_array([array.slice(0, 1), array.slice(1)])], 3).tolist()
    assert found == again
    if expected is not None:
        assert found == expected


def test_rows_that_no_slice_has_to_look_at():
    rows = pa.table({"__ts": [1, 9], "__te": [5, 12], "__n": [1, 1]})
    assert bag_due(rows, 4).tolist() == [5, 9]
    assert never(rows, 4).tolist() == [INF, INF]
    assert Later(3)(rows, 4).tolist() == [INF, 12]
    assert Later(INF)(rows, 4).tolist() == [INF, INF]


@pytest.mark.parametrize("written", ["as staged", "without statistics", "in another order"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_key_is_found_in_whatever_row_group_it_lies(tmp_path, monkeypatch, written, workers):
    monkeypatch.setattr(sweep_area, "_GROUP", 8)
    schema = two_counts.rows_schema([pa.field("k", pa.int64())])
    area = SweepArea(str(tmp_path), "op", schema, ("k",), bag_due, 1, 0, 10, partitions=workers)
    ends = {k: 20 if k % 50 == 7 else INF for k in range(400)}
    area.stage(bag([(k, 10, te, 1, 2) for k, te in ends.items()], schema), area.stored.empty_table(), "s1", 0)
    [path] = tmp_path.glob("data/s1/*.parquet")
    rows = pq.read_table(path)
    assert pq.read_metadata(path).num_row_groups == 50
    if written == "without statistics":
        pq.write_table(rows, path, row_group_size=8, write_statistics=False)
    elif written == "in another order":
        pq.write_table(rows.take(pa.array(np.random.default_rng(5).permutation(400))), path, row_group_size=8)
    file = AreaFile.of(str(tmp_path), describe_file(str(tmp_path), f"data/s1/{path.name}"))
    later = replace(area, seq=2, h0=15, h1=25, files=(file,))
    for asked in ([3], [7, 8, 399], [1000], [], list(range(0, 400, 3))):
        found = later.held(bag([(k, 16, INF, 1, 0) for k in asked], schema))
        # one worker looks after what is due, several are given it
        due = {k for k, te in ends.items() if te == 20} if workers == 1 else set()
        assert sorted(found.column("k").to_pylist()) == sorted((set(asked) & ends.keys()) | due)
    assert file.is_due(15, 25)
    assert not file.is_due(20, 30)
    assert not file.is_due(0, 15)


@pytest.mark.spark
def test_spark_finds_the_keys_that_are_due_among_many_instants(spark: SparkSession, tmp_path):
    schema = pa.schema([("k", pa.string()), ("__ts", pa.int64()), ("__te", pa.int64()), ("__n", pa.int64())])
    one = Kept(str(tmp_path), schema, ("k",), bag_due, 1)
    ticks = range(5, 5005)
    rows = bag([(f"key {t}", t, INF, 1) for t in ticks], schema)
    one.slice(rows, 0, 1, lambda rows, h0, h1: (rows, rows))
    held = spark.read.parquet(*(file.path for file in one.area.files))
    assert held.where(f"{DUE} > 6 AND {DUE} <= 9").count() == 3
