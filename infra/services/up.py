"""``make up``, ``stop``, ``status``, ``clean``: everything that runs for an installation."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from sweeparea.infra import settings
from sweeparea.infra.errors import exit_code_of
from sweeparea.infra.services import airflow, postgres, processes, spark_connect, supervisor, users
from sweeparea.infra.setup.java import find_java

# the order of ending: who uses others first
ORDER = [
    supervisor.NAME,
    "airflow-triggerer",
    "airflow-scheduler",
    "airflow-dag-processor",
    airflow.API_SERVER,
    spark_connect.NAME,
    postgres.NAME,
]
# seconds between SIGTERM and SIGKILL: the triggerer waits ten for triggers that hold nothing worth waiting for
GRACE = {"airflow-triggerer": 3.0}


def say(text: str) -> None:
    """One line of progress."""
    print(f"[up] {text}", flush=True)


def up() -> None:
    """Start what does not run yet and wait until all of it serves."""
    begin = time.monotonic()
    with processes.lock("up"):
        check_ports()
        first = airflow.USER not in users.passwords(airflow.home())
        java = find_java()
        if java.note:
            say(java.note)
        if others := airflow.not_taken_over():
            say(f"not taken over, for this Airflow needs its own: {', '.join(others)}")
        before = {name for name in processes.services() if processes.running(name) is not None}
        new = [name for name in ORDER if name not in before]
        try:
            # the JVM and PostgreSQL with Airflow need each other only later
            jobs = (lambda: _start_spark(java), _start_airflow)
            _together(*jobs, interrupted=lambda: _end(new))
            processes.start(supervisor.service())
        except BaseException as error:
            ended = _end(new)
            if isinstance(error, KeyboardInterrupt):
                say("interrupted: what was started has been ended")
            elif ended:
                say(f"ended again: {', '.join(ended)}")
            raise
    say(f"all services run after {time.monotonic() - begin:.0f} s")
    say(f"Airflow: {settings.airflow_url()} user {airflow.USER}, password in {airflow.password_file()}")
    if first:
        say(f"the password, printed this once: {airflow.password()}")
    say(f"Spark Connect: {settings.spark_remote()}; end all with `make stop`")


def check_ports() -> None:
    """Both ports before anything starts, so that a taken one leaves nothing half started."""
    for name, port, variable in (
        (spark_connect.NAME, settings.spark_port(), settings.SPARK_PORT_VARIABLE),
        (airflow.API_SERVER, settings.airflow_port(), settings.AIRFLOW_PORT_VARIABLE),
    ):
        if processes.running(name) is None:
            processes.require_free_port(port, variable, name)


def _start_spark(java) -> None:
    service = spark_connect.service(java)
    _start([service], f"with Java {java.version} of {java.origin}")


def _start_airflow() -> None:
    begin = time.monotonic()
    if postgres.start():
        say(f"postgres: ready after {time.monotonic() - begin:.0f} s (unix socket in {postgres.socket_folder()})")
    else:
        say("postgres: runs already")
    begin = time.monotonic()
    airflow.prepare()
    if time.monotonic() - begin > 1:
        say(f"airflow: tables made in {time.monotonic() - begin:.0f} s")
    _start(airflow.services(), "")


def _start(services: list[processes.Service], how: str) -> None:
    """Start services, then wait for each: they start side by side."""
    begin = time.monotonic()
    started = {service.name: processes.start(service) for service in services}
    for service in services:
        if started[service.name]:
            processes.wait_ready(service, tell=say)
            say(f"{service.name}: ready after {time.monotonic() - begin:.0f} s {how}".rstrip())
        else:
            processes.wait_ready(service, tell=say)
            say(f"{service.name}: runs already")


def _together(*jobs: Callable[[], None], interrupted: Callable[[], object] = lambda: None) -> None:
    """Run the jobs side by side; the first error is raised when all have ended. On Ctrl-C ``interrupted`` is called
    until they have: a job that waits for a service fails when that has gone.
    """
    errors: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        alive = True
        while alive:
            interrupted()
            time.sleep(0.2)  # before one looks: a thread that has just been started may not be known as alive yet
            alive = any(thread.is_alive() for thread in threads)
        raise
    if errors:
        raise errors[0]


def stop() -> None:
    """End every service by its process id; those of Airflow side by side, PostgreSQL last."""
    with processes.lock("up"):
        ended = _end([*(name for name in processes.services() if name not in ORDER), *ORDER])
    print(f"[stop] ended {', '.join(ended)}" if ended else "[stop] nothing ran", flush=True)


def _end(names: list[str]) -> list[str]:
    """End these services, the one first that would start them again; returns those that ran."""
    ended: list[str] = []
    if supervisor.NAME in names and processes.stop(supervisor.NAME, grace=5.0):
        ended.append(supervisor.NAME)

    def end(name: str) -> None:
        if processes.stop(name, grace=GRACE.get(name, 20.0)):
            ended.append(name)

    _together(*(lambda name=name: end(name) for name in names if name not in (postgres.NAME, supervisor.NAME)))
    if "airflow-scheduler" in names:
        airflow.end_orphans(idle=False)
    if postgres.NAME in names and postgres.stop():
        ended.append(postgres.NAME)
    return ended


def clean() -> None:
    """End everything and delete what lies outside the run folder; ``make clean`` removes the folder itself."""
    stop()
    postgres.remove()


def status() -> int:
    """One line per service: process id, address, memory, and what was done for it. Returns 1 if one does not run, or
    does not answer.
    """
    import psutil

    health, care, ill = airflow.health(), supervisor.told(), 0
    for name in [*reversed(ORDER), *(n for n in processes.services() if n not in ORDER)]:
        found = processes.running(name)
        done = f"  ({care[name]})" if care.get(name) else ""
        if found is None:
            ill += 1
            print(f"{name:24} not running{done}")
            continue
        leader = psutil.Process(found.pid)
        size = sum(_memory(process) for process in [leader, *leader.children(recursive=True)])
        state = _state(name, health)
        ill += state in SILENT
        where = {spark_connect.NAME: settings.spark_remote(), airflow.API_SERVER: settings.airflow_url()}.get(name, "")
        print(f"{name:24} pid {found.pid:<8} {size >> 20:5} MB  {' '.join(filter(None, (where, state)))}{done}")
    return 1 if ill else 0


SILENT = ("does not answer", "unhealthy")


def _state(name: str, health: dict[str, str]) -> str:
    """What a service that lives says of itself, one of ``SILENT`` where that is nothing good."""
    if name == spark_connect.NAME:
        return "" if spark_connect.answers() else SILENT[0]
    if name == airflow.API_SERVER:
        return "" if health else SILENT[0]
    if name not in airflow.COMPONENTS:
        return ""
    return health.get(airflow.health_key(name), SILENT[0])


def _memory(process) -> int:
    try:
        # shared pages counted once, where the system tells
        info = process.memory_full_info()
        return getattr(info, "pss", info.uss)
    except Exception:
        return 0


def main(arguments: list[str]) -> int:
    """``python -m sweeparea.infra.services.up start|stop|status|clean``."""
    commands = {"start": up, "stop": stop, "status": status, "clean": clean}
    if len(arguments) != 1 or arguments[0] not in commands:
        print(f"usage: python -m sweeparea.infra.services.up {'|'.join(commands)}", file=sys.stderr)
        return 2
    return exit_code_of(commands[arguments[0]], "`make status` tells whether something still runs")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
