"""The same code through a Spark Connect server, as Airflow's tasks use it. In a process of its own, as a task is."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sweeparea.infra import settings
from sweeparea.infra.services import spark_connect
from sweeparea.spark_jobs.application import Application
from sweeparea.tables.log.delta_log import DeltaLog

pytestmark = pytest.mark.spark

CASE = {
    "name": "join and group",
    "streams": {"S": {"columns": {"k": "int", "v": "double"}, "rows": [[1, [1, 1e16]], [2, [1, 1.0]], [5, [2, 0.5]]]}},
    "relations": {"R": {"columns": {"k": "int", "c": "string"}, "changes": [[0, "+", [1, "x"]], [4, "+", [2, "y"]]]}},
    "query": "SELECT c, SUM(v) AS s FROM S [Range 3], R WHERE S.k = R.k GROUP BY c",
    "heartbeats": [1, 3, 9],
}
RELATION = [[1, 5, ["x", 1e16]], [5, 6, ["x", 1.0]], [5, 9, ["y", 0.5]]]
"""1e16 + 1.0 rounds to 1e16, so the row does not change at tick 2; 1e16 leaves at 5 without a trace."""


STREAM = """
CREATE STREAM s FROM FORMAT 'json' PATH 'in' SCHEMA (t BIGINT, k STRING) TIMESTAMP BY t HEARTBEAT FOR t AS t;
CREATE CONTINUOUS QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k;
"""
LANDED = [("a", 2)]


SESSIONS = """
from pyspark.sql import SparkSession
from sweeparea.spark_jobs.spark.session import spark_session
for _ in range(2):
    with spark_session() as spark:
        with spark_session() as inner:
            within = SparkSession.builder.getOrCreate().session_id == inner.session_id
        print(within, SparkSession.builder.getOrCreate().session_id == spark.session_id)
"""
"""Whether who asks Spark for a session gets the job's, whatever jobs the process has done before."""


def arrive(folder: Path) -> Path:
    """A small application over files of JSON, which the jobs have to land first; gives its folder."""
    (folder / "app").mkdir()
    (folder / "app" / "app.cql").write_text(STREAM)
    (folder / "in").mkdir()
    (folder / "in" / "1.json").write_text('{"t": 1, "k": "a"}\n{"t": 2, "k": "a"}\nno json\n')
    return folder / "app"


def test_jobs_through_a_connect_server(tmp_path: Path):
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(CASE) + "\n")
    app = arrive(tmp_path)
    with spark_connect.running(tmp_path / "run") as address:
        environment = {k: v for k, v in os.environ.items() if k != "SWEEPAREA_SPARK_MASTER"}
        environment |= {"SPARK_REMOTE": address, "SWEEPAREA_RUN": str(tmp_path / "run")}
        there = ["--data", str(tmp_path)]

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "sweeparea", *arguments]
            return subprocess.run(
                command, capture_output=True, text=True, timeout=300, env=environment, cwd=settings.source_root()
            )

        # each client takes over the leased session of the one before
        for arguments in (["replay", str(cases)], ["admit", str(app), *there], ["process", str(app), *there]):
            done = run(*arguments)
            assert done.returncode == 0, done.stderr
            if arguments[0] == "replay":
                assert json.loads(done.stdout)["relation"] == RELATION
        result = DeltaLog(Application.open(app, tmp_path).layout.result("q")).read().to_pylist()
        assert [(r["k"], r["n"]) for r in result if r["valid_to"] is None] == LANDED
        # what cannot be read is told by its name, whatever Java's stack trace holds
        (tmp_path / "in" / "2.json.gz").write_text("not compressed")
        broken = run("admit", str(app), *there)
        assert broken.returncode == 1
        assert "FAILED_READ_FILE" in broken.stderr
        assert "2.json.gz. Put a whole file in its place" in broken.stderr
        (tmp_path / "in" / "2.json.gz").write_bytes(gzip.compress(b'{"t": 3, "k": "b"}\n'))
        assert run("admit", str(app), *there).returncode == 0
        assert DeltaLog(Application.open(app, tmp_path).layout.admitted("s")).read().num_rows == 3
        leases = list((tmp_path / "run" / "sessions").glob("*/*.lease"))
        assert len(leases) == 1
        # which server it is of, and when that was started, so that another is asked anew
        assert re.search(r"^server sc://\S+ local-\d+$", leases[0].read_text(), re.MULTILINE)
        done = subprocess.run(
            [sys.executable, "-c", SESSIONS], capture_output=True, text=True, timeout=300, env=environment,
            cwd=settings.source_root(),
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "True True\n" * 2), done.stderr
