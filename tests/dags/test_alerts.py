"""Alerts: once an incident, with an all-clear, by whoever ``notify`` names; a notifier that fails is tried again."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from sweeparea.dags import alerts, model, tasks
from sweeparea.infra.errors import UsageError
from sweeparea.tables.publication.deployed import Deployed, DeployedRow
from sweeparea.tables.publication.incidents import Incidents
from sweeparea.tables.publication.name_kinds import NameKind

NOTIFIER = """
from airflow.sdk import BaseNotifier

SENT = []

class Told(BaseNotifier):
    template_fields = ("text",)
    fails = False

    def __init__(self, text):
        super().__init__()
        self.text = text

    def notify(self, context):
        if Told.fails:
            raise OSError("no connection")
        SENT.append(self.text)

on_call = Told("{{ alert.subject }} | {{ alert.text }}")
both = [on_call, lambda context: SENT.append(context["alert"].over)]
number = 7
"""


@pytest.fixture
def shop(home: Path) -> model.ApplicationDags:
    """The application of the name, whose query sales was deployed an hour ago and never ran."""
    folder = home / "queries" / "shop"
    (folder / "alerts.py").write_text(NOTIFIER)
    text = (folder / "shop.cql").read_text()
    text = text.replace("backfill_slice", "alert_after = '15 minutes', notify = 'alerts:both', backfill_slice")
    (folder / "shop.cql").write_text(text)
    application = model.load("shop")
    at = time.time_ns() // 1000 - 3_600_000_000
    deployed = Deployed(application.data_folder)
    deployed.register(DeployedRow("sales", NameKind.QUERY, "", "", "r", deployed_at=at))
    return application


def sent(application: model.ApplicationDags) -> list[Any]:
    """What the application's notifier has sent."""
    return alerts.found(application.name, "alerts:SENT.append")[0].__self__


def test_a_lag_is_told_once_and_its_end_once(shop: model.ApplicationDags):
    report = tasks.alert("shop", {})
    assert report == {"opened": ["lag sales"], "closed": [], "open": ["lag sales"]}
    subject = "SweepArea shop: The continuous query sales has not begun 0:15:00 after it was deployed"
    assert str(sent(shop)[0]).startswith(subject)
    assert "behind now" in str(sent(shop)[0])
    assert sent(shop)[1] is False
    with pytest.raises(AirflowSkipException):
        tasks.alert("shop", {})
    Deployed(shop.data_folder).pause("sales", True)
    assert tasks.alert("shop", {})["closed"] == ["lag sales"]
    assert [str(sent(shop)[2]).split(":")[1], sent(shop)[3], len(sent(shop))] == [" all clear", True, 4]
    assert Incidents(shop.data_folder).open() == {}


def test_a_notifier_that_fails_is_tried_again(shop: model.ApplicationDags):
    kind = type(alerts.found("shop", "alerts:on_call")[0])
    kind.fails = True
    with pytest.raises(OSError, match="no connection"):
        tasks.alert("shop", {})
    kind.fails = False
    assert tasks.alert("shop", {})["opened"] == ["lag sales"]
    assert len(sent(shop)) == 2


def test_a_failure_is_told_once_until_the_dag_succeeds_again(shop: model.ApplicationDags):
    calls = alerts.callbacks(shop, shop.queries["sales"].scheduling.notify)
    ti = SimpleNamespace(dag_id="shop__sales", task_id="process", run_id="run 1")
    context = {"ti": ti, "exception": ValueError("a bad row")}
    calls["on_success_callback"](context)
    assert sent(shop) == []
    for _ in range(2):
        calls["on_failure_callback"](context)
    calls["on_success_callback"](context)
    calls["on_success_callback"](context)
    told = [text for text in sent(shop) if isinstance(text, str)]
    assert len(told) == 2
    assert "process of the DAG shop__sales has failed (run run 1). ValueError: a bad row" in told[0]
    assert "all clear: The DAG shop__sales succeeded again" in told[1]
    assert alerts.callbacks(shop, None) == {}


def test_who_is_no_notifier_is_named(shop: model.ApplicationDags):
    for target, why in (
        ("alerts:number", "names 7, which is no notifier"),
        ("alerts:nobody", "nobody"),
        ("alarms:on_call", "There is no Python module alarms"),
    ):
        with pytest.raises(UsageError, match=why):
            alerts.found("shop", target)
