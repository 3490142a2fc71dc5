"""One process that forks the runs of all tests without Spark, and a Connect server for those with it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.server import Server, serving
from tests.faults.strikes import Scenario
from tests.faults.zygote import Zygote

PUBLICATIONS = "tests.faults.publications"


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote(PUBLICATIONS)
    yield made
    made.close()


@pytest.fixture(scope="session")
def first(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return Scenario(zygote, PUBLICATIONS, "first", tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="session")
def later(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return Scenario(zygote, PUBLICATIONS, "later", tmp_path_factory.mktemp("later"))


@pytest.fixture
def many(zygote: Zygote, tmp_path: Path) -> Scenario:
    return Scenario(zygote, PUBLICATIONS, "many", tmp_path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own, in memory: 4 MB."""
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(where)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("jobs")) as made:
        yield made
