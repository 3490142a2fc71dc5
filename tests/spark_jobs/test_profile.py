"""What was admitted as constraints to paste: true of what they were made of, and of the language."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from sweeparea.infra.errors import UsageError
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.profile import profile
from tests.spark_jobs import shop

TEXT = """
CREATE STREAM orders FROM DELTA 'source/orders' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND
  HEARTBEAT FOR at AS at - INTERVAL 1 HOUR LATE REPAIR;
CREATE STREAM ticks FROM DELTA 'source/ticks' TIMESTAMP BY n HEARTBEAT FOR n AS n - 5;
CREATE RELATION r FROM DELTA 'source/r' STATIC;
"""
START = datetime(2024, 1, 1, tzinfo=UTC)


def orders(begin: int, count: int, late: int) -> pa.Table:
    """``count`` orders, five minutes apart; ``late``: minutes by which the first is before its turn."""
    rows = range(begin, begin + count)
    at = [START + timedelta(minutes=5 * i - (late if i == begin else 0)) for i in rows]
    return pa.table(
        {
            "id": pa.array([f"o-{i}" for i in rows]),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "state of it": pa.array([("new", "it's paid", "sent;")[i % 3] for i in rows]),
            "amount": pa.array([float("nan") if i == 7 else 0.1 * i for i in rows]),
            "price": pa.array([Decimal(i % 1000) / 100 for i in rows], pa.decimal128(9, 2)),
            "note": pa.array([None if i % 50 == 0 else f"n{i}" for i in rows]),
            "flag": pa.array([i % 2 == 0 for i in rows]),
            "tags": pa.array([[i] for i in rows], pa.list_(pa.int64())),
            "größe": pa.array([i % 7 - 3 for i in rows], pa.int32()),
        }
    )


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Application:
    folder = tmp_path_factory.mktemp("profile")
    app = shop.application(folder, TEXT)
    for number, late in enumerate([0, 0, 0, 50, 0, 0, 200, 0]):
        write_deltalake(str(folder / "data/source/orders"), orders(number * 288, 288, late), mode="append")
    ticks = pa.table({"n": pa.array(range(100), pa.int64()), "x": pa.array([1] * 100, pa.int64())})
    write_deltalake(str(folder / "data/source/ticks"), ticks)
    write_deltalake(str(folder / "data/source/r"), ticks)
    for name in ("orders", "ticks"):
        admit(app, name, spark)
    return app


def test_a_profile_says_what_there_was(app: Application):
    text = profile(app, "orders")
    lines = text.splitlines()
    for told in (
        "  CONSTRAINT id_known EXPECT (id IS NOT NULL) ON VIOLATION QUARANTINE ROW",
        "  CONSTRAINT state_of_it_in_set EXPECT (`state of it` IN ('it\\'s paid', 'new', 'sent;')) ON VIOLATION WARN",
        "  CONSTRAINT amount_in_range EXPECT (amount BETWEEN 0.0E0 AND 230.3E0 OR isnan(amount)) ON VIOLATION WARN",
        "  CONSTRAINT price_in_range EXPECT (price BETWEEN 0.00 AND 9.99) ON VIOLATION WARN",
        "  CONSTRAINT id_unique EXPECT gx.expect_column_values_to_be_unique(column => 'id') PER INTERVAL 1 DAY"
        " ON VIOLATION WARN",
        "  CONSTRAINT gr__e_in_set EXPECT (`größe` IN (-3, -2, -1, 0, 1, 2, 3)) ON VIOLATION WARN",
    ):
        assert told in lines
    assert any("note STRING: 47 NULLs of 2,304" in line for line in lines)
    assert "mostly => 0.979" in text
    assert "flag_in_set" not in text
    assert "CONSTRAINT volume_usual EXPECT VOLUME WITHIN 4 DEVIATIONS OF LAST" in text


def test_each_choice_of_a_heartbeat_says_what_it_would_have_kept_out(app: Application):
    lines = profile(app, "orders").splitlines()
    choices = [re.search(r"--   INTERVAL (\d+) (\w+): ([\d,]+) of 2,304 rows", line) for line in lines]
    told = {(int(m[1]), m[2].rstrip("S")): int(m[3]) for m in choices if m}
    # the first of a commit that is 50 minutes early is 45 behind the one before, the other 195
    assert told == {(195, "MINUTE"): 0, (45, "MINUTE"): 1, (1, "SECOND"): 2}
    assert "  HEARTBEAT FOR at AS at - INTERVAL 1 SECOND" in lines
    assert "  LATE REPAIR WITHIN INTERVAL 195 MINUTES" in lines


def test_what_is_proposed_passes_plan_and_admits_all_that_it_was_made_of(
    app: Application, spark: SparkSession, tmp_path: Path
):
    text = profile(app, "orders") + profile(app, "ticks")
    again = shop.application(tmp_path, text)
    again = Application.open(tmp_path / "shop", app.data)
    with again.analyzing(spark):
        for name in ("orders", "ticks"):
            again.sources.check(name)
            assert again.sources.expectations(name)
    fresh = Application.open(tmp_path / "shop", tmp_path / "data")
    for number in range(4):
        write_deltalake(
            str(tmp_path / "data/source/orders"), orders(number * 288, 288, 50 * (number == 3)), mode="append"
        )
    report = admit(fresh, "orders", spark)
    assert (report.rows, dict(report.quarantined), dict(report.warned)) == (4 * 288, {}, {})


def test_only_streams_that_have_admitted_have_a_profile(app: Application):
    with pytest.raises(UsageError, match="r is no stream"):
        profile(app, "r")
    with pytest.raises(UsageError, match="zz is not declared"):
        profile(app, "zz")
