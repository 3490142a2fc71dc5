"""The data folder and the sources on an object store: the same jobs, commits by conditional put."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from sweeparea.infra import settings, storage
from sweeparea.infra.errors import SetupError
from sweeparea.spark_jobs.cli import main
from sweeparea.tables.delta_log import DeltaLog
from sweeparea.tables.layout import Layout
from sweeparea.tables.ledger import Ledger
from tests.s3.conftest import KEYS

pytestmark = [pytest.mark.slow, pytest.mark.spark]

COMMITS = 12


def test_of_two_committers_one_wins_each_version(bucket: str) -> None:
    folder = f"{bucket}/race"
    log = DeltaLog(f"{folder}/raced")
    log.create(pa.schema([("who", pa.string()), ("i", pa.int64())]), name="raced", description="by two processes")
    Ledger(folder).create()
    command = [sys.executable, "-m", "tests.s3.racer", folder]
    racers = [
        subprocess.Popen([*command, name, str(COMMITS)], stdout=subprocess.PIPE, text=True, cwd=settings.source_root())
        for name in ("a", "b")
    ]
    conflicts = sum(int(racer.communicate(timeout=300)[0]) for racer in racers)
    assert [racer.returncode for racer in racers] == [0, 0]
    assert conflicts > 0
    assert log.version() == 2 * COMMITS
    rows = sorted((row["who"], row["i"]) for row in log.read().to_pylist())
    assert rows == [(name, i) for name in ("a", "b") for i in range(1, COMMITS + 1)]
    assert {name: row.seq for name, row in Ledger(folder).head().items()} == {"a": COMMITS, "b": COMMITS}


def test_commits_that_would_not_be_atomic_are_refused(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", "true")
    with pytest.raises(SetupError, match="overwrite each other's commits"):
        DeltaLog(f"{bucket}/unsafe")


CQL = """
CREATE STREAM s FROM DELTA '{bucket}/source' TIMESTAMP BY t HEARTBEAT FOR t AS t;
CREATE STREAM j FROM FORMAT 'json' PATH '{bucket}/in' SCHEMA (t BIGINT, k STRING) TIMESTAMP BY t HEARTBEAT FOR t AS t;
CREATE CONTINUOUS QUERY q AS SELECT s.k, COUNT(*) AS n, SUM(s.v) AS v FROM s [RANGE 100], j [RANGE 100]
  WHERE s.k = j.k GROUP BY s.k;
"""


def test_the_jobs_with_everything_on_s3(bucket: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "app.cql").write_text(CQL.format(bucket=bucket))
    (folder / "sweeparea.toml").write_text(f'default = "s3"\n[s3]\ndata = "{bucket}/data"\n')
    fs, base = storage.filesystem(bucket)
    os.environ["SWEEPAREA_SPARK_MASTER"] = "local[2]"
    app = str(folder)
    for i in (1, 2):
        rows = pa.table({"t": [i, i], "k": ["a", "b"], "v": [0.1, 0.2]})
        write_deltalake(f"{bucket}/source", rows, mode="append")
        with fs.open_output_stream(f"{base}/in/{i}.json") as sink:
            sink.write(f'{{"t": {i}, "k": "a"}}\nbad {i}\n'.encode())
        assert main(["admit", app]) == 0
        assert main(["process", app]) == 0
    layout = Layout(f"{bucket}/data")
    rows = [row for row in DeltaLog(layout.result("q")).read().to_pylist() if row["valid_to"] is None]
    assert [(row["k"], row["n"]) for row in rows] == [("a", 4)]
    assert DeltaLog(layout.quarantine("j")).read().num_rows == 2
    assert main(["status", app]) == 0
    assert main(["sql", app, "-c", "SELECT n FROM q__current"]) == 0
    assert main(["drop", app, "q"]) == 0
    assert not DeltaLog(layout.result("q")).exists()
    told = capfd.readouterr()
    assert "4" in told.out
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in told.out + told.err
