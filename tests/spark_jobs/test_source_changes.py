"""Sources that change under a stream: columns gained and lost, versions gone, versions too large for the memory."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.admission.sources import source_rows
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.sources.source import SourceTable

pytestmark = pytest.mark.spark

STREAM = """
CREATE STREAM s FROM DELTA 'source' TIMESTAMP BY t HEARTBEAT FOR t AS t {change}
  CONSTRAINT positive EXPECT (a > 0) ON VIOLATION QUARANTINE ROW;
"""
QUERY = "CREATE CONTINUOUS QUERY q AS SELECT * FROM s [RANGE UNBOUNDED];\n"
OTHER = "CREATE CONTINUOUS QUERY p AS SELECT a, extra FROM s [RANGE UNBOUNDED];\n"


def opened(folder: Path, text: str) -> Application:
    (folder / "app").mkdir(exist_ok=True)
    (folder / "app" / "app.cql").write_text(text)
    return Application.open(folder / "app", folder)


def arrive(folder: Path, *rows: tuple[int, int], **more: float) -> None:
    columns = {"t": [t for t, _ in rows], "a": [a for _, a in rows], **{c: [v] * len(rows) for c, v in more.items()}}
    write_deltalake(folder / "source", pa.table(columns), mode="append", schema_mode="merge")


def admitted(app: Application) -> Counter[tuple]:
    found: Counter[tuple] = Counter()
    for row in DeltaLog(app.layout.admitted("s")).read().to_pylist():
        n = row.pop("__n")
        found[tuple(v for c, v in row.items() if not c.startswith("__"))] += n
    return +found


def test_a_new_column_is_taken_over_when_asked_and_select_star_stays(spark, tmp_path: Path) -> None:
    text = STREAM.format(change="") + QUERY
    arrive(tmp_path, (1, 10), (2, -5))
    app = opened(tmp_path, text)
    admit(app, "s", spark)
    process(app, "q", spark)
    arrive(tmp_path, (3, 30), extra=0.5)
    arrive(tmp_path, (4, 40), extra=1.5)
    app = opened(tmp_path, text)
    with pytest.raises(SweepAreaError, match=r"gained the column\(s\) extra.*admit .* s --take-columns"):
        admit(app, "s", spark)
    assert admitted(app) == {(1, 10): 1}
    report = admit(app, "s", spark, take_columns=True)
    assert (report.versions, report.rows) == (2, 2)
    assert admitted(app) == {(1, 10, None): 1, (3, 30, 0.5): 1, (4, 40, 1.5): 1}
    process(app, "q", spark)
    app = opened(tmp_path, text + OTHER)
    arrive(tmp_path, (5, 50), extra=2.5)
    admit(app, "s", spark)
    for query in ("q", "p"):
        process(app, query, spark)
    star = DeltaLog(app.layout.result("q")).read().to_pylist()
    assert sorted(r["a"] for r in star) == [10, 30, 40, 50]
    assert set(star[0]) == {"t", "a", "ts"}
    named = DeltaLog(app.layout.result("p")).read().to_pylist()
    assert sorted((r["a"], r["extra"]) for r in named if r["a"] > 10) == [(30, 0.5), (40, 1.5), (50, 2.5)]
    # the files of before are compacted with the new ones, and a foreign commit is none of ours
    log = DeltaLog(app.layout.admitted("s"))
    assert log.foreign_commits(0, {"s"}) == []


@pytest.mark.parametrize("change", ["removed", "retyped"])
def test_a_column_lost_or_of_another_type_is_an_error_before_anything_is_written(spark, tmp_path, change: str) -> None:
    arrive(tmp_path, (1, 10))
    app = opened(tmp_path, STREAM.format(change="").split("CONSTRAINT")[0] + ";" + QUERY)
    admit(app, "s", spark)
    before = DeltaLog(app.layout.admitted("s")).version()
    left = pa.table({"t": [2]}) if change == "removed" else pa.table({"t": [2], "a": ["x"]})
    write_deltalake(tmp_path / "source", left, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SweepAreaError, match=r"column a was bigint when it was first admitted and is (missing|string)"):
        admit(app, "s", spark)
    assert DeltaLog(app.layout.admitted("s")).version() == before


def clean_log(folder: Path, *versions: int) -> None:
    DeltaTable(folder / "source").create_checkpoint()
    for version in versions:
        os.remove(folder / "source" / "_delta_log" / f"{version:020d}.json")


def test_a_gap_in_the_log_is_an_error_and_baseline_goes_on_by_difference(spark, tmp_path: Path) -> None:
    arrive(tmp_path, (1, 10), (2, -5), (3, 7), (3, 7))
    app = opened(tmp_path, STREAM.format(change="ON SOURCE CHANGE CORRECT LATE REPAIR"))
    admit(app, "s", spark)
    arrive(tmp_path, (3, 7), (4, 40), (5, -1))
    DeltaTable(tmp_path / "source").delete("a = 10")
    arrive(tmp_path, (6, 60), (7, -2))
    clean_log(tmp_path, 1, 2)
    with pytest.raises(SweepAreaError, match=r"no longer holds version 1: it was cleaned.*--baseline"):
        admit(app, "s", spark)
    assert admitted(app) == {(1, 10): 1, (3, 7): 2}
    report = admit(app, "s", spark, baseline=True)
    assert (report.versions, report.source_version, report.taken_back) == (1, 3, 1)
    assert admitted(app) == {(3, 7): 3, (4, 40): 1, (6, 60): 1}
    assert report.quarantined.total() == 2
    arrive(tmp_path, (8, 80))
    assert admit(app, "s", spark, baseline=True).rows == 1


def test_a_stream_over_a_source_whose_first_versions_are_gone_begins_with_it_as_it_is(spark, tmp_path: Path) -> None:
    for i in range(1, 4):
        arrive(tmp_path, (i, i))
    DeltaTable(tmp_path / "source").optimize.compact()
    DeltaTable(tmp_path / "source").vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    app = opened(tmp_path, STREAM.format(change=""))
    report = admit(app, "s", spark)
    newest = SourceTable(tmp_path / "source").version()
    assert (report.versions, report.source_version, admitted(app)) == (1, newest, {(i, i): 1 for i in range(1, 4)})


def test_large_versions_are_read_in_pieces_and_netted_by_spark(spark, tmp_path: Path, monkeypatch) -> None:
    nan = float("nan")
    odd = [{"a": i % 50, "f": nan if i % 3 else -0.0, "m": [("k", i % 2)], "s": {"x": None}} for i in range(900)]
    kind = pa.schema(
        [("a", pa.int64()), ("f", pa.float64()), ("m", pa.map_(pa.string(), pa.int64())),
         ("s", pa.struct([("x", pa.int32())]))]
    )  # fmt: skip
    path = tmp_path / "source"
    write_deltalake(path, pa.Table.from_pylist(odd, schema=kind))
    write_deltalake(path, pa.Table.from_pylist([*odd[5:], *odd[:3]], schema=kind), mode="overwrite")
    small = list(source_rows.signed_rows(spark, SourceTable(path), 1, str(tmp_path / "spill")))
    monkeypatch.setattr(source_rows, "LARGE", 500)
    monkeypatch.setattr(source_rows, "PIECE", 100)
    source = SourceTable(path)

    def bag(tables: list[pa.Table]) -> dict[str, int]:
        found: Counter[str] = Counter()
        for row in pa.concat_tables(tables).to_pylist():
            n = row.pop("__n")
            found[repr(row).replace("-0.0", "0.0")] += n
        return {row: n for row, n in found.items() if n}

    assert bag(list(source_rows.signed_rows(spark, source, 1, str(tmp_path / "spill")))) == bag(small)
    with source_rows.added_and_removed(spark, source, 0, str(tmp_path / "spill")) as (added, removed):
        assert (sum(piece.num_rows for piece in added), list(removed)) == (900, [])
    with source_rows.added_and_removed(spark, source, 1, str(tmp_path / "spill")) as (added, removed):
        assert bag([*added, *removed]) == bag(small)
    assert list((tmp_path / "spill").iterdir()) == []
