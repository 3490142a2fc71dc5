"""The long-lived Spark Connect server: one JVM on 127.0.0.1 with Delta on its class path, shared by all jobs."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sweeparea.infra import machine, settings, storage, worker_daemon
from sweeparea.infra.errors import SetupError
from sweeparea.infra.services import processes
from sweeparea.infra.setup import jars
from sweeparea.infra.setup.java import Java, find_java

NAME = "spark-connect"

DEFAULT_FILES = "spark.hadoop.fs.defaultFS"
"""Where a path without a scheme lies: on this machine, for Spark as for us, whatever a HADOOP_CONF_DIR says."""

SESSION_CONF = {
    # laws of the engine: time in UTC microseconds, overflow and bad casts are errors
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # small slices on small machines: two partitions, no re-planning between stages
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": worker_daemon.MODULE,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
}

LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""


def service(
    java: Java | None = None,
    *,
    port: int | None = None,
    run_folder: Path | None = None,
    cores: str | None = None,
    memory: str | None = None,
    jvm_options: str = "",
    host: str = settings.HOST,
) -> processes.Service:
    """The server as a service; by default with the installation's port, cores and memory, and for this machine."""
    machine.require_named_user()
    settings.worker_memory()  # a worker that finds it wrong tells nobody
    java = java or find_java()
    port = settings.spark_port() if port is None else port
    folder = (run_folder or settings.run_folder()) / "spark"
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    (folder / "conf" / "log4j2.properties").write_text(LOGGING)
    (folder / "local").mkdir(exist_ok=True)
    classes = os.pathsep.join(filter(None, (jars.class_path(), jars.s3_class_path())))
    conf = {
        **SESSION_CONF,
        **storage.spark_conf(),
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
        # of clients that ended without a word; one that runs something asks every two minutes
        "spark.connect.session.manager.defaultSessionTimeout": "15m",
        "spark.driver.bindAddress": settings.HOST,
        "spark.driver.host": settings.HOST,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        DEFAULT_FILES: "file:///",
        # not in a home, which may not be there or not be writable
        "spark.jars.ivy": str(folder / "ivy"),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.driver.extraJavaOptions": machine.jvm_options("-XX:+UseSerialGC", machine.STACK, jvm_options),
    }
    home = spark_home()
    command = [str(home / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--name", "SweepArea", "--master", f"local[{cores or settings.spark_cores()}]"]
    command += ["--driver-memory", memory or settings.spark_memory(), "--driver-class-path", classes]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    return processes.Service(
        NAME,
        [*command, "spark-internal"],
        _environment(java, home, folder),
        folder,
        lambda: processes.port_answers(port),
        port,
        settings.SPARK_PORT_VARIABLE,
    )


def _environment(java: Java, home: Path, folder: Path) -> dict[str, str]:
    # inherited Spark settings are someone else's: a SPARK_REMOTE or SPARK_CONF_DIR would change the server
    environment = machine.jvm_environment()
    environment |= {k: v for k, v in settings.environment().items() if k != "SPARK_REMOTE"}
    return environment | {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": settings.HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }


def spark_home() -> Path:
    """The folder of pyspark, which is a whole Spark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.origin:
        raise SetupError("pyspark is missing from the environment. Run `make env` to install it.")
    return Path(spec.origin).parent


def answers(port: int | None = None, seconds: float = 5.0) -> bool:
    """Whether the server speaks: to an HTTP/2 client's greeting it sends its settings (RFC 9113, section 3.4). A JVM
    that stands still only lets a connection be made.
    """
    empty_settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    try:
        address = (settings.HOST, settings.spark_port() if port is None else port)
        with socket.create_connection(address, timeout=seconds) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + empty_settings)
            return connection.recv(9)[3:4] == b"\x04"
    except OSError:
        return False


def start(java: Java | None = None) -> bool:
    """Start the installation's server and wait until it listens; returns whether it was started now."""
    wanted = service(java)
    started = processes.start(wanted)
    processes.wait_ready(wanted)
    return started


@contextmanager
def running(
    run_folder: Path, *, cores: str = "2", memory: str = "2g", jvm_options: str = "-XX:TieredStopAtLevel=1"
) -> Iterator[str]:
    """A server of its own on a free port for the time of the block; gives its ``sc://`` address. Meant for tests.

    Its JVM compiles fast, not well. Stop the sessions before the block ends: a client whose server has gone retries
    for minutes when its process exits.
    """
    port = processes.free_port()
    wanted = service(port=port, run_folder=run_folder, cores=cores, memory=memory, jvm_options=jvm_options)
    processes.start(wanted, run_folder)
    try:
        processes.wait_ready(wanted, run_folder)
        yield f"sc://{settings.HOST}:{port}"
    finally:
        processes.stop(NAME, run_folder)
