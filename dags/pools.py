"""Makes Airflow's pools that settings name, with the slots that ``pool.slots`` says: a task whose pool is not there
waits for ever, and Airflow says so in its scheduler's log alone.

``make up`` leaves a supervisor behind that runs this when an application's files have changed. A pool that somebody
else made is left as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Protocol

from sweeparea.dags.model import ApplicationDags, load_all
from sweeparea.infra.errors import exit_code_of
from sweeparea.infra.services.airflow_client import AirflowClient

OURS = "made by SweepArea: a setting pool names it"
DEFAULT_SLOTS = 2


class Pools(Protocol):
    """What is asked of Airflow."""

    def pools(self) -> list[dict[str, object]]: ...

    def make_pool(self, name: str, slots: int, description: str) -> None: ...

    def change_pool(self, name: str, slots: int) -> None: ...


def wanted(applications: Iterable[ApplicationDags]) -> dict[str, int]:
    """The pools that tasks of applications use, with their slots: the greatest number where several name one."""
    found: dict[str, int] = {}
    for application in applications:
        used = [application.scheduling, *(query.scheduling for query in application.queries.values())]
        for scheduling in used:
            if scheduling.pool is not None:
                slots = application.pool_slots or DEFAULT_SLOTS
                found[scheduling.pool] = max(found.get(scheduling.pool, 0), slots)
    return found


def make(slots: dict[str, int], airflow: Pools) -> list[str]:
    """Makes what is missing, and gives pools that were made here other slots; says what was done."""
    there = {str(pool["name"]): pool for pool in airflow.pools()}
    done = []
    for name, count in slots.items():
        pool = there.get(name)
        if pool is None:
            airflow.make_pool(name, count, OURS)
            done.append(f"pool {name}: made, with {count} slots")
        elif pool.get("description") == OURS and pool["slots"] != count:
            done.append(f"pool {name}: {count} slots, had {pool['slots']}")
            airflow.change_pool(name, count)
    return done


def main() -> int:
    """``python -m sweeparea.dags.pools``: once, for all applications that can be loaded."""

    def run() -> None:
        slots = wanted(load_all()[0])
        for line in make(slots, AirflowClient()) if slots else []:
            print(line, flush=True)

    return exit_code_of(run, "pools that were made stay")


if __name__ == "__main__":
    sys.exit(main())
