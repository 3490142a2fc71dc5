"""Spark's Python workers begin with the libraries that sweeps import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sweeparea.infra import worker_daemon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="tells no threads")
def test_no_library_has_threads_that_a_fork_would_lose():
    found = _python(
        "import sys\n"
        "from sweeparea.infra import worker_daemon as daemon\n"
        "daemon.preload()\n"
        "print(daemon.threads() <= daemon._HARMLESS, {'numba', 'pandas', 'pyarrow'} <= set(sys.modules),"
        " any(name.startswith('sweeparea.operators') for name in sys.modules))"
    )
    assert found.split() == ["True", "True", "False"]


def test_the_garbage_of_a_task_is_sought_among_its_own_objects():
    found = _python(
        "import gc\n"
        "from sweeparea.infra import worker_daemon as daemon\n"
        "daemon.preload()\n"
        "print(len(gc.get_objects()), gc.get_freeze_count(), gc.isenabled())"
    )
    looked_through, left_out, enabled = found.split()
    assert int(looked_through) < 1_000 < 50_000 < int(left_out)
    assert enabled == "True"


@pytest.mark.skipif(sys.platform != "linux", reason="bounds memory on Linux alone")
def test_a_worker_beyond_its_memory_has_an_exception_and_not_less_than_it_may(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWEEPAREA_WORKER_MEMORY", "800m")
    found = _python(
        "import sys\n"
        "from sweeparea.infra import worker_daemon as daemon\n"
        "daemon.bound_memory()\n"
        "print(sorted(name for name in sys.modules if name.startswith('sweeparea')))\n"
        "daemon.preload()\n"
        "import numpy as np, pyarrow as pa, pyarrow.compute as pc\n"
        "some = pa.array(np.arange(1 << 24))\n"
        "print(len(pc.add(some, 1)))\n"  # what Arrow only reserves, a gigabyte, does not count
        "for ask in (lambda: np.ones(1 << 28), lambda: pc.add(pa.chunked_array([some] * 16), 1)):\n"
        "    try:\n"
        "        ask()\n"
        "    except MemoryError as error:\n"
        "        print(type(error).__name__)\n"
    )
    modules, size, *errors = found.splitlines()
    # workers of a server that runs for months take the installation as it is when they begin
    assert modules == "['sweeparea', 'sweeparea.infra', 'sweeparea.infra.worker_daemon']"
    assert int(size) == 1 << 24
    assert errors == ["MemoryError", "ArrowMemoryError"]


@pytest.mark.parametrize(
    "why",
    ["raise ImportError", "import threading; threading.Thread(target=threading.Event().wait).start()", "raise OSError"],
)
def test_where_it_cannot_be_done_sparks_own_daemon_runs(why):
    found = _python(
        "import os\n"
        "from sweeparea.infra import worker_daemon as daemon\n"
        "def preload():\n"
        f"    {why}\n"
        "daemon.preload = preload\n"
        "def execv(path, command):\n"
        "    print(command[1:], flush=True)\n"
        "    os._exit(0)\n"
        "os.execv = execv\n"
        "daemon.main()"
    )
    assert found == "['-m', 'pyspark.daemon']\n"


def _loaded(batches):
    import os
    import sys

    import pyarrow as pa

    parent = Path(f"/proc/{os.getppid()}/cmdline")
    command = parent.read_bytes().decode().split("\0") if parent.exists() else [worker_daemon.MODULE]
    told = [str("numba" in sys.modules), str(worker_daemon.MODULE in command)]
    for _ in batches:
        yield pa.record_batch([pa.array(told)], names=["told"])


@pytest.mark.spark
def test_spark_makes_its_workers_by_our_daemon(spark: SparkSession):
    told = spark.range(0, 1, 1, 1).mapInArrow(_loaded, "told STRING").collect()
    assert [row.told for row in told] == ["True", "True"]
