"""Expectations that are not met are alerted of once, and once when they are met again, through the same notifiers."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from sweeparea.dags import alerts, model
from sweeparea.quality import records
from sweeparea.quality.verdict import Verdict
from sweeparea.tables.publication.incidents import Incidents
from sweeparea.tables.publication.info import QueryInfo
from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from tests.dags.test_alerts import sent
from tests.dags.test_alerts import shop as shop  # a fixture

HOUR = 3_600_000_000


def commit(application: model.ApplicationDags, *broken: int, severity: str = "warning") -> None:
    """A slice of sales for each number of rows that break its constraint."""
    ledger = Ledger(application.data_folder)
    for n in broken:
        publication = Publication(application.data_folder, ledger, "sales", NameKind.QUERY, "r")
        attempt, previous = publication.begin(), publication.previous
        tick = (previous.committed or 0) + 1 if previous else 1
        result = {
            "id": "constraint:small", "type": "t", "severity": severity, "status": "fail" if n else "pass",
            "unexpected": n, "observed": None, "error": None, "sample": [], "meta": {},
        }  # fmt: skip
        told = records.entry("sales", Verdict(True, [result], 0.0, 10))
        info = QueryInfo(h0=tick - 1, chronon=HOUR, verdicts=[told], judged=attempt)
        publication.commit(tick, {}, info.to_json())


def run(application: model.ApplicationDags, *broken: int, severity: str = "warning", fails: bool = False) -> list[str]:
    """One run of the query's task that commits so; returns what it sent."""
    calls = alerts.callbacks(application, "alerts:on_call", ["sales"])
    context: dict[str, Any] = {
        "ti": SimpleNamespace(dag_id="shop__sales", task_id="process", run_id="r", start_date=datetime.now(UTC))
    }
    before = len(sent(application))
    commit(application, *broken, severity=severity)
    calls["on_failure_callback" if fails else "on_success_callback"](context)
    return [text for text in sent(application)[before:] if isinstance(text, str)]


def test_an_expectation_that_is_not_met_is_told_once_and_its_end_once(shop: model.ApplicationDags):
    assert run(shop, 0) == []
    (told,) = run(shop, 0, 3)
    assert "constraint:small of sales is not met: 3 of 10 rows break it (commit 3, up to 1970-01-01 03:00:00)" in told
    assert [*Incidents(shop.data_folder).open()] == ["quality sales constraint:small"]
    assert run(shop, 4, 4) == []
    (over,) = run(shop, 5, 0)
    assert "all clear: constraint:small of sales is not met: 3 of 10" in over
    assert Incidents(shop.data_folder).open() == {}
    (both,) = run(shop, 7, 0)  # between two runs, as it were
    assert "7 of 10" in both
    assert "All clear" in both
    assert run(shop, 0) == []


def test_a_run_that_fails_in_the_end_tells_of_what_it_committed(shop: model.ApplicationDags):
    told = run(shop, 2, fails=True)
    assert ["has failed" in told[0], "2 of 10" in told[1]] == [True, True]


@pytest.mark.parametrize(("setting", "count"), [("off", 0), ("warn", 0), ("all", 1)])
def test_rows_that_were_kept_out_alert_where_that_is_asked_for(
    shop: model.ApplicationDags,
    setting: str,
    count: int,
):
    from dataclasses import replace

    assert len(run(replace(shop, alert_quality=setting), 1, severity="info")) == count
