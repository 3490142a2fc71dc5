"""The one place that makes a Spark session.

``SPARK_REMOTE`` (``sc://host:port``) gives a session on a Spark Connect server; otherwise Spark runs in this process. On a
server, Python workers belong to a session, so a new session pays seconds for its first kernel; ids are therefore *leased* from a
small pool and handed on, one holder at a time. A lease is a file lock: it ends with the process that holds it, however that
ends. A leased session is never stopped: the server would refuse its id for ever.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # a plain Parquet read must not depend on how many files a slice left behind
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
"""What the engine relies on, set on every session whatever its server's defaults are."""

_STATIC = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.warehouse.dir": "",  # filled in: never a folder in the caller's working directory
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "4g",
}


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """A ready session. In-process sessions live until the process ends; leased ones are returned to the pool."""
    remote = os.environ.get("SPARK_REMOTE")
    if remote:
        with _lease() as lease:
            yield _connect(remote, lease)
    else:
        yield _local()


def _configure(spark: SparkSession) -> SparkSession:
    for key, value in CONF.items():
        spark.conf.set(key, value)
    return spark


def _local() -> SparkSession:
    import sys

    from sweeparea.infra.java import find_java
    from sweeparea.infra.settings import root

    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    scratch = root() / ".run" / "spark"
    options = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.level=ERROR"
    builder = SparkSession.builder.master(os.environ.get("SWEEPAREA_SPARK_MASTER", "local[2]")).appName("sweeparea")
    for key, value in {**_STATIC, "spark.sql.warehouse.dir": str(scratch / "warehouse"), **CONF}.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.driver.extraJavaOptions", options).config("spark.log.level", "ERROR")
    return _configure(builder.getOrCreate())


class _Lease:
    """One place in the pool: a locked file that holds the session id last used under it."""

    def __init__(self, file: IO[str]):
        self.file = file
        file.seek(0)
        self.session_id = file.read().strip() or self.renew()

    def renew(self) -> str:
        """A new id, for a session that the server has closed."""
        self.session_id = str(uuid.uuid4())
        self.file.seek(0)
        self.file.truncate()
        self.file.write(self.session_id)
        self.file.flush()
        return self.session_id


@contextmanager
def _lease() -> Iterator[_Lease]:
    from sweeparea.infra.settings import root

    pool = root() / ".run" / "sessions"
    pool.mkdir(parents=True, exist_ok=True)
    place = 0
    while True:
        file = Path(pool / f"{place}.lease").open("a+")  # noqa: SIM115 -- the lock lives as long as the file is open
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            place += 1
            continue
        try:
            yield _Lease(file)
        finally:
            file.close()
        return


def _connect(remote: str, lease: _Lease) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    base = remote.split("/;")[0].rstrip("/")
    for attempt in range(2):
        spark = SparkSession.builder.remote(f"{base}/;session_id={lease.session_id}").create()
        try:
            return _configure(spark)
        except PySparkException as error:
            # the server was restarted or closed this session: its id is dead, a new one is not
            if attempt or "INVALID_HANDLE" not in str(error):
                raise
            lease.renew()
    raise AssertionError("unreachable")
