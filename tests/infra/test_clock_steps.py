"""A clock that was set back: noticed by one that nobody sets, and what Airflow dated into the future is let go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sweeparea.infra.services.clock_steps import Clock, mend
from tests.infra.test_supervisor import World

NOW = datetime(2026, 5, 6, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def test_only_a_step_back_is_noticed_and_once():
    at = {"wall": 1000.0, "steady": 50.0}
    clock = Clock(lambda: at["wall"], lambda: at["steady"])
    steps = []
    for wall in (5, 86_400, 5 - 86_400, 5, 5 - 59, 5 - 61, 5 - 7200, 5 + 7200, 5):
        at["wall"] += wall
        at["steady"] += 5
        steps.append(clock.set_back())
    assert steps == [0, 0, 86_400, 0, 0, 61, 7200, 0, 0]


class Airflow:
    """Runs and tasks by REST, as far as they are asked for."""

    def __init__(self, runs: list[dict[str, Any]], tasks: list[dict[str, Any]]) -> None:
        self.runs, self.tasks, self.done = runs, tasks, list[tuple[str, ...]]()

    def pages(self, path: str, key: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        if key == "dags":
            assert params["tags"] == ["sweeparea"]
            return [{"dag_id": "shop__q"}, {"dag_id": "shop__r"}]
        if key == "dag_runs":
            return [run for run in self.runs if run["run_after"] >= params["run_after_gte"]]
        return [t for t in self.tasks if t["state"] in params["state"] and t["end_date"] >= params["end_date_gte"]]

    def delete_run(self, dag_id: str, run_id: str) -> None:
        self.done.append(("delete", dag_id, run_id))

    def clear(self, dag_id: str, run_id: str, task_ids: Sequence[str]) -> None:
        self.done.append(("clear", dag_id, run_id, *task_ids))


def run(dag_id: str, run_id: str, after: datetime, queued: datetime | None) -> dict[str, Any]:
    at = None if queued is None else queued.isoformat()
    return {"dag_id": dag_id, "dag_run_id": run_id, "run_after": after.isoformat(), "queued_at": at}


def task(dag_id: str, run_id: str, state: str, ended: datetime) -> dict[str, Any]:
    return {"dag_id": dag_id, "dag_run_id": run_id, "task_id": "t", "state": state, "end_date": ended.isoformat()}


def test_what_a_clock_that_was_ahead_has_dated_is_let_go_and_nothing_else():
    runs = [
        run("shop__q", "made ahead", NOW + DAY, NOW + DAY),
        run("shop__q", "planned", NOW + DAY, NOW),  # by a person, for tomorrow
        run("shop__q", "now", NOW, NOW),
        run("others", "made ahead", NOW + DAY, NOW + DAY),
    ]
    tasks = [
        task("shop__q", "made ahead", "up_for_retry", NOW + DAY),  # goes with its run
        task("shop__r", "before", "up_for_retry", NOW + DAY),
        task("shop__r", "slice", "up_for_reschedule", NOW + DAY),
        task("shop__r", "fresh", "up_for_retry", NOW),
        task("others", "x", "up_for_retry", NOW + DAY),
    ]
    airflow = Airflow(runs, tasks)
    told = mend(airflow, NOW)
    assert airflow.done == [
        ("delete", "shop__q", "made ahead"),
        ("clear", "shop__r", "before", "t"),
        ("clear", "shop__r", "slice", "t"),
    ]
    assert len(told) == 3
    assert "run made ahead of shop__q: removed" in told[0]


def test_the_supervisor_starts_anew_what_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    world = World(monkeypatch, tmp_path, "db", "scheduler", "triggerer")
    world.supervisor.again(["triggerer", "scheduler"], "the clock was set back by 3600 s")
    assert world.done == ["stop scheduler", "start scheduler", "stop triggerer", "start triggerer"]
    assert "scheduler: the clock was set back by 3600 s; starting it again" in world.said
    assert world.looks(60) == []
