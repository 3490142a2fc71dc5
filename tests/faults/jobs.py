"""Scenarios with Spark: what the jobs admit, process and repair. See ``publications.py`` for what a scenario is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.deployment.application import Application
from sweeparea.spark_jobs.deployment.drop import drop
from sweeparea.spark_jobs.session import spark_session
from sweeparea.spark_jobs.slices.process import process
from tests.spark_jobs import shop

LARGE = """
CREATE CONTINUOUS QUERY large START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT ISTREAM shop, amount FROM sales WHERE amount > 0.15;
"""
LOOKING_BACK = """
CREATE CONTINUOUS QUERY busy START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT shop, most FROM turnover WHERE n > 1;
"""
Day = list[tuple[int | None, str, float, int]]
LATE: Day = [(20, "a", 0.5, 9), (33, "b", 16.0, 2)]


@dataclass(frozen=True)
class Jobs:
    """Days of sales, and what is run after each: ``before`` undisturbed, ``day`` under fire, ``later`` afterwards."""

    text: str
    queries: tuple[str, ...]
    before: tuple[Day, ...]
    day: Day
    later: Day

    def application(self, folder: str) -> Application:
        return shop.application(Path(folder), self.text)

    def prepare(self, folder: str) -> None:
        for day in self.before:
            shop.sell(Path(folder), day)
            self.work(folder)
        shop.sell(Path(folder), self.day)

    def run(self, folder: str) -> None:
        self.work(folder)

    def work(self, folder: str) -> None:
        application = self.application(folder)
        with spark_session() as spark:
            admit(application, "sales", spark)
            for query in self.queries:
                process(application, query, spark)

    def after(self, folder: str) -> None:
        shop.sell(Path(folder), self.later)
        self.work(folder)


class Drop(Jobs):
    """A query is dropped; afterwards the next run computes it anew."""

    def run(self, folder: str) -> None:
        drop(self.application(folder), self.queries[0])


_REPAIRED = shop.STREAM.replace("  CONSTRAINT", "  LATE REPAIR WITHIN INTERVAL 1 HOUR\n  CONSTRAINT")
_SCENARIOS = {
    "stream": Jobs(shop.STREAM + LARGE, ("large",), (shop.DAYS[0],), shop.DAYS[1], shop.DAYS[2]),
    "relation": Jobs(shop.STREAM + shop.QUERY, ("turnover",), (shop.DAYS[0],), shop.DAYS[1], shop.DAYS[2]),
    "first": Jobs(shop.STREAM + shop.QUERY, ("turnover",), (), shop.DAYS[0], shop.DAYS[1]),
    "drop": Drop(shop.STREAM + shop.QUERY, ("turnover",), (shop.DAYS[0],), shop.DAYS[1], shop.DAYS[2]),
    "repair": Jobs(
        _REPAIRED + shop.QUERY + LOOKING_BACK, ("turnover", "busy"), (shop.DAYS[0], shop.DAYS[1]), LATE, shop.DAYS[2]
    ),
}


def prepare(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].prepare(folder)


def run(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].run(folder)


def after(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].after(folder)
