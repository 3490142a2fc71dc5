"""Airflow as four processes on 127.0.0.1: api-server, scheduler (with its workers), dag-processor, triggerer.

Its home is ``<run>/airflow``. Secrets and the admin's random password are made once and kept there in files that only
the owner can read.
"""

from __future__ import annotations

import base64
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import psutil
import requests

from sweeparea.infra import machine, proxies, settings
from sweeparea.infra.errors import SetupError, exit_code_of
from sweeparea.infra.services import postgres, processes, users

USER = users.ADMIN
API_SERVER = "airflow-api-server"
COMPONENTS = {
    API_SERVER: ["api-server"],
    # their log servers would listen on all interfaces; logs are read from the shared folder
    "airflow-scheduler": ["scheduler", "--skip-serve-logs"],
    "airflow-dag-processor": ["dag-processor"],
    "airflow-triggerer": ["triggerer", "--skip-serve-logs"],
}
WORKER = "airflow worker -- LocalExecutor: "
"""How the title of a process begins that runs tasks for the scheduler, which started it."""
IDLE = "<idle>"
"""How it goes on while there is none."""
TUNABLE = {
    f"AIRFLOW__{name}"
    for name in (
        "CORE__PARALLELISM",
        "CORE__PLUGINS_FOLDER",
        "API__WORKERS",
        "DAG_PROCESSOR__REFRESH_INTERVAL",
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL",
        "DAG_PROCESSOR__PARSING_PROCESSES",
        "SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE",
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME",
        "WORKERS__MAX_FAILED_HEARTBEATS",
        "LOGGING__LOGGING_LEVEL",
    )
}
"""Of our own settings those that somebody's environment may set otherwise."""


def home(run_folder: Path | None = None) -> Path:
    """AIRFLOW_HOME."""
    return (run_folder or settings.run_folder()) / "airflow"


def password_file(run_folder: Path | None = None) -> Path:
    """The file with all users' passwords, as JSON ``{"admin": ..}``, mode 0600."""
    return home(run_folder) / "passwords.json"


def password(run_folder: Path | None = None) -> str:
    """The admin's password."""
    try:
        return users.passwords(home(run_folder))[USER]
    except KeyError as error:
        raise SetupError(
            f"{password_file(run_folder)} holds no password of {USER}. Run `make up` to make one."
        ) from error


def environment(run_folder: Path | None = None) -> dict[str, str]:
    """The environment of every Airflow process and of ``airflow`` on the command line."""
    folder = home(run_folder)
    address = settings.airflow_url()
    code = settings.source_root() or settings.root()
    foreign = machine.foreign_spark(os.environ)
    inherited = {k: v for k, v in os.environ.items() if k not in foreign and not k.startswith("AIRFLOW")}
    given = {k: v for k, v in os.environ.items() if k.startswith(("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_"))}
    inherited = machine.python_environment(inherited)
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    own = {
        "AIRFLOW_HOME": str(folder),
        "PATH": paths,
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": "2",
        "CORE__MP_START_METHOD": "fork",
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__DAGS_FOLDER": str(code / "dags" / "airflow"),
        # ours is found by its entry point
        "CORE__PLUGINS_FOLDER": str(folder / "plugins"),
        "CORE__AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": users.setting(folder),
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(password_file(run_folder)),
        "CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "CORE__FERNET_KEY": _secret(folder / "fernet.key", _fernet_key),
        "DATABASE__SQL_ALCHEMY_CONN": postgres.url("psycopg2", run_folder),
        "DATABASE__SQL_ALCHEMY_CONN_ASYNC": postgres.url("asyncpg", run_folder),
        "API__HOST": settings.HOST,
        "API__PORT": str(settings.airflow_port()),
        "API__BASE_URL": address,
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": _secret(folder / "jwt.secret", lambda: secrets.token_hex(64)),
        "DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
        "DAG_PROCESSOR__PARSING_PROCESSES": "1",
        # many live runs must not starve a backfill's
        "SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": "100",
        # an event, and each task that ends, waits half of it: a second was a seventh of a query's way to its result
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.25",
        "SCHEDULER__ENABLE_HEALTH_CHECK": "False",
        # an API server that is away for a while must not cost a running task its life
        "WORKERS__MAX_FAILED_HEARTBEATS": "40",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
        "LOGGING__LOGGING_LEVEL": "INFO",
    }
    named = {(f"AIRFLOW__{k}" if "__" in k else k): v for k, v in own.items()}
    # what somebody sets for Airflow holds, but where this installation would not be one any more
    named |= {k: v for k, v in given.items() if k.removeprefix("AIRFLOW__") not in own or k in TUNABLE}
    inherited = proxies.for_airflow(postgres.without_settings(inherited))
    return {**inherited, **settings.environment(), "SCARF_ANALYTICS": "false", **named}


def not_taken_over(run_folder: Path | None = None) -> list[str]:
    """Settings of Airflow's in this process's environment that do not hold, because this installation needs others."""
    taken = environment(run_folder)
    users_given = users.VARIABLE  # these come beside our own
    return sorted(
        name
        for name, value in os.environ.items()
        if name.startswith("AIRFLOW__") and name != users_given and taken.get(name) != value
    )


def end_orphans(run_folder: Path | None = None, idle: bool = True) -> int:
    """Ends the workers of a scheduler that was killed, which would wait for its tasks for ever; returns how many.
    ``idle``: those that are at work are left to end it.
    """
    wanted, ended = WORKER + (IDLE if idle else ""), 0
    for process in psutil.process_iter():
        try:
            if not " ".join(process.cmdline()).startswith(wanted) or process.cwd() != str(home(run_folder)):
                continue
            parent = process.parent()
            if parent is None or "airflow scheduler" not in " ".join(parent.cmdline()):
                process.kill()
                ended += 1
        except psutil.Error:
            continue  # ended meanwhile, or somebody else's
    return ended


def prepare(run_folder: Path | None = None) -> None:
    """Make home, secrets, password and local settings; the database's tables, once per version of Airflow.

    PostgreSQL must run.
    """
    folder = home(run_folder)
    (folder / "config").mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    own = Path(__file__).resolve().parents[2] / "dags" / "airflow_local_settings.py"
    shutil.copyfile(own, folder / "config" / "airflow_local_settings.py")
    # written before the API server would do it with mode 0644 and print them to its log
    users.ensure_passwords(folder)
    stamp = folder / "migrated"
    # a cluster made anew has no tables, whatever the stamp of the former one says
    made = (postgres.cluster_folder(run_folder) / "PG_VERSION").stat().st_mtime_ns
    content = f"{version('apache-airflow')} {made}"
    if stamp.is_file() and stamp.read_text() == content:
        return
    done = subprocess.run(
        [str(executable()), "db", "migrate"],
        env=environment(run_folder),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        log = processes.log_file("airflow-db-migrate", run_folder)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(done.stdout)
        end = "\n".join(done.stdout.splitlines()[-10:])
        raise SetupError(
            f"Airflow could not make its tables. If its database is damaged, `make stop`, remove the folder"
            f" {postgres.cluster_folder(run_folder)} and start again: the history of runs goes with it, no results do."
            f" The end of {log}:\n{end}"
        )
    stamp.write_text(content)


def services(run_folder: Path | None = None) -> list[processes.Service]:
    """The four processes. ``prepare`` must have run."""
    env = environment(run_folder)
    made = []
    for name, arguments in COMPONENTS.items():
        is_api = name == API_SERVER
        made.append(
            processes.Service(
                name,
                [str(executable()), *arguments],
                env,
                home(run_folder),
                api_answers if is_api else _component_healthy(name, run_folder),
                settings.airflow_port() if is_api else None,
                settings.AIRFLOW_PORT_VARIABLE if is_api else "",
            )
        )
    return made


def restart_api_server(run_folder: Path | None = None) -> bool:
    """Starts the API server again where it runs; whether it did."""
    with processes.lock("up", run_folder):
        if processes.running(API_SERVER, run_folder) is None:
            return False
        processes.stop(API_SERVER, run_folder)
        wanted = next(service for service in services(run_folder) if service.name == API_SERVER)
        processes.start(wanted, run_folder)
        processes.wait_ready(wanted, run_folder)
    return True


def executable() -> Path:
    """The ``airflow`` command of this environment."""
    return Path(sys.executable).parent / "airflow"


def health_key(service: str) -> str:
    """What ``health`` calls a service."""
    return service.removeprefix("airflow-").replace("-", "_")


def health() -> dict[str, str]:
    """Status per component as the API server reports it ("healthy", "unhealthy"); empty if it does not answer."""
    return {name: state.get("status") or "unknown" for name, state in _health().items()}


def api_answers() -> bool:
    """Does the API server answer and reach its database?"""
    return processes.port_answers(settings.airflow_port()) and health().get("metadatabase") == "healthy"


def _health() -> dict[str, dict[str, str | None]]:
    try:
        with requests.Session() as session:
            session.trust_env = False  # a proxy of the environment must not see it
            answer = session.get(f"{settings.airflow_url()}/api/v2/monitor/health", timeout=10)
        return answer.json() if answer.ok else {}
    except (requests.RequestException, ValueError):
        return {}


def _component_healthy(name: str, run_folder: Path | None) -> Callable[[], bool]:
    """Is the component healthy by a heartbeat of its own, not by one that its forerunner left in the database?"""
    key = health_key(name)

    def healthy() -> bool:
        state = _health().get(key, {})
        found = processes.running(name, run_folder)
        beat = state.get(f"latest_{key}_heartbeat")
        if state.get("status") != "healthy" or found is None or beat is None:
            return False
        return datetime.fromisoformat(beat).timestamp() > psutil.Process(found.pid).create_time()

    return healthy


def _secret(path: Path, make: Callable[[], str]) -> str:
    """The text of a file that only its owner can read, made on first use."""
    try:
        return path.read_text()
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
        output.write(make())
    try:
        os.link(fresh, path)  # unlike a rename this keeps what another process made meanwhile
    except FileExistsError:
        pass
    fresh.unlink()
    return path.read_text()


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def main(arguments: list[str]) -> int:
    """``python -m sweeparea.infra.services.airflow ..``: Airflow's own command in the environment of the services."""

    def command() -> int:
        return subprocess.run([str(executable()), *arguments], env=environment()).returncode

    return exit_code_of(command, "the command of Airflow was ended")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
