"""One place for the paths and ports of an installation. All are read from the environment at the time of the call.

=========================== ==================================== =====================================================
variable                    default                              meaning
=========================== ==================================== =====================================================
SWEEPAREA_HOME              the source checkout, else the        root folder; applications stand under ``queries/``
                            current folder
SWEEPAREA_DATA              ``<root>/.data``                     data folders, one per application
SWEEPAREA_RUN               ``<root>/.run``; of an installed     pid files, logs, PostgreSQL, Airflow's home, leases of
                            wheel a folder of the machine        Spark sessions
SWEEPAREA_SESSIONS          ``keep``                             ``end``: sessions on a Spark server end with the job
SWEEPAREA_JARS              ``<root>/.jars``                     the Delta jars
SWEEPAREA_SPARK_PORT        29115                                Spark Connect server
SWEEPAREA_AIRFLOW_PORT      29180                                Airflow's API and UI
SWEEPAREA_SPARK_MEMORY      4g                                   heap of the Spark Connect server, or of Spark in the
                                                                 job's own process
SWEEPAREA_EXECUTOR_MEMORY   1g                                   heap of each executor of a cluster
SWEEPAREA_WORKER_MEMORY     3/4 of the machine's                 most that one Python worker of Spark takes; ``off``
SWEEPAREA_SPARK_CORES       ``*`` (all)                          threads of the Spark Connect server
SPARK_REMOTE                ``sc://127.0.0.1:<spark port>``      where jobs find Spark
SWEEPAREA_SPARK_MASTER      unset                                Spark in the job's own process: ``local[2]``, or a
                                                                 cluster's master ``spark://host:port``
SWEEPAREA_SPARK_INHERIT     unset                                variables of other Spark, Hadoop or Java
                                                                 installations that ours takes over, by comma
SWEEPAREA_SYNC              on                                   ``off``: a power cut may take what was committed
SWEEPAREA_DRIVER_HOST       127.0.0.1                            where a cluster's workers reach the job's process
SWEEPAREA_WORKER_PYTHON     the job's own                        the environment's python on a cluster's workers
AWS_ENDPOINT_URL, ..         unset                                object stores on S3 (storage.py)
SWEEPAREA_APPS              all ``scheduled`` ones               which applications become DAGs, by comma
SWEEPAREA_ENV               unset                                environment of ``sweeparea.toml`` (environments.py)
=========================== ==================================== =====================================================
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from sweeparea.infra.errors import SetupError

HOST = "127.0.0.1"
WORKER_MEMORY_VARIABLE = "SWEEPAREA_WORKER_MEMORY"
SYNC_VARIABLE = "SWEEPAREA_SYNC"
SESSIONS_VARIABLE = "SWEEPAREA_SESSIONS"
_LEAST_MEMORY = 512 << 20
_UNITS = {"m": 20, "g": 30, "t": 40}
_CONTAINER_BOUNDS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells what a container may have (cgroups, version 2 and 1)."""
SPARK_PORT_VARIABLE = "SWEEPAREA_SPARK_PORT"
AIRFLOW_PORT_VARIABLE = "SWEEPAREA_AIRFLOW_PORT"


def root() -> Path:
    """The root folder: SWEEPAREA_HOME, else the source checkout this file belongs to, else the current folder."""
    chosen = os.environ.get("SWEEPAREA_HOME")
    if chosen:
        return Path(chosen).expanduser().resolve()
    checkout = source_root()
    return checkout if checkout is not None else Path.cwd()


def source_root() -> Path | None:
    """The checkout that this file lies in; None when SweepArea was installed from a wheel."""
    candidate = Path(__file__).resolve().parent.parent
    return candidate if (candidate / "pyproject.toml").is_file() else None


def _folder(variable: str, default: Callable[[], Path]) -> Path:
    chosen = os.environ.get(variable)
    return Path(chosen).expanduser().resolve() if chosen else default()


def applications_folder() -> Path:
    """The folder that holds one folder of queries per application."""
    return root() / "queries"


def application(name: str) -> Path:
    """The folder with the ``.cql`` files of an application."""
    return applications_folder() / name


def data_folder() -> Path:
    """The folder that holds one data folder per application."""
    return _folder("SWEEPAREA_DATA", lambda: root() / ".data")


def data(application: str) -> Path:
    """The data folder of an application: admitted streams, results, state, ledger."""
    return data_folder() / application


def run_folder() -> Path:
    """Pid files, logs, PostgreSQL's cluster, Airflow's home, Spark's scratch space. Can go when nothing runs."""
    return _folder("SWEEPAREA_RUN", lambda: _of_user() if _is_installed() else root() / ".run")


def _of_user() -> Path:
    """A folder of this machine and user: an installed wheel works from any folder, be it one that may not be written
    to. SetupError where somebody else has it.
    """
    folder = Path(tempfile.gettempdir()) / f"sweeparea-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            raise SetupError(
                f"{folder} belongs to somebody else. Set SWEEPAREA_RUN to a folder of your own on this machine, for"
                " logs and Spark's scratch files."
            ) from None
    except OSError as error:
        raise SetupError(
            f"{folder} cannot be made: {error.strerror}. Set SWEEPAREA_RUN to a folder on this machine that may be"
            " written to."
        ) from error
    return folder


def sessions_end() -> bool:
    """Whether a session on a Spark server ends with its job, as on a machine that is gone then, instead of being handed
    on to the next job of this machine. SetupError for another value of SWEEPAREA_SESSIONS than ``keep`` and ``end``.
    """
    text = os.environ.get(SESSIONS_VARIABLE) or "keep"
    if text not in ("keep", "end"):
        raise SetupError(f"{SESSIONS_VARIABLE} is {text!r}: set it to keep or end, or unset it for keep.")
    return text == "end"


def jars_folder() -> Path:
    """The Delta jars of ``infra/jars.lock``."""
    return _folder("SWEEPAREA_JARS", lambda: _brought("jars"))


def tools_folder() -> Path:
    """What set-up makes for itself: uv, the launcher of the Java wheel."""
    return _brought("tools")


def fetch_command() -> str:
    """What fetches the Delta jars."""
    return "sweeparea setup" if source_root() is None else "make jars"


def _brought(name: str) -> Path:
    # an installed wheel has them in its environment, so that it runs from any folder
    return Path(sys.prefix) / "share" / "sweeparea" / name if _is_installed() else root() / f".{name}"


def _is_installed() -> bool:
    """Whether this is a wheel that nobody has given a home."""
    return source_root() is None and not os.environ.get("SWEEPAREA_HOME")


def spark_port() -> int:
    """The port of the Spark Connect server on 127.0.0.1."""
    return _port(SPARK_PORT_VARIABLE, 29115)


def airflow_port() -> int:
    """The port of Airflow's API and UI on 127.0.0.1."""
    return _port(AIRFLOW_PORT_VARIABLE, 29180)


def spark_remote() -> str:
    """The Spark Connect address that jobs use."""
    return os.environ.get("SPARK_REMOTE") or f"sc://{HOST}:{spark_port()}"


def airflow_url() -> str:
    """The address of Airflow's UI and REST API."""
    return f"http://{HOST}:{airflow_port()}"


def spark_memory() -> str:
    """The heap of Spark's driver, the Connect server or a JVM of the job's own process, in the notation of ``-Xmx``."""
    return os.environ.get("SWEEPAREA_SPARK_MEMORY") or "4g"


def executor_memory() -> str:
    """The heap of each executor of a standalone cluster: no more than its workers have."""
    return os.environ.get("SWEEPAREA_EXECUTOR_MEMORY") or "1g"


def worker_memory() -> int | None:
    """The bytes that one Python worker of Spark may take; None: as many as it likes.

    Unless set, three quarters of the machine's memory, or of its container's: one worker with a large key may need most
    of it while the others are small, so that an equal share for each would refuse what runs; but what one alone wants
    beyond that ends in a kill, of it or of something else.
    """
    text = (os.environ.get(WORKER_MEMORY_VARIABLE) or "").strip().lower()
    if text == "off":
        return None
    if not text:
        memory = machine_memory()
        return None if memory is None else max(_LEAST_MEMORY, memory * 3 // 4)
    size = re.fullmatch(r"(\d+)([mgt])b?", text)
    bytes_ = int(size.group(1)) << _UNITS[size.group(2)] if size else 0
    if bytes_ < _LEAST_MEMORY:
        raise SetupError(
            f"{WORKER_MEMORY_VARIABLE} is {text!r}, which is no size of {_LEAST_MEMORY >> 20}m or more, which a worker"
            " needs to begin with. Set it as in 2g or 1500m, to off for no bound, or unset it for three quarters of the"
            " machine's memory."
        )
    return bytes_


def machine_memory() -> int | None:
    """The bytes that this machine has, or its container if that may have less. None where the system does not tell."""
    try:
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (OSError, ValueError):
        return None
    for bound in _CONTAINER_BOUNDS:
        try:
            found.append(int(Path(bound).read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(found)


def spark_cores() -> str:
    """Threads of the Spark Connect server: a number, or ``*`` for all cores."""
    return os.environ.get("SWEEPAREA_SPARK_CORES") or "*"


def driver_host() -> str:
    """The address under which a job's own Spark listens; a cluster's workers must reach it."""
    return os.environ.get("SWEEPAREA_DRIVER_HOST") or HOST


def worker_python() -> str:
    """The Python of Spark's workers, in an environment like this one."""
    return os.environ.get("SWEEPAREA_WORKER_PYTHON") or sys.executable


def environment() -> dict[str, str]:
    """What the services and the jobs they start must find in their environment."""
    return {
        "SWEEPAREA_HOME": str(root()),
        "SWEEPAREA_DATA": str(data_folder()),
        "SWEEPAREA_RUN": str(run_folder()),
        "SWEEPAREA_JARS": str(jars_folder()),
        SPARK_PORT_VARIABLE: str(spark_port()),
        AIRFLOW_PORT_VARIABLE: str(airflow_port()),
        "SPARK_REMOTE": spark_remote(),
    }


def _port(variable: str, default: int) -> int:
    text = os.environ.get(variable)
    if not text:
        return default
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise SetupError(
            f"{variable} is {text!r}, which is no port. Set it to a number from 1024 to 65535, or unset it to use"
            f" {default}."
        )
    return int(text)
