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


def test_our_own_type_is_a_server_or_a_master_by_its_host():
    ours = connection("sweeparea_spark", "spark.example", 7, login="ann")
    assert connections.environment(ours) == {"SPARK_REMOTE": "sc://spark.example:7/;user_id=ann"}
    extra = {"driver_host": "10.0.0.7", "executor_memory": "2g", "worker_python": "", "python": "/p"}
    cluster = connection("sweeparea_spark", "spark://h", 7077, extra_dejson=extra)
    assert connections.environment(cluster) == {
        "SWEEPAREA_SPARK_MASTER": "spark://h:7077",
        "SWEEPAREA_DRIVER_HOST": "10.0.0.7",
        "SWEEPAREA_EXECUTOR_MEMORY": "2g",
    }
    assert connections.environment(connection("sweeparea_spark", "local[2]")) == {"SWEEPAREA_SPARK_MASTER": "local[2]"}


def test_the_keys_of_an_object_store():
    extra = {"endpoint_url": "http://127.0.0.1:9000", "region_name": "eu-central-1", "other": 1}
    for kind in ("sweeparea_storage", "aws"):
        assert connections.keys(connection(kind, None, login="id", password="secret", extra_dejson=extra)) == {
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
            "AWS_REGION": "eu-central-1",
        }
    with pytest.raises(UsageError, match="The connection prod of Airflow's is of type http"):
        connections.keys(connection("http", "h"))


def test_keys_hold_for_the_task_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    found = connection("aws", None, login="id", password="secret")
    monkeypatch.setattr("airflow.sdk.BaseHook.get_connection", lambda name: found)
    with connections.storage_of("lake"):
        assert (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]) == ("id", "secret")
    assert (os.environ["AWS_ACCESS_KEY_ID"], os.environ.get("AWS_SECRET_ACCESS_KEY")) == ("mine", None)


def test_it_holds_for_the_task_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://mine:1")
    monkeypatch.delenv("SWEEPAREA_SPARK_MASTER", raising=False)
    monkeypatch.setattr("airflow.sdk.BaseHook.get_connection", lambda name: connection("spark", "local[1]"))
    with connections.spark_of("prod"):
        assert (os.environ.get("SPARK_REMOTE"), os.environ["SWEEPAREA_SPARK_MASTER"]) == (None, "local[1]")
    assert (os.environ["SPARK_REMOTE"], os.environ.get("SWEEPAREA_SPARK_MASTER")) == ("sc://mine:1", None)
    with connections.spark_of(None):
        assert os.environ["SPARK_REMOTE"] == "sc://mine:1"
