"""Who may log in to the Airflow of ``make up``, and as what (``user_command.py``: the command).

Roles are those of Airflow's simple auth manager, each with the rights of those before it: ``viewer`` sees all,
``user`` runs and pauses DAGs, ``op`` has connections, pools and variables, ``admin`` everything. Users stand in
``users.json`` of Airflow's home, passwords in ``passwords.json`` beside it, both readable by their owner only; a
password is asked for or made, and is no argument of a command. More users may stand in
AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS (``ann:viewer``).
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from sweeparea.infra.errors import SetupError, UsageError

ADMIN = "admin"
ROLES = ("viewer", "user", "op", "admin")
VARIABLE = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"
SHORTEST_PASSWORD = 8
_NAME = re.compile(r"[A-Za-z0-9._@+-]{1,64}")


def users(home: Path) -> dict[str, str]:
    """All users by name, with their roles: ``admin``, those that were set, those of the environment."""
    return {**_given(os.environ.get(VARIABLE, "")), **_read(home / "users.json"), ADMIN: "admin"}


def setting(home: Path) -> str:
    """As Airflow's setting ``simple_auth_manager_users`` has them."""
    return ",".join(f"{name}:{role}" for name, role in users(home).items())


def ensure_passwords(home: Path) -> None:
    """Makes a password for each user who has none: Airflow would print what it makes to its log."""
    there = passwords(home)
    missing = {name: _fresh() for name in users(home) if name not in there}
    if missing:
        _write(home / "passwords.json", {**there, **missing})


def passwords(home: Path) -> dict[str, str]:
    """Passwords by name. SetupError where their file cannot be read."""
    return _read(home / "passwords.json")


def put(home: Path, name: str, role: str, password: str | None = None) -> str | None:
    """Adds a user, or changes the role; gives the password that was made for a new one without ``password``.
    UsageError for a name or a role that cannot be.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a user: 1 to 64 letters, digits and . _ @ + - only.")
    if role not in ROLES:
        raise UsageError(f"There is no role {role!r}. There are: {', '.join(ROLES)}.")
    if name == ADMIN and role != "admin":
        raise UsageError(f"The user {ADMIN} stays an admin: commands of this installation log in so.")
    made = None
    if password is not None or name not in passwords(home):
        made = password or _fresh()
        _write(home / "passwords.json", {**passwords(home), name: _checked(made)})
    _write(home / "users.json", {**_read(home / "users.json"), name: role})
    return None if password is not None else made


def change_password(home: Path, name: str, password: str | None = None) -> str | None:
    """Gives a user another password; returns one that was made. UsageError for a user that there is not."""
    if name not in users(home):
        raise UsageError(f"There is no user {name!r}. There are: {', '.join(users(home))}.")
    fresh = password or _fresh()
    _write(home / "passwords.json", {**passwords(home), name: _checked(fresh)})
    return None if password is not None else fresh


def remove(home: Path, name: str) -> None:
    """Takes a user away. UsageError for ``admin``, for one of the environment, and for one that there is not."""
    kept = _read(home / "users.json")
    if name == ADMIN:
        raise UsageError(f"The user {ADMIN} cannot be removed: commands of this installation log in so.")
    if name not in kept:
        where = f"stands in {VARIABLE}: take it out there" if name in users(home) else "is none"
        raise UsageError(f"{name!r} {where}. Set here: {', '.join(kept) or 'nobody'}.")
    _write(home / "users.json", {user: role for user, role in kept.items() if user != name})
    _write(home / "passwords.json", {user: word for user, word in passwords(home).items() if user != name})


def _given(text: str) -> dict[str, str]:
    """The users of a setting ``name:role,name:role``. UsageError where it is none."""
    found = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, role = entry.partition(":")
        if not _NAME.fullmatch(name) or role.lower() not in ROLES:
            raise UsageError(
                f"{VARIABLE} has {entry!r}, which is no user. Write NAME:ROLE, by comma, with a role of"
                f" {', '.join(ROLES)}."
            )
        found[name] = role.lower()
    return found


def _fresh() -> str:
    return secrets.token_urlsafe(12)


def _checked(password: str) -> str:
    if len(password) < SHORTEST_PASSWORD:
        raise UsageError(f"A password has at least {SHORTEST_PASSWORD} characters.")
    return password


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SetupError(f"{path} cannot be read: {error}. Mend it, or remove it to begin anew.") from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise SetupError(f"{path} is no JSON object of names and texts. Mend it, or remove it to begin anew.")
    return found


def _write(path: Path, content: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as output:
        json.dump(content, output)
    fresh.replace(path)
