"""The Spark that a connection of Airflow's names: Spark Connect, a standalone cluster, this process.

``spark = 'spark_prod'`` (``WITH`` or ``SET``) names a connection. Of type ``spark_connect``: host, port, login, and as
password a token; ``use_ssl`` in its extra. Of type ``spark``: the host is a master, such as ``spark://host`` with a
port, or ``local[2]``. What it says holds for the task alone; without one, tasks use the installation's own server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import quote

from sweeparea.infra.errors import UsageError

REMOTE = "SPARK_REMOTE"
MASTER = "SWEEPAREA_SPARK_MASTER"
TYPES = ("spark_connect", "spark")


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
    name, host = connection.conn_id, (connection.host or "").strip()
    if connection.conn_type not in TYPES or not host:
        raise UsageError(
            f"The connection {name} of Airflow's is of type {connection.conn_type or 'none'} with the host"
            f" {host or '(none)'}: it names a Spark where its type is spark_connect (a server) or spark (a master) and"
            " the host is given."
        )
    if connection.conn_type == "spark":
        port = f":{connection.port}" if connection.port and "://" in host else ""
        return {MASTER: f"{host}{port}"}
    # as Airflow's provider for Spark reads it
    parameters = {"user_id": connection.login, "token": connection.password}
    if str(connection.extra_dejson.get("use_ssl", "")).lower() == "true":
        parameters["use_ssl"] = "true"
    told = "".join(f";{key}={quote(value, safe='')}" for key, value in parameters.items() if value)
    return {REMOTE: f"sc://{host.removeprefix('sc://')}:{connection.port or 15002}/{told}"}


@contextmanager
def spark_of(conn_id: str | None) -> Iterator[None]:
    """Inside, jobs use the Spark of a connection; None: what the environment says."""
    if conn_id is None:
        yield
        return
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowFailException

    try:
        wanted = environment(BaseHook.get_connection(conn_id))
    except UsageError as error:
        raise AirflowFailException(str(error)) from error
    before = {name: os.environ.get(name) for name in (REMOTE, MASTER)}
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
