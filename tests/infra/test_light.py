"""What the base of the wheel is for works without the extra ``spark``: parsing, watching, showing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = """
import sys
sys.path.insert(0, {root!r})
for name in ("delta", "great_expectations", "grpc", "numba", "pyspark", "zstandard"):
    sys.modules[name] = None
from sweeparea.spark_jobs.commands.cli import main
import sweeparea.dags.model, sweeparea.dags.provider, sweeparea.dags.own_dags
import sweeparea.heartbeats.trigger, sweeparea.heartbeats.result_trigger
print([main([command, {app!r}]) for command in ("plan", "status", "process")])
"""
APPLICATION = """\
CREATE STREAM s FROM FORMAT 'json' PATH 'in' SCHEMA (t BIGINT, k STRING) TIMESTAMP BY t HEARTBEAT FOR t AS t;
CREATE CONTINUOUS QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k;
"""


def test_what_shows_and_schedules_needs_no_spark(tmp_path: Path):
    (tmp_path / "app" / ".data" / "in").mkdir(parents=True)
    (tmp_path / "app" / "app.cql").write_text(APPLICATION)
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path / "airflow"), "SWEEPAREA_SPARK_MASTER": "local[1]"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(root=str(ROOT), app=str(tmp_path / "app"))],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "[0, 0, 3]", (done.stdout, done.stderr)
    assert "s: not admitted yet" in done.stdout
    assert "which what computes needs: install sweeparea[spark]" in done.stderr
