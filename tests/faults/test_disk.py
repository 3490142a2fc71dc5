"""A disk that is full, or may not be written to: an error that names the way out, and afterwards nothing is amiss."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.faults.conftest import PUBLICATIONS
from tests.faults.strikes import Scenario, nearly_full
from tests.faults.zygote import Zygote


def test_a_full_disk_at_many_moments(zygote: Zygote, tmp_path: Path, disk: Path) -> None:
    scenario = Scenario(zygote, PUBLICATIONS, "later", tmp_path / "scenario")
    said = set()
    for pages in (0, 3, 8, 14, 21):
        folder = disk / "folder"
        shutil.copytree(scenario.folder / "template", folder)
        with nearly_full(disk, pages):
            end = scenario.run(folder)
        if end.state == "refused":
            said.add(end.text.split(" left to write")[0])
            assert "run the same command again" in end.text
            scenario.finish(folder)
        else:
            assert end.state == "done", (pages, end.text)
        assert scenario.wrong(folder) == ""
        shutil.rmtree(folder)
    assert said == {"SetupError: There is no disk space"}


def test_a_folder_that_may_not_be_written(zygote: Zygote, tmp_path: Path, disk: Path) -> None:
    scenario = Scenario(zygote, PUBLICATIONS, "later", tmp_path / "scenario")
    folder = disk / "folder"
    shutil.copytree(scenario.folder / "template", folder)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    end = scenario.run(folder)
    assert end.state == "refused"
    assert "may not be written" in end.text
    assert "run the same command again" in end.text
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    scenario.finish(folder)
    assert scenario.wrong(folder) == ""


def test_one_table_that_may_not_be_written(zygote: Zygote, tmp_path: Path, disk: Path) -> None:
    """The ledger has the commit, one table cannot take it: the next run completes it."""
    scenario = Scenario(zygote, PUBLICATIONS, "later", tmp_path / "scenario")
    folder = scenario.copy()
    log = folder / "data/results/q__istream/_delta_log"
    shutil.copytree(log, disk / "log")
    subprocess.run(["mount", "--bind", "-o", "ro", str(disk / "log"), str(log)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(log)], check=True)
        end = scenario.run(folder)
    finally:
        subprocess.run(["umount", str(log)], check=True)
    assert end.state == "refused"
    assert "may not be written" in end.text, end.text
    scenario.finish(folder)
    assert scenario.wrong(folder) == ""
