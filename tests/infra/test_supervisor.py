"""The supervisor with services that live and answer as the test says."""

from __future__ import annotations

import os
import socket
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from sweeparea.infra.errors import SetupError
from sweeparea.infra.services import processes, spark_connect, supervisor, up


class World:
    """Services by name, whether they live and answer, and a clock; it notes what is started and ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, *names: str) -> None:
        self.now, self.lives = 0.0, dict.fromkeys(names, True)
        self.speaks: dict[str, bool | None] = dict.fromkeys(names, True)
        self.done: list[str] = []
        self.said: list[str] = []
        self.fails = False
        monkeypatch.setattr(processes, "running", lambda name, run=None: object() if self.lives[name] else None)
        monkeypatch.setattr(processes, "stop", self.stop)
        services = [supervisor.Supervised(n, lambda n=n: self.start(n), lambda n=n: self.speaks[n]) for n in names]
        self.supervisor = supervisor.Supervisor(services, folder, self.said.append, lambda: self.now)

    def start(self, name: str) -> None:
        if self.fails:
            raise SetupError("no room")
        self.done.append(f"start {name}")
        self.lives[name] = self.speaks[name] = True

    def stop(self, name: str, run: Path, grace: float) -> None:
        if self.lives[name]:
            self.done.append(f"stop {name}")
        self.lives[name] = False

    def looks(self, seconds: int) -> list[str]:
        """What is done within so many seconds."""
        before = len(self.done)
        for _ in range(seconds // 5):
            self.now += 5
            self.supervisor.look()
        return self.done[before:]


def test_what_ended_is_started_again_after_ever_longer_pauses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    world = World(monkeypatch, tmp_path, "db", "web")
    assert world.looks(100) == []
    world.lives["db"] = False
    assert world.looks(5) == ["start db"]
    started = []
    for _ in range(60):
        world.lives["web"] = False
        started += [world.now] * len(world.looks(5))
    gaps = [b - a for a, b in pairwise(started)]
    assert gaps == [5, 10, 20, 40, 60, 60, 60]
    assert supervisor.told(tmp_path)["db"].startswith("started again once, last at 2")
    assert "it had ended" in supervisor.told(tmp_path)["web"]
    world.looks(400)
    world.lives["web"] = False
    assert world.looks(5) == ["start web"]


def test_what_does_not_answer_is_ended_and_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    world = World(monkeypatch, tmp_path, "web", "worker")
    world.speaks["web"], world.speaks["worker"] = False, None  # nobody says how the worker is
    assert world.looks(60) == []
    assert world.looks(60) == ["stop web", "start web"]
    assert "it gave no answer for 90 s" in supervisor.told(tmp_path)["web"]
    world.speaks["web"] = False
    world.looks(60)
    world.speaks["web"] = True
    world.looks(5)
    world.speaks["web"] = False
    assert world.looks(60) == []


def test_one_that_cannot_be_started_is_tried_again_and_stops_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    world = World(monkeypatch, tmp_path, "db", "web")
    world.lives, world.fails = {"db": False, "web": False}, True
    world.looks(5)
    assert [line for line in world.said if "no room" in line] == ["db: no room", "web: no room"]
    world.fails = False
    assert world.looks(10) == ["start db", "start web"]


def test_while_others_start_and_stop_services_it_does_nothing(tmp_path: Path):
    with processes.lock("up", tmp_path) as mine, processes.lock("up", tmp_path, wait=False) as other:
        assert (mine, other) == (True, False)
    with processes.lock("up", tmp_path, wait=False) as free:
        assert free


def test_a_server_that_only_lets_connect_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert not spark_connect.answers(port, seconds=0.2)

        def speak() -> None:
            connection, _ = silent.accept()
            connection, _ = silent.accept()  # the first was the one above
            connection.recv(100)
            connection.sendall(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")

        threading.Thread(target=speak, daemon=True).start()
        assert spark_connect.answers(port, seconds=5)
    assert not spark_connect.answers(port)


def test_status_tells_a_dead_or_silent_service_by_its_exit_code(
    installation: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    healthy = {"scheduler": "healthy", "triggerer": "healthy", "dag_processor": "healthy", "metadatabase": "healthy"}
    for name in up.ORDER:
        processes.start(processes.Service(name, ["sleep", "60"], {}, installation))
    try:
        monkeypatch.setattr("sweeparea.infra.services.airflow.health", lambda: healthy)
        monkeypatch.setattr(spark_connect, "answers", lambda: True)
        assert up.status() == 0
        healthy["triggerer"] = "unhealthy"
        assert up.status() == 1
        healthy["triggerer"] = "healthy"
        processes.stop("airflow-scheduler")
        capsys.readouterr()
        assert up.status() == 1
        assert "airflow-scheduler        not running" in capsys.readouterr().out
    finally:
        for name in up.ORDER:
            processes.stop(name, grace=1)


def test_a_chore_is_done_when_files_have_changed_and_again_until_it_succeeds(tmp_path: Path):
    """The command fails the first time, as where Airflow does not answer yet."""
    file, marks, said, now = tmp_path / "a.cql", tmp_path / "marks", [], [0.0]
    script = (
        f"f = open({str(marks)!r}, 'a'); n = f.tell(); f.write('x'); f.close(); print('did'); raise SystemExit(n == 0)"
    )
    chore = supervisor.Chore(
        [sys.executable, "-c", script], lambda: [file], said.append, pause=10.0, clock=lambda: now[0]
    )

    def done() -> int:
        for _ in range(4):
            chore.do()
            if chore._runs is not None:
                chore._runs.wait()
        return len(marks.read_text()) if marks.exists() else 0

    file.write_text("one")
    assert [done(), done()] == [1, 1]
    now[0] = 11.0
    assert [done(), done()] == [2, 2]
    now[0] = 100.0
    assert done() == 2  # it has succeeded, and nothing has changed
    file.write_text("another")
    os.utime(file, ns=(1, 1))
    assert done() == 3
    assert said == ["did"] * 3
