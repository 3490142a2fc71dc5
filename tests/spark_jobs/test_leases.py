"""Sessions on a Spark server: which machine has which, and when they end."""

from __future__ import annotations

import socket
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from sweeparea.infra.errors import SetupError
from sweeparea.spark_jobs.spark import session


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWEEPAREA_RUN", str(tmp_path))
    monkeypatch.delenv("SWEEPAREA_SESSIONS", raising=False)
    return tmp_path


def test_sessions_are_handed_on_on_one_machine_and_machines_share_none(run_folder: Path, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "one")
    with session._lease() as first, session._lease() as second:
        assert first.session_id != second.session_id
    with session._lease() as again:
        assert again.session_id == first.session_id
        # the same folder, on a disk that both have: its locks may not hold there
        monkeypatch.setattr(socket, "gethostname", lambda: "two")
        with session._lease() as other:
            assert other.session_id not in (first.session_id, second.session_id)


class NotingClient:
    """Notes what is done to a session."""

    def __init__(self):
        self.done: list[str] = []

    def release_session(self) -> None:
        self.done.append("released")

    def close(self) -> None:
        self.done.append("closed")


@pytest.mark.parametrize(("variable", "done"), [("keep", ["closed"]), ("end", ["released", "closed"])])
def test_a_session_ends_with_its_job_where_the_machine_does(run_folder: Path, monkeypatch, variable: str, done: list):
    client, leases = NotingClient(), []

    def connect(remote: str, lease: session._Lease) -> SimpleNamespace:
        leases.append(lease.session_id)
        return SimpleNamespace(client=client)

    monkeypatch.setenv("SWEEPAREA_SESSIONS", variable)
    monkeypatch.setenv("SPARK_REMOTE", "sc://spark.example:1")
    monkeypatch.setattr(session, "_require_answer", lambda: None)
    monkeypatch.setattr(session, "_connect", connect)
    monkeypatch.setattr(session.machine_probe, "require_fit", lambda spark, lease: None)
    monkeypatch.setattr(session, "_found_by_libraries", nullcontext)
    with session.spark_session(), session.spark_session():
        pass
    assert client.done == done * 2
    assert len({*leases}) == 2
    with session.spark_session():
        pass
    assert (leases[2] in leases[:2]) == (variable == "keep")


def test_another_value_is_refused(run_folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWEEPAREA_SESSIONS", "sometimes")
    with pytest.raises(SetupError, match="keep or end"), session._lease():
        pass
