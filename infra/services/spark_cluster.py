"""A standalone Spark cluster on this machine: one master and some worker processes, all on 127.0.0.1. Meant for tests.

A cluster of one's own is used the same way: ``SWEEPAREA_SPARK_MASTER=spark://host:port`` (docs/running.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sweeparea.infra import machine, settings
from sweeparea.infra.services import processes, spark_connect
from sweeparea.infra.setup.java import find_java

MASTER = "spark-master"


@contextmanager
def running(run_folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[str]:
    """A cluster for the time of the block; gives the ``spark://`` address of its master."""
    port = processes.free_port()
    address = f"spark://{settings.HOST}:{port}"
    master = _service(MASTER, run_folder, "master.Master", ["--port", str(port)], port)
    started: list[processes.Service] = []
    try:
        for service in (master, *_workers(run_folder, workers, cores, memory, address)):
            started.append(service)
            processes.start(service, run_folder)
            processes.wait_ready(service, run_folder)
        yield address
    finally:
        for service in reversed(started):
            processes.stop(service.name, run_folder)


def _workers(run_folder: Path, count: int, cores: int, memory: str, master: str) -> Iterator[processes.Service]:
    for i in range(count):
        port = processes.free_port()
        options = ["--port", str(port), "--cores", str(cores), "--memory", memory]
        options += ["--work-dir", str(run_folder / f"worker-{i}")]
        yield _service(f"spark-worker-{i}", run_folder, "worker.Worker", [*options, master], port)


def _service(name: str, run_folder: Path, what: str, options: Sequence[str], port: int) -> processes.Service:
    folder = run_folder / name
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    (folder / "conf" / "log4j2.properties").write_text(spark_connect.LOGGING)
    home = spark_connect.spark_home()
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", "--host", settings.HOST]
    command += ["--webui-port", str(processes.free_port()), *options]
    environment = machine.jvm_environment()
    environment |= {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": settings.HOST,  # what the web pages listen on, too
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": machine.jvm_options("-XX:+UseSerialGC -XX:TieredStopAtLevel=1"),
        "PYSPARK_PYTHON": sys.executable,
    }
    return processes.Service(name, command, environment, folder, lambda: processes.port_answers(port), port)
