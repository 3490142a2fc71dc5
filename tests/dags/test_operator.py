from __future__ import annotations

import sys
import threading
import types
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.sdk import AssetAlias
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException

from sweeparea.dags import tasks
from sweeparea.dags.operator import SweepAreaOperator
from sweeparea.dags.timetables import UNTIL_NOW
from sweeparea.infra.errors import DataError, SweepAreaError, UsageError

DAY = timedelta(days=1)
BEGIN = datetime(2013, 1, 2, tzinfo=UTC)


class Runs:
    """Stands for the task instance: answers how many DAG runs there are in a state, by run id or logical date."""

    def __init__(self, **runs: str):
        self.runs = runs

    def get_dr_count(self, dag_id, logical_dates=None, run_ids=None, states=None):
        keys = run_ids or [d.isoformat() for d in logical_dates or ()]
        return sum(self.runs.get(key) in (states or ()) for key in keys)


@pytest.fixture
def calls(monkeypatch):
    made = []
    for name in ("admit", "process", "backfill"):
        monkeypatch.setattr(tasks, name, lambda *args, name=name: made.append((name, *args)) or {})
    return made


def execute(start, end, runs=None, conf=None, action="process"):
    operator = SweepAreaOperator(task_id="process", app="shop", subject="sales", action=action, slice=DAY)
    run = SimpleNamespace(data_interval_start=start, data_interval_end=end, conf=conf)
    return operator.execute({"dag_run": run, "ti": runs or Runs()})


@pytest.mark.parametrize("interval", [(None, None), (BEGIN, BEGIN)])
def test_a_run_without_an_interval_is_live(calls, interval):
    execute(*interval)
    assert calls == [("process", "shop", "sales", None)]


def test_a_run_with_an_interval_is_a_slice_of_a_backfill(calls):
    execute(BEGIN, BEGIN + DAY)
    assert calls == [("backfill", "shop", "sales", BEGIN, BEGIN + DAY)]


def test_a_slice_waits_for_its_running_predecessor_and_fails_after_a_failed_one(calls):
    previous = "backfill__2013-01-02T00:00:00+00:00"
    with pytest.raises(AirflowRescheduleException):
        execute(BEGIN, BEGIN + DAY, Runs(**{previous: "running"}))
    with pytest.raises(AirflowFailException, match=r"slice before 2013-01-02.* of shop\.sales has failed"):
        execute(BEGIN, BEGIN + DAY, Runs(**{previous: "failed"}))
    execute(BEGIN, BEGIN + DAY, Runs(**{previous: "queued"}))  # a reversed backfill: waiting would be for ever
    assert len(calls) == 1


def test_a_clipped_interval_of_an_earlier_backfill_leaves_no_gap(calls):
    clipped = BEGIN + timedelta(hours=9)
    execute(BEGIN, clipped)
    execute(BEGIN, clipped, Runs(**{(BEGIN + DAY).isoformat(): "queued"}))
    assert [call[-1] for call in calls] == [clipped, BEGIN + DAY]


def test_a_slice_that_had_not_ended_is_whole_whenever_it_runs(calls):
    execute(BEGIN, BEGIN + timedelta(hours=9) + UNTIL_NOW)
    assert calls == [("backfill", "shop", "sales", BEGIN, BEGIN + DAY)]


def test_the_conf_of_a_run_is_used_or_refused(calls):
    execute(None, None, conf={"until": "2013-01-02 12:00:00"})
    execute(None, None, conf={"until": 7})
    assert [call[-1] for call in calls] == ["2013-01-02 12:00:00", 7]
    for run in (
        {"start": None, "end": None, "conf": {"untill": 7}},
        {"start": BEGIN, "end": BEGIN + DAY, "conf": {"until": 7}},
        {"start": None, "end": None, "conf": {"until": 7}, "action": "admit"},
    ):
        with pytest.raises(AirflowFailException, match=r"cannot do anything with 'until+' of its conf: it takes"):
            execute(**run)
    assert len(calls) == 2


def test_a_run_that_admits_may_release_instead(monkeypatch, calls):
    made = []
    monkeypatch.setattr(tasks, "release", lambda *args: made.append(args) or {})
    execute(None, None, conf={"release": {"ids": ["3-ab"]}}, action="admit")
    assert (made, calls) == ([("shop", "sales", {"ids": ["3-ab"]})], [])
    with pytest.raises(AirflowFailException, match="'release' of its conf"):
        execute(None, None, conf={"release": {"ids": ["3-ab"]}})


@pytest.mark.parametrize("conf", ["3-ab", {"ids": []}, {"ids": "3-ab"}, {"ids": [3]}, {"where": "TRUE"}, {}, None])
def test_what_is_released_is_named(conf):
    with pytest.raises(AirflowFailException, match="The conf of a release is"):
        tasks.release("shop", "orders", conf)


def test_a_row_that_stays_in_quarantine_fails_the_run(monkeypatch):
    report = {"rows": 1, "repaired": 0, "refused": []}
    asked = job(monkeypatch, report, "release")
    assert tasks.release("shop", "orders", {"ids": ["3-ab"], "set": {"price": 3}}) == report
    assert (asked[0][2].ids, asked[0][2].assigned) == (("3-ab",), {"price": "3"})
    job(monkeypatch, {**report, "refused": [("3-ab", "it is NULL")]}, "release")
    with pytest.raises(AirflowFailException, match=r"1 rows were released\. 3-ab stays in quarantine: it is NULL"):
        tasks.release("shop", "orders", {"ids": ["3-ab"]})
    job(monkeypatch, DataError("x does not fit"), "release")
    with pytest.raises(AirflowFailException, match="does not fit"):
        tasks.release("shop", "orders", {"ids": ["3-ab"]})


def job(monkeypatch, outcome, name="process"):
    """Stands for a job; returns what it was asked."""
    asked = []

    def process(*arguments):
        asked.append(arguments)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    module = types.ModuleType("sweeparea.spark_jobs.commands.jobs")
    setattr(module, name, process)
    monkeypatch.setitem(sys.modules, "sweeparea.spark_jobs.commands.jobs", module)
    monkeypatch.setattr("sweeparea.spark_jobs.commands.jobs", module, raising=False)
    return asked


def test_nothing_to_do_is_a_skip(monkeypatch):
    job(monkeypatch, {"slices": 0, "waits_for": "orders"})
    with pytest.raises(AirflowSkipException, match="waits for orders"):
        tasks.process("shop", "sales")
    job(monkeypatch, {"slices": 2, "waits_for": None})
    assert tasks.process("shop", "sales")["slices"] == 2


def test_a_backfill_that_changed_nothing_is_a_success(monkeypatch):
    reached = {"from": "a", "to": "b", "complete": True}
    report = {"slices": 0, "recomputed": {"removed": {}, "added": {}, "rows_in": 9}, "backfill": reached}
    job(monkeypatch, report)
    assert tasks.process("shop", "sales") == report


def test_what_is_asked_for_and_means_nothing_is_not_tried_again(monkeypatch):
    job(monkeypatch, UsageError("x is no instant."))
    with pytest.raises(AirflowFailException, match="x is no instant"):
        tasks.process("shop", "sales", "x")


def test_a_backfill_beyond_the_heartbeat_succeeds_with_a_warning(monkeypatch, caplog):
    report = {"slices": 1, "committed": 7, "backfill": {"from": "a", "to": "b", "complete": False}}
    job(monkeypatch, report)
    assert tasks.process("shop", "sales") == report
    assert "done up to tick 7" in caplog.text


def test_only_errors_that_may_pass_are_tried_again(monkeypatch):
    job(monkeypatch, DataError("a bad row"))
    with pytest.raises(AirflowFailException, match="a bad row"):
        tasks.process("shop", "sales")
    job(monkeypatch, SweepAreaError("another run was faster"))
    with pytest.raises(SweepAreaError, match="another run was faster"):
        tasks.process("shop", "sales")


def test_an_environment_without_spark_is_told_in_words(monkeypatch):
    job(monkeypatch, ModuleNotFoundError("No module named 'numba.core'", name="numba.core"))
    with pytest.raises(AirflowFailException, match=r"has no numba, .* install sweeparea\[spark\] there, .* python = "):
        tasks.process("shop", "sales")
    job(monkeypatch, ModuleNotFoundError("No module named 'mine'", name="mine"))
    with pytest.raises(ModuleNotFoundError, match="mine"):
        tasks.process("shop", "sales")


class Session:
    """A Spark Connect session that notes what is interrupted, and stops answering after three."""

    def __init__(self, *tags: str):
        self.tags, self.stopped, self.done = set(tags), [], threading.Event()

    def getTags(self):
        return self.tags

    def interruptTag(self, tag):
        self.stopped.append(tag)
        if len(self.stopped) == 3:
            self.done.set()
            threading.Event().wait()  # this thread ends with the process
        return ["operation"]

    def interruptAll(self):
        return self.interruptTag("all")


@pytest.mark.parametrize(("tags", "stopped"), [(["attempt-1"], "attempt-1"), ([], "all")])
def test_a_killed_task_stops_its_work_on_the_server_and_what_it_begins_later(monkeypatch, tags, stopped):
    session, module = Session(*tags), types.ModuleType("pyspark.sql.connect.session")
    module.SparkSession = SimpleNamespace(getActiveSession=lambda: session)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", module)
    tasks.interrupt(again=0.01)
    assert session.done.wait(5)
    assert session.stopped == [stopped] * 3


def test_a_killed_task_without_spark_just_ends(monkeypatch):
    monkeypatch.delitem(sys.modules, "pyspark.sql.connect.session", raising=False)
    operator = SweepAreaOperator(task_id="process", app="shop", subject="sales", action="process", slice=DAY)
    threads = threading.active_count()
    operator.on_kill()
    # nothing is imported and nobody is asked
    assert "pyspark.sql.connect.session" not in sys.modules
    assert threading.active_count() == threads


def group(monkeypatch, outcomes, busy=()):
    """A run of a group of queries, each with its outcome; returns the report and the asset events."""
    module = types.ModuleType("sweeparea.spark_jobs.commands.jobs")

    def process_due(app, queries, is_busy, threads):
        assert (app, threads) == ("shop", 3)
        for query in queries:
            yield query, {} if is_busy(query) else outcomes[query]

    module.process_due = process_due  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sweeparea.spark_jobs.commands.jobs", module)
    monkeypatch.setattr("sweeparea.spark_jobs.commands.jobs", module, raising=False)
    told = {}
    ti = SimpleNamespace(get_dr_count=lambda dag_id, states: dag_id.removeprefix("shop__") in busy)
    operator = SweepAreaOperator(
        task_id="process",
        app="shop",
        subject="hourly",
        action="process_group",
        members={name: f"shop__{name}" for name in outcomes},
        parallelism=3,
        outlets=[AssetAlias("shop.hourly")],
    )
    events = {operator.outlets[0]: SimpleNamespace(add=lambda asset, extra: told.update({asset.name: extra}))}
    run = SimpleNamespace(data_interval_start=None, data_interval_end=None, conf=None)
    return told, lambda: operator.execute({"dag_run": run, "ti": ti, "outlet_events": events})


def test_a_group_runs_what_is_due_and_tells_of_each(monkeypatch):
    one, two = {"slices": 1}, {"slices": 0, "repaired": ["x"]}
    told, run = group(monkeypatch, {"a": one, "b": {}, "c": two, "d": {"slices": 9}}, busy=["d"])
    assert run() == {"queries": {"a": one, "c": two}}
    assert told == {"shop.a": one, "shop.c": two}
    _, run = group(monkeypatch, {"a": {}, "b": {"slices": 0}})
    with pytest.raises(AirflowSkipException):
        run()


def test_a_group_fails_when_all_are_through_and_says_which(monkeypatch):
    told, run = group(monkeypatch, {"a": DataError("a bad row"), "b": {"slices": 1}})
    with pytest.raises(AirflowFailException, match=r"1 of the group's queries failed. Done: b.\na: a bad row"):
        run()
    assert [*told] == ["shop.b"]
    _, run = group(monkeypatch, {"a": DataError("a bad row"), "b": SweepAreaError("a server that is away")})
    with pytest.raises(SweepAreaError, match="2 of the group's queries failed"):  # one of them may do the next time
        run()
