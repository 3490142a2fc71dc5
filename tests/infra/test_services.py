"""The services' commands and environments, without starting them; PostgreSQL for real, since it takes a second."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from sweeparea.infra.errors import SetupError
from sweeparea.infra.services import airflow, postgres, processes, spark_connect, up
from sweeparea.infra.setup import jars
from sweeparea.infra.setup.java import Java


def test_secrets_are_made_once_for_their_owner_only(installation: Path):
    first, second = airflow.environment(), airflow.environment()
    for name in ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__CORE__FERNET_KEY"):
        assert len(first[name]) >= 44
        assert first[name] == second[name]
    for name in ("jwt.secret", "fernet.key"):
        assert (airflow.home() / name).stat().st_mode & 0o777 == 0o600


def test_airflow_listens_here_only_and_keeps_to_itself(installation: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AIRFLOW_HOME", "/home/other")
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW__CORE__PARALLELISM", "7")
    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_HOST", "mail.example")
    monkeypatch.setenv("AIRFLOW_CONN_PROD", "spark://x")
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "ann:viewer")
    assert airflow.not_taken_over() == ["AIRFLOW__CORE__EXECUTOR"]
    names = airflow.environment()
    assert (names["AIRFLOW__CORE__PARALLELISM"], names["AIRFLOW_CONN_PROD"]) == ("7", "spark://x")
    assert names["AIRFLOW__SMTP__SMTP_HOST"] == "mail.example"
    assert names["AIRFLOW_HOME"] == str(installation / ".run" / "airflow")
    assert names["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert names["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert names["AIRFLOW__API__PORT"] == "29180"
    assert names["SWEEPAREA_HOME"] == str(installation)
    assert names["SPARK_REMOTE"] == "sc://127.0.0.1:29115"
    serving = [s for s in airflow.services() if "scheduler" in s.command or "triggerer" in s.command]
    assert len(serving) == 2
    assert all("--skip-serve-logs" in s.command for s in serving)


def test_a_missing_password_says_how_to_make_one(installation: Path):
    with pytest.raises(SetupError, match="make up"):
        airflow.password()
    airflow.home().mkdir(parents=True)
    airflow.password_file().write_text(json.dumps({"admin": "secret"}))
    assert airflow.password() == "secret"


def test_the_spark_server_is_ours_and_local(installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jars, "class_path", lambda: "a.jar:b.jar")
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere:1")
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    service = spark_connect.service(Java(tmp_path, 17, "test"))
    conf = dict(a.split("=", 1) for a in service.command if a.startswith("spark.") and "=" in a)
    assert conf["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert conf["spark.connect.grpc.binding.port"] == "29115" == str(service.port)
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.sql.ansi.enabled"] == "true"
    assert "SPARK_REMOTE" not in service.environment
    assert service.environment["SPARK_CONF_DIR"].startswith(str(installation))
    assert service.command[service.command.index("--driver-class-path") + 1] == "a.jar:b.jar"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch):
    """A folder whose path is short enough for a socket, whatever pytest's own is."""
    with tempfile.TemporaryDirectory(prefix="sa") as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        yield Path(name)


def test_postgres_lives_and_ends(short: Path):
    run = short / "run"
    assert postgres.start(run)
    try:
        assert not postgres.start(run)
        import psycopg2

        with psycopg2.connect(host=str(postgres.cluster_folder(run)), user="postgres", dbname="airflow") as connection:
            cursor = connection.cursor()
            cursor.execute("select current_setting('listen_addresses')")
            assert cursor.fetchone() == ("",)
        connection.close()
        assert (run / "pg").stat().st_mode & 0o777 == 0o700
    finally:
        assert postgres.stop(run)
    assert processes.running(postgres.NAME, run) is None
    assert not postgres.stop(run)


def test_postgres_starts_whatever_libpq_variables_say_and_wherever_it_lies(
    short: Path, monkeypatch: pytest.MonkeyPatch
):
    foreign = {
        "PGSSLMODE": "require",
        "PGSERVICE": "nowhere",
        "PGHOST": "nowhere.invalid",
        "PGPORT": "6000",
        "PGOPTIONS": "-c nothing=1",
        "PGDATA": "/nowhere",
        "LC_ALL": "xx_XX.UTF-8",
    }
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)
    run = short / "a b & (c), $HOME 'q' 100% \u00fc" / "run"
    assert postgres.start(run)
    try:
        assert not postgres.start(run)
        assert (run / "pg" / "PG_VERSION").is_file()
        environment = airflow.environment(run)
        assert not set(foreign) - {"LC_ALL"} & environment.keys()
        from sqlalchemy import create_engine, text

        for name in set(foreign) - {"LC_ALL"}:
            monkeypatch.delenv(name)
        engine = create_engine(environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
        with engine.connect() as connection:
            assert connection.execute(text("select current_database()")).scalar() == "airflow"
        engine.dispose()
    finally:
        assert postgres.stop(run)
        postgres.remove(run)
    assert [path.name for path in short.iterdir()] == [run.parent.name]


def test_a_server_that_was_started_ends_when_its_database_cannot_be_made(short: Path, monkeypatch: pytest.MonkeyPatch):
    run = short / "run"
    monkeypatch.setattr(postgres, "DATABASE", "no such; name")
    with pytest.raises(SetupError, match=r"(?s)did not start.*syntax error"):
        postgres.start(run)
    assert processes.running(postgres.NAME, run) is None
    assert not (run / "pg" / "postmaster.pid").exists()


def test_services_that_were_started_end_when_one_fails(installation: Path, monkeypatch: pytest.MonkeyPatch):
    def sleeper() -> processes.Service:
        return processes.Service(spark_connect.NAME, ["sleep", "60"], {}, installation)

    monkeypatch.setattr(up, "check_ports", lambda: None)
    monkeypatch.setattr(up, "find_java", lambda: Java(installation, 17, "test"))
    monkeypatch.setattr(up, "_start_spark", lambda java: up._start([sleeper()], ""))

    def fails() -> None:
        raise SetupError("no room")

    monkeypatch.setattr(up, "_start_airflow", fails)
    with pytest.raises(SetupError, match="no room"):
        up.up()
    assert processes.running(spark_connect.NAME) is None
    processes.start(sleeper())
    with pytest.raises(SetupError, match="no room"):
        up.up()
    assert processes.stop(spark_connect.NAME), "what ran before stays"


def test_services_that_were_started_end_on_interrupt(installation: Path, monkeypatch: pytest.MonkeyPatch):
    def sleeper(name: str) -> processes.Service:
        return processes.Service(name, ["sleep", "60"], {}, installation, lambda: False)

    def late() -> None:
        while processes.running(spark_connect.NAME) is None:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # Ctrl-C
        time.sleep(0.5)
        up._start([sleeper(airflow.API_SERVER)], "")

    monkeypatch.setattr(up, "check_ports", lambda: None)
    monkeypatch.setattr(up, "find_java", lambda: Java(installation, 17, "test"))
    monkeypatch.setattr(up, "_start_spark", lambda java: up._start([sleeper(spark_connect.NAME)], ""))
    monkeypatch.setattr(up, "_start_airflow", late)
    # a process that a script starts in the background, as `make test` does, inherits SIGINT ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            up.up()
    finally:
        signal.signal(signal.SIGINT, before)
    time.sleep(0.6)
    assert processes.services() == []


def test_a_path_too_long_for_a_socket_gets_a_private_folder(short: Path):
    run = short / ("deep" * 30) / "run"
    folder = postgres.cluster_folder(run)
    assert folder.parent.parent == short
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert postgres.cluster_folder(run) == folder
    postgres.remove(run)
    assert not folder.parent.exists()
    assert not (run / "postgres.folder").exists()


def test_no_short_path_at_all_is_an_error(short: Path, monkeypatch: pytest.MonkeyPatch):
    deep = short / ("deep" * 30)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with pytest.raises(SetupError, match="SWEEPAREA_RUN"):
        postgres.cluster_folder(deep / "run")
    assert list(deep.iterdir()) == []


def test_workers_of_a_scheduler_that_was_killed_are_ended(installation: Path):
    """A process with the title and folder of one whose parent is not Airflow; one that is at work is left to end it."""
    airflow.home().mkdir(parents=True)

    def worker(title: str, folder: Path) -> subprocess.Popen[bytes]:
        code = f"import setproctitle, time; setproctitle.setproctitle({title!r}); print(flush=True); time.sleep(60)"
        process = subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    idle, busy = worker(airflow.WORKER + airflow.IDLE, airflow.home()), worker(f"{airflow.WORKER}q", airflow.home())
    foreign = worker(airflow.WORKER + airflow.IDLE, installation)
    try:
        assert airflow.end_orphans() == 1
        assert idle.wait(10) != 0
        assert (busy.poll(), foreign.poll()) == (None, None)
        assert airflow.end_orphans(idle=False) == 1
        assert busy.wait(10) != 0
        assert foreign.poll() is None
    finally:
        for process in (idle, busy, foreign):
            process.kill()
            process.wait()
