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
