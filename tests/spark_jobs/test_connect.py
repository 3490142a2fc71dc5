"""The same code through a Spark Connect server, as Airflow's tasks use it. In a process of its own, as a task is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweeparea.infra import settings, spark_connect

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


def test_replay_through_a_connect_server(tmp_path: Path):
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(CASE) + "\n")
    with spark_connect.running(tmp_path / "run") as address:
        environment = {k: v for k, v in os.environ.items() if k != "SWEEPAREA_SPARK_MASTER"}
        environment |= {"SPARK_REMOTE": address, "SWEEPAREA_RUN": str(tmp_path / "run")}
        command = [sys.executable, "-m", "sweeparea", "replay", str(cases)]
        for _ in range(2):  # the second client takes over the first one's leased session
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=300, env=environment, cwd=settings.source_root()
            )
            assert done.returncode == 0, done.stderr
            result = json.loads(done.stdout)
            assert result["relation"] == RELATION
        leases = list((tmp_path / "run" / "sessions").glob("*.lease"))
        assert len(leases) == 1
        assert leases[0].read_text()
