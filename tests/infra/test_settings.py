from __future__ import annotations

import os
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


def test_a_worker_may_take_most_of_the_machine_unless_told_otherwise(
    installation: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(settings, "machine_memory", lambda: 8 << 30)
    assert settings.worker_memory() == 6 << 30
    for text, bytes_ in {"2g": 2 << 30, "1500M": 1500 << 20, "1tb": 1 << 40, "off": None}.items():
        monkeypatch.setenv("SWEEPAREA_WORKER_MEMORY", text)
        assert settings.worker_memory() == bytes_


@pytest.mark.parametrize("text", ["much", "2", "100m", "-1g", "1.5g"])
def test_a_memory_that_is_none_names_its_variable(installation: Path, monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv("SWEEPAREA_WORKER_MEMORY", text)
    with pytest.raises(SetupError, match=r"SWEEPAREA_WORKER_MEMORY is .* no size"):
        settings.worker_memory()


def test_a_container_may_have_less_than_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = settings.machine_memory()
    assert whole is not None
    (tmp_path / "one").write_text("max\n")
    (tmp_path / "two").write_text(f"{1 << 30}\n")
    monkeypatch.setattr(settings, "_CONTAINER_BOUNDS", [str(tmp_path / name) for name in ("none", "one", "two")])
    assert settings.machine_memory() == min(whole, 1 << 30)


def test_a_wheel_without_a_home_works_in_a_folder_of_machine_and_user(
    installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("SWEEPAREA_HOME")
    monkeypatch.setattr(settings, "source_root", lambda: None)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    own = tmp_path / f"sweeparea-{os.geteuid()}"
    assert settings.run_folder() == settings.run_folder() == own
    assert own.stat().st_mode & 0o777 == 0o700
    own.rmdir()
    own.symlink_to(tmp_path)  # somebody else's: what lies in it would be run
    with pytest.raises(SetupError, match="Set SWEEPAREA_RUN"):
        settings.run_folder()
    monkeypatch.setenv("SWEEPAREA_RUN", str(tmp_path / "run"))
    assert settings.run_folder() == tmp_path / "run"
