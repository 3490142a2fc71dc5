"""The data folder and the sources on an object store: the same jobs, commits by conditional put."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from sweeparea.infra import settings, storage
from sweeparea.infra.errors import SetupError
from sweeparea.spark_jobs.admission.sources import source_rows
from sweeparea.spark_jobs.commands.cli import main
from sweeparea.tables.layout import Layout
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.log.folders import files_in, folders_in, has_folder, tables_in
from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from sweeparea.tables.publication.retention import left_over
from sweeparea.tables.sources.source import SourceTable
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
        subprocess.Popen(
            [*command, name, str(COMMITS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=settings.source_root(),
        )
        for name in ("a", "b")
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
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


def test_what_runs_leave_is_removed_by_themselves_or_when_it_is_old(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object store has no locks that tell of the dead: a run that fails cleans up, for a killed one age decides."""
    data = f"{bucket}/left"
    ledger = Ledger(data)
    staged = [ledger.layout.result("q"), ledger.layout.result("q__istream"), ledger.layout.state("q", "area")]
    beside = [f"{ledger.layout.result('q_more')}/data/{'a' * 32}"]
    write_file(pa.table({"i": [1]}), beside[0].rpartition("/data/")[0], "a" * 32, "part")

    def written(attempt: str) -> list[str]:
        spilled = [ledger.layout.spill(attempt), ledger.layout.build("q", attempt)]
        for root in (*staged, *spilled):
            write_file(pa.table({"i": [1]}), root, attempt, "part")
        return [*(f"{root}/data/{attempt}" for root in staged), *spilled]

    failed = Publication(data, ledger, "q", NameKind.QUERY, "q-1")
    left = written(failed.begin())
    failed.abandon()
    assert not any(map(has_folder, left))
    assert all(map(has_folder, beside))
    killed = written("b" * 32)
    assert left_over(ledger.layout, 1) == []
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 8 * 86_400)
    assert left_over(ledger.layout, 1) == [f"_sweeparea/builds/q-{'b' * 32}", f"_sweeparea/spill/{'b' * 32}"]
    assert [has_folder(folder) for folder in killed] == [True, True, True, False, False]


def test_a_large_version_is_netted_by_spark(bucket: str, spark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_rows, "LARGE", 3)
    uri, spill = f"{bucket}/large/source", f"{bucket}/large/spill"
    write_deltalake(uri, pa.table({"i": list(range(10))}))
    write_deltalake(uri, pa.table({"i": list(range(2, 12))}), mode="overwrite")
    rows = pa.concat_tables(source_rows.signed_rows(spark, SourceTable(uri), 1, spill)).to_pylist()
    assert sorted((row["i"], row["__n"]) for row in rows) == [(0, -1), (1, -1), (10, 1), (11, 1)]
    assert tables_in(spill) == []
    assert not [folder for folder in folders_in(spill) if files_in(folder)]


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
