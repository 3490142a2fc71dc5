"""What connections of Airflow's say: the Spark that computes, the keys of an object store.

``spark = 'spark_prod'`` (``WITH`` or ``SET``) names a connection to a Spark. Of type ``sweeparea_spark``, or one of
those of Airflow's provider for Spark: ``spark_connect`` (host, port, login, and as password a token; ``use_ssl`` in its
extra) or ``spark`` (the host is a master, such as ``spark://host`` with a port, or ``local[2]``). A ``sweeparea_spark``
is a server where its host is a name or ``sc://..``, a master where it is ``spark://..`` or ``local..``. What it says
holds for the task alone; without one, tasks use the installation's own server. In its extra, ``python`` names the
interpreter under which the task runs, and ``spark_submit`` (a path) lets that start it, with
the host as master; ``driver_host``, ``executor_memory``, ``worker_python`` are for a cluster.

``storage = 'lake'`` names the keys of the object store in which tables lie: of type ``sweeparea_storage`` or ``aws``,
the login is the key's id, the password the secret; ``endpoint_url``, ``region_name`` and ``aws_session_token`` stand in
its extra.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from sweeparea.dags.child_process import Interpreter
from sweeparea.infra.errors import UsageError

REMOTE = "SPARK_REMOTE"
MASTER = "SWEEPAREA_SPARK_MASTER"
SPARK_TYPE = "sweeparea_spark"
STORAGE_TYPE = "sweeparea_storage"
TYPES = (SPARK_TYPE, "spark_connect", "spark")
STORAGE_TYPES = (STORAGE_TYPE, "aws")
OF_CLUSTER = {
    "driver_host": "SWEEPAREA_DRIVER_HOST",
    "executor_memory": "SWEEPAREA_EXECUTOR_MEMORY",
    "worker_python": "SWEEPAREA_WORKER_PYTHON",
}
"""Of the extra of a connection to a cluster, the variables that they stand for."""
OF_STORAGE = {
    "endpoint_url": "AWS_ENDPOINT_URL",
    "region_name": "AWS_REGION",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
"""The same of the extra of one to an object store."""
T = TypeVar("T")
_MASTERS = ("spark://", "local", "yarn", "k8s://")


class Connection(Protocol):
    """What is read of one of Airflow's."""

    conn_id: str
    conn_type: str | None
    host: str | None
    port: int | None
    login: str | None
    password: str | None

    @property
    def extra_dejson(self) -> dict[str, Any]: ...


def environment(connection: Connection) -> dict[str, str]:
    """The variables that make jobs use the Spark of a connection. UsageError where it names none."""
    name, host, kind = connection.conn_id, (connection.host or "").strip(), connection.conn_type
    if kind not in TYPES or not host:
        raise UsageError(
            f"The connection {name} of Airflow's is of type {kind or 'none'} with the host {host or '(none)'}: it names"
            f" a Spark where its type is {SPARK_TYPE}, spark_connect (a server) or spark (a master) and the host is"
            " given."
        )
    if kind == "spark" or (kind == SPARK_TYPE and host.startswith(_MASTERS)):
        port = f":{connection.port}" if connection.port and "://" in host else ""
        return {MASTER: f"{host}{port}", **_of_extra(connection, OF_CLUSTER)}
    # as Airflow's provider for Spark reads it
    parameters = {"user_id": connection.login, "token": connection.password}
    if str(connection.extra_dejson.get("use_ssl", "")).lower() == "true":
        parameters["use_ssl"] = "true"
    told = "".join(f";{key}={quote(value, safe='')}" for key, value in parameters.items() if value)
    return {REMOTE: f"sc://{host.removeprefix('sc://')}:{connection.port or 15002}/{told}"}


def keys(connection: Connection) -> dict[str, str]:
    """The variables with which tables of an object store are read and written. UsageError for another connection."""
    if connection.conn_type not in STORAGE_TYPES:
        raise UsageError(
            f"The connection {connection.conn_id} of Airflow's is of type {connection.conn_type or 'none'}: it holds"
            f" the keys of an object store where its type is {' or '.join(STORAGE_TYPES)}."
        )
    pair = {"AWS_ACCESS_KEY_ID": connection.login, "AWS_SECRET_ACCESS_KEY": connection.password}
    return {name: value for name, value in pair.items() if value} | _of_extra(connection, OF_STORAGE)


def _of_extra(connection: Connection, variables: Mapping[str, str]) -> dict[str, str]:
    extra = connection.extra_dejson
    return {variable: str(extra[key]) for key, variable in variables.items() if extra.get(key)}


@contextmanager
def storage_of(conn_id: str | None) -> Iterator[None]:
    """Inside, tables are reached with the keys of a connection; None: with those of the environment."""
    if conn_id is None:
        yield
        return
    with _variables(_read(conn_id, keys)):
        yield


@contextmanager
def spark_of(conn_id: str | None, python: str | None = None) -> Iterator[Interpreter | None]:
    """Inside, jobs use the Spark of a connection; None: what the environment says. Gives who runs the job: what the
    connection names, else ``python``.
    """
    if conn_id is None:
        yield Interpreter(python) if python else None
        return
    wanted, interpreter = _read(
        conn_id, lambda connection: (environment(connection), interpreter_of(connection, python))
    )
    with _variables(wanted, gone=(REMOTE, MASTER)):
        yield interpreter


def interpreter_of(connection: Connection, given: str | None) -> Interpreter | None:
    """Who runs the job: the extra of a connection to a Spark goes before what is
    ``given``. UsageError for spark-submit
    without a master.
    """
    python, submit = (connection.extra_dejson.get(key) for key in ("python", "spark_submit"))
    chosen = str(python or given or "") or None
    if not submit:
        return Interpreter(chosen) if chosen else None
    if MASTER not in (variables := environment(connection)):
        raise UsageError(
            f"The connection {connection.conn_id} of Airflow's names spark_submit and a Spark Connect server: give a"
            " master as host, such as spark://host, yarn or local[2], or leave spark_submit out."
        )
    return Interpreter(chosen, str(submit), variables[MASTER])


def _read(conn_id: str, read: Callable[[Connection], T]) -> T:
    """What a connection says. Airflow tells who asks for one that is not there; a wrong one fails for good."""
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowFailException

    try:
        return read(BaseHook.get_connection(conn_id))
    except UsageError as error:
        raise AirflowFailException(str(error)) from error


@contextmanager
def _variables(wanted: Mapping[str, str], gone: Sequence[str] = ()) -> Iterator[None]:
    """Inside, the environment has the variables that are wanted, and of those that are to be gone no others."""
    before = {name: os.environ.get(name) for name in (*wanted, *gone)}
    for name in before:
        os.environ.pop(name, None)
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
