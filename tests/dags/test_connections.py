"""What a connection of Airflow's says of a Spark."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from sweeparea.dags import connections
from sweeparea.infra.errors import UsageError


def connection(kind: str | None, host: str | None, port: int | None = None, **more: object) -> connections.Connection:
    given = {"login": None, "password": None, "extra_dejson": {}, **more}
    return SimpleNamespace(conn_id="prod", conn_type=kind, host=host, port=port, **given)  # pyright: ignore[reportReturnType]


def test_a_server_or_a_master():
    server = connection(
        "spark_connect", "sc://spark.example", login="ann", password="a/b;c", extra_dejson={"use_ssl": True}
    )
    told = "sc://spark.example:15002/;user_id=ann;token=a%2Fb%3Bc;use_ssl=true"
    assert connections.environment(server) == {"SPARK_REMOTE": told}
    assert connections.environment(connection("spark_connect", "h", 7)) == {"SPARK_REMOTE": "sc://h:7/"}
    assert connections.environment(connection("spark", "spark://h", 7077)) == {
        "SWEEPAREA_SPARK_MASTER": "spark://h:7077"
    }
    assert connections.environment(connection("spark", "local[2]", 7077)) == {"SWEEPAREA_SPARK_MASTER": "local[2]"}
    for wrong in (connection("http", "h"), connection("spark", " "), connection(None, None)):
        with pytest.raises(UsageError, match="The connection prod of Airflow's is of type"):
            connections.environment(wrong)


def test_it_holds_for_the_task_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://mine:1")
    monkeypatch.delenv("SWEEPAREA_SPARK_MASTER", raising=False)
    monkeypatch.setattr("airflow.sdk.BaseHook.get_connection", lambda name: connection("spark", "local[1]"))
    with connections.spark_of("prod"):
        assert (os.environ.get("SPARK_REMOTE"), os.environ["SWEEPAREA_SPARK_MASTER"]) == (None, "local[1]")
    assert (os.environ["SPARK_REMOTE"], os.environ.get("SWEEPAREA_SPARK_MASTER")) == ("sc://mine:1", None)
    with connections.spark_of(None):
        assert os.environ["SPARK_REMOTE"] == "sc://mine:1"
