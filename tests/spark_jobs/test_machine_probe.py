"""Whether a Spark that answers otherwise is noticed: the shared one, with another language or other rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.infra.errors import SetupError
from sweeparea.spark_jobs import machine_probe
from sweeparea.spark_jobs.admission.format_names import require_seen

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


def test_other_rules_of_a_zone_are_refused_by_its_name(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    name = "America/Mexico_City"
    assert machine_probe._difference(spark, name) is None
    here = machine_probe._changes
    monkeypatch.setattr(machine_probe, "_changes", lambda zone: dict(list(here(zone).items())[:-1]))
    plan: Any = None
    monkeypatch.setattr(machine_probe, "used", lambda root: {name})
    machine_probe.require_fit(spark, set())
    with pytest.raises(SetupError, match=r"America/Mexico_City.*differ first about 2022-10-30"):
        machine_probe.require_zones(spark, plan)


def test_a_file_that_java_does_not_see_is_refused(spark: SparkSession, tmp_path: Path):
    (tmp_path / "na\u00efve.json").write_text("{}")
    require_seen("s", str(tmp_path), ["na\u00efve.json"], spark)
    with pytest.raises(SetupError, match=r"s: 'zo\u00eb.json' of .* LC_ALL=C.UTF-8"):
        require_seen("s", str(tmp_path), ["na\u00efve.json", "zo\u00eb.json"], spark)


def test_a_zone_in_a_column_fails_by_name_only_where_rules_differ(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    here = machine_probe.zones.changes
    other = "Africa/Abidjan"  # has no changes since 1970; with one that Java does not know
    names = frozenset({"Europe/Berlin", "EST", "Africa/Casablanca", "Asia/Tokyo", "No/Such", other})
    monkeypatch.setattr(machine_probe.zones, "names", lambda: names)
    found = machine_probe._differing(spark)  # with the Java of this machine: zones that changed since it was made
    assert found <= {"Africa/Casablanca"}
    monkeypatch.setattr(
        machine_probe.zones,
        "changes",
        lambda name, a, b: ((86_400 * 365, 0, 3600),) if name == other else here(name, a, b),
    )
    assert machine_probe._differing(spark) == found | {other}
    passed: set[str] = set()
    machine_probe.require_fit(spark, passed)
    rows = "SELECT timestamp_seconds(id) AS t, z FROM range(1) CROSS JOIN (VALUES {}) AS v(z)"
    text = machine_probe.guarded_text(spark, "from_utc_timestamp(t, z)")
    good = spark.sql(rows.format("('Europe/Berlin'), ('Z'), ('+05:30')")).selectExpr(f"{text} AS x").collect()
    assert sorted(row.x.strftime("%H:%M") for row in good) == ["00:00", "01:00", "05:30"]
    with pytest.raises(Exception, match=r"The time zone Africa/Abidjan: Spark's Java has other rules"):
        spark.sql(rows.format(f"('{other}')")).selectExpr(f"{text} AS x").collect()
    assert any(probe.startswith("zones ") and other in probe for probe in passed)
    assert machine_probe.guarded_text(spark, "from_utc_timestamp(t, 'Cuba')") == "from_utc_timestamp(t, 'Cuba')"
