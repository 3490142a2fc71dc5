"""Reading by range gives the same rows whatever batches and chunks they come in."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sweeparea.spark_jobs.spark import frames
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("empty", [0, 1, 2, 5])
def test_leading_empty_chunks_hide_no_row(spark, empty):
    schema = pa.schema([("x", pa.int64())])
    chunks = [pa.table([[]], schema=schema)] * empty + [pa.table([[1, 2]], schema=schema)]
    assert frames.from_arrow(spark, pa.concat_tables(chunks)).count() == 2


@pytest.mark.parametrize("small", [True, False])
def test_a_narrow_range_far_into_a_long_file(spark, tmp_path, monkeypatch, small):
    """A scan hands out batches of 131,072 rows; a slice may need rows of the third one only."""
    monkeypatch.setattr(scan, "SMALL_BYTES", 1 << 30 if small else 0)
    count = 400_000
    table = pa.table({"tick": pa.array(range(count), pa.int64()), "seq": pa.array([1] * count, pa.int64())})
    log = DeltaLog(str(tmp_path / "t"))
    log.create(table.schema, name="t", description="", configuration=None)
    file = write_file(table, log.uri, "a", "long")
    log.commit([file], [], app=None, base_version=log.version())
    for low in (0, 131_071, 262_143, 300_000, 399_995):
        frame = frames.read(spark, scan.plan(log), ["tick"], [("tick", low, low + 9), ("seq", None, 1)])
        assert frame is not None
        assert sorted(r.tick for r in frame.collect()) == list(range(low, min(low + 10, count)))


@pytest.mark.parametrize("most", [4, 50_000])
def test_only_rows_among_some_values_need_be_read(spark, tmp_path, monkeypatch, most):
    """Where the driver chooses them; more than it may hold are all left to Spark."""
    monkeypatch.setattr(scan, "SMALL_BYTES", 0)
    monkeypatch.setattr(frames, "SELECTED_ROWS", 100)
    monkeypatch.setattr(frames, "LOCAL_ROWS", most)
    keys = [None if i % 10 == 0 else i % 10 for i in range(1000)]
    table = pa.table({"k": pa.array(keys, pa.int64()), "tick": pa.array(range(1000), pa.int64())})
    log = DeltaLog(str(tmp_path / "t"))
    log.create(table.schema, name="t", description="", configuration=None)
    file = write_file(table, log.uri, "a", "long")
    log.commit([file], [], app=None, base_version=log.version())
    asked = spark.createDataFrame([(3,), (3,), (None,), (77,)], "x BIGINT")

    def read(sql):
        among = {"k": frames.Values(asked, sql)}
        frame = frames.read(spark, scan.plan(log), ["k", "tick"], [("tick", 0, 899)], among)
        return None if frame is None else sorted(r.tick for r in frame.collect())

    matching = [i for i in range(900) if keys[i] == 3]
    assert read("x") == (matching if most > 4 else list(range(900)))
    assert read("x + 1000") is None
    assert read("CAST(x AS INT)") == list(range(900))  # equal values of another type
    assert read("CAST(x AS DOUBLE)") == list(range(900))


def test_signs_of_a_pattern_in_a_folder_are_part_of_its_name(spark, tmp_path):
    """Spark would look for ``data1`` and the like; files of a few rows never reach it as such."""
    count = 10
    folder = tmp_path / "data[1]{b,c}*?"
    table = pa.table({"tick": pa.array(range(count), pa.int64())})
    log = DeltaLog(str(folder / "t"))
    log.create(table.schema, name="t", description="", configuration=None)
    log.commit([write_file(table, log.uri, "a", "few")], [], app=None, base_version=log.version())
    assert frames.from_files(spark, scan.plan(log), ["tick"]).count() == count
    with frames.as_file(spark, table, str(folder / "spill")) as frame:
        assert frame.count() == count
