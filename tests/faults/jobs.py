"""Scenarios with Spark: what the jobs admit, process and repair. See ``publications.py`` for what a scenario is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from deltalake import DeltaTable

from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.admission.sources import source_rows
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.apply import apply
from sweeparea.spark_jobs.orchestration.drop import drop
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.rewriting.backfill import backfill
from sweeparea.spark_jobs.spark.session import spark_session
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.folders import tables_in
from tests.spark_jobs import shop

LARGE = """
CREATE CONTINUOUS QUERY large START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT ISTREAM shop, amount FROM sales WHERE amount > 0.15;
"""
LOOKING_BACK = """
CREATE CONTINUOUS QUERY busy START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT shop, most FROM turnover WHERE n > 1;
"""
KINDS = ("admitted", "quarantine", "results", "state")
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

    def sell(self, folder: str, day: Day) -> None:
        shop.sell(Path(folder), day)

    def prepare(self, folder: str) -> None:
        for day in self.before:
            self.sell(folder, day)
            self.work(folder)
        self.sell(folder, self.day)

    def run(self, folder: str) -> None:
        self.work(folder)

    def work(self, folder: str) -> None:
        application = self.application(folder)
        with spark_session() as spark:
            admit(application, "sales", spark)
            for query in self.queries:
                process(application, query, spark)

    def after(self, folder: str) -> None:
        self.sell(folder, self.later)
        self.work(folder)


class Drop(Jobs):
    """A query is dropped; afterwards the next run computes it anew."""

    def run(self, folder: str) -> None:
        drop(self.application(folder), self.queries[0])


@dataclass(frozen=True)
class Replace(Jobs):
    """Definitions are replaced: built beside the results of ``old`` ones, exchanged, and gone on with."""

    old: str = ""

    def prepare(self, folder: str) -> None:
        Jobs(self.old, self.queries, self.before, self.day, self.later).prepare(folder)

    def run(self, folder: str) -> None:
        application = self.application(folder)
        apply(application, plan(application, beside=True), session=spark_session)
        self.work(folder)


class InPlace(Replace):
    """The old results are taken away at once, and the new ones computed by the next runs."""

    def run(self, folder: str) -> None:
        application = self.application(folder)
        apply(application, plan(application))
        self.work(folder)


class Backfill(Jobs):
    """Results that something has damaged are computed again, and the queries that read them follow."""

    def prepare(self, folder: str) -> None:
        super().prepare(folder)
        shop.damage(self.application(folder), self.queries[0])

    def run(self, folder: str) -> None:
        application = self.application(folder)
        with spark_session() as spark:
            backfill(application, self.queries[0], spark, None, shop.tick(30), lambda text: None)
        self.work(folder)


class Landed(Jobs):
    """Sales that come as files, which Spark itself reads and writes into a table of the data folder."""

    def sell(self, folder: str, day: Day) -> None:
        place = Path(folder) / "data/in"
        place.mkdir(parents=True, exist_ok=True)
        lines = [
            json.dumps({"at": None if s is None else str(shop.NOON + timedelta(seconds=s)), "shop": name} | rest)
            for s, name, amount, items in day
            for rest in ({"amount": amount, "items": items},)
        ]
        half = place / ".half"
        half.write_text("\n".join(lines))
        half.rename(place / f"{len(list(place.iterdir()))}.json")


class Netted(Jobs):
    """Each day rows of the days before are changed, which Spark itself finds out, as for versions of a million rows."""

    def sell(self, folder: str, day: Day) -> None:
        shop.sell(Path(folder), day)
        DeltaTable(f"{folder}/data/source/sales").update({"items": "items + 1"}, predicate="shop = 'a'")

    def work(self, folder: str) -> None:
        source_rows.LARGE = 2
        super().work(folder)


_OLD = shop.STREAM + (shop.QUERY + LOOKING_BACK).replace("CREATE C", "CREATE OR REPLACE C")
_NEW = _OLD.replace("60 SECONDS", "30 SECONDS")
_LANDED = """
CREATE STREAM sales FROM FORMAT 'json' PATH 'in' SCHEMA (at TIMESTAMP, shop STRING, amount DOUBLE, items BIGINT)
  TIMESTAMP BY at CHRONON INTERVAL 1 SECOND HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS;
"""
_REPAIRED = shop.STREAM.replace("  CONSTRAINT", "  LATE REPAIR WITHIN INTERVAL 1 HOUR\n  CONSTRAINT")
_SCENARIOS = {
    "stream": Jobs(shop.STREAM + LARGE, ("large",), (shop.DAYS[0],), shop.DAYS[1], shop.DAYS[2]),
    "relation": Jobs(shop.STREAM + shop.QUERY, ("turnover",), (shop.DAYS[0],), shop.DAYS[1], shop.DAYS[2]),
    "first": Jobs(shop.STREAM + shop.QUERY, ("turnover",), (), shop.DAYS[0], shop.DAYS[1]),
    "drop": Drop(shop.STREAM + shop.QUERY, ("turnover",), (shop.DAYS[0],), shop.DAYS[1], shop.DAYS[2]),
    "repair": Jobs(
        _REPAIRED + shop.QUERY + LOOKING_BACK, ("turnover", "busy"), (shop.DAYS[0], shop.DAYS[1]), LATE, shop.DAYS[2]
    ),
    "replace": Replace(_NEW, ("turnover", "busy"), (shop.DAYS[0],), shop.DAYS[1], shop.DAYS[2], _OLD),
    "columns": Replace(
        _NEW.replace("COUNT(*) AS n", "COUNT(*) AS n, MIN(items) AS least"),
        ("turnover", "busy"),
        (shop.DAYS[0],),
        shop.DAYS[1],
        shop.DAYS[2],
        _OLD,
    ),
    "in_place": InPlace(_NEW, ("turnover", "busy"), (shop.DAYS[0],), shop.DAYS[1], shop.DAYS[2], _OLD),
    # Spark's checkpoint names files by where they lie, so nothing may have been landed before the folder is copied
    "landed": Landed(_LANDED + shop.QUERY, ("turnover",), (), shop.DAYS[0], shop.DAYS[1]),
    "netted": Netted(
        shop.STREAM.replace("  CONSTRAINT", "  ON SOURCE CHANGE CORRECT\n  CONSTRAINT") + shop.QUERY,
        ("turnover",),
        (shop.DAYS[0],),
        shop.DAYS[1],
        shop.DAYS[2],
    ),
    "backfill": Backfill(
        shop.STREAM + shop.QUERY + LOOKING_BACK, ("turnover", "busy"), (shop.DAYS[0],), shop.DAYS[1], shop.DAYS[2]
    ),
}


def prepare(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].prepare(folder)


def run(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].run(folder)


def after(scenario: str, folder: str) -> None:
    _SCENARIOS[scenario].after(folder)


def by_spark(folder: str, statement: str, *kinds: str) -> int:
    """A user's statement in Spark SQL on every table, SweepAreas and admitted elements too: ``{}`` is its address.

    Returns how many commits that made. ``kinds``: folders of the tables that are meant.
    """
    made = 0
    with spark_session() as spark:
        # VACUUM below the retention
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        # and not in the 10,000 tasks that it lists files with by default
        spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
        for uri in [uri for kind in kinds or KINDS for uri in tables_in(f"{folder}/data/{kind}")]:
            before = DeltaLog(uri).version()
            spark.sql(statement.format(f"delta.`{uri}`")).collect()
            made += DeltaLog(uri).version() - before
    return made
