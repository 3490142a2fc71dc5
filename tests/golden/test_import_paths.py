"""Names of modules and classes that others hold: users' code, Airflow's database, Spark's settings."""

from __future__ import annotations

import importlib
import os
import tempfile

import pytest

# Airflow writes a configuration file into its home when it is imported: here that must not be the user's
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="sweeparea-airflow-"))

HELD = {
    "sweeparea.operators.user": ["function", "aggregate", "window", "UserCode", "UserCodeError"],
    "sweeparea.heartbeats.trigger": ["BehindTrigger"],
    "sweeparea.heartbeats.user_policy": ["PolicyVersion"],
    "sweeparea.dags.timetables": ["HeartbeatSchedule"],
    "sweeparea.infra.worker_daemon": ["MODULE"],
}
"""Users' modules import the first; Airflow stores triggers and timetables by their paths; Spark starts the last."""


@pytest.mark.parametrize("module", HELD)
def test_import_paths_that_others_hold_stay(module: str) -> None:
    found = importlib.import_module(module)
    for name in HELD[module]:
        held = getattr(found, name)
        # what Airflow asks a class for when it stores it
        assert getattr(held, "__module__", module) == module
        assert getattr(held, "__qualname__", name) == name


def test_a_trigger_is_stored_under_its_path_and_made_again_from_its_arguments() -> None:
    trigger = importlib.import_module("sweeparea.heartbeats.trigger")
    watched = {
        "data_folder": "/d", "sources": {"s": "/s"}, "pinned": [], "clocks": [], "queries": {"q": ["s"]}, "formats": {},
    }  # fmt: skip
    path, arguments = trigger.BehindTrigger("q", watched, 0.5, 30.0).serialize()
    assert path == "sweeparea.heartbeats.trigger.BehindTrigger"
    assert arguments == {"name": "q", "watched": watched, "poll": 0.5, "refire": 30.0}
    assert trigger.BehindTrigger(**arguments).serialize() == (path, arguments)
    assert trigger.Watched(**arguments["watched"]).queries == {"q": ["s"]}


def test_spark_starts_the_daemon_by_its_path() -> None:
    from sweeparea.infra import worker_daemon

    assert worker_daemon.MODULE == "sweeparea.infra.worker_daemon"
