"""Settings of somebody else's Spark that would change answers: none of them reaches a session of ours."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.infra.errors import SetupError
from sweeparea.spark_jobs.spark import session, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOREIGN = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.integerGroupingId": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}
OF_SPEED = {
    "spark.sql.autoBroadcastJoinThreshold": "1",
    "spark.sql.files.maxPartitionBytes": "2mb",
    "spark.sql.inMemoryColumnarStorage.batchSize": "7",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "9",
    "spark.sql.streaming.numRecentProgressUpdates": "3",
}


def test_what_may_change_answers_is_foreign_and_what_is_about_speed_is_not():
    assert list(session_settings.foreign({**FOREIGN, **OF_SPEED, **session.CONF}, session.CONF)) == sorted(FOREIGN)


def test_a_setting_that_stays_is_refused_by_name():
    kept = {"spark.sql.legacy.x": "1", "spark.app.name": "a"}
    conf = SimpleNamespace(getAll=kept, isModifiable=lambda key: True, unset=lambda key: None)
    stubborn: Any = SimpleNamespace(conf=conf)
    with pytest.raises(SetupError, match=r"spark\.sql\.legacy\.x = 1\. Remove"):
        session_settings.reset(stubborn, {})


@pytest.mark.spark
def test_beside_a_session_of_somebody_else_ours_has_settings_of_its_own(spark: SparkSession):
    assert session._local() is spark
    for key, value in {**FOREIGN, **OF_SPEED, "spark.sql.session.timeZone": "America/New_York"}.items():
        spark.conf.set(key, value)
    try:
        ours = session._local()
        assert ours is not spark
        assert ours is session._local()
        assert {key: ours.conf.get(key) for key in session.CONF} == session.CONF
        for key, value in FOREIGN.items():
            ours.conf.set(key, value)
        session_settings.reset(ours, session.CONF)
        assert not {key for key, value in FOREIGN.items() if ours.conf.get(key) == value}
        assert ours.sql("SELECT \"a\" AS a, hour(TIMESTAMP '2024-01-01 12:00:00') AS A").collect() == [("a", 12)]
        assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    finally:
        for key in (*FOREIGN, *OF_SPEED):
            spark.conf.unset(key)
        for key, value in session.CONF.items():
            spark.conf.set(key, value)
    assert session._local() is spark


def test_what_a_session_passed_holds_for_its_server_until_that_is_started_again(tmp_path: Path):
    def lease() -> session._Lease:
        return session._Lease((tmp_path / "0.lease").open("a+"))

    first = lease()
    first.on("server sc://here local-1")
    first.add("locale")
    again = lease()
    again.on("server sc://here local-1")
    assert "locale" in again
    assert again.session_id == first.session_id
    for other in ("server sc://there local-1", "server sc://there local-2", "server sc://here local-1"):
        moved = lease()
        moved.on(other)
        assert list(moved) == [other]
        assert "locale" not in lease()
        assert moved.session_id == first.session_id
