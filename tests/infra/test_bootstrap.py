from __future__ import annotations

import signal
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from queries.flights import demo, importer
from sweeparea.infra.errors import SetupError
from sweeparea.infra.services import up
from sweeparea.infra.setup import bootstrap, jars, lock


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A checkout in a temporary folder whose steps only note that they ran."""
    done: list[str] = []
    (tmp_path / "infra").mkdir()
    for name in ("uv.lock.txt", "requirements.lock", "build.lock", "example.lock", "../pyproject.toml"):
        (tmp_path / "infra" / name).write_text(name)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "INFRA", tmp_path / "infra")
    monkeypatch.setattr(bootstrap, "TOOLS", tmp_path / ".tools")
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")

    def fake(name: str, folder: str):
        def step(label: str) -> None:
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            done.append(name)

        monkeypatch.setattr(bootstrap, name, step)

    for name in ("create_environment", "sync_packages", "install_project", "install_example"):
        fake(name, ".venv")
    fake("install_uv", ".tools/uv")
    return done


ALL = ["install_uv", "create_environment", "sync_packages", "install_project"]


def test_a_second_run_does_nothing(steps: list[str], capsys: pytest.CaptureFixture[str]):
    bootstrap.build(example=False)
    assert steps == ALL
    assert "[set-up] step 4 of 4: sweeparea: done in 0 s" in capsys.readouterr().out
    bootstrap.build(example=False)
    assert steps == ALL
    assert capsys.readouterr().out == ""
    bootstrap.build(example=True)
    assert steps == [*ALL, "install_example"]


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("infra/requirements.lock", ["sync_packages", "install_project", "install_example"]),
        ("infra/example.lock", ["install_example"]),
        ("infra/uv.lock.txt", ["install_uv"]),
        ("pyproject.toml", ["install_project"]),
    ],
)
def test_a_changed_file_repeats_what_follows_from_it(steps: list[str], tmp_path: Path, name: str, again: list[str]):
    bootstrap.build(example=True)
    steps.clear()
    (tmp_path / name).write_text("changed")
    bootstrap.build(example=True)
    assert steps == again


def test_an_old_python_is_told_which_one_is_needed(steps: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bootstrap, "OLDEST", (99, 0))
    with pytest.raises(SetupError, match="make PYTHON="):
        bootstrap.build(example=False)
    assert steps == []


def test_a_step_that_fails_shows_the_end_of_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bootstrap, "TOOLS", tmp_path)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    command = [sys.executable, "-c", "print('no space left'); raise SystemExit(1)"]
    with pytest.raises(SetupError, match=r"(?s)step 1 of 5: uv failed.*run the same command again.*no space left"):
        bootstrap._run("step 1 of 5: uv", command, "uv")


def test_locks_hold_hashes_and_no_addresses():
    folder = Path(__file__).resolve().parents[2] / "infra"
    for name in ("requirements.lock", "build.lock", "example.lock", "uv.lock.txt", "jars.lock"):
        text = (folder / name).read_text()
        assert "://" not in text
        assert "/tmp" not in text
    for name in ("requirements.lock", "build.lock", "example.lock", "uv.lock.txt"):
        pins = [line for line in (folder / name).read_text().splitlines() if "==" in line and not line.startswith(" ")]
        assert pins
        assert all(line.endswith("\\") for line in pins)


def test_a_wheel_holds_the_packages_and_their_files(wheel: Path):
    files = zipfile.ZipFile(wheel).namelist()
    assert {
        "sweeparea/__init__.py",
        "sweeparea/tables/publication/ledger.py",
        "sweeparea/operators/kernels/aggregate.py",
        "sweeparea/infra/jars.lock",
        "sweeparea/dags/page/web/index.html",
        "sweeparea/dags/page/web/main.js",
        "sweeparea/dags/airflow/sweeparea_dags.py",
    } <= set(files)
    assert {name.split("/")[0].split("-")[0] for name in files} == {"sweeparea"}


@pytest.mark.parametrize(
    ("module", "work", "told"),
    [
        (bootstrap, "build", "run the same command again: it goes on"),
        (jars, "find_java", "run the same command again: it fetches what is missing"),
        (lock, "compile_lock", "run `make lock` again"),
        (up, "status", "`make status` tells"),
        (demo, "Demo", "`make demo` goes on where it stopped, `make stop` ends them"),
        (importer, "_run_status", "what is loaded is skipped"),
    ],
)
def test_an_interrupted_command_of_set_up_tells_how_to_go_on(
    module: Any, work: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, work, interrupted)
    arguments = {bootstrap: ([],), up: (["status"],), importer: (["status"],)}.get(module, ())
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert module.main(*arguments) == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    said = capsys.readouterr()
    assert said.err.startswith("interrupted; ")
    assert told in said.err
    assert not said.out
