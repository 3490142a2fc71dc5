from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sweeparea.infra.errors import SetupError
from sweeparea.infra.services import processes


def service(folder: Path, code: str, **options) -> processes.Service:
    return processes.Service("probe", [sys.executable, "-c", code], dict(os.environ), folder, **options)


@pytest.fixture
def run(tmp_path: Path):
    yield tmp_path / "run"
    for name in processes.services(tmp_path / "run"):
        processes.stop(name, tmp_path / "run", grace=0.1)


SLEEP = "import time; time.sleep(60)"


def test_started_once_known_again_and_ended(run: Path, tmp_path: Path):
    probe = service(tmp_path, SLEEP)
    assert processes.start(probe, run)
    assert not processes.start(probe, run)
    found = processes.running("probe", run)
    assert found is not None
    assert processes.services(run) == ["probe"]
    assert processes.stop("probe", run)
    assert processes.start_mark(found.pid) is None
    assert not processes.stop("probe", run)
    assert processes.services(run) == []


def test_what_a_service_started_ends_with_it(run: Path, tmp_path: Path):
    child = tmp_path / "child"
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"p = subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True);"
        f"open({str(child)!r}, 'w').write(str(p.pid)); time.sleep(60)"
    )
    probe = service(tmp_path, code, ready=lambda: child.exists() and child.read_text() != "")
    processes.start(probe, run)
    processes.wait_ready(probe, run)
    assert processes.stop("probe", run, grace=0.2)
    assert processes.start_mark(int(child.read_text())) is None


def test_a_service_that_another_one_has_started_outlives_it(run: Path, tmp_path: Path):
    """As the supervisor starts one again: it is no part of the supervisor."""
    child = tmp_path / "child"
    code = (
        "import subprocess, sys, time;"
        f"p = subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True);"
        f"open({str(child)!r}, 'w').write(str(p.pid)); time.sleep(60)"
    )
    keeper = service(tmp_path, code, ready=lambda: child.exists() and child.read_text() != "")
    processes.start(keeper, run)
    processes.wait_ready(keeper, run)
    processes.adopt("other", int(child.read_text()), [], run)
    assert processes.stop("probe", run, grace=5.0)
    assert processes.running("other", run) is not None
    assert processes.stop("other", run, grace=5.0)
    assert processes.running("other", run) is None


def test_a_recycled_process_id_is_never_signalled(run: Path):
    innocent = subprocess.Popen([sys.executable, "-c", SLEEP])
    try:
        processes.adopt("probe", innocent.pid, [], run)
        record = run / "pids" / "probe.json"
        known = json.loads(record.read_text())
        record.write_text(json.dumps({**known, "mark": known["mark"] + "0"}))
        assert processes.running("probe", run) is None
        assert not processes.stop("probe", run)
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_a_zombie_does_not_live():
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert processes.start_mark(process.pid) is None
    process.wait()


def test_a_damaged_pid_file_means_not_running(run: Path):
    (run / "pids").mkdir(parents=True)
    (run / "pids" / "probe.json").write_text("{")
    assert processes.running("probe", run) is None


def test_one_that_dies_at_once_shows_its_log(run: Path, tmp_path: Path):
    probe = service(tmp_path, "print('no such table'); raise SystemExit(3)", ready=lambda: True)
    processes.start(probe, run)
    while processes.running("probe", run) is not None:
        time.sleep(0.05)
    with pytest.raises(SetupError, match=r"(?s)probe ended at once.*probe\.log.*no such table"):
        processes.wait_ready(probe, run)


def test_one_that_never_serves_is_named(run: Path, tmp_path: Path):
    probe = service(tmp_path, SLEEP, ready=lambda: False, timeout=0.3)
    processes.start(probe, run)
    with pytest.raises(SetupError, match="did not answer within"):
        processes.wait_ready(probe, run)


def test_a_command_that_is_missing_is_named(run: Path, tmp_path: Path):
    with pytest.raises(SetupError, match="/no/such/program"):
        processes.start(processes.Service("probe", ["/no/such/program"], {}, tmp_path), run)


def test_logs_are_the_owners_only_and_the_last_one_is_kept(run: Path, tmp_path: Path):
    for _ in range(2):
        processes.start(service(tmp_path, SLEEP), run)
        processes.stop("probe", run, grace=5)
    log = processes.log_file("probe", run)
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.with_suffix(".log.1").exists()


def test_a_port_in_use_names_port_holder_and_variable(run: Path, tmp_path: Path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert processes.port_answers(port)
        with pytest.raises(SetupError) as caught:
            processes.start(service(tmp_path, SLEEP, port=port, port_variable="SWEEPAREA_X_PORT"), run)
        for part in (str(port), "probe", f"process {os.getpid()}", "SWEEPAREA_X_PORT=<port>"):
            assert part in str(caught.value)
    processes.require_free_port(port, "", "probe")
    assert not processes.port_answers(port)


def test_the_lock_is_held_by_one(run: Path):
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from pathlib import Path
from sweeparea.infra.services import processes
with processes.lock("up", Path({str(run)!r})):
    print("in", flush=True); sys.stdin.read()
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdin is not None
    assert other.stdout is not None
    assert other.stdout.readline() == "in\n"
    threading.Timer(0.3, other.stdin.close).start()
    begin = time.monotonic()
    with processes.lock("up", run):
        assert time.monotonic() - begin > 0.2
    other.wait(10)
    other.stdout.close()
