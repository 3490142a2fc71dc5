"""The same jobs on a standalone cluster: a master and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweeparea.infra import settings
from sweeparea.infra.services import spark_cluster
from sweeparea.spark_jobs.application import Application
from sweeparea.tables.log.delta_log import DeltaLog
from tests.spark_jobs.test_connect import CASE, LANDED, RELATION, arrive

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_replay_admit_and_process_on_a_cluster(tmp_path: Path):
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(CASE) + "\n")
    app = arrive(tmp_path)
    with spark_cluster.running(tmp_path / "run") as address:
        environment = {k: v for k, v in os.environ.items() if k != "SPARK_REMOTE"}
        environment |= {"SWEEPAREA_SPARK_MASTER": address, "SWEEPAREA_RUN": str(tmp_path / "run")}

        def run(*arguments: str) -> str:
            done = subprocess.run(
                [sys.executable, "-m", "sweeparea", *arguments],
                capture_output=True, text=True, timeout=300, env=environment, cwd=settings.source_root(),
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert json.loads(run("replay", str(cases)))["relation"] == RELATION
        run("admit", str(app), "--data", str(tmp_path))
        run("process", str(app), "--data", str(tmp_path))
        worked = [path for i in range(2) for path in (tmp_path / "run" / f"worker-{i}").glob("app-*")]
        assert len({path.parent.name for path in worked}) == 2
    result = DeltaLog(Application.open(app, tmp_path).layout.result("q")).read().to_pylist()
    assert [(r["k"], r["n"]) for r in result if r["valid_to"] is None] == LANDED
