"""Long-running services: start them detached, know them again by process id *and* start time, stop them.

``<run>/pids/<name>.json`` remembers a service, ``<run>/logs/<name>.log`` has its output. A process id that the system
has given to someone else since is never signalled: its start time differs.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from sweeparea.infra import settings
from sweeparea.infra.errors import SetupError


@dataclass(frozen=True)
class Service:
    """What to start and how to see that it serves.

    ``port`` is the one it will listen on (None: none) and ``port_variable`` the environment variable that moves it;
    ``ready`` is asked until it says yes or ``timeout`` seconds have passed. ``user``: whom it runs as, if
    not as oneself.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    ready: Callable[[], bool] = lambda: True
    port: int | None = None
    port_variable: str = ""
    timeout: float = 180.0
    user: str | None = None


@dataclass(frozen=True)
class Running:
    """A service that was started from here and still lives."""

    name: str
    pid: int
    command: list[str] = field(default_factory=list)


def start(service: Service, run_folder: Path | None = None) -> bool:
    """Start a service unless it runs already; returns whether it was started. Does not wait: see ``wait_ready``."""
    run = run_folder or settings.run_folder()
    if running(service.name, run) is not None:
        return False
    if service.port is not None:
        require_free_port(service.port, service.port_variable, service.name)
    service.folder.mkdir(parents=True, exist_ok=True)
    log = log_file(service.name, run)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    # logs can hold addresses and passwords: for the owner only
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        try:
            process = subprocess.Popen(
                list(service.command),
                cwd=service.folder,
                env=dict(service.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **run_as(service.user),
            )
        except OSError as error:
            raise SetupError(
                f"{service.name} could not be started: {error}. The command was {service.command[0]}; run `make env` to"
                " repair it."
            ) from error
    _remember(service.name, process.pid, list(service.command), run)
    return True


def run_as(user: str | None) -> dict[str, Any]:
    """Options of ``subprocess`` to run as another user of the system, which root may; None is oneself."""
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def wait_ready(service: Service, run_folder: Path | None = None, tell: Callable[[str], None] | None = None) -> float:
    """Wait until the service serves; returns the seconds. SetupError with its log's end if it died or is too slow."""
    run = run_folder or settings.run_folder()
    begin = time.monotonic()
    said = begin
    while True:
        # asked before `ready`: someone else's server on the port must not pass for ours
        alive = running(service.name, run) is not None
        if alive and service.ready():
            return time.monotonic() - begin
        waited = time.monotonic() - begin
        if not alive or waited > service.timeout:
            what = "ended at once" if not alive else f"did not answer within {service.timeout:.0f} s"
            raise SetupError(
                f"{service.name} {what}. The end of its log"
                f" {log_file(service.name, run)}:\n{log_end(service.name, run)}"
            )
        if tell is not None and time.monotonic() - said > 15:
            said = time.monotonic()
            tell(f"{service.name}: waiting, {waited:.0f} s")
        time.sleep(0.1)


def running(name: str, run_folder: Path | None = None) -> Running | None:
    """The service of that name if it lives."""
    path = pid_file(name, run_folder or settings.run_folder())
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if start_mark(record["pid"]) != record["mark"]:
        return None
    return Running(name, record["pid"], record["command"])


def services(run_folder: Path | None = None) -> list[str]:
    """Names of all services that have a pid file, oldest first."""
    folder = (run_folder or settings.run_folder()) / "pids"
    return (
        [path.stem for path in sorted(folder.glob("*.json"), key=lambda p: p.stat().st_mtime)]
        if folder.is_dir()
        else []
    )


def stop(name: str, run_folder: Path | None = None, grace: float = 20.0) -> bool:
    """End a service and what it started, but for services of their own: SIGTERM, after ``grace`` seconds SIGKILL.
    Returns whether it ran.
    """
    run = run_folder or settings.run_folder()
    found = running(name, run)
    if found is not None:
        others = [other.pid for each in services(run) if each != name and (other := running(each, run)) is not None]
        end_tree(found.pid, grace, spare=others)
    pid_file(name, run).unlink(missing_ok=True)
    return found is not None


def end_tree(pid: int, grace: float, first: signal.Signals = signal.SIGTERM, spare: Collection[int] = ()) -> None:
    """Signal a process, give it ``grace`` seconds to end its children itself, then kill what is left of its tree, less
    the trees of processes that it has to ``spare``.
    """
    try:
        leader = psutil.Process(pid)
        tree = [leader, *_below(leader, spare)]
        leader.send_signal(first)
    except psutil.NoSuchProcess:
        return
    # psutil compares start times before it signals, so a recycled id is safe here too
    for process in _wait_ended(tree, grace):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    _wait_ended(tree, 10)


def _below(process: psutil.Process, spare: Collection[int]) -> list[psutil.Process]:
    """What a process has started, and what these have."""
    found: list[psutil.Process] = []
    try:
        for child in process.children():
            if child.pid not in spare:
                found += [child, *_below(child, spare)]
    except psutil.NoSuchProcess:
        pass
    return found


def _wait_ended(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all have ended, at most so long; returns those that live."""
    end = time.monotonic() + seconds
    while True:
        processes = [process for process in processes if not _ended(process)]
        if not processes or time.monotonic() > end:
            return processes
        time.sleep(0.05)


def _ended(process: psutil.Process) -> bool:
    try:
        process.wait(timeout=0)  # takes the exit code, if it is a child of ours
        return True
    except psutil.TimeoutExpired:
        # in a container nobody may collect orphans: those stay as zombies
        return start_mark(process.pid) is None
    except psutil.Error:
        return True


def adopt(name: str, pid: int, command: list[str], run_folder: Path | None = None) -> None:
    """Remember a process that another program started for us."""
    _remember(name, pid, command, run_folder or settings.run_folder())


def log_file(name: str, run_folder: Path | None = None) -> Path:
    """Where a service's output goes."""
    return (run_folder or settings.run_folder()) / "logs" / f"{name}.log"


def log_end(name: str, run_folder: Path | None = None, lines: int = 15) -> str:
    """The last lines of a service's log."""
    try:
        text = log_file(name, run_folder).read_text(errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(line[:300] for line in text.splitlines()[-lines:]) or "(empty)"


def start_mark(pid: int) -> str | None:
    """What tells a process from a later one with the same id; None if it does not live."""
    try:
        # ticks since boot: unlike a wall clock time it does not move when the clock is set
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return None if after_name[0] in "ZX" else f"{boot}/{after_name[19]}"
    except (OSError, IndexError):
        pass
    if Path("/proc/self/stat").exists():
        return None
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.0f}"
    except psutil.Error:
        return None


def port_answers(port: int) -> bool:
    """Does anyone accept connections on 127.0.0.1:port?"""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((settings.HOST, port)) == 0


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((settings.HOST, 0))
        return probe.getsockname()[1]


def require_free_port(port: int, variable: str, user: str) -> None:
    """SetupError, naming port, holder and the variable that moves us, if 127.0.0.1:port cannot be listened on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # as servers do: connections of a former server in TIME_WAIT do not count
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.HOST, port))
            return
        except OSError as error:
            reason = error.strerror or str(error)
    raise SetupError(
        f"Port {port} of {settings.HOST}, which {user} needs, is not free ({reason}){_holder(port)}. "
        f"Stop that program, or choose another port with {variable or 'the service settings'}=<port>."
    )


def _holder(port: int) -> str:
    try:
        for connection in psutil.net_connections(kind="tcp"):
            if (
                connection.laddr
                and connection.laddr.port == port
                and connection.status == psutil.CONN_LISTEN
                and connection.pid
            ):
                return f": process {connection.pid} ({psutil.Process(connection.pid).name()}) listens there"
    except psutil.Error:
        pass
    return ""


@contextmanager
def lock(name: str, run_folder: Path | None = None, wait: bool = True) -> Iterator[bool]:
    """Hold a lock file for the time of the block, so that two `make up` do not start everything twice. Gives whether it
    is held, which without ``wait`` it may not be.
    """
    folder = run_folder or settings.run_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                yield False
                return
            print(f"[{name}] another process is at it in {folder}: waiting for it ..", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield True


def pid_file(name: str, run: Path) -> Path:
    return run / "pids" / f"{name}.json"


def _remember(name: str, pid: int, command: list[str], run: Path) -> None:
    path = pid_file(name, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps({"pid": pid, "mark": start_mark(pid), "command": command}))
    fresh.replace(path)
