"""Jobs under another Python: real processes, with small jobs in place of those that need Spark."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from sweeparea.dags import child_process, connections, second_python, tasks
from sweeparea.dags.child_process import Interpreter
from sweeparea.infra.errors import SetupError, SweepAreaError, UsageError

ROOT = Path(__file__).resolve().parents[2]
JOBS = """#!{python}
import logging, os, sys, time, types
sys.path.insert(0, {root!r})
from sweeparea.infra.errors import DataError, SetupError, UsageError
jobs = types.ModuleType("sweeparea.spark_jobs.commands.jobs")
sys.modules[jobs.__name__] = jobs
import sweeparea.spark_jobs.commands as package
package.jobs = jobs
def admit(app, name):
    print("a library prints", flush=True)
    os.write(2, b"and a JVM\\n")
    logging.getLogger("engine").warning("rows of %s", name)
    return {{"versions": 1, "app": app, "secrets": [k for k in os.environ if k.startswith("AIRFLOW")]}}
def process(app, query, until):
    if query == "crash": os._exit(7)
    if query == "wrong": raise UsageError("no such query \\u00fc")
    if query == "rows": raise DataError("a bad row")
    if query == "bug": raise ZeroDivisionError("a bug")
    if query == "sleep":
        open(app, "w").write(str(os.getpid()))
        time.sleep(600)
    return {{"slices": 0, "waits_for": until}}
def backfill(app, query, start, end):
    return {{"backfill": {{"complete": True}}, "days": (end - start).days, "zone": str(start.tzinfo)}}
def process_due(app, queries, busy, threads):
    for query in queries:
        outcome = {{}} if busy(query) else {{"slices": threads}}
        yield query, DataError("bad " + query) if query == "b" else outcome
jobs.admit, jobs.process, jobs.backfill, jobs.process_due = admit, process, backfill, process_due
from sweeparea.spark_jobs.commands.child import run_and_exit
run_and_exit(sys.argv[-1])
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python whose jobs are those above."""
    file = tmp_path / "python"
    file.write_text(JOBS.format(python=sys.executable, root=str(ROOT)))
    file.chmod(0o755)
    return str(file)


def test_reports_and_the_log_come_through(python: str, caplog: pytest.LogCaptureFixture, monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "secret")
    with caplog.at_level(logging.INFO), second_python.using(python):
        report = tasks.admit("shop", "orders")
        days = tasks.backfill("shop", "q", datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 4, tzinfo=UTC))
    assert report == {"versions": 1, "app": "shop", "secrets": []}
    assert (days["days"], days["zone"]) == (3, "UTC")
    for text, level in (("rows of orders", "WARNING"), ("a library prints", "INFO"), ("and a JVM", "INFO")):
        assert (text, level) in [(record.getMessage(), record.levelname) for record in caplog.records]
    assert not child_process.running


def test_errors_are_those_of_the_job(python: str, caplog: pytest.LogCaptureFixture):
    with second_python.using(Interpreter(python)):
        with pytest.raises(AirflowSkipException, match="waits for noon"):
            tasks.process("shop", "q", "noon")
        for query, text in (("wrong", "no such query \u00fc"), ("rows", "a bad row")):
            with pytest.raises(AirflowFailException, match=text):  # a retry would only repeat it
                tasks.process("shop", query)
        with pytest.raises(SweepAreaError, match="ZeroDivisionError: a bug"):
            tasks.process("shop", "bug")
        assert "Traceback" in caplog.text
        with pytest.raises(SweepAreaError, match="ended with exit code 7 before it was through"):
            tasks.process("shop", "crash")


def test_a_group_asks_who_is_busy(python: str):
    asked, done = [], {}

    def busy(query: str) -> bool:
        asked.append(query)
        return query == "c"

    with second_python.using(python), pytest.raises(AirflowFailException, match=r"Done: a, d.\nb: bad b"):
        tasks.process_group("shop", ["a", "b", "c", "d"], busy, done.__setitem__, 3)
    assert (asked, done) == (["a", "b", "c", "d"], {"a": {"slices": 3}, "d": {"slices": 3}})


def _pid(file: Path) -> int:
    deadline = time.monotonic() + 30
    while not (file.is_file() and file.read_text()):
        assert time.monotonic() < deadline, "the job has not begun"
        time.sleep(0.05)
    return int(file.read_text())


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_a_killed_task_ends_its_job(python: str, tmp_path: Path):
    raised: list[BaseException] = []

    def work() -> None:
        try:
            with second_python.using(python):
                tasks.process(str(tmp_path / "pid"), "sleep")
        except SweepAreaError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    pid = _pid(tmp_path / "pid")
    tasks.interrupt()
    thread.join(20)
    assert not thread.is_alive()
    assert _gone(pid)
    assert "exit code 143" in str(raised[0])


def test_a_job_ends_with_its_task_however_that_ends(python: str, tmp_path: Path):
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from sweeparea.dags import second_python
with second_python.using({python!r}):
    second_python.jobs().process({str(tmp_path / "pid")!r}, "sleep")
"""
    task = subprocess.Popen([sys.executable, "-c", code])
    pid = _pid(tmp_path / "pid")
    task.send_signal(signal.SIGKILL)
    task.wait()
    assert _gone(pid)


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (lambda folder: str(folder / "nowhere"), r"nowhere, under which .* cannot be started here: No such file"),
        (lambda folder: _bare(folder), r"has not what jobs need: install sweeparea\[spark\]"),
    ],
)
def test_a_python_that_cannot_do_it_is_told(tmp_path: Path, program: Callable[[Path], str], text: str):
    with second_python.using(program(tmp_path)), pytest.raises(SetupError, match=text):
        second_python.jobs().admit("shop", "orders")


def _bare(folder: Path) -> str:
    """A Python without packages."""
    file = folder / "bare"
    file.write_text(f'#!/bin/sh\ncd /\nexec {sys.executable} -I -S "$@"\n')
    file.chmod(0o755)
    return str(file)


def test_who_names_the_python(monkeypatch: pytest.MonkeyPatch):
    from tests.dags.test_connections import connection

    monkeypatch.delenv(second_python.VARIABLE, raising=False)
    with second_python.using(None):
        assert second_python.jobs().__name__ == "sweeparea.spark_jobs.commands.jobs"
    monkeypatch.setenv(second_python.VARIABLE, "/from/variable")
    with second_python.using(None):
        assert second_python.jobs().interpreter == Interpreter("/from/variable")
    named = connection("spark_connect", "h", extra_dejson={"python": "/from/connection"})
    assert connections.interpreter_of(named, "/from/setting") == Interpreter("/from/connection")
    assert connections.interpreter_of(connection("spark_connect", "h"), "/from/setting") == Interpreter("/from/setting")
    assert connections.interpreter_of(connection("spark_connect", "h"), None) is None
    submit = {"spark_submit": "/opt/spark/bin/spark-submit"}
    wanted = Interpreter("/p", "/opt/spark/bin/spark-submit", "spark://h:7077")
    given = connection("sweeparea_spark", "spark://h", 7077, extra_dejson=submit)
    assert connections.interpreter_of(given, "/p") == wanted
    with pytest.raises(UsageError, match="give a master"):
        connections.interpreter_of(connection("sweeparea_spark", "h", extra_dejson=submit), None)
