"""FROM FORMAT: records that any streaming source of Spark brings, each admitted once, malformed ones kept aside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from sweeparea.infra import settings
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.tables.log.delta_log import DeltaLog

pytestmark = pytest.mark.spark

STREAM = """
CREATE STREAM s FROM FORMAT '{format}' PATH 'in' {options} SCHEMA (t BIGINT, a INT, st STRUCT<x: DOUBLE>)
  TIMESTAMP BY t HEARTBEAT FOR t AS t LATE REPAIR CONSTRAINT c EXPECT (a <> 13);
"""


def opened(folder: Path, text: str) -> Application:
    (folder / "app").mkdir(exist_ok=True)
    (folder / "app" / "app.cql").write_text(text)
    return Application.open(folder / "app", folder)


def arrive(folder: Path, name: str, text: str) -> None:
    """Files appear whole: written aside, then renamed."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).rename(folder / "in" / name)


def admitted(app: Application) -> list[tuple]:
    log = DeltaLog(app.layout.admitted("s"))
    rows = log.read().to_pylist() if log.exists() else []
    return sorted((r["t"], r["a"]) for r in rows for _ in range(r["__n"]))


def kept_out(app: Application) -> list[tuple[str, str]]:
    rows = DeltaLog(app.layout.quarantine("s")).read().to_pylist()
    return sorted((r["__reason"], r["__row"]) for r in rows)


def test_json_is_admitted_once_and_malformed_records_keep_their_text(spark, tmp_path: Path) -> None:
    app = opened(tmp_path, STREAM.format(format="json", options=""))
    assert app.plans.input_schema("s").columns == (("t", "bigint"), ("a", "int"), ("st", "struct<x:double>"))
    arrive(tmp_path, "1.json", '{"t": 1, "a": 1, "st": {"x": 0.5}}\n{"t": 2, "a": 2, "more": 1}\n')
    assert admit(app, "s", spark).rows == 2
    bad = ['{"t": 3, "a": "two"}', '{"t": 4, "a": ', "é ☃ text"]
    arrive(tmp_path, "2.json", '{"t": 5, "a": 13}\n' + "\n".join(bad) + '\n{"a": 6}\n{"t": 6, "a": 6}\n')
    report = admit(app, "s", spark)
    assert (report.versions, report.rows, report.quarantined["malformed record"]) == (1, 1, 3)
    assert admitted(app) == [(1, 1), (2, 2), (6, 6)]
    texts = [json.loads(row)["__malformed"] for reason, row in kept_out(app) if reason == "malformed record"]
    assert sorted(texts) == sorted(bad)
    assert len(kept_out(app)) == 5
    assert (admit(app, "s", spark).versions, len(admitted(app))) == (0, 3)
    # what was written long ago and comes now is new all the same
    arrive(tmp_path, "3.json", '{"t": 7, "a": 7}\n')
    os.utime(tmp_path / "in" / "3.json", (1, 1))
    assert admit(app, "s", spark).rows == 1


FLAT = STREAM.replace(", st STRUCT<x: DOUBLE>", "")


def test_a_csv_source_is_admitted(spark, tmp_path: Path) -> None:
    app = opened(tmp_path, FLAT.format(format="csv", options="OPTIONS (header = true)"))
    arrive(tmp_path, "1.csv", "t,a\n1,1\n2,x\n3\n4,4\n")
    report = admit(app, "s", spark)
    assert (admitted(app), report.quarantined["malformed record"]) == ([(1, 1), (4, 4)], 2)
    assert [json.loads(row)["__malformed"] for _, row in kept_out(app)] == ["2,x", "3"]


@pytest.mark.parametrize(
    ("options", "text", "found", "aside"),
    [
        # Spark's own reader takes the first value of a line, or of a file, and says nothing of what follows it
        ("", '{"t": 1, "a": 1}{"t": 2, "a": 2}\n', [], ['{"t": 1, "a": 1}{"t": 2, "a": 2}']),
        ("", '{"t": 1, "a": 1} more\n{"t": 2, "a": 2}]}\nnull\n,\n', [], None),
        ("multiLine = true", '{"t": 1, "a": 1}\n{"t": 2, "a": 2}\n', [], ['{"t": 1, "a": 1}\n{"t": 2, "a": 2}\n']),
        ("multiLine = true", '[{"t": 1,\n"a": 1},\n{"t": 2, "a": 2}]', [(1, 1), (2, 2)], []),
        ("", '[{"t": 1, "a": 1}, {"t": 2, "a": 2}]\n[]\n  \n', [(1, 1), (2, 2)], []),
        ("", '[\n{"t": 1, "a": 1},\n{"t": 2, "a": 2}\n]\n', [(1, 1), (2, 2)], ["[", "]"]),
        ("", '[{"t": 1, "a": 1}, {"t": 2, "a": "x"}]\n', [], ['[{"t": 1, "a": 1}, {"t": 2, "a": "x"}]']),
        ("allowComments = true", '{"t": 1, "a": 1} // one\n', [(1, 1)], []),
        ("lineSep = ';'", '{"t": 1, "a": 1};{"t": 2, "a": 2}', [(1, 1), (2, 2)], []),
        ("encoding = 'UTF-16LE', lineSep = '|'", '{"t": 1, "a": 1}|{"t": 2, "a": 2}', [(1, 1), (2, 2)], []),
    ],
)
def test_nothing_of_a_line_or_file_of_json_is_passed_over(
    spark, tmp_path: Path, options: str, text: str, found: list, aside: list | None
) -> None:
    app = opened(tmp_path, FLAT.format(format="json", options=f"OPTIONS ({options})" if options else ""))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_bytes(text.encode("UTF-16LE" if "UTF-16" in options else "UTF-8"))
    admit(app, "s", spark)
    assert admitted(app) == found
    texts = sorted(json.loads(row)["__malformed"] for _, row in kept_out(app))
    assert texts == sorted(text.splitlines() if aside is None else aside)


def test_bytes_that_are_no_text(spark, tmp_path: Path) -> None:
    declared = (
        "CREATE STREAM s FROM FORMAT '{}' PATH 'in' SCHEMA (t BIGINT, a STRING) TIMESTAMP BY t HEARTBEAT EACH BATCH;"
    )
    (tmp_path / "in").mkdir()
    for kind, text in {"json": b'{"t": 1, "a": "x\xff"}\n{"t": 2, "a": \xff}\n', "csv": b"1,x\xff\n\xff,2\n"}.items():
        (tmp_path / "in" / "1").write_bytes(text)
        (tmp_path / kind).mkdir()
        app = opened(tmp_path / kind, declared.format(kind))
        (tmp_path / kind / "in").symlink_to(tmp_path / "in")
        assert (admit(app, "s", spark).rows, admitted(app)) == (1, [(1, "x\ufffd")])
        assert "\ufffd" in kept_out(app)[0][1]


@pytest.mark.parametrize(
    ("header", "fits"),
    [("t,a", True), ("T,A", True), ("a,t", False), ("t,b", False), ("t", False), ("t,a,b", False), ("5,5", False)],
)
def test_a_header_of_csv_is_compared_with_the_schema(spark, tmp_path: Path, header: str, fits: bool) -> None:
    app = opened(tmp_path, FLAT.format(format="csv", options="OPTIONS (header = true)"))
    arrive(tmp_path, "1.csv", f"{header}\n1,2\n")
    if fits:
        assert (admit(app, "s", spark).rows, admitted(app)) == (1, [(1, 2)])
        return
    with pytest.raises(SweepAreaError, match=r"1.csv: .*eader.*enforceSchema = true.*in its place"):
        admit(app, "s", spark)
    arrive(tmp_path, "1.csv", "t,a\n3,4\n")
    assert (admit(app, "s", spark).rows, admitted(app)) == (1, [(3, 4)])


def test_xml_keeps_what_is_malformed(spark, tmp_path: Path) -> None:
    app = opened(tmp_path, FLAT.format(format="xml", options="OPTIONS (rowTag = 'r')"))
    arrive(tmp_path, "1.xml", "<l>\n<r><t>1</t><a>1</a></r>\n<r><t>2</t><a>x</a></r>\n</l>\n")
    assert (admit(app, "s", spark).quarantined["malformed record"], admitted(app)) == (1, [(1, 1)])
    assert "<t>2</t><a>x</a>" in kept_out(app)[0][1]


def laid(folder: Path, *names: str) -> None:
    """Files of one record each, whose instants are their numbers in ``names``."""
    for i, name in enumerate(names):
        (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "in" / name).write_text(f'{{"t": {i}, "a": {i}}}\n')


def test_files_in_folders_below_are_told_of_and_read_when_asked(spark, tmp_path: Path) -> None:
    laid(tmp_path, "a.json", "below/b.json")
    app = opened(tmp_path, FLAT.format(format="json", options=""))
    told: list[str] = []
    admit(app, "s", spark, tell=told.append)
    assert admitted(app) == [(0, 0)]
    assert any("'below/b.json'" in text and "recursiveFileLookup" in text for text in told)
    (tmp_path / "other").mkdir()
    app = opened(tmp_path / "other", FLAT.format(format="json", options="OPTIONS (recursiveFileLookup = true)"))
    (tmp_path / "other" / "in").symlink_to(tmp_path / "in")
    admit(app, "s", spark)
    assert admitted(app) == [(0, 0), (1, 1)]


def test_partitions_give_their_values_and_bear_no_other_files_beside_them(spark, tmp_path: Path) -> None:
    app = opened(tmp_path, FLAT.format(format="json", options=""))
    laid(tmp_path, "a=7/0.json", "a=8/1.json")
    admit(app, "s", spark)
    assert admitted(app) == [(0, 7), (1, 8)]
    laid(tmp_path, "a=7/2.json", "stray.json")
    with pytest.raises(SweepAreaError, match=r"partitions by a, but 'stray.json' lies elsewhere.*recursiveFileLookup"):
        admit(app, "s", spark)
    (tmp_path / "in" / "stray.json").rename(tmp_path / "in" / "a=8" / "stray.json")
    assert admit(app, "s", spark).rows == 2


def test_a_path_that_names_a_file(spark, tmp_path: Path) -> None:
    laid(tmp_path, "a.json", "b.json")
    app = opened(tmp_path, FLAT.format(format="json", options="").replace("'in'", "'in/b.json'"))
    with pytest.raises(SweepAreaError, match=r"in/b.json is a file.* PATH '.*/in'.*pathGlobFilter = 'b.json'"):
        admit(app, "s", spark)
    app = opened(tmp_path, FLAT.format(format="json", options="OPTIONS (pathGlobFilter = 'b.json')"))
    assert [admit(app, "s", spark).rows for _ in range(2)] == [1, 0]
    assert admitted(app) == [(1, 1)]


@pytest.mark.parametrize("path", ["in", "in/*.json", "{in,other}/[a-d]*"])
def test_a_wildcard_in_the_name_of_a_file_doubles_nothing(spark, tmp_path: Path, path: str) -> None:
    app = opened(tmp_path, FLAT.format(format="json", options="").replace("'in'", f"'{path}'"))
    laid(tmp_path, "a?b.json", "axb.json", "c.json")
    (tmp_path / "in" / "e*").write_text("") if path != "in" else None
    with pytest.raises(SweepAreaError, match=r": '(in/)?a\?b.json' of .* Rename it"):
        admit(app, "s", spark)
    (tmp_path / "in" / "a?b.json").rename(tmp_path / "in" / "d.json")
    admit(app, "s", spark)
    assert admitted(app) == [(0, 0), (1, 1), (2, 2)]


def test_a_parquet_source_is_admitted(spark, tmp_path: Path) -> None:
    app = opened(tmp_path, FLAT.format(format="parquet", options=""))
    (tmp_path / "in").mkdir()
    schema = app.sources.table("s").schema()
    for i in (1, 2):
        parquet.write_table(pa.table({"t": [i, i], "a": [i, i]}, schema=schema), tmp_path / "in" / f"{i}.parquet")
        assert admit(app, "s", spark).rows == 2
    assert admitted(app) == [(1, 1), (1, 1), (2, 2), (2, 2)]


def test_a_source_that_is_no_folder_of_files(spark, tmp_path: Path) -> None:
    text = (
        "CREATE STREAM s FROM FORMAT 'rate-micro-batch' OPTIONS (rowsPerBatch = 5, startTimestamp = 1000)"
        " TIMESTAMP BY timestamp HEARTBEAT EACH BATCH;"
    )
    app = opened(tmp_path, text)
    assert [admit(app, "s", spark).rows for _ in range(2)] == [5, 5]
    values = sorted(r["value"] for r in DeltaLog(app.layout.admitted("s")).read().to_pylist())
    assert values == list(range(10))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("'json'", "'jsno'", "s: Spark knows no source named jsno"),
        ("PATH 'in'", "PATH 'nowhere'", r"s, reading its source FROM FORMAT: \[PATH_NOT_FOUND\]"),
        (
            "SCHEMA",
            "OPTIONS (mode = failfast) SCHEMA",
            r"s, reading its source FROM FORMAT: a record .* under mode = FAILFAST, in .*1.json: .*in its place",
        ),
        ("SCHEMA", "OPTIONS (multiLine = maybe) SCHEMA", r"s, reading its source FROM FORMAT: .*maybe"),
        ("a INT", "a INTERVAL DAY", "column a of its SCHEMA"),
        ("a INT", "__a INT", "begin with two underscores"),
    ],
)
def test_what_cannot_be_read_is_told_and_admits_nothing(spark, tmp_path: Path, old: str, new: str, says: str) -> None:
    arrive(tmp_path, "1.json", '{"t": 1, "a": "x"}\n')
    text = FLAT.format(format="json", options="").replace(old, new).replace("CONSTRAINT c EXPECT (a <> 13)", "")
    app = opened(tmp_path, text)
    with pytest.raises(SweepAreaError, match=says) as caught:
        admit(app, "s", spark)
    assert "Traceback" not in str(caught.value)
    assert not DeltaLog(app.layout.admitted("s")).exists()


KILLED = """
import sys
from pathlib import Path
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark.session import spark_session

with spark_session() as spark:
    admit(Application.open(Path(sys.argv[1]) / "app", sys.argv[1]), "s", spark)
"""


@pytest.mark.slow
@pytest.mark.parametrize("point", ["format.read:s/landing", "format.landed:s/landing", "publish.staged"])
def test_a_run_that_is_killed_between_reading_and_the_ledger_doubles_and_loses_nothing(
    spark, tmp_path: Path, point: str
) -> None:
    app = opened(tmp_path, FLAT.format(format="json", options="OPTIONS (maxFilesPerTrigger = 1)"))
    for i in range(3):
        arrive(tmp_path, f"{i}.json", f'{{"t": {i}, "a": {i}}}\n')
    environment = {**os.environ, "SWEEPAREA_CRASH_AT": point, "SWEEPAREA_SPARK_MASTER": "local[1]"}
    environment["SWEEPAREA_RUN"] = str(tmp_path / "run")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], env=environment, cwd=settings.source_root(), timeout=300
    )
    assert done.returncode == -signal.SIGKILL
    assert admitted(app) == []
    admit(app, "s", spark)
    assert admitted(app) == [(0, 0), (1, 1), (2, 2)]
    assert admit(app, "s", spark).versions == 0


def test_relations_from_files(spark, tmp_path: Path) -> None:
    arrive(tmp_path, "1.json", '{"op": "I", "at": 1, "k": "a"}\n{"op": "U", "at": 2, "k": 3, "v": "x"}\n')
    app = opened(
        tmp_path,
        "CREATE RELATION r FROM FORMAT 'json' PATH 'in' SCHEMA (op STRING, at BIGINT, k STRING, v INT)"
        " CHANGES BY (op, at) KEY (k) HEARTBEAT FOR at AS at;"
        "CREATE RELATION fixed FROM FORMAT 'json' PATH 'in' SCHEMA (k STRING, v INT);",
    )
    for name in ("r", "fixed"):
        report = admit(app, name, spark)
        assert (report.rows, report.quarantined["malformed record"]) == (1, 1)
        [row] = DeltaLog(app.layout.quarantine(name)).read().to_pylist()
        assert json.loads(json.loads(row["__row"])["__malformed"])["v"] == "x"


def test_a_colon_stale_check_sums_and_nanoseconds_get_advice_that_helps(spark, tmp_path: Path) -> None:
    app = opened(tmp_path, STREAM.format(format="json", options=""))
    arrive(tmp_path, "10:30.json", '{"t": 1, "a": 1}\n')
    with pytest.raises(SweepAreaError, match=r"'10:30\.json' of .* colon .*Rename it"):
        admit(app, "s", spark)
    (tmp_path / "in" / "10:30.json").rename(tmp_path / "in" / "a.json")
    (tmp_path / "in" / ".a.json.crc").write_bytes(b"crc\x00\x00\x00\x02\x00\x12\x34\x56\x78")
    with pytest.raises(SweepAreaError, match=r"in/\.a\.json\.crc are those of other bytes.* remove that \.crc file"):
        admit(app, "s", spark)
    (tmp_path / "in" / ".a.json.crc").unlink()
    assert admit(app, "s", spark).rows == 1
    (tmp_path / "fine").mkdir()
    fine = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))
    parquet.write_table(pa.table({"t": [1], "n": fine}), tmp_path / "fine" / "f.parquet", version="2.6")
    text = (
        "CREATE STREAM s FROM FORMAT 'parquet' PATH 'fine' SCHEMA (t BIGINT, n {}) TIMESTAMP BY t HEARTBEAT FOR t AS t;"
    )
    for folder, kind in (("one", "TIMESTAMP_NTZ"), ("two", "BIGINT")):
        (tmp_path / folder).mkdir()
        (tmp_path / "fine").rename(tmp_path / folder / "fine")
        app = opened(tmp_path / folder, text.format(kind))
        if kind == "BIGINT":
            admit(app, "s", spark)
            assert DeltaLog(app.layout.admitted("s")).read().column("n").to_pylist() == [1_700_000_000_123_456_789]
        else:
            with pytest.raises(SweepAreaError, match=r"Declare the column BIGINT.*nanoseconds too"):
                admit(app, "s", spark)
        (tmp_path / folder / "fine").rename(tmp_path / "fine")
