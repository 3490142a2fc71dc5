"""Spark's daemon of Python workers, with the libraries that sweeps import loaded before it makes the first.

Spark ends a worker that has had nothing to do for a minute, so a query that runs every few minutes would wait nearly a
second in every slice for Arrow, pandas and numba to load; a worker that is forked from here has them. SweepArea's own
modules are left out: workers of a server that runs for months take the installation as it is when they begin.
Started by Spark as ``python -m <this module> pyspark.worker`` (``spark.python.daemon.module``).

A process that forks should have no threads. Arrow's allocator has one of its own and knows how to be forked (jemalloc
takes its locks around a fork); numpy's linear algebra, which no sweep needs, must not start any. Should a library bring
others some day, or be missing, or the system not tell, Spark's own daemon runs instead.

No worker takes more memory than ``SWEEPAREA_WORKER_MEMORY`` says: an allocation beyond it fails with an exception that
tells what it was for, while a process that the system kills tells nothing.

After each task a worker collects its garbage. What the libraries brought, 150,000 objects, is none and is left out of
it: to look through them took 0.12 s of a core for every task, more than most tasks of a small slice.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODULE = "sweeparea.infra.worker_daemon"
"""What Spark is told to run."""
_HARMLESS = {"jemalloc_bg_thd"}
_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def safe_path() -> Iterator[None]:
    """A JVM that is started inside has Python workers for which a ``types.py`` or ``queue.py`` in the folder where the
    command is run stands in the place of no library: ``python -m`` would look there first.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def bound_memory() -> None:
    """Bounds the memory of this process, and of those that it makes or becomes. Before any library is loaded."""
    most = _allowed()
    if most is None or sys.platform != "linux":
        return
    import resource

    # what is written to counts, not what is only mapped; so Arrow's allocator, which reserves a gigabyte at a time, is
    # to take of that what it needs
    os.environ.setdefault("MIMALLOC_ARENA_EAGER_COMMIT", "0")
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _allowed() -> int | None:
    """The setting. Modules of ours that were loaded for it are forgotten: workers take those of the day they begin."""
    import sweeparea.infra

    before = set(sys.modules)
    from sweeparea.infra import settings

    most = settings.worker_memory()
    for name in set(sys.modules) - before:
        package, _, own = name.rpartition(".")
        if package == sweeparea.infra.__name__:
            del sys.modules[name]
            delattr(sweeparea.infra, own)
    return most


def preload() -> None:
    """Imports the libraries, and has numba's compiler set up, which it leaves to the first kernel."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

    import numpy as np
    import pandas  # noqa: F401
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401
    from numba import njit

    njit(_sum)(np.arange(2))
    gc.collect()
    gc.freeze()  # inherited by the workers


def _sum(values):
    total = 0
    for i in range(len(values)):
        total += values[i]
    return total


def threads() -> set[str]:
    """The names of this process's threads but the first. OSError where the system does not tell."""
    tasks = Path("/proc/self/task")
    others = [task for task in tasks.iterdir() if task.name != str(os.getpid())]
    return {(task / "comm").read_text().strip() for task in others}


def main() -> None:
    """Loads, and serves as Spark's own daemon does."""
    bound_memory()
    try:
        preload()
        alone = threads() <= _HARMLESS
    except (ImportError, OSError):
        alone = False
    if not alone:
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    from pyspark.daemon import manager

    if sys.flags.safe_path:
        sys.path.append(str(Path.cwd()))  # last
    manager()


if __name__ == "__main__":
    main()
