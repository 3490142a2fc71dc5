"""HEARTBEAT FROM CLOCK and a clock that jumps: nothing stands still after it is back, what is late is said."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sweeparea.spark_jobs.admission import admit as admission
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands import input_status
from sweeparea.spark_jobs.commands.status import status
from sweeparea.spark_jobs.orchestration.process import process
from tests.spark_jobs import shop

pytestmark = pytest.mark.spark

MINUTE, HOUR, DAY = 60, 3600, 86_400
CLOCK = shop.STREAM.replace("FOR at AS at - INTERVAL 10 SECONDS", "FROM CLOCK LAG INTERVAL 1 MINUTE")


class Jumps:
    """The application with a clock of its own: seconds after noon."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
        self.now, self.folder, self.said = 0, folder, list[str]()
        for module in (admission, input_status):
            monkeypatch.setattr(module, "now_micros", self.micros)
        self.app: Application = shop.application(folder, text)

    def micros(self) -> int:
        return (shop.NOON + timedelta(seconds=self.now) - shop.EPOCH) // timedelta(microseconds=1)

    def at(self, spark, now: int, rows: shop.Rows | None = None, results: bool = False) -> int:
        """Reads at ``now`` what was sold, and computes ``results``; returns the heartbeat as seconds after noon."""
        self.now, self.said = now, []
        if rows:
            shop.sell(self.folder, rows)
        report = admit(self.app, "sales", spark, tell=self.said.append)
        if results:
            process(self.app, "turnover", spark)
        assert report.heartbeat is not None
        return report.heartbeat - shop.tick(0)

    @property
    def words(self) -> str:
        return "".join(text for text in self.said if "clock" in text)


def test_back_by_hours_it_waits_and_goes_on_at_once_when_it_is_back(spark, tmp_path, monkeypatch):
    jumps = Jumps(monkeypatch, tmp_path, CLOCK + shop.QUERY)
    assert jumps.at(spark, 10 * MINUTE, [(MINUTE, "a", 1.0, 1)]) == 9 * MINUTE - 1
    assert jumps.words == ""
    assert jumps.at(spark, -3 * HOUR, [(10 * MINUTE, "a", 2.0, 1)]) == 9 * MINUTE - 1
    assert "sales: its heartbeat is 3:10:00 ahead of the clock, which was set back" in jumps.words
    assert "is 3:10:00 ahead of the clock" in status(jumps.app)
    assert jumps.at(spark, 20 * MINUTE, [(12 * MINUTE, "a", 4.0, 1)]) == 19 * MINUTE - 1
    assert jumps.words == ""
    assert "ahead of the clock" not in status(jumps.app)
    row = jumps.app.ledger.head()["sales"]
    assert (row.of_source.totals or {}).get("late", 0) == 0


def test_forwards_by_a_day_late_elements_are_told_and_repaired_where_that_is_declared(spark, tmp_path, monkeypatch):
    found = {}
    days: list[shop.Rows] = [
        [(MINUTE, "a", 1.0, 1)],
        [(11 * MINUTE, "a", 2.0, 1), (12 * MINUTE, "b", 3.0, 1)],
        [(21 * MINUTE, "a", 4.0, 1)],
    ]
    for name, late, clock in (
        ("steady", " LATE REPAIR", (10 * MINUTE, 20 * MINUTE, 30 * MINUTE)),
        ("repair", " LATE REPAIR", (10 * MINUTE, DAY, 30 * MINUTE)),
        ("reject", "", (10 * MINUTE, DAY, 30 * MINUTE)),
    ):
        jumps = Jumps(monkeypatch, tmp_path / name, CLOCK.replace("1 MINUTE", f"1 MINUTE{late}") + shop.QUERY)
        for now, rows in zip(clock, days, strict=True):
            jumps.at(spark, now, rows, results=name != "reject")
        told = jumps.words
        end = jumps.at(spark, DAY + HOUR, results=name != "reject")  # the clock has come there
        assert end == DAY + HOUR - MINUTE - 1
        assert ("23:30:00 ahead of the clock" in told) is (name != "steady"), told
        found[name] = shop.contents(jumps.app, "turnover") if name != "reject" else []
        kept_out = (jumps.app.ledger.head()["sales"].of_source.totals or {}).get("quarantined", 0)
        assert kept_out == (1 if name == "reject" else 0)
    assert found["repair"] == found["steady"] != []
    assert DeltaTable(str(tmp_path / "reject/data/source/sales")).version() == 2
