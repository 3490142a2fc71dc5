"""What ``make up`` leaves behind to keep its services alive: one that has ended or no longer answers is started again.

Every few seconds each service is looked at, those that others need first. One that ended is started at once, and after
pauses that double where it ends again and again; one that lives and gives no answer for ``WEDGED`` seconds is ended
first. While `make up` or `make stop` is at work it does nothing. What it did stands in its log and in
``<run>/supervisor.json``, which ``make status`` shows. When an application's files have changed it makes the pools of
Airflow's that they name (``dags/pools.py``), and when the Spark server has
been started it warms it up (``spark_jobs/cases/warm_up.py``). A clock that was set back would let Airflow stand still:
see ``clock_steps.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sweeparea.infra import settings
from sweeparea.infra.errors import SweepAreaError
from sweeparea.infra.services import airflow, clock_steps, postgres, processes, spark_connect

NAME = "supervisor"
EVERY = 5.0
WEDGED = 90.0
"""Seconds without an answer: Airflow's components need up to 40 to say that they are there."""
LONGEST_PAUSE = 60.0
ORPHANS_EVERY = 30.0
"""Seconds between two looks for workers of a scheduler that was killed."""
STEADY = 300.0
"""Seconds after which a service that was started again counts as well."""


@dataclass(frozen=True)
class Supervised:
    """A service. ``start`` starts it and need not wait; ``answers``: whether it serves, None where what would tell does
    not answer itself.
    """

    name: str
    start: Callable[[], object]
    answers: Callable[[], bool | None]


@dataclass
class Care:
    """What was done for a service: how often it was started again, when last, and why."""

    restarts: int = 0
    last: str = ""
    why: str = ""
    pause: float = field(default=0.0, repr=False)
    not_before: float = field(default=0.0, repr=False)
    silent_since: float | None = field(default=None, repr=False)

    @property
    def words(self) -> str:
        """For ``make status``; empty where nothing was done."""
        times = "once" if self.restarts == 1 else f"{self.restarts} times"
        return f"started again {times}, last at {self.last}: {self.why}" if self.restarts else ""


class Supervisor:
    """Looks after services; ``tell`` gets a line for all that is done."""

    def __init__(
        self,
        services: Sequence[Supervised],
        run_folder: Path,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.services, self.run_folder, self.tell, self.clock = services, run_folder, tell, clock
        self.care = {service.name: Care() for service in services}

    def look(self) -> None:
        """One look at all of them."""
        for service in self.services:
            reason = self._reason(service)
            if reason:
                self._restart(service, reason)

    def again(self, names: Iterable[str], reason: str) -> None:
        """Starts some of them again, whatever they say of themselves."""
        for service in self.services:
            if service.name in set(names):
                self._restart(service, reason)

    def _reason(self, service: Supervised) -> str:
        """Why a service has to be started again; empty: it has not, or not yet."""
        care, now = self.care[service.name], self.clock()
        if processes.running(service.name, self.run_folder) is None:
            return "it had ended" if now >= care.not_before else ""
        if service.answers() is not False:
            care.silent_since = None
            if now >= care.not_before + STEADY:
                care.pause = 0.0
            return ""
        if care.silent_since is None:
            care.silent_since = now
        silent = now - care.silent_since
        return f"it gave no answer for {silent:.0f} s" if silent >= WEDGED else ""

    def _restart(self, service: Supervised, reason: str) -> None:
        care = self.care[service.name]
        self.tell(f"{service.name}: {reason}; starting it again")
        processes.stop(service.name, self.run_folder, grace=10.0)
        try:
            service.start()
        except (SweepAreaError, OSError) as error:
            self.tell(f"{service.name}: {error}")
        care.restarts += 1
        care.last, care.why = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"), reason
        care.pause = min(LONGEST_PAUSE, 2 * care.pause or EVERY)
        care.not_before, care.silent_since = self.clock() + care.pause, None
        kept = {name: {k: asdict(c)[k] for k in ("restarts", "last", "why")} for name, c in self.care.items()}
        fresh = file(self.run_folder).with_suffix(".new")
        fresh.write_text(json.dumps(kept))
        fresh.replace(file(self.run_folder))


def file(run_folder: Path | None = None) -> Path:
    """Where the supervisor writes what it did."""
    return (run_folder or settings.run_folder()) / "supervisor.json"


def told(run_folder: Path | None = None) -> dict[str, str]:
    """By service what was done for it, in words."""
    try:
        found = json.loads(file(run_folder).read_text())
    except (OSError, ValueError):
        return {}
    return {name: Care(**care).words for name, care in found.items()}


def service() -> processes.Service:
    """The supervisor as a service itself."""
    return processes.Service(
        NAME,
        [sys.executable, "-m", "sweeparea.infra.services.supervisor"],
        {**os.environ, **settings.environment()},
        settings.run_folder(),
    )


def installed() -> list[Supervised]:
    """The services of this installation, those that others need first."""
    asked: dict[str, Any] = {"at": -EVERY}

    def health() -> dict[str, str]:
        if time.monotonic() - asked["at"] >= EVERY / 2:  # once for all in one look
            asked["health"] = airflow.health()
            asked["at"] = time.monotonic()
        return asked["health"]

    def healthy(name: str) -> bool | None:
        return health()[name] == "healthy" if name in health() else None

    def component(wanted: processes.Service) -> Supervised:
        key = airflow.health_key(wanted.name)
        serves = (lambda: bool(health())) if wanted.name == airflow.API_SERVER else partial(healthy, key)
        return Supervised(wanted.name, lambda: _start_airflow(wanted.name), serves)

    return [
        Supervised(postgres.NAME, postgres.start, partial(healthy, "metadatabase")),
        Supervised(spark_connect.NAME, lambda: processes.start(spark_connect.service()), spark_connect.answers),
        *map(component, airflow.services()),
    ]


def _start_airflow(name: str) -> None:
    """Starts a component of Airflow's as it is to be now: users may have come since."""
    processes.start(next(service for service in airflow.services() if service.name == name))


class Chore:
    """A command that is run when one of some files has changed, and again until it succeeds, ``pause`` seconds apart.
    It runs beside; ``do`` returns at once.
    """

    def __init__(
        self,
        command: Sequence[str],
        files: Callable[[], Iterable[Path]],
        tell: Callable[[str], None],
        pause: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.command, self.files, self.tell, self.pause, self.clock = list(command), files, tell, pause, clock
        self._done: object = None
        self._at: object = None
        self._runs: subprocess.Popen[str] | None = None
        self._not_before = 0.0

    def do(self) -> None:
        """Begins it if it is due, and says what a run that has ended had to say."""
        if self._runs is not None:
            if self._runs.poll() is None:
                return
            said, self._runs, code = self._runs.communicate()[0].strip(), None, self._runs.returncode
            if said:
                self.tell(said)
            if code == 0:
                self._done = self._at
        now = self.clock()
        if now < self._not_before:
            return
        changed = sorted((str(path), path.stat().st_mtime_ns) for path in self.files() if path.is_file())
        if changed != self._done:
            self._at, self._not_before = changed, now + self.pause
            self._runs = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _definitions() -> Iterable[Path]:
    folder = settings.applications_folder()
    return (*folder.glob("*/*.cql"), *folder.glob("*/sweeparea.toml"))


def main() -> int:
    """Looks until it is ended."""

    def tell(text: str) -> None:
        print(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {text}", flush=True)

    file().unlink(missing_ok=True)
    supervisor = Supervisor(installed(), settings.run_folder(), tell)
    run_folder = settings.run_folder()
    chores = (
        Chore([sys.executable, "-m", "sweeparea.dags.pools"], _definitions, tell),
        Chore(
            [sys.executable, "-m", "sweeparea.spark_jobs.cases.warm_up"],
            lambda: [processes.pid_file(spark_connect.NAME, run_folder)],
            tell,
        ),
        Chore(
            [sys.executable, "-m", "sweeparea.infra.services.clock_steps"],
            lambda: [clock_steps.stamp(), processes.pid_file(airflow.API_SERVER, run_folder)],
            tell,
        ),
    )
    clock, seek = clock_steps.Clock(), 0.0
    while True:
        time.sleep(EVERY)
        try:
            with processes.lock("up", wait=False) as free:
                if free:
                    if back := clock.set_back():
                        supervisor.again(airflow.COMPONENTS, f"the clock was set back by {back:.0f} s")
                        clock_steps.stamp().write_text(f"{back:.0f}")
                    supervisor.look()
                    # all processes are gone through, so only where there may be one, and now and then
                    killed = supervisor.care["airflow-scheduler"].restarts
                    if killed and time.monotonic() >= seek:
                        seek = time.monotonic() + ORPHANS_EVERY
                        if gone := airflow.end_orphans():
                            tell(f"ended {gone} workers of a scheduler that had ended")
                    for chore in chores:
                        chore.do()
        except Exception as error:  # what it looks after is worth more than one look
            tell(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    sys.exit(main())
