"""What was admitted as constraints to paste: true of what they were made of, and of the language."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from sweeparea.infra.errors import UsageError
from sweeparea.spark_jobs.admission.judging.stage import Stage
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.profile import profile
from sweeparea.spark_jobs.orchestration import planner
from sweeparea.tables.publication.info import SourceInfo
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
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


def admitted(app: Application, name: str, rows: pa.Table, ticks: list[int], heartbeat: int) -> None:
    """A commit of a stream, as ``admit`` makes it, without Spark."""
    registration = app.registry.registration(name, app.ledger.head().get(name))
    publication = Publication(str(app.data), app.ledger, name, NameKind.STREAM, registration)
    stage = Stage(publication, publication.begin(), list(rows.schema))
    stamped = rows.append_column("__tick", pa.array(ticks, pa.int64()))
    stage.admit(stamped.append_column("__n", pa.array([1] * rows.num_rows, pa.int64())))
    stage.commit(
        heartbeat, SourceInfo(source_version=stage.seq - 1, chronon=app.plans.input_schema(name).time.clock).to_json()
    )


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Application:
    folder = tmp_path_factory.mktemp("profile")
    app = shop.application(folder, TEXT)
    for number, late in enumerate([0, 0, 0, 50, 0, 0, 200, 0]):
        rows = orders(number * 288, 288, late)
        write_deltalake(str(folder / "data/source/orders"), rows, mode="append")
    ticks = pa.table({"n": pa.array(range(100), pa.int64()), "x": pa.array([1] * 100, pa.int64())})
    write_deltalake(str(folder / "data/source/ticks"), ticks)
    write_deltalake(str(folder / "data/source/r"), ticks)
    for number, late in enumerate([0, 0, 0, 50, 0, 0, 200, 0]):
        rows = orders(number * 288, 288, late)
        seconds = [int(at.timestamp()) for at in rows.column("at").to_pylist()]
        admitted(app, "orders", rows, seconds, max(seconds) - 3_600)
    admitted(app, "ticks", ticks, list(range(100)), 94)
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
    assert not re.search("at_known|amount_unique", text)
    once = profile(app, "ticks")
    assert "  HEARTBEAT FOR n AS n - 5" in once.splitlines()
    assert "one commit" in once
    assert "CONSTRAINT volume_usual EXPECT VOLUME WITHIN 4 DEVIATIONS OF LAST" in text


def test_each_choice_of_a_heartbeat_says_what_it_would_have_kept_out(app: Application):
    lines = profile(app, "orders").splitlines()
    choices = [re.search(r"--   INTERVAL (\d+) (\w+): ([\d,]+) of 2,304 rows", line) for line in lines]
    told = {(int(m[1]), m[2].rstrip("S")): int(m[3]) for m in choices if m}
    # the first of a commit that is 50 minutes early is 45 behind the one before, the other 195
    assert told == {(195, "MINUTE"): 0, (1, "SECOND"): 2}
    assert "  HEARTBEAT FOR at AS at - INTERVAL 1 SECOND" in lines
    assert "  LATE REPAIR WITHIN INTERVAL 195 MINUTES" in lines


def test_what_is_proposed_passes_plan_and_can_be_declared_in_place_of_what_was(app: Application, tmp_path: Path):
    shop.application(tmp_path, profile(app, "orders") + profile(app, "ticks"))
    again = Application.open(tmp_path / "shop", app.data)
    planned = planner.plan(again)
    assert [str(problem) for problem in planned.problems] == []
    assert {e.name for e in again.sources.expectations("orders")} == {"id_unique", "note_mostly_known", "volume_usual"}
    heartbeat, constraints = again.sources.stream_expressions("orders")
    assert heartbeat is not None
    # what was proposed is true of what it was made of
    connection = duckdb.connect()
    connection.register("admitted", app.ledger.log(app.layout.admitted("orders")).read())
    for condition in constraints:
        sql = condition.replace("`", '"').replace("\\'", "''")
        assert connection.sql(f"SELECT count(*) FROM admitted WHERE NOT coalesce(({sql}), TRUE)").fetchall() == [(0,)]


def test_only_streams_that_have_admitted_have_a_profile(app: Application):
    with pytest.raises(UsageError, match="r is no stream"):
        profile(app, "r")
    with pytest.raises(UsageError, match="zz is not declared"):
        profile(app, "zz")
