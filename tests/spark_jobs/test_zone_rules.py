"""Time zones from ``.cql`` files to tables: whose rules were used, and where Spark's Java has others."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sweeparea.infra import zones
from sweeparea.infra.errors import SetupError, SweepAreaError
from sweeparea.operators.sql.zone_texts import Spans
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.rewriting.backfill import backfill
from sweeparea.spark_jobs.spark import java_zones, machine_probe
from tests.spark_jobs import shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MEXICO, BERLIN, OTHER = "America/Mexico_City", "Europe/Berlin", "America/Vancouver"
STREAM = """
CREATE STREAM sales FROM DELTA 'source/sales' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND
  HEARTBEAT FOR at AS at CONSTRAINT local EXPECT ({} > TIMESTAMP '2000-01-01 00:00:00') ON VIOLATION QUARANTINE ROW;
"""
QUERIES = f"""
CREATE CONTINUOUS QUERY days START AT TIMESTAMP '2020-01-01 00:00:00' AS
  SELECT COUNT(*) AS n FROM sales [TUMBLING BY day IN '{MEXICO}'];
CREATE CONTINUOUS QUERY locals START AT TIMESTAMP '2020-01-01 00:00:00' MATERIALIZE ISTREAM AS
  SELECT from_utc_timestamp(at, shop) AS x FROM sales;
"""


def test_rules_of_zones_are_noted_compared_and_guarded(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    app = shop.application(tmp_path, STREAM.format(f"from_utc_timestamp(at, '{BERLIN}')") + QUERIES)
    shop.sell(tmp_path, [(0, BERLIN, 1.0, 1), (10, "Asia/Tokyo", 1.0, 1), (20, "UTC", 1.0, 1)])
    asked: list[str] = []
    found = java_zones._differences
    sixth = int(dt.datetime(2020, 1, 6, tzinfo=dt.UTC).timestamp())

    def differences(spark: SparkSession, name: str) -> Spans:
        asked.append(name)
        return found(spark, name) if name != OTHER else ((sixth, None),)

    monkeypatch.setattr(java_zones, "_differences", differences)
    monkeypatch.setattr(java_zones, "differing", lambda spark: frozenset({OTHER}))
    machine_probe.require_fit(spark, set())
    admit(app, "sales", spark)
    assert asked == [BERLIN]
    # the results are of other rules than those of today, until all are computed again
    with monkeypatch.context() as earlier:
        earlier.setattr(zones, "digest", lambda name: "old")
        process(app, "days", spark)
    process(app, "locals", spark)
    assert asked == [BERLIN, MEXICO]
    assert {row[0].strftime("%H:%M:%S") for row in shop.contents(app, "locals")} == {"13:00:00", "21:00:10"}
    told = f"the rules of the time zone {MEXICO} have changed since results of days were computed"
    shop.sell(tmp_path, [(86_400, OTHER, 1.0, 1), (86_500, "UTC", 1.0, 1)])
    admit(app, "sales", spark)
    process(app, "days", spark)
    assert app.ledger.head()["days"].info["zones"] == {MEXICO: sorted(["old", zones.digest(MEXICO)])}
    [note] = [note for note in plan(app).notes if note.startswith(told)]
    assert "backfill" in note
    backfill(app, "days", spark, shop.tick(3600), None, print)
    assert any(note.startswith(told) for note in plan(app).notes)
    backfill(app, "days", spark, None, None, print)
    assert not any(note.startswith(told) for note in plan(app).notes)
    assert "zones" not in app.ledger.head()["locals"].info
    with pytest.raises(SweepAreaError, match=f"The time zone {OTHER}: Spark's Java has other rules"):
        process(app, "locals", spark)
    # other rules count where instants reach them: in windows, and in what is judged of a source
    local = f"from_utc_timestamp(at, '{OTHER}')"
    other = shop.application(tmp_path / "other", STREAM.format(local) + QUERIES.replace(MEXICO, OTHER))
    shop.sell(tmp_path / "other", [(0, "UTC", 1.0, 1), (86_400, "UTC", 1.0, 1)])
    admit(other, "sales", spark)
    process(other, "days", spark)
    assert [row[0] for row in shop.contents(other, "days")] == [0, 1]
    shop.sell(tmp_path / "other", [(5 * 86_400, "UTC", 1.0, 1)])
    told = f"The time zone {OTHER}: .* they differ from 2020-01-06, and a row asks for them there"
    with pytest.raises(SweepAreaError, match=told):
        admit(other, "sales", spark)
    other = shop.application(tmp_path / "third", STREAM.format("at") + QUERIES.replace(MEXICO, OTHER))
    shop.sell(tmp_path / "third", [(0, "UTC", 1.0, 1), (5 * 86_400, "UTC", 1.0, 1), (5 * 86_400 + 10, "UTC", 1.0, 1)])
    admit(other, "sales", spark)
    with pytest.raises(SweepAreaError, match=told):
        process(other, "days", spark)
    # where no instant tells, they count in all years from 1970 to 2100
    fixed = STREAM.format(f"TIMESTAMP '2020-01-01 00:00:00 {OTHER}'")
    other = shop.application(tmp_path / "fourth", fixed)
    shop.sell(tmp_path / "fourth", [(0, "a", 1.0, 1)])
    with pytest.raises(SetupError, match=f"The time zone {OTHER}: .* they differ from 2020-01-06"):
        admit(other, "sales", spark)
