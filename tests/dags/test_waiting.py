"""Operator and sensor in DAGs of one's own: when they wait, what they run, how they end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
    TaskDeferred,
)

from sweeparea.dags import ResultSensor, SweepAreaProcessOperator, tasks
from sweeparea.heartbeats.result import Reached
from sweeparea.heartbeats.result_trigger import ResultTrigger


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """How far ``sales`` and its inputs are, as ticks of a second; what is asked about it is kept."""
    state = SimpleNamespace(committed=None, ready=None, asked=[])

    def look(trigger: ResultTrigger) -> Reached:
        state.asked.append((trigger.data_folder, trigger.query, trigger.up_to, trigger.inputs, trigger.poll))
        return Reached(100, state.committed, state.ready, 1_000_000, False)

    monkeypatch.setattr(ResultTrigger, "look", look)
    return state


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list:
    """The jobs that were run."""
    calls: list = []

    def process(*arguments: object) -> dict:
        calls.append(arguments)
        return {"slices": 2 if len(calls) == 1 else 0}

    module = SimpleNamespace(process=process)
    monkeypatch.setattr("sweeparea.dags.second_python.jobs", lambda: module)
    return calls


def sensor(home: Path, **more) -> ResultSensor:
    application = home / "queries" / "shop"
    return ResultSensor(task_id="wait", application=application, query="sales", up_to="2024-01-01", **more)


def test_a_sensor_defers_until_the_result_is_there(home: Path, far):
    with pytest.raises(TaskDeferred) as deferred:
        sensor(home, poke_interval=3, timeout=60).execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, ResultTrigger)
    folder = str(home / ".data" / "shop")
    assert far.asked == [(folder, "sales", "2024-01-01", ["orders", "products"], 3.0)]
    assert (deferred.value.method_name, deferred.value.timeout) == ("execute_complete", timedelta(seconds=60))
    assert not trigger.of_inputs
    far.committed, far.ready = 100, 120
    told = "committed up to 1970-01-01 00:01:40, its inputs up to 1970-01-01 00:02:00"
    assert sensor(home).execute_complete({}, {"reached": True}) == told
    assert sensor(home).execute({}) == told  # there already: nothing is deferred
    assert sensor(home, deferrable=False).execute({}) == told
    far.committed = 99
    assert sensor(home, deferrable=False).poke({}) is False


def test_a_sensor_of_what_there_is_not_fails_at_once(home: Path):
    with pytest.raises(AirflowFailException, match=r"no continuous query 'sale'. There are: sales, surges"):
        ResultSensor(task_id="w", application=home / "queries" / "shop", query="sale", up_to=1).execute({})
    with pytest.raises(AirflowFailException, match=r"no .cql files in /no/such"):
        ResultSensor(task_id="w", application="/no/such", query="sale", up_to=1).execute({})
    with pytest.raises(AirflowFailException, match="no instant"):
        sensor(home).execute_complete({}, {"error": "it is no instant", "final": True})
    with pytest.raises(AirflowException, match="unmounted"):
        sensor(home).execute_complete({}, {"error": "unmounted"})


def operator(home: Path, **more) -> SweepAreaProcessOperator:
    return SweepAreaProcessOperator(task_id="run", application="shop", query="sales", **more)


def test_an_operator_runs_the_query_and_idle_runs_succeed(home: Path, ran):
    assert operator(home).execute({}) == {"slices": 2}
    assert operator(home, until=7).execute({}) == {"slices": 0}
    assert ran == [("shop", "sales", None), ("shop", "sales", "7")]
    with pytest.raises(AirflowSkipException):
        operator(home, skip_if_idle=True).execute({})


def test_an_operator_waits_for_inputs(home: Path, far, ran):
    waiting = operator(home, until="2024-01-01", wait=True, poll=2.0)
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    assert deferred.value.trigger.of_inputs  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AirflowRescheduleException):
        operator(home, until="2024-01-01", wait=True, deferrable=False).execute({})
    assert ran == []
    assert waiting.execute_complete({}, {"reached": True}) == {"slices": 2}
    far.ready = 100
    waiting.execute({})
    assert ran == [("shop", "sales", "2024-01-01")] * 2
    with pytest.raises(ValueError, match="wait=True needs until"):
        operator(home, wait=True)


def test_a_killed_operator_stops_its_work(home: Path, monkeypatch: pytest.MonkeyPatch):
    stopped: list = []
    monkeypatch.setattr(tasks, "interrupt", lambda: stopped.append(1))
    operator(home).on_kill()
    assert stopped == [1]
