"""Who may log in to the Airflow of ``make up``."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from sweeparea.infra.errors import SetupError, UsageError
from sweeparea.infra.services import airflow, user_command, users


@pytest.fixture
def place(installation: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Airflow's home."""
    monkeypatch.delenv(users.VARIABLE, raising=False)
    return airflow.home()


def test_admin_is_there_and_others_come_with_a_password_of_their_own(place: Path, monkeypatch: pytest.MonkeyPatch):
    users.ensure_passwords(place)
    admin = users.passwords(place)["admin"]
    made = users.put(place, "ann@shop.example", "viewer")
    assert users.put(place, "bob", "op", "correct horse") is None
    assert users.put(place, "ann@shop.example", "user") is None  # another role, the same password
    users.ensure_passwords(place)
    assert users.passwords(place) == {"admin": admin, "ann@shop.example": made, "bob": "correct horse"}
    assert users.users(place) == {"ann@shop.example": "user", "bob": "op", "admin": "admin"}
    monkeypatch.setenv(users.VARIABLE, "eve:VIEWER, bob:admin,admin:viewer")
    environment = airflow.environment()
    assert (
        environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] == "eve:viewer,bob:op,admin:admin,ann@shop.example:user"
    )
    for file in ("passwords.json", "users.json"):
        assert (place / file).stat().st_mode & 0o777 == 0o600
    assert not any("correct horse" in value for value in environment.values())


def test_users_go_and_passwords_change(place: Path):
    users.put(place, "ann", "viewer")
    first = users.passwords(place)["ann"]
    assert users.change_password(place, "ann") != first
    users.remove(place, "ann")
    assert (users.users(place), users.passwords(place)) == ({"admin": "admin"}, {})


def test_what_cannot_be_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch):
    for name, role, password in (
        ("a:b", "viewer", None),
        ("a,b", "viewer", None),
        ("", "op", None),
        ("ann", "boss", None),
        ("admin", "viewer", None),
        ("ann", "viewer", "short"),
    ):
        with pytest.raises(UsageError):
            users.put(place, name, role, password)
    for name in ("admin", "nobody"):
        with pytest.raises(UsageError):
            users.remove(place, name)
    assert users.users(place) == {"admin": "admin"}
    monkeypatch.setenv(users.VARIABLE, "eve:boss")
    with pytest.raises(UsageError, match="eve:boss"):
        users.users(place)
    monkeypatch.setenv(users.VARIABLE, "eve:op")
    with pytest.raises(UsageError, match="take it out there"):
        users.remove(place, "eve")
    place.mkdir(parents=True, exist_ok=True)
    (place / "users.json").write_text("[]")
    with pytest.raises(SetupError, match=r"users\.json"):
        users.users(place)


def test_a_password_is_read_and_not_shown(place: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse\n"))
    assert user_command.main(["set", "ann", "VIEWER", "--ask"]) == 0
    assert capsys.readouterr().out == "ann is viewer.\n"
    assert json.loads((place / "passwords.json").read_text())["ann"] == "correct horse"
    assert user_command.main(["set", "bob", "op"]) == 0
    assert f"printed this once: {users.passwords(place)['bob']}" in capsys.readouterr().out
    assert user_command.main(["list"]) == 0
    assert capsys.readouterr().out.split() == ["ann", "viewer", "bob", "op", "admin", "admin"]
    assert user_command.main(["add", "x"]) == 2
