"""One application on a disk and on S3, through all that is done to it: the same tables after each step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweeparea.infra import settings
from sweeparea.infra.locations import Folder, folder
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.cli import main
from sweeparea.tables.faults import CRASH_AT
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.folders import filesystem, tables_in
from tests.faults import jobs
from tests.faults.state import CHANGING
from tests.spark_jobs import shop

pytestmark = [pytest.mark.slow, pytest.mark.spark]

CQL = (
    shop.STREAM.replace("  CONSTRAINT", "  LATE REPAIR WITHIN INTERVAL 1 HOUR\n  CONSTRAINT")
    + shop.QUERY.replace("CREATE C", "CREATE OR REPLACE C")
    + """
CREATE OR REPLACE CONTINUOUS QUERY busy AS SELECT shop, most FROM turnover WHERE n > 1;
CREATE CONTINUOUS QUERY ever START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT shop, COUNT(*) AS n, MAX(items) AS most FROM sales [RANGE UNBOUNDED] GROUP BY shop;
CREATE STREAM lately FROM DELTA 'source/sales' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND
  HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS RETAIN INTERVAL 2 MINUTES;
CREATE CONTINUOUS QUERY rate START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT COUNT(*) AS n FROM lately [RANGE INTERVAL 30 SECONDS];
"""
)
WIDER = CQL.replace("RANGE INTERVAL 60 SECONDS", "RANGE INTERVAL 30 SECONDS").replace(
    "COUNT(*) AS n FROM sales [RANGE INTERVAL 30", "COUNT(*) AS n, MIN(items) AS least FROM sales [RANGE INTERVAL 30"
)
DAYS: list[jobs.Day] = [
    [(0, "a", 1.5, 3), (5, "b", 2.5, 1), (9, "a", 0.25, 7), (30, "a", 4.0, 2), (31, "b", -1.0, 1)],
    [(70, "b", 1.0, 9), (150, "c", 8.0, 1)],
]
LATE: jobs.Day = [(20, "a", 0.5, 9), (33, "b", 16.0, 2)]
KILLED: dict[str, jobs.Day] = {
    "publish.applied:results/turnover": [(170, "a", 2.0, 4), (200, "c", 0.5, 6)],
    "publish.staged": [(230, "c", 2.0, 4), (260, "a", 0.5, 6)],
    "publish.ledger_committed": [(1000, "a", 0.125, 3), (1030, "c", 0.5, 8)],
}
"""Points at which a run is killed, and what had been sold before it."""


class Run:
    """The application in one place. ``steps``: what its tables held after each step."""

    def __init__(self, queries: Path, env: str, data: Folder) -> None:
        self.queries, self.env, self.data = queries, env, data
        self.steps: dict[str, dict[str, Any]] = {}

    def do(self, *words: str, code: int = 0) -> None:
        verb, *rest = words
        assert main([verb, str(self.queries), *rest, "--env", self.env]) == code, words

    def killed(self, point: str, *words: str) -> None:
        """A command in a process of its own that is killed at a point."""
        verb, *rest = words
        command = [
            sys.executable,
            "-m",
            "sweeparea.spark_jobs.commands.cli",
            verb,
            str(self.queries),
            *rest,
            "--env",
            self.env,
        ]
        ended = subprocess.run(
            command, env={**os.environ, CRASH_AT: point}, cwd=settings.source_root(), capture_output=True, timeout=300
        )
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()

    def application(self) -> Application:
        return Application.open(self.queries, env=self.env)

    def done(self, step: str) -> None:
        application = self.application()
        found: dict[str, Any] = {}
        for uri in tables_in(str(self.data)):
            table = uri.removeprefix(f"{self.data}/")
            if not table.startswith(("_sweeparea/", "source/")):
                found[table] = sorted(map(repr, DeltaLog(uri).read().to_pylist()))
        for name, row in application.ledger.head().items():
            info = {key: value for key, value in row.info.items() if key not in CHANGING}
            found[f"ledger of {name}"] = (row.seq, row.committed, row.pins, info)
        self.steps[step] = found

    def all(self) -> None:
        """All that is done to the application, in order."""
        (self.queries / "shop.cql").write_text(CQL)
        base = folder(str(self.data).removesuffix("/data"))
        for number, day in enumerate([*DAYS, LATE]):
            shop.sell(base, day)
            self.do("admit")
            self.do("process")
            self.done(f"day {number}")
        for point, day in KILLED.items():
            shop.sell(base, day)
            self.do("admit")
            self.killed(point, "process", "turnover")
            self.do("process")
            self.done(f"killed at {point}")
        shop.damage(self.application(), "turnover")
        self.do("process", "busy")
        self.done("damaged")
        self.do("backfill", "turnover", "--from", "2020-01-01 12:00:00")
        self.done("backfill")
        (self.queries / "shop.cql").write_text(WIDER)
        self.killed("replace.staged_areas", "apply")
        self.do("apply")
        self.do("process")
        self.done("replaced")
        self.do("maintain", "--retention", "1 hour")
        for uri in tables_in(str(self.data)):
            if "/_sweeparea/" not in uri and "/source/" not in uri:
                DeltaLog(uri).vacuum(0, orphans=True)  # as if days had gone by
        self.do("check")
        self.done("maintained")
        self.lose_a_sweep_area()
        self.do("check", code=1)
        self.do("check", "ever", "--rebuild")
        self.do("check")
        self.done("rebuilt")
        self.do("drop", "busy")
        self.do("run", "-c", "DROP CONTINUOUS QUERY ever")
        self.do("run", "-c", "DROP CONTINUOUS QUERY rate PURGE")
        self.done("dropped")

    def lose_a_sweep_area(self) -> None:
        layout = self.application().layout
        uri = next(u for u in tables_in(f"{self.data}/state/ever") if DeltaLog(u).files())
        assert uri.startswith(layout.state("ever", "x")[:-2])
        fs, base = filesystem(uri)
        for file in DeltaLog(uri).files():
            fs.delete_file(f"{base}/{file.path}")


def test_the_same_tables_on_a_disk_and_on_s3(bucket: str, tmp_path: Path) -> None:
    os.environ["SWEEPAREA_SPARK_MASTER"] = "local[2]"
    queries = tmp_path / "shop"
    queries.mkdir()
    disk, s3 = folder(tmp_path / "disk" / "data"), folder(f"{bucket}/same/data")
    (queries / "sweeparea.toml").write_text(f'[disk]\ndata = "{disk}"\n[s3]\ndata = "{s3}"\n')
    there, here = Run(queries, "s3", s3), Run(queries, "disk", disk)
    here.all()
    there.all()
    assert here.steps.keys() == there.steps.keys()
    different = [
        (step, table, held.get(table), there.steps[step].get(table))
        for step, held in here.steps.items()
        for table in held.keys() | there.steps[step].keys()
        if held.get(table) != there.steps[step].get(table)
    ]
    assert different == []
    steps = here.steps
    assert steps["day 2"]["results/turnover__corrections"], "late elements have repaired results"
    assert steps["damaged"]["results/turnover"] != steps["backfill"]["results/turnover"]
    before = f"killed at {list(KILLED)[-1]}"
    assert steps["backfill"]["results/turnover"] == steps[before]["results/turnover"]
    assert steps["backfill"]["results/busy"] == steps[before]["results/busy"]
    assert len(steps["maintained"]["admitted/lately"]) < len(steps["maintained"]["admitted/sales"])
    assert steps["rebuilt"]["results/ever"] == steps["maintained"]["results/ever"]
    for run in (here, there):
        left = {uri.removeprefix(f"{run.data}/") for uri in tables_in(str(run.data))}
        assert not [t for t in left if t.startswith(("results/busy", "results/ever", "results/rate", "state/ever"))]
        aside = sorted(t for t in left if t.startswith("_sweeparea/dropped/ever-"))
        assert [t.split("/", 3)[3] for t in aside if "/results/" in t] == ["results/ever", "results/ever__corrections"]
        kept = sorted(map(repr, DeltaLog(f"{run.data}/{aside[0]}").read().to_pylist()))
        assert kept == steps["rebuilt"]["results/ever"]
