"""An installation of its own, in a temporary folder, for each test of its services."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    root, folder = Path(__file__).resolve().parents[2], tmp_path_factory.mktemp("sources")
    # a copy, since the build leaves its own folders beside the sources; the links in sweeparea/ stay links
    for entry in sorted({link.resolve().name for link in (root / "sweeparea").iterdir() if link.is_symlink()}):
        shutil.copytree(root / entry, folder / entry, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(root / "sweeparea", folder / "sweeparea", symlinks=True)
    shutil.copyfile(root / "pyproject.toml", folder / "pyproject.toml")
    code = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A SWEEPAREA_HOME; no other setting of the developer's environment is left."""
    for variable in (
        "SWEEPAREA_DATA",
        "SWEEPAREA_RUN",
        "SWEEPAREA_JARS",
        "SWEEPAREA_SPARK_PORT",
        "SWEEPAREA_AIRFLOW_PORT",
        "SWEEPAREA_SPARK_MEMORY",
        "SWEEPAREA_WORKER_MEMORY",
        "SWEEPAREA_IVY_SETTINGS",
        "SPARK_REMOTE",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SWEEPAREA_HOME", str(tmp_path))
    return tmp_path
