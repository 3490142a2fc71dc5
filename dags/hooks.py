"""Airflow's hooks of our two connection types: they give Airflow's forms a name and a test, tasks read them as
``connections.py`` says.
"""

from __future__ import annotations

import socket
from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow.sdk import BaseHook

from sweeparea.dags import connections
from sweeparea.infra.errors import SweepAreaError


class _Hook(BaseHook):
    """``get_conn`` gives the variables under which jobs run."""

    conn_name_attr: ClassVar[str] = "conn_id"

    def __init__(self, conn_id: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.conn_id = conn_id


class SparkHook(_Hook):
    """A Spark that computes: a Spark Connect server, or a master."""

    conn_type = connections.SPARK_TYPE
    default_conn_name: ClassVar[str] = "sweeparea_spark_default"
    hook_name = "SweepArea: Spark"

    def get_conn(self) -> dict[str, str]:
        return connections.environment(self.get_connection(self.conn_id))

    def test_connection(self) -> tuple[bool, str]:
        """Whether something answers there."""
        try:
            place = urlsplit(next(iter(self.get_conn().values())))
        except SweepAreaError as error:
            return False, str(error)
        if not place.hostname or not place.port:
            return True, "Spark runs in the task's own process, so there is nothing to reach."
        try:
            with socket.create_connection((place.hostname, place.port), timeout=5):
                return True, f"Something answers at {place.hostname}:{place.port}."
        except OSError as error:
            return False, f"Nothing answers at {place.hostname}:{place.port} ({error.strerror or error})."


class StorageHook(_Hook):
    """The keys of an object store."""

    conn_type = connections.STORAGE_TYPE
    default_conn_name: ClassVar[str] = "sweeparea_storage_default"
    hook_name = "SweepArea: object store"

    def get_conn(self) -> dict[str, str]:
        return connections.keys(self.get_connection(self.conn_id))
