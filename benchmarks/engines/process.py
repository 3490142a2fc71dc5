"""The parent's side of an engine in a process of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.cpu import cpu_seconds
from benchmarks.engines import flink_setup
from benchmarks.engines.task import Query, Source
from sweeparea.infra import machine, settings
from sweeparea.infra.setup.java import find_java

NAMES = ("sweeparea", "flink", "duckdb", "spark", "streaming")
LOGGING = """rootLogger.level = WARN
rootLogger.appenderRef.file.ref = file
appender.file.name = file
appender.file.type = File
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c %m%n
"""
"""Of Flink: into a file, since nobody reads what its JVM prints, and a full pipe would stop it."""


class EngineFault(Exception):
    """An engine said that it cannot, or said nothing in time."""


class EngineProcess:
    """An engine that has started. ``startup`` are the seconds of that, ``versions`` what it says of itself.

    ``master``: the cluster that SweepArea computes on, else in its own process; ``beside``: the processes of that
    cluster, whose CPU seconds are the engine's.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        patience: float = 600,
        *,
        master: str = "local[2]",
        beside: Sequence[psutil.Process] = (),
    ):
        self.name = name
        self._patience, self._beside = patience, beside
        scratch = Path(source.scratch) / name
        scratch.mkdir(parents=True)
        self.log = scratch / "log.txt"
        python = flink_setup.PYTHON if name == "flink" else sys.executable
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", "benchmarks.engines.child", name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=settings.source_root(),
                env=_environment(name, scratch, master),
            )
        told = dataclasses.asdict(dataclasses.replace(source, scratch=str(scratch)))
        begun = time.perf_counter()
        found = self._ask({"do": "start", "source": told})
        self.startup = time.perf_counter() - begun
        self.versions: dict[str, str] = found["versions"]

    def run(self, query: Query) -> dict[str, Any]:
        """``seconds``, ``rows`` and ``phases`` of a run, and its ``cpu`` seconds."""
        return self._ask({"do": "run", "query": dataclasses.asdict(query)})

    def answer(self, query: Query) -> dict[str, Any]:
        """``rows`` and ``digest`` of the answer, and what it took."""
        return self._ask({"do": "answer", "query": dataclasses.asdict(query)})

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = self._cpu()
        late = threading.Timer(self._patience, self.stop)
        late.start()
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            in_time = late.is_alive()
            late.cancel()
        if not line:
            why = "ended" if in_time else f"said nothing within {self._patience:.0f} s and was ended"
            raise EngineFault(f"{self.name} {why}: {_tail(self.log)}")
        found = json.loads(line)
        if "error" in found:
            raise EngineFault(f"{self.name}: {found['error'][:2000]}")
        return {**found, "cpu": round(self._cpu() - before, 2)}

    def processes(self) -> list[psutil.Process]:
        """Those that it and the cluster consist of at this moment."""
        first = [psutil.Process(self._process.pid), *self._beside]
        return [found for each in first for found in (each, *each.children(recursive=True))]

    def _cpu(self) -> float:
        first = [psutil.Process(self._process.pid), *self._beside]
        return sum(sum(cpu_seconds(process).values()) for process in first)

    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends it and what it has started."""
        try:
            started = psutil.Process(self._process.pid).children(recursive=True)
        except psutil.Error:
            started = []
        self._process.kill()
        for process in started:
            try:
                process.kill()
            except psutil.Error:
                pass
        self._process.wait()


def _tail(log: Path) -> str:
    return " / ".join(log.read_text(errors="replace").splitlines()[-3:])[-600:]


def _environment(name: str, scratch: Path, master: str) -> dict[str, str]:
    """Each engine gets the same Java and none of the settings of somebody's own Spark, Flink or SweepArea."""
    mine = machine.jvm_environment(os.environ)
    for variable in ("SPARK_REMOTE", "SWEEPAREA_DATA", "SWEEPAREA_RUN", "PYTHONPATH"):
        mine.pop(variable, None)
    mine["JAVA_HOME"] = str(find_java().home)
    if name == "flink":
        logging = scratch / "log4j.properties"
        logging.write_text(LOGGING.format(file=scratch / "flink.log"))
        mine |= {
            "HADOOP_CLASSPATH": flink_setup.class_path(),
            "JVM_ARGS": "-Xmx4g",
            "_python_worker_execution_mode": "process",  # else a server of Python workers listens for the whole world
            "FLINK_LOG_DIR": str(scratch),
            "LOG4J_PROPERTIES": str(logging),
        }
    elif name == "sweeparea":
        mine |= {"SWEEPAREA_SPARK_MASTER": master, "SWEEPAREA_RUN": str(scratch / "run")}
    else:
        mine |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return mine
