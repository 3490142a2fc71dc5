"""Whether a Spark that answers otherwise is noticed: the shared one, with another language or other rules."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.infra.errors import SetupError
from sweeparea.operators.windows import Calendar
from sweeparea.spark_jobs.admission.sources.format_names import require_seen
from sweeparea.spark_jobs.spark import java_zones, machine_probe, zone_guards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def _java(spark: Any) -> Any:
    return spark._jvm.java


def test_our_spark_has_its_own_language_encoding_and_zone(spark: SparkSession):
    names = ("user.language", "user.country", "file.encoding", "sun.jnu.encoding", "user.timezone")
    found = [_java(spark).lang.System.getProperty(name) for name in names]
    assert found == ["en", "US", "UTF-8", "UTF-8", "UTC"]


@pytest.mark.parametrize("language", ["tr", "lt"])
def test_another_language_is_refused_with_the_setting(spark: SparkSession, language: str):
    locale = _java(spark).util.Locale
    own = locale.getDefault()
    passed: set[str] = set()
    locale.setDefault(locale.forLanguageTag(language))
    try:
        with pytest.raises(SetupError, match=r"driver.*extraJavaOptions=-Duser.language=en"):
            machine_probe.require_fit(spark, passed)
    finally:
        locale.setDefault(own)
    machine_probe.require_fit(spark, passed)
    assert passed == {machine_probe.LOCALE}


MEXICO = "America/Mexico_City"


def test_other_rules_of_a_zone_are_refused_where_instants_reach_them(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    machine_probe.require_fit(spark, set())
    assert java_zones.differences(spark, MEXICO) == ()
    assert java_zones.differences(spark, "Etc/GMT+5") == ()
    begin = dt.datetime(2022, 10, 30, tzinfo=dt.UTC)
    here = java_zones._changes
    monkeypatch.setattr(java_zones, "_changes", lambda zone: here(zone)[:-1])  # the end of summer time
    machine_probe.require_fit(spark, set())
    assert java_zones.differences(spark, MEXICO) == ((int(begin.timestamp()), None),)
    zone_guards.require(spark, (), [MEXICO])
    with pytest.raises(SetupError, match=f"{MEXICO}.*they differ from 2022-10-30\\."):
        zone_guards.require(spark, [MEXICO])
    asked = zone_guards.guarded_text(spark, f"from_utc_timestamp(t, '{MEXICO}')")
    steps = Calendar("day", MEXICO).steps("unix_micros(t)")
    rows = "SELECT TIMESTAMP '{}' AS t FROM range(1)"
    wanted = {"2022-10-29 23:59:59": "2022-10-29 18:59:59", "1900-01-01 00:00:00": "1899-12-31 17:23:24"}
    for at, local in wanted.items():
        assert [str(row.x) for row in spark.sql(rows.format(at)).selectExpr(f"{asked} AS x").collect()] == [local]
    windows = [f"{zone_guards.guarded_text(spark, text)} AS {name}" for name, text in steps]
    assert spark.sql(rows.format("2022-09-29 00:00:00")).selectExpr(*windows).collect()
    told = rf"The time zone {MEXICO}: Spark's Java has other rules .* from 2022-10-30, and a row asks for them"
    for expressions in ([f"{asked} AS x"], windows):
        with pytest.raises(Exception, match=told):
            spark.sql(rows.format("2022-10-30 00:00:00")).selectExpr(*expressions).collect()
    with pytest.raises(Exception, match=told):
        spark.sql(rows.format("2900-06-01 00:00:00")).selectExpr(f"{asked} AS x").collect()


@pytest.mark.parametrize(
    ("ours", "theirs", "days"),
    [
        ({0: 0}, {0: 0}, []),
        ({0: 0}, {0: 60}, [(-1, 100)]),
        ({0: 0, 10: 60}, {0: 0, 12: 60}, [(9, 12)]),
        ({0: 0, 10: 60, 20: 0}, {0: 0, 10: 60}, [(19, 100)]),
        ({0: 0, 10: 60}, {0: 0}, [(9, 100)]),
        ({0: 5, 10: 60}, {0: 0, 10: 60}, [(-1, 10)]),
    ],
)
def test_days_at_whose_ends_offsets_differ(ours: dict[int, int], theirs: dict[int, int], days: list[tuple[int, int]]):
    assert list(java_zones._unequal(ours, theirs, 100)) == days


def test_what_differs_after_2100_repeats_itself():
    day, first, last = 86_400, -100, 200_000
    spans = java_zones._spans
    assert spans([(5, 7), (7, 9), (20, 21)], first, last) == ((5 * day, 9 * day), (20 * day, 21 * day))
    assert spans([(-101, 4)], first, last) == ((None, 4 * day),)
    assert spans([(5, 6), (60_000, 60_001), (70_000, 70_001)], first, last) == (
        (5 * day, 6 * day),
        (60_000 * day, None),
    )


def test_a_file_that_java_does_not_see_is_refused(spark: SparkSession, tmp_path: Path):
    (tmp_path / "na\u00efve.json").write_text("{}")
    require_seen("s", str(tmp_path), ["na\u00efve.json"], spark)
    with pytest.raises(SetupError, match=r"s: 'zo\u00eb.json' of .* LC_ALL=C.UTF-8"):
        require_seen("s", str(tmp_path), ["na\u00efve.json", "zo\u00eb.json"], spark)


def test_a_zone_in_a_column_fails_by_name_only_where_rules_differ(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    here = java_zones.zones.changes
    other = "Africa/Abidjan"  # has no changes since 1970; with one that Java does not know
    names = frozenset({"Europe/Berlin", "EST", "Africa/Casablanca", "Asia/Tokyo", "No/Such", other})
    monkeypatch.setattr(java_zones.zones, "names", lambda: names)
    found = java_zones._differing(spark)  # with the Java of this machine: zones that changed since it was made
    assert found <= {"Africa/Casablanca"}
    monkeypatch.setattr(
        java_zones.zones,
        "changes",
        lambda name, a, b: ((86_400 * 365, 0, 3600),) if name == other else here(name, a, b),
    )
    assert java_zones._differing(spark) == found | {other}
    passed: set[str] = set()
    machine_probe.require_fit(spark, passed)
    rows = "SELECT timestamp_seconds(id) AS t, z FROM range(1) CROSS JOIN (VALUES {}) AS v(z)"
    text = zone_guards.guarded_text(spark, "from_utc_timestamp(t, z)")
    good = spark.sql(rows.format("('Europe/Berlin'), ('Z'), ('+05:30')")).selectExpr(f"{text} AS x").collect()
    assert sorted(row.x.strftime("%H:%M") for row in good) == ["00:00", "01:00", "05:30"]
    with pytest.raises(Exception, match=r"The time zone Africa/Abidjan: Spark's Java has other rules"):
        spark.sql(rows.format(f"('{other}')")).selectExpr(f"{text} AS x").collect()
    assert any(probe.startswith("zones ") and other in probe for probe in passed)
    assert zone_guards.guarded_text(spark, "from_utc_timestamp(t, 'Cuba')") == "from_utc_timestamp(t, 'Cuba')"
