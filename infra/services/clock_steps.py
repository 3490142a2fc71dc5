"""A clock that was set back: Airflow would stand still until the clock is where it was, so the supervisor helps it on.

Airflow's processes compare instants with those that they noted before: by a clock that was ahead for a while they give
no sign of life and read no DAG file until it is there again. So they are started anew (``Clock``). What they have
written down is let go (``mend``): a run that waits for an instant of the clock that was ahead, a task that is to be
tried again then, the run by cron after which the next one is reckoned, signs of life that nobody gave. Runs carry no
authority: what is left to do wakes again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sweeparea.infra import settings
from sweeparea.infra.errors import exit_code_of
from sweeparea.infra.services import postgres
from sweeparea.infra.services.airflow_client import AirflowClient

if TYPE_CHECKING:
    from sqlalchemy import Engine

STEP = 60.0
"""Seconds: a clock that is set back by less only makes wait so long."""
TAG = "sweeparea"
"""What all our DAGs are tagged with; those of others are theirs."""
WAITING = ("up_for_retry", "up_for_reschedule")


class Clock:
    """Notices that the wall clock was set back, by one that nobody sets. Both in seconds."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self.wall, self.steady = wall, steady
        self.ahead = wall() - steady()

    def set_back(self) -> float:
        """By how many seconds it was set back since this was asked last; 0 where by less than ``STEP``."""
        before, self.ahead = self.ahead, self.wall() - self.steady()
        return before - self.ahead if before - self.ahead >= STEP else 0.0


class Runs(Protocol):
    """What is asked of Airflow."""

    def pages(self, path: str, key: str, params: dict[str, Any]) -> list[dict[str, Any]]: ...

    def delete_run(self, dag_id: str, run_id: str) -> None: ...

    def clear(self, dag_id: str, run_id: str, task_ids: Sequence[str]) -> None: ...


def mend(airflow: Runs, now: datetime) -> list[str]:
    """Lets go of what is dated into the future, among the runs and tasks of our DAGs; says what was done.

    A run is one that was queued, begun or ended by a clock that was ahead: one that somebody has only planned for later
    stays.
    """
    after = now + timedelta(seconds=STEP)
    ours = {dag["dag_id"] for dag in airflow.pages("/dags", "dags", {"tags": [TAG]})}
    done, gone = list[str](), set[tuple[str, str]]()
    later = {"run_after_gte": after.isoformat()}
    for run in airflow.pages("/dags/~/dagRuns", "dag_runs", later):
        dag_id, run_id = run["dag_id"], run["dag_run_id"]
        if dag_id in ours and any(_later(run.get(at), after) for at in ("queued_at", "start_date", "end_date")):
            airflow.delete_run(dag_id, run_id)
            gone.add((dag_id, run_id))
            done.append(f"run {run_id} of {dag_id}: removed, it was made while the clock was ahead")
    tried = {"state": list(WAITING), "end_date_gte": after.isoformat()}
    for task in airflow.pages("/dags/~/dagRuns/~/taskInstances", "task_instances", tried):
        dag_id, run_id = task["dag_id"], task["dag_run_id"]
        if dag_id in ours and (dag_id, run_id) not in gone:
            airflow.clear(dag_id, run_id, [task["task_id"]])
            done.append(f"task {task['task_id']} of {dag_id}, run {run_id}: tried again now, not when the clock says")
    return done


SIGNS_OF_LIFE = (("job", "latest_heartbeat"), ("task_instance", "last_heartbeat_at"))
"""Tables of Airflow's and the columns by which it tells that a process or a task is alive."""


def signs_of_life(engine: Engine) -> list[str]:
    """A sign of life of a clock that was ahead counts as one of now: Airflow has nothing that would take it back, and
    who has died would pass for alive until the clock is there.
    """
    from sqlalchemy import text

    done = list[str]()
    with engine.begin() as connection:
        for table, column in SIGNS_OF_LIFE:
            later = f"UPDATE {table} SET {column} = now() WHERE {column} > now() + make_interval(secs => :step)"
            if rows := connection.execute(text(later), {"step": STEP}).rowcount:
                done.append(f"{table}: {rows} signs of life of a clock that was ahead count as of now")
    return done


def _later(instant: str | None, than: datetime) -> bool:
    return instant is not None and datetime.fromisoformat(instant) > than


def stamp(run_folder: Path | None = None) -> Path:
    """A file that changes when the clock was set back."""
    return (run_folder or settings.run_folder()) / "clock-set-back"


def main() -> int:
    """``python -m sweeparea.infra.services.clock_steps``: once."""

    def run() -> None:
        from sqlalchemy import create_engine

        for line in signs_of_life(create_engine(postgres.url("psycopg2"))):
            print(line, flush=True)
        for line in mend(AirflowClient(), datetime.now(UTC)):
            print(line, flush=True)

    return exit_code_of(run, "what was let go stays gone")


if __name__ == "__main__":
    sys.exit(main())
