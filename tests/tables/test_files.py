"""Staged files and their statistics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from sweeparea.infra.errors import SetupError
from sweeparea.tables.errors import TableError
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import describe_file, quick, read_whole, write_file, write_files
from sweeparea.tables.log.write_errors import write_error
from tests.tables.processes import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2024, 1, 1, 12, 0, 0, 123456)


def stats_of(root: Path, table: pa.Table) -> dict[str, dict[str, object]]:
    return json.loads(write_file(table, str(root), "a1", "part-0").stats)


def test_statistics_are_those_of_the_delta_protocol(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("tick", pa.int64()),
            ("ts", pa.timestamp("us", "UTC")),
            ("tn", pa.timestamp("us")),
            ("day", pa.date32()),
            ("d", pa.decimal128(10, 2)),
            ("big", pa.decimal128(38, 2)),
            ("s", pa.string()),
            ("f", pa.float64()),
            ("st", pa.struct([("a", pa.int32()), ("in", pa.struct([("x.y", pa.string())]))])),
            ("b", pa.binary()),
            ("yes", pa.bool_()),
            ("l", pa.list_(pa.int64())),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    row = {
        "tick": 5,
        "ts": NOON,
        "tn": NOON,
        "day": date(2024, 1, 1),
        "d": Decimal("-1.25"),
        "big": Decimal("-123456789012345678901234567890123456.78"),
        "s": "é",
        "f": 1.5,
        "st": {"a": 1, "in": {"x.y": "k"}},
        "b": b"x",
        "yes": True,
        "l": [1],
        "m": [("k", 1)],
    }
    table = pa.Table.from_pylist([row, {**row, "tick": 7, "d": Decimal("3")}, {}], schema=schema)
    file = write_file(table, str(tmp_path), "a1", "part-0")
    assert (file.path, file.rows) == ("data/a1/part-0.parquet", 3)
    assert file.size == (tmp_path / file.path).stat().st_size
    assert "-123456789012345678901234567890123456.78," in file.stats
    stats = json.loads(file.stats, parse_float=Decimal)
    assert stats["numRecords"] == 3
    assert stats["minValues"] == {
        "tick": 5,
        "ts": "2024-01-01T12:00:00.123456Z",
        "tn": "2024-01-01T12:00:00.123456",
        "day": "2024-01-01",
        "d": Decimal("-1.25"),
        "big": Decimal("-123456789012345678901234567890123456.78"),
        "s": "é",
        "f": Decimal("1.5"),
        "st": {"a": 1, "in": {"x.y": "k"}},
    }
    assert stats["maxValues"]["d"] == Decimal("3.00")
    assert stats["maxValues"]["tick"] == 7
    assert stats["nullCount"] == {
        "tick": 1,
        "ts": 1,
        "tn": 1,
        "day": 1,
        "d": 1,
        "big": 1,
        "s": 1,
        "f": 1,
        "st": {"a": 1, "in": {"x.y": 1}},
        "b": 1,
        "yes": 1,
    }
    assert pq.read_table(tmp_path / file.path).cast(schema).equals(table)


def test_nan_and_infinity_have_no_bounds(tmp_path: Path) -> None:
    stats = stats_of(tmp_path, pa.table({"f": [1.0, float("nan")], "g": [float("-inf"), 2.0], "h": [1.0, 2.0]}))
    assert stats["minValues"] == {"h": 1.0}
    assert stats["maxValues"] == {"h": 2.0}


def test_floats_of_files_written_by_others_have_no_bounds(tmp_path: Path) -> None:
    pq.write_table(pa.table({"f": [1.0, 2.0], "a": [1, 2]}), tmp_path / "x.parquet")
    file = describe_file(str(tmp_path), "x.parquet")
    assert file.rows == 2
    assert json.loads(file.stats)["minValues"] == {"a": 1}


def test_old_timestamps_of_others_have_no_bounds(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([NOON], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "x.parquet", use_deprecated_int96_timestamps=True)
    assert json.loads(describe_file(str(tmp_path), "x.parquet").stats)["minValues"] == {}


def test_long_strings_are_cut_so_that_bounds_stay_bounds(tmp_path: Path) -> None:
    table = pa.table(
        {"s": ["é" * 100, "z" * 100], "top": ["a", "\U0010ffff" * 100], "huge": ["a", "b" * 10_000], "n": [1, 2]}
    )
    stats = stats_of(tmp_path, table)
    assert stats["minValues"] == {"s": "z" * 64, "n": 1}
    assert stats["maxValues"] == {"s": "é" * 64 + "\U0010ffff", "n": 2}


def test_bounds_span_row_groups(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [5, 1, 9, None]}), tmp_path / "x.parquet", row_group_size=1)
    stats = json.loads(describe_file(str(tmp_path), "x.parquet").stats)
    assert (stats["minValues"], stats["maxValues"], stats["nullCount"]) == ({"a": 1}, {"a": 9}, {"a": 1})


def test_instants_outside_the_calendar_and_empty_files(tmp_path: Path) -> None:
    ancient = pa.table({"ts": pa.array([-(2**62), 0], pa.timestamp("us", "UTC"))})
    assert stats_of(tmp_path, ancient)["maxValues"] == {}
    year_one = pa.table({"ts": pa.array([datetime(1, 1, 1)], pa.timestamp("us"))})
    assert stats_of(tmp_path, year_one)["minValues"] == {"ts": "0001-01-01T00:00:00.000000"}
    empty = stats_of(tmp_path, pa.table({"a": pa.array([], pa.int64())}))
    assert (empty["numRecords"], empty["minValues"], empty["maxValues"]) == (0, {}, {})


def test_readers_that_skip_by_statistics_miss_no_row(tmp_path: Path) -> None:
    """Thirty files; every predicate through the statistics gives what a scan of all rows gives."""
    root = str(tmp_path)
    start = datetime(2024, 1, 1)
    all_rows = [
        {
            "tick": i,
            "ts": start + timedelta(hours=i, microseconds=i),
            "d": Decimal(i) / 4 - 10,
            "s": f"k{i:03}" * 30,
            "f": float("nan") if i % 50 == 7 else i / 3,
            "g": float("inf") if i == 42 else -i / 3,
            "rare": i if i > 270 or i == 5 else None,
            "flag": None if i < 50 else i % 2 == 0,
            "st": None if i % 7 == 0 else {"x": i},
        }
        for i in range(300)
    ]
    schema = pa.schema(
        [
            ("tick", pa.int64()),
            ("ts", pa.timestamp("us", "UTC")),
            ("d", pa.decimal128(10, 2)),
            ("s", pa.string()),
            ("f", pa.float64()),
            ("g", pa.float64()),
            ("rare", pa.int64()),
            ("flag", pa.bool_()),
            ("st", pa.struct([("x", pa.int64())])),
        ]
    )
    log = DeltaLog(root)
    log.create(schema, name="t", description="a table")
    parts = [pa.Table.from_pylist(all_rows[i : i + 10], schema=schema) for i in range(0, 300, 10)]
    log.commit([write_file(p, root, "a", f"p{i}") for i, p in enumerate(parts)], [], app=None, base_version=0)
    dataset = DeltaTable(root).to_pyarrow_dataset()
    whole = pa.concat_tables(parts)
    for predicate in (
        "tick >= 25 AND tick < 31",
        "tick = 299",
        "ts > TIMESTAMPTZ '2024-01-12 00:00:00+00'",
        "d <= -9.25",
        "d = 0.25",
        "s > 'k29'",
        "s < 'k002'",
        "f >= 99",
        "isnan(f)",
        "g > 0",
        "g < -99",
        "rare = 5",
        "rare > 280",
        "rare IS NULL AND tick < 7",
        "flag IS NULL AND tick > 47",
        "flag AND tick < 60",
        "st.x = 100",
        "st IS NULL AND tick > 290",
    ):
        connection = duckdb.connect()
        connection.register("delta", dataset)
        connection.register("truth", whole)
        skipped, complete = (
            connection.execute(f"SELECT tick FROM {table} WHERE {predicate} ORDER BY tick").fetchall()
            for table in ("delta", "truth")
        )
        assert skipped == complete, predicate
        assert complete, predicate
    assert len(list(dataset.get_fragments(filter=ds.field("tick") < 25))) == 3
    assert log.read(filters=[("tick", "<", 25)]).num_rows == 25


def test_a_file_is_never_half_written(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1], pa.int64())})
    write_file(table, str(tmp_path), "a1", "part-0")
    with pytest.raises(pa.ArrowInvalid):
        write_file(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), str(tmp_path), "a1", "part-1")
    assert os.listdir(tmp_path / "data" / "a1") == ["part-0.parquet"]


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"gone\.parquet is missing"):
        describe_file(str(tmp_path), "gone.parquet")
    (tmp_path / "half.parquet").write_bytes(b"PAR1....")
    with pytest.raises(TableError, match="no complete Parquet file"):
        describe_file(str(tmp_path), "half.parquet")
    with pytest.raises(TableError, match="data file's name"):
        write_file(pa.table({"a": [1]}), str(tmp_path), "é", "part-0")


def test_a_full_disk_is_a_readable_error(tmp_path: Path) -> None:
    """A limit on file size stands for the full disk: the operating system refuses the write in the same place."""
    program = (
        "import resource, sys, pyarrow as pa; from sweeparea.tables.log.files import write_file\n"
        "from sweeparea.infra.errors import SetupError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_file(pa.table({'a': [str(i) for i in range(100000)]}), sys.argv[1], 'a1', 'part-0')\n"
        "except SetupError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(f"There is no disk space left to write {tmp_path}/data/a1/part-0.parquet"), (
        done.stderr
    )
    assert os.listdir(tmp_path / "data" / "a1") == []


def test_folders_that_cannot_be_written_are_readable_errors(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="a part of that path is a file"):
        write_file(pa.table({"a": [1]}), str(tmp_path / "file"), "a1", "part-0")
    with pytest.raises(SetupError, match="a part of that path is a file"):
        DeltaLog(tmp_path / "file" / "t").create(pa.schema([("a", pa.int64())]), name="t", description="t")
    assert "may not be written" in str(write_error("/x", PermissionError(13, "Permission denied")))
    assert write_error("/x", ValueError("other")) is None
    assert "AWS_ENDPOINT_URL" in str(write_error("s3://b/x", OSError("AWS Error ACCESS_DENIED during PutObject")))
    with pytest.raises(SetupError, match="cannot be opened here"):
        write_file(pa.table({"a": [1]}), "nosuch://bucket/t", "a1", "part-0")


UTC_MICROS = pa.timestamp("us", tz="UTC")
ENDS = {
    "yes": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 127]),
    "short": (pa.int16(), [-(1 << 15), (1 << 15) - 1]),
    "int": (pa.int32(), [-(1 << 31), (1 << 31) - 1]),
    "long": (pa.int64(), [-(1 << 63), (1 << 63) - 1]),
    "f": (pa.float32(), [-1.5, 0.0]),
    "d": (pa.float64(), [-1.5, 1e300]),
    "s": (pa.string(), ["", "é" * 100]),
    "bin": (pa.binary(), [b"", b"x"]),
    "dec": (pa.decimal128(10, 2), [Decimal("-1.25"), Decimal("99999999.99")]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "ts": (UTC_MICROS, [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)]),
    "tn": (pa.timestamp("us"), [NOON, datetime(1, 1, 1)]),
    "none": (pa.int64(), [None, None]),
}
NESTED = {"st": (pa.struct([("a", pa.int32())]), [{"a": 1}, {"a": None}]), "l": (pa.list_(pa.int64()), [[1, None], []])}


@pytest.mark.spark
@pytest.mark.parametrize("columns", [ENDS, {**ENDS, **NESTED}], ids=["flat", "nested"])
@pytest.mark.parametrize("repeating", [[], ["s", "long", "ts", "dec"]], ids=["plain", "dictionary"])
def test_files_written_often_are_read_by_everybody(tmp_path: Path, spark: SparkSession, columns, repeating) -> None:
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])
    rows = [{name: values[i % 2] if i % 5 else None for name, (_, values) in columns.items()} for i in range(20)]
    tables = [(f"part-{i}", pa.Table.from_pylist(rows[i : i + 1], schema)) for i in range(len(rows))]
    files = write_files(tables, str(tmp_path), "a1", quick(schema, repeating))
    assert [(file.path, file.rows) for file in files] == [(f"data/a1/part-{i}.parquet", 1) for i in range(len(rows))]
    assert {name: values for name, values in json.loads(files[1].stats)["maxValues"].items() if name in "int long"} == {
        "int": (1 << 31) - 1,
        "long": (1 << 63) - 1,
    }
    paths = [f"{tmp_path}/{file.path}" for file in files]
    whole = [pq.read_table(pa.BufferReader(buffer)) for buffer in read_whole(str(tmp_path), [f.path for f in files])]
    assert pa.concat_tables(whole).cast(schema).to_pylist() == rows
    by_spark = spark.read.parquet(*paths).toArrow().cast(schema).to_pylist()
    relation = duckdb.sql(f"SELECT * FROM read_parquet({paths})")
    assert relation is not None
    found = relation.arrow().read_all().cast(schema).to_pylist()
    for name in schema.names:
        wanted = sorted(str(row[name]) for row in rows)
        assert sorted(str(row[name]) for row in by_spark) == wanted
        assert sorted(str(row[name]) for row in found) == wanted
    assert spark.read.parquet(*paths).where("long > 5 AND tiny = 127 AND day > DATE '2000-01-01'").count() == 8


def test_of_many_files_one_that_cannot_be_stored_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(SetupError, match="a part of that path is a file"):
        write_files([(f"part-{i}", pa.table({"a": [i]})) for i in range(50)], str(tmp_path), "a1")
    assert write_files([], str(tmp_path), "a1") == []


def test_staging_imports_no_delta_and_no_numba() -> None:
    program = (
        "import sys, sweeparea.tables.log.files\n"
        "print(sorted({'deltalake', 'numba', 'pyspark', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
