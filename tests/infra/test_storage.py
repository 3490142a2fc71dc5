"""Options of object stores: one place, no secrets in it. What really is on S3 is in ``tests/s3``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sweeparea.infra import environments, locations, storage
from sweeparea.infra.errors import SetupError, SweepAreaError


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [v for v in os.environ if v.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    for variable in ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_CONDITIONAL_PUT", "AWS_ALLOW_HTTP"):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)


def test_an_environment_gives_addresses_and_options(tmp_path: Path) -> None:
    (tmp_path / environments.FILE).write_text(
        '[prod]\ndata = "s3://bucket/shop/"\n[prod.storage]\nendpoint = "http://127.0.0.1:9"\nregion = "eu-1"\n'
        '[dev]\ndata = "data"\n'
    )
    prod = environments.chosen(tmp_path, "prod")
    assert (str(prod.data), str(prod.data / "source")) == ("s3://bucket/shop", "s3://bucket/shop/source")  # type: ignore[operator]
    assert environments.chosen(tmp_path, "dev").data == tmp_path / "data"
    os.environ["AWS_REGION"] = "set-before"
    storage.use(prod.storage)
    conf = storage.spark_conf()
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9"
    assert conf["spark.hadoop.fs.s3a.endpoint.region"] == "set-before"
    assert not any("key" in name or "secret" in name for name in conf)
    storage.prepare("s3://bucket/shop")
    assert (os.environ["AWS_CONDITIONAL_PUT"], os.environ["AWS_ALLOW_HTTP"]) == ("etag", "true")


def test_secrets_in_the_file_and_unknown_options_are_refused(tmp_path: Path) -> None:
    (tmp_path / environments.FILE).write_text('[prod]\n[prod.storage]\nsecret_access_key = "hidden"\n')
    with pytest.raises(SweepAreaError, match="AWS_SECRET_ACCESS_KEY") as caught:
        environments.chosen(tmp_path, "prod")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value"), [("AWS_S3_ALLOW_UNSAFE_RENAME", "true"), ("AWS_CONDITIONAL_PUT", "disabled")]
)
def test_commits_that_are_not_atomic_are_refused(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SetupError, match="Unset it"):
        storage.prepare("s3://bucket/t")
    storage.prepare("/local")


def test_folders_here_and_there(tmp_path: Path) -> None:
    assert locations.folder(f"file://{tmp_path}") == tmp_path
    assert locations.folder("data", tmp_path) == tmp_path / "data"
    assert isinstance(locations.folder("abfss://c@a/x"), locations.Remote)
    assert [storage.is_remote(path) for path in ("s3a://b", "/a://b", "file:///a")] == [True, False, False]
