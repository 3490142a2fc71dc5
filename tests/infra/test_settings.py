from __future__ import annotations

from pathlib import Path

import pytest

from sweeparea.infra import settings
from sweeparea.infra.errors import SetupError

CHECKOUT = Path(__file__).resolve().parents[2]


def test_the_checkout_is_the_root_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SWEEPAREA_HOME", raising=False)
    assert settings.root() == CHECKOUT == settings.source_root()


def test_folders_follow_the_home(installation: Path, monkeypatch: pytest.MonkeyPatch):
    assert settings.data("shop") == installation / ".data" / "shop"
    assert settings.application("shop") == installation / "queries" / "shop"
    assert settings.run_folder() == installation / ".run"
    monkeypatch.setenv("SWEEPAREA_DATA", "/elsewhere")
    assert settings.data("shop") == Path("/elsewhere/shop")


def test_spark_is_found_by_its_port_or_by_address(installation: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWEEPAREA_SPARK_PORT", "20001")
    assert settings.spark_remote() == "sc://127.0.0.1:20001"
    monkeypatch.setenv("SPARK_REMOTE", "sc://cluster:15002")
    assert settings.spark_remote() == "sc://cluster:15002"


@pytest.mark.parametrize("text", ["many", "0", "70000", "-1", "1.5"])
def test_a_port_that_is_none_names_its_variable(installation: Path, monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv("SWEEPAREA_AIRFLOW_PORT", text)
    with pytest.raises(SetupError, match=r"SWEEPAREA_AIRFLOW_PORT is .* no port"):
        settings.airflow_port()


def test_services_inherit_the_installation(installation: Path):
    names = settings.environment()
    assert names["SWEEPAREA_HOME"] == str(installation)
    assert names["SPARK_REMOTE"] == "sc://127.0.0.1:29115"
