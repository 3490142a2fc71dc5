"""A user's source table, version by version, as signed rows. Pins what delta-rs's change feed is trusted with."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, Schema, convert_to_deltalake, write_deltalake
from deltalake.schema import PrimitiveType

from sweeparea.tables.errors import TableError
from sweeparea.tables.sources.source import SourceTable, net

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])
Rows = list[tuple[object, ...]]


def table(*rows: tuple[object, object]) -> pa.Table:
    return pa.Table.from_pylist([{"a": a, "s": s} for a, s in rows], schema=SCHEMA)


def changes(source: SourceTable, version: int) -> Rows:
    return sorted((tuple(row.values()) for row in source.changes(version).to_pylist()), key=repr)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "source")


def test_appends_deletes_and_updates_are_bag_differences(path: str) -> None:
    write_deltalake(path, table(*((i, "x") for i in range(200)), (1, "x")))
    write_deltalake(path, table((500, "new"), (500, "new")), mode="append")
    DeltaTable(path).delete("a = 7")
    DeltaTable(path).update(predicate="a = 8", updates={"s": "'y'"})
    source = SourceTable(path)
    assert source.version() == 3
    first = source.changes(0)
    assert (first.num_rows, first.column_names) == (201, ["a", "s", "__n"])
    assert first.schema.field("__n").type == pa.int64()
    assert changes(source, 1) == [(500, "new", 1), (500, "new", 1)]
    assert changes(source, 2) == [(7, "x", -1)]
    assert changes(source, 3) == [(8, "x", -1), (8, "y", 1)]
    assert source.snapshot(3).num_rows == 202
    assert source.snapshot(0).schema == SCHEMA


def test_optimize_and_vacuum_change_nothing(path: str) -> None:
    for i in range(3):
        write_deltalake(path, table((i, "x")), mode="append")
    DeltaTable(path).optimize.compact()
    DeltaTable(path).vacuum(dry_run=False)
    source = SourceTable(path)
    for version in range(3, source.version() + 1):
        assert changes(source, version) == []


def test_an_overwrite_removes_and_adds_only_what_differs(path: str) -> None:
    write_deltalake(path, table((1, "x"), (2, "x"), (2, "x")))
    write_deltalake(path, table((2, "x"), (3, "x")), mode="overwrite")
    assert changes(SourceTable(path), 1) == [(1, "x", -1), (2, "x", -1), (3, "x", 1)]


def test_an_exact_change_feed_is_read_where_it_is_on(path: str) -> None:
    write_deltalake(path, table((1, "x"), (2, "x")), configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(path).update(predicate="a = 2", updates={"s": "'y'"})
    assert changes(SourceTable(path), 1) == [(2, "x", -1), (2, "y", 1)]


def test_a_feed_that_leaves_equal_rows_out_is_not_believed(path: str) -> None:
    """delta-rs's feed says of an UPDATE that makes a row equal to another one only that the row went."""
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(path, table((1, "x"), (1, "y")), configuration=feed)
    DeltaTable(path).update(updates={"s": "'x'"})
    told = changes(SourceTable(path), 1)
    assert told == [(1, "x", 1), (1, "y", -1)]
    assert DeltaTable(path).to_pyarrow_table().num_rows == 2


def test_a_column_added_later_is_null_before(path: str) -> None:
    write_deltalake(path, table((1, "x")))
    wider = pa.table({"a": pa.array([2], pa.int64()), "s": ["y"], "extra": [2.5]})
    write_deltalake(path, wider, mode="append", schema_mode="merge")
    write_deltalake(path, wider, mode="append")
    DeltaTable(path).delete("a = 1")
    source = SourceTable(path)
    # Version 1 carries the new column's metadata, which the change feed refuses: read from its own files.
    assert changes(source, 0) == [(1, "x", None, 1)]
    assert changes(source, 1) == changes(source, 2) == [(2, "y", 2.5, 1)]
    assert changes(source, 3) == [(1, "x", None, -1)]


def test_a_version_with_settings_and_rows_of_a_partitioned_table(path: str) -> None:
    write_deltalake(path, table((1, "x"), (2, "é y")), partition_by=["s"])
    wider = pa.table({"a": pa.array([3, 4], pa.int64()), "s": ["é y", None], "extra": [1.5, 2.5]})
    write_deltalake(path, wider, mode="append", schema_mode="merge")
    source = SourceTable(path)
    assert changes(source, 1) == [(3, "é y", 1.5, 1), (4, None, 2.5, 1)]
    assert source.partition_columns() == ["s"]
    DeltaTable(path).delete("s = 'é y'")
    source.version()
    assert changes(source, 2) == [(2, "é y", None, -1), (3, "é y", 1.5, -1)]


def test_settings_alone_change_no_row(path: str) -> None:
    write_deltalake(path, table((1, "x")))
    DeltaTable(path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    DeltaTable(path).alter.add_columns([Field("b", PrimitiveType("double"))])
    source = SourceTable(path)
    source.version()
    assert (changes(source, 1), changes(source, 2)) == ([], [])


def test_nested_values_net_too(path: str) -> None:
    nested = pa.schema(
        [
            ("id", pa.int64()),
            ("st", pa.struct([("f", pa.float64())])),
            ("l", pa.list_(pa.int64())),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    rows = [
        {"id": 1, "st": {"f": float("nan")}, "l": [1, None], "m": [("k", 1)]},
        {"id": 2, "st": None, "l": None, "m": None},
        {"id": 3, "st": {"f": None}, "l": [], "m": []},
    ]
    write_deltalake(path, pa.Table.from_pylist(rows, schema=nested))
    DeltaTable(path).delete("id = 3")
    assert [row[0] for row in changes(SourceTable(path), 1)] == [3]
    assert SourceTable(path).spark_schema() == [
        ("id", "bigint"),
        ("st", "struct<f:double>"),
        ("l", "array<bigint>"),
        ("m", "map<string,bigint>"),
    ]


def test_net_keeps_what_does_not_cancel() -> None:
    rows = pa.table({"a": [1, 1, None, None, 2], "__n": [1, -1, -1, -1, 1]})
    assert net(rows).to_pylist() == [{"a": None, "__n": -2}, {"a": 2, "__n": 1}]


def test_commit_times_are_microseconds(path: str) -> None:
    before = time.time_ns() // 1000 - 1000
    write_deltalake(path, table((1, "x")))
    assert before <= SourceTable(path).commit_time(0) <= time.time_ns() // 1000


def test_an_empty_table_is_no_error(path: str) -> None:
    DeltaTable.create(path, SCHEMA)
    source = SourceTable(path)
    assert (source.version(), source.changes(0).num_rows, source.spark_schema()) == (
        0,
        0,
        [("a", "bigint"), ("s", "string")],
    )


def test_what_is_no_delta_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=f"{tmp_path}/gone does not exist"):
        SourceTable(tmp_path / "gone").version()
    (tmp_path / "file.csv").touch()
    with pytest.raises(TableError, match=r"file\.csv is a file"):
        SourceTable(tmp_path / "file.csv").schema()
    (tmp_path / "folder" / "_delta_log").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "folder"):
        with pytest.raises(TableError, match="is not a Delta table: it has no commit"):
            SourceTable(folder).version()
    DeltaTable.create(tmp_path / "t", SCHEMA)
    with pytest.raises(TableError, match="no version 5 yet; its latest is 0"):
        SourceTable(tmp_path / "t").changes(5)


def test_a_damaged_log_is_named(path: str) -> None:
    write_deltalake(path, table((1, "x")))
    (Path(path) / "_delta_log" / f"{0:020d}.json").write_text("{broken")
    with pytest.raises(TableError, match=f"{path} cannot be"):
        SourceTable(path).version()


def test_a_cleaned_log_says_the_way_out(path: str) -> None:
    for i in range(4):
        write_deltalake(path, table((i, "x")), mode="append")
    DeltaTable(path).create_checkpoint()
    for version in range(3):
        os.remove(Path(path) / "_delta_log" / f"{version:020d}.json")
    source = SourceTable(path)
    assert source.version() == 3
    with pytest.raises(TableError, match=r"no longer holds version 1: .* --baseline"):
        source.changes(1)
    with pytest.raises(TableError, match="cannot be read at version 1"):
        source.snapshot(1)
    assert source.snapshot(3).num_rows == 4


def test_a_file_that_vacuum_took_says_the_way_out(path: str) -> None:
    write_deltalake(path, table((1, "x"), (2, "x")))
    write_deltalake(path, table((3, "x")), mode="append")
    DeltaTable(path).delete("a = 1")
    DeltaTable(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    source = SourceTable(path)
    source.version()
    with pytest.raises(TableError, match=r"version 2 .* is gone .*VACUUM took it"):
        source.changes(2)
    shutil.rmtree(path)
    with pytest.raises(TableError, match="does not exist"):
        source.version()


def test_a_type_that_changed_beyond_conversion_is_named(path: str) -> None:
    write_deltalake(path, table((1, "x")))
    changed = pa.table(
        {"a": pa.array([2], pa.int64()), "s": pa.array([5], pa.int64())},
        schema=pa.schema([("a", pa.int64()), ("s", pa.int64())]),
    )
    write_deltalake(path, changed, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(TableError, match=r"Column s of the source table .* was string and is bigint now"):
        SourceTable(path).changes(0)


def test_features_that_cannot_be_read_are_named(path: str) -> None:
    DeltaTable.create(path, Schema([Field("a", PrimitiveType("long"))]))
    log = Path(path) / "_delta_log" / f"{0:020d}.json"
    lines = [line for line in log.read_text().splitlines() if '"protocol"' not in line.split(":")[0]]
    features = ["futureThing"]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol = {"protocol": {**versions, "readerFeatures": features, "writerFeatures": features}}
    log.write_text("\n".join([*lines, json.dumps(protocol)]) + "\n")
    with pytest.raises(TableError, match="futureThing"):
        SourceTable(path).version()


@pytest.mark.parametrize("nested", [False, True])
def test_bytes_that_are_no_text(tmp_path: Path, nested: bool) -> None:
    """Spark lets any bytes be a text; delta-rs and Arrow write them if nobody looks."""
    wrong = pa.array([b"a\xffb", b"ok", None]).view(pa.string())
    texts = pa.StructArray.from_arrays([wrong], names=["x"]) if nested else wrong
    pq.write_table(pa.table({"a": [1, 2, 3], "b": texts}), tmp_path / "part.parquet")
    convert_to_deltalake(str(tmp_path))
    source = SourceTable(str(tmp_path))
    if nested:
        with pytest.raises(TableError, match=r"Column b of the source table .* no UTF-8.*make_valid_utf8"):
            source.changes(0)
        return
    assert sorted(map(str, source.changes(0).column("b").to_pylist())) == ["None", "a\ufffdb", "ok"]
    # whole snapshots are read by delta-rs, which takes no such bytes
    with pytest.raises(TableError, match=r"version 0.: a text in it holds bytes that are no UTF-8.*make_valid_utf8"):
        source.snapshot(0)


def test_nanoseconds_are_floored(path: str) -> None:
    """Other writers' files may be finer than Delta's microseconds."""
    DeltaTable.create(
        path, pa.schema([("u", pa.timestamp("us", "UTC")), ("st", pa.struct([("n", pa.timestamp("us"))]))])
    )
    fine = [-1, 1_700_000_000_123_456_789]
    inner = pa.StructArray.from_arrays([pa.array(fine, pa.timestamp("ns"))], names=["n"])
    rows = pa.table({"u": pa.array(fine, pa.timestamp("ns", "UTC")), "st": inner})
    pq.write_table(rows, Path(path) / "x.parquet", version="2.6")
    add = {"path": "x.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    (Path(path) / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"add": add}) + "\n")
    source = SourceTable(path)
    source.version()
    found = source.changes(1)
    assert found.column("u").cast(pa.int64()).to_pylist() == [-1, 1_700_000_000_123_456]
    assert pa.array([r["n"] for r in found.column("st").to_pylist()]).cast(pa.int64()).to_pylist() == [
        -1,
        1_700_000_000_123_456,
    ]


@pytest.mark.parametrize(("zone", "stats"), [("UTC", None), (None, None), ("UTC", "1970-01-01T00:00:00.000Z")])
def test_nanoseconds_before_1970_are_floored_in_commits_and_snapshots(path: str, zone: str | None, stats) -> None:
    """1969-12-31 23:59:59.999999001 lies in the microsecond that ends with the second, wherever it is read."""
    plain = pa.schema([("u", pa.timestamp("us", zone)), ("l", pa.list_(pa.timestamp("us", zone))), ("a", pa.int64())])
    DeltaTable.create(path, plain)
    fine = [-999, -1, -1_000, -1_001, 0, 999, 1_700_000_000_123_456_789]
    instants = pa.array(fine, pa.timestamp("ns", zone))
    lists = pa.ListArray.from_arrays(pa.array(range(len(fine) + 1), pa.int32()), instants)
    rows = pa.table({"u": instants, "l": lists, "a": pa.array(range(len(fine)), pa.int64())})
    log = Path(path) / "_delta_log"
    for version, part in enumerate((rows.slice(0, 4), rows.slice(4)), 1):
        pq.write_table(part, Path(path) / f"{version}.parquet", version="2.6")
        told = {
            "numRecords": part.num_rows,
            "minValues": {"u": stats},
            "maxValues": {"u": stats},
            "nullCount": {"u": 0},
        }
        add = {
            "path": f"{version}.parquet",
            "partitionValues": {},
            "size": 1,
            "modificationTime": 0,
            "dataChange": True,
        }
        more = {} if stats is None else {"stats": json.dumps(told)}
        (log / f"{version:020d}.json").write_text(json.dumps({"add": add | more}) + "\n")
    source = SourceTable(path)
    assert source.version() == 2
    wanted = [n // 1000 for n in fine]
    for found in (pa.concat_tables([source.changes(1), source.changes(2)]), source.snapshot(2)):
        found = found.sort_by("a")
        assert found.column("u").cast(pa.int64()).to_pylist() == wanted
        assert found.column("l").combine_chunks().flatten().cast(pa.int64()).to_pylist() == wanted


def test_footers_are_read_only_where_statistics_leave_instants_before_1970_open(path: str, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr("sweeparea.tables.sources.source.holds_nanoseconds", lambda path, _: bool(asked.append(path)))
    for i, year in enumerate((2000, 2020)):
        rows = {"a": [i], "u": [datetime(year, 1, 1)], "n": pa.array([None], pa.timestamp("us"))}
        write_deltalake(path, pa.table(rows), mode="append")
    assert SourceTable(path).snapshot(1).num_rows == 2
    assert asked == []
    write_deltalake(path, pa.table({"a": [2], "u": [datetime(1960, 1, 1)], "n": [datetime(2000, 1, 1)]}), mode="append")
    assert SourceTable(path).snapshot(2).num_rows == 3
    assert len(asked) == 1


def beside(path: str, rows: pa.Table, version: int = 1) -> None:
    """A commit whose file was written as it is, whatever the types of the log."""
    file = Path(path) / f"{version}.parquet"
    pq.write_table(rows, file)
    add = {"path": file.name, "partitionValues": {}, "modificationTime": 0, "dataChange": True}
    action = {"add": add | {"size": file.stat().st_size}}
    (Path(path) / "_delta_log" / f"{version:020d}.json").write_text(json.dumps(action) + "\n")


def test_arrays_of_fixed_length_are_lists(path: str) -> None:
    """As Polars and Arrow write them; a NULL among them has values of its own, which belong to nobody."""
    inner = pa.struct([("x", pa.int32())])
    DeltaTable.create(path, pa.schema([("a", pa.list_(pa.int32())), ("s", pa.list_(inner))]))
    kinds = [pa.list_(pa.int32(), 2), pa.list_(inner, 1)]
    rows = [[[1, 2], [{"x": 1}]], [None, None], [[3, None], [None]]]
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    beside(path, pa.table(columns, names=["a", "s"]))
    source = SourceTable(path)
    source.version()
    wanted = [{"a": a, "s": s} for a, s in rows]
    found = source.changes(1).drop_columns(["__n"]).to_pylist()
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    assert sorted(source.snapshot(1).to_pylist(), key=repr) == sorted(wanted, key=repr)


def test_unsigned_numbers_beyond_the_type_of_the_log_are_refused_by_name(path: str) -> None:
    DeltaTable.create(path, pa.schema([("a", pa.int8())]))
    beside(path, pa.table({"a": pa.array([127], pa.uint8())}))
    beside(path, pa.table({"a": pa.array([200], pa.uint8())}, schema=pa.schema([("a", pa.uint8())])), 2)
    source = SourceTable(path)
    source.version()
    assert source.changes(1).to_pylist() == [{"a": 127, "__n": 1}]
    with pytest.raises(TableError, match=r"Column a of the source table .* was uint8 and is tinyint now.* 200 not in"):
        source.changes(2)
    with pytest.raises(TableError, match=r"cannot be read \(version 2\).*write the column again"):
        source.snapshot(2)


def test_a_checkpoint_in_several_parts(path: str) -> None:
    for i in range(4):
        write_deltalake(path, table((i, "x")), mode="append")
    DeltaTable(path).create_checkpoint()
    log = Path(path) / "_delta_log"
    whole = pq.read_table(log / f"{3:020d}.checkpoint.parquet")
    half = whole.num_rows // 2
    for i, part in enumerate((whole.slice(0, half), whole.slice(half)), 1):
        pq.write_table(part, log / f"{3:020d}.checkpoint.{i:010d}.{2:010d}.parquet")
    (log / f"{3:020d}.checkpoint.parquet").unlink()
    (log / "_last_checkpoint").write_text(json.dumps({"version": 3, "size": whole.num_rows, "parts": 2}))
    for version in range(3):
        (log / f"{version:020d}.json").unlink()
    DeltaTable(path).delete("a = 2")
    source = SourceTable(path)
    assert source.version() == 4
    assert changes(source, 4) == [(2, "x", -1)]
    assert sorted(r["a"] for r in source.snapshot(4).to_pylist()) == [0, 1, 3]
