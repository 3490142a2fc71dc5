"""The one place that makes a Spark session.

``SPARK_REMOTE`` (``sc://host:port``) gives a session on that Spark Connect server, ``SWEEPAREA_SPARK_MASTER``
(``local[2]``) a Spark in this process, whose master may be a cluster's (``spark://host:port``); with neither, the
installation's own server is used if it runs, else this process. On a server, Python workers belong to a session, so a
new session pays seconds for its first kernel; ids are therefore *leased* from a small pool and handed on, one holder at
a time. A lease is a file lock: it ends with the process that holds it, however that ends. Each machine has a pool of
its own, and ids are random, so machines share nothing. A leased session is never stopped: the server would refuse its
id for ever. With ``SWEEPAREA_SESSIONS=end`` there is no pool, and a session is stopped with its job: for machines that
are gone then, such as the pods of a cluster.
"""

from __future__ import annotations

import fcntl
import io
import logging
import os
import socket
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from sweeparea.infra import machine, proxies, settings, worker_daemon
from sweeparea.infra.errors import SetupError, shortened
from sweeparea.infra.services import spark_connect
from sweeparea.spark_jobs.spark import machine_probe, session_settings
from sweeparea.spark_jobs.spark.errors import told_if_gone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # A sweep stages its SweepArea while it runs: what the optimizer finds to be empty must run all the same.
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in ("ConvertToLocalRelation", "PropagateEmptyRelation", "PruneFilters")
    ),
    # functions whose arguments need a cast are resolved one level an iteration: as many as may nest
    "spark.sql.analyzer.maxIterations": "2000",
    # as they are by default; a run that was killed leaves a leased session without (evaluation/long_expressions.py)
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.constraintPropagation.enabled": "true",
    "spark.sql.subexpressionElimination.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # each job's plan is written out for the page of Spark, which takes some of the time of a small slice
    "spark.sql.ui.explainMode": "simple",
    # a plain Parquet read must not depend on how many files a slice left behind
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
"""What the engine relies on, set on every session whatever its server's defaults are."""

_STATIC = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": machine.jvm_options("-XX:+UseSerialGC -XX:TieredStopAtLevel=1", machine.STACK),
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": worker_daemon.MODULE,
    spark_connect.DEFAULT_FILES: "file:///",
}

_ASKED_FOR = ("org.apache.spark.api.python.PythonUtils", "org.apache.spark.sql.api.python.PythonSQLUtils")
"""What pyspark looks up in its JVM in nearly every call, by a name without a package. Unless it is imported by itself,
that is sought in one package after the other, each time in all jars: 1 ms, some 30 times a slice."""

PATIENCE = 5.0
"""Seconds within which a server must answer: one that is being started again may take some."""

MOST_RETRIES = 5
"""So often a call to a server that has gone is tried again, which takes some 7 seconds: who waits is told within 20."""

PATIENCE_WITH_CLUSTER = 20.0
"""Seconds without an executor of a cluster after which that is told, and told again."""

RESET = "settings"
"""How it is noted that foreign settings of a session were reset."""

_IN_PROCESS: dict[str, set[str]] = {}
"""What the Spark of this process was probed for, by the id of its application."""
_BESIDE: dict[str, SparkSession] = {}
"""Our session beside one of somebody else in this process, by the id of the application."""


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """A ready session. In-process sessions live until the process ends; leased ones are returned to the pool.

    SetupError where the server that ``SPARK_REMOTE`` names does not answer within ``PATIENCE`` seconds; UnfitSetupError
    where this Python, or a Spark that others set up, would give other answers (``machine_probe.py``).
    """
    machine.require_fit_python()
    remote = _remote()
    if remote:
        _require_answer()
        with _lease() as lease, told_if_gone(f"the Spark server at {remote.split('/;')[0]}"):
            spark = _connect(remote, lease)
            try:
                machine_probe.require_fit(spark, lease)
                with _found_by_libraries(spark):
                    yield spark
            finally:
                if settings.sessions_end():
                    _stop(spark)
                # the channel, not the session: left to the interpreter's own end, gRPC may wait for threads that are
                # gone
                spark.client.close()  # pyright: ignore[reportAttributeAccessIssue]
    else:
        spark = _local()
        machine_probe.require_fit(spark, _IN_PROCESS.setdefault(spark.sparkContext.applicationId, set()))
        yield spark


@contextmanager
def _found_by_libraries(spark: SparkSession) -> Iterator[None]:
    """Makes ``spark`` the session that a library gets who asks Spark for one, as Great Expectations does. Spark keeps
    the first of a process as such, and where that is closed makes another, which nobody closes: it stays on the server,
    and the process may wait for its channel for ever when it ends.
    """
    kind: Any = type(spark)
    before = kind._default_session, getattr(kind._active_session, "session", None)
    kind._default_session = kind._active_session.session = spark
    try:
        yield
    finally:
        kind._default_session, kind._active_session.session = before


def runs() -> bool:
    """Whether a session is had in no time: from a server that runs, or since this process has one."""
    sql = sys.modules.get("pyspark.sql")
    if sql is not None and sql.SparkSession.getActiveSession() is not None:
        return True
    return _remote() is not None and not unanswered()


def unanswered() -> str:
    """Why the server that ``SPARK_REMOTE`` names cannot be had, as far as that shows at once: its client would try for
    minutes. Empty where it answers, where none is named, and where a proxy stands between.
    """
    remote = os.environ.get("SPARK_REMOTE") or ""
    place = urlsplit(remote)
    through = proxy_bypass(place.hostname or "") or not getproxies().keys() & {"http", "https", "all", "grpc"}
    if place.scheme != "sc" or not place.hostname or not (through or place.hostname in proxies.HERE):
        return ""
    host, port = place.hostname, place.port or 15002
    try:
        with socket.create_connection((host, port), timeout=5):
            return ""
    except OSError as error:
        told = error.strerror or str(error)
        return f"Nothing answers at {host}:{port}, which SPARK_REMOTE names ({told})"


def _require_answer() -> None:
    deadline = time.monotonic() + PATIENCE
    while why := unanswered():
        if time.monotonic() > deadline:
            raise SetupError(
                f"{why}. Start that server, or correct SPARK_REMOTE. Without it a Spark of this process computes, or"
                " the server that `make up` starts."
            )
        time.sleep(0.5)


def _remote() -> str | None:
    given = os.environ.get("SPARK_REMOTE")
    if given or os.environ.get("SWEEPAREA_SPARK_MASTER"):
        return given
    from sweeparea.infra.services import processes

    serves = processes.running(spark_connect.NAME) is not None and processes.port_answers(settings.spark_port())
    return settings.spark_remote() if serves else None


def _configure(spark: SparkSession) -> SparkSession:
    # pyspark logs every failed query as a line of JSON with its stack trace, beside raising it
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # a server that has gone cannot be told to let go of an operation, and its error is raised anyway
    logging.getLogger("pyspark.sql.connect.logging").setLevel(logging.CRITICAL)
    for key, value in CONF.items():
        spark.conf.set(key, value)
    return spark


def _local() -> SparkSession:
    from sweeparea.infra import storage
    from sweeparea.infra.setup import jars
    from sweeparea.infra.setup.java import find_java

    machine.require_named_user()
    java = find_java()
    if java.note:
        print(java.note, file=sys.stderr)
    scratch = settings.run_folder() / "spark-local"
    (scratch / "conf").mkdir(parents=True, exist_ok=True)
    # Spark reads its logging from the class path; its progress bar and banner belong to nobody's standard output
    (scratch / "conf" / "log4j2.properties").write_text(spark_connect.LOGGING)
    for name in machine.foreign_spark(os.environ):
        del os.environ[name]  # of another installation, whose jars and addresses our Spark would take for its own
    ours = {
        "JAVA_HOME": str(java.home),
        "SPARK_CONF_DIR": str(scratch / "conf"),
        "SPARK_LOCAL_IP": settings.driver_host(),
        "PYSPARK_PYTHON": settings.worker_python(),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    os.environ.update(ours)
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return _beside(active)
    warehouse = {"spark.sql.warehouse.dir": str(scratch / "warehouse"), "spark.local.dir": str(scratch / "local")}
    warehouse["spark.jars.ivy"] = str(scratch / "ivy")  # not in a home, which may not be there or not be writable
    builder = SparkSession.builder.master(os.environ.get("SWEEPAREA_SPARK_MASTER", "local[2]")).appName("sweeparea")
    settings.worker_memory()  # a worker that finds it wrong tells nobody
    memory = {"spark.driver.memory": settings.spark_memory()}
    host = {"spark.driver.bindAddress": settings.driver_host(), "spark.driver.host": settings.driver_host()}
    remote = storage.spark_conf()
    if classes := jars.s3_class_path():
        remote |= {"spark.driver.extraClassPath": classes, "spark.executor.extraClassPath": classes}
    for key, value in {**_STATIC, **machine.executor_conf(), **memory, **host, **remote, **warehouse, **CONF}.items():
        builder = builder.config(key, value)
    log = scratch / "spark.log"
    said = log.stat().st_size if log.exists() else 0
    try:
        with _noise_into(log), _environment_of_jvm(ours), worker_daemon.safe_path():
            spark = builder.getOrCreate()
    except Exception as error:
        raise _not_started(error, log, said) from error
    _await_executor(spark)
    _import_into_jvm(spark)
    return _configure(spark)


def _await_executor(spark: SparkSession) -> None:
    """Returns when a cluster has given an executor: without one the first job would wait, and nobody would know why."""
    context: Any = spark.sparkContext
    master = str(context.master)
    if master.startswith("local"):
        return
    begun, told = time.monotonic(), 0.0
    while context._jsc.sc().getExecutorMemoryStatus().size() < 2:  # the driver is one
        waited = time.monotonic() - begun
        if waited > told + PATIENCE_WITH_CLUSTER:
            told = waited
            print(
                f"Waiting for an executor of {master} for {waited:.0f} s: its workers are taken, have less than the"
                f" {settings.executor_memory()} of memory that SWEEPAREA_EXECUTOR_MEMORY asks for, or executors cannot"
                f" reach this process at {settings.driver_host()} (SWEEPAREA_DRIVER_HOST). See the master's page.",
                file=sys.stderr,
            )
        time.sleep(0.05)


def _not_started(error: Exception, log: Path, said: int) -> SetupError:
    """What to tell of a Spark that does not start; its log begins at ``said``."""
    with log.open(errors="replace") as file:
        file.seek(said)
        lines = [line for line in file.read().splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    foreign = machine.taken_over(os.environ)
    why = f" It was given {', '.join(foreign)}, which {machine.INHERIT} names: leave it out there." if foreign else ""
    end = "\n".join(line[:300] for line in lines[-8:])
    told = f" The end of its log {log}:\n{end}" if end else ""
    return SetupError(
        f"Spark does not start: {type(error).__name__}: {shortened(str(error), 400).rstrip('.')}.{why}{told}"
    )


def _import_into_jvm(spark: SparkSession) -> None:
    from py4j.java_gateway import java_import

    for name in _ASKED_FOR:
        java_import(spark.sparkContext._jvm, name)


def _beside(active: SparkSession) -> SparkSession:
    """The session of this process if it is as ours are, else one of our own in the same Spark."""
    settings: Mapping[str, str] = active.conf.getAll
    if CONF.items() <= settings.items() and not any(session_settings.foreign(settings, CONF)):
        return active
    application = active.sparkContext.applicationId
    if application not in _BESIDE:
        _BESIDE[application] = _configure(active.newSession())
        session_settings.reset(_BESIDE[application], CONF)
    return _BESIDE[application]


@contextmanager
def _environment_of_jvm(ours: Mapping[str, str]) -> Iterator[None]:
    """A JVM started inside, and so its workers, find what ``infra/machine.py`` says; this process keeps its own."""
    before = dict(os.environ)
    _exchange({**machine.jvm_environment(before), **ours})
    try:
        yield
    finally:
        _exchange(before)


def _exchange(environment: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name not in environment]:
        del os.environ[name]
    os.environ.update(environment)


@contextmanager
def _noise_into(log: Path) -> Iterator[None]:
    """A JVM started inside writes its banner, warnings and stack traces to ``log``: errors reach the user as
    exceptions.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class _Lease:
    """One place in the pool: a locked file that holds the session id last used under it, and in further lines what the
    session was probed for.
    """

    def __init__(self, file: IO[str]):
        self.file = file
        file.seek(0)
        first, *passed = file.read().split("\n")
        self._passed = {line for line in passed if line}
        self.session_id = first.strip() or self.renew()

    def renew(self) -> str:
        """A new id, for a session that the server has closed."""
        self.session_id = str(uuid.uuid4())
        self._begin()
        return self.session_id

    def _begin(self) -> None:
        self._passed = set()
        self.file.seek(0)
        self.file.truncate()
        self.file.write(f"{self.session_id}\n")
        self.file.flush()

    def on(self, server: str) -> None:
        """What was passed on another server, or before this one was started, counts no more."""
        if server not in self._passed:
            self._begin()
            self.add(server)

    def __contains__(self, probe: object) -> bool:
        return probe in self._passed

    def __iter__(self) -> Iterator[str]:
        return iter(self._passed)

    def add(self, probe: str) -> None:
        """Notes a probe that the session has passed."""
        self._passed.add(probe)
        self.file.write(f"{probe}\n")  # behind what is there: the file is open for appending
        self.file.flush()


def _stop(spark: SparkSession) -> None:
    """Ends a session on its server; one that has gone meanwhile ended it itself."""
    from pyspark.errors import PySparkException

    try:
        spark.client.release_session()  # pyright: ignore[reportAttributeAccessIssue]
    except PySparkException as error:
        logging.getLogger(__name__).warning("The session could not be ended on its server: %s", error)


@contextmanager
def _lease() -> Iterator[_Lease]:
    if settings.sessions_end():
        yield _Lease(io.StringIO())
        return
    # the run folder may be on a disk that machines share, and locks of files there may hold on one of them only
    pool = settings.run_folder() / "sessions" / socket.gethostname()
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
    from pyspark.sql.connect.client.retries import DefaultPolicy

    proxies.except_here()
    base, _, given = remote.partition("/;")
    base = base.rstrip("/")
    own = "".join(f"{part};" for part in given.split(";") if part and not part.startswith("session_id="))
    for attempt in range(2):
        spark = SparkSession.builder.remote(f"{base}/;{own}session_id={lease.session_id}").create()
        # the client would try for ten minutes, and nobody would know why
        spark.client.set_retry_policies([DefaultPolicy(MOST_RETRIES, max_backoff=3_000)])  # pyright: ignore[reportAttributeAccessIssue]
        try:
            _configure(spark)
            lease.on(f"server {base} {spark.conf.get('spark.app.id', '')}")
            if RESET not in lease:
                session_settings.reset(spark, CONF)
                lease.add(RESET)
            return spark
        except PySparkException as error:
            # the server was restarted or closed this session: its id is dead, a new one is not
            if attempt or "INVALID_HANDLE" not in str(error):
                raise
            lease.renew()
    raise AssertionError("unreachable")
