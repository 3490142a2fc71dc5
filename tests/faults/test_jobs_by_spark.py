"""What Spark itself does to the tables, by its own OPTIMIZE and VACUUM, and what it does when the disk is full."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.faults.server import JOBS, Server
from tests.faults.state import contents
from tests.faults.strikes import Scenario, nearly_full

pytestmark = pytest.mark.spark


def _by_spark(scenario: Scenario, folder: Path, statement: str) -> int:
    """Runs a statement on every table; returns how many commits that made."""
    end = scenario.zygote.run(f"{JOBS}:by_spark", folder, statement)
    assert end.state == "done", end.text
    return int(end.text)


def _results(found: dict) -> dict:
    return {table: rows for table, rows in found.items() if table.startswith(("results", "admitted", "quarantine"))}


@pytest.mark.parametrize(
    ("name", "point", "nth"),
    [
        pytest.param("relation", "publish.ledger_committed", -1, marks=pytest.mark.slow),
        pytest.param("repair", "slice.staged_files", -1, marks=pytest.mark.slow),
        pytest.param("repair", "publish.ledger_committed", -1, marks=pytest.mark.slow),
        pytest.param("repair", "publish.ledger_committed", 0, marks=pytest.mark.slow),
        pytest.param("relation", "commit.within:results/turnover", -1, marks=pytest.mark.slow),
        pytest.param("relation", "publish.applied:results/turnover", -1, marks=pytest.mark.slow),
        pytest.param("replace", "replace.staged_areas", -1, marks=pytest.mark.slow),
        pytest.param("backfill", "rewrite.staged_areas", -1, marks=pytest.mark.slow),
    ],
)
def test_optimize_and_vacuum_of_spark_in_the_middle_of_a_slice_and_between_slices(
    server: Server, name: str, point: str, nth: int
) -> None:
    scenario = server.scenario(name)
    last = [passed for each, passed in scenario.passed if each == point][nth]
    folder, pid, outcome = scenario.struck(point, last, signal.SIGSTOP)
    assert outcome.state == "stopped", outcome
    assert _by_spark(scenario, folder, "OPTIMIZE {}") > 1
    _by_spark(scenario, folder, "VACUUM {}")
    end = scenario.zygote.resume(pid)
    assert end.state == "done", end.text
    assert scenario.wrong(folder, and_after=False) == ""
    _by_spark(scenario, folder, "OPTIMIZE {}")
    _by_spark(scenario, folder, "VACUUM {} RETAIN 0 HOURS")
    assert scenario.wrong(folder, and_after=False) == ""
    end = scenario.zygote.run(f"{JOBS}:after", name, folder)
    assert end.state == "done", end.text
    # SweepAreas were put together: what they hold counts, not in which files
    assert _results(contents(folder / "data")) == _results(scenario.expected_after)


@pytest.mark.slow
def test_a_table_in_another_order_is_as_good(server: Server) -> None:
    """ZORDER writes all rows anew, in an order in which no sweep has left them."""
    scenario = server.scenario("repair")
    folder = scenario.copy()
    for kind, column in (("results/turnover", "shop"), ("results/busy", "most"), ("admitted/sales", "amount")):
        end = scenario.zygote.run(f"{JOBS}:by_spark", folder, f"OPTIMIZE {{}} ZORDER BY ({column})", kind)
        assert end.state == "done", end.text
        assert int(end.text) == 1, kind
    scenario.finish(folder)
    assert scenario.wrong(folder, and_after=False) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "free"),
    [("relation", (8, 24, 48, 96)), ("landed", (2, 4, 7, 11, 16, 22, 30)), ("netted", (0, 1, 2, 3, 4, 6, 9, 14))],
)
def test_a_disk_that_is_full_within_a_write_of_spark(
    server: Server, disk: Path, name: str, free: tuple[int, ...]
) -> None:
    scenario, said = server.scenario(name), {}
    for pages in free:
        folder = disk / "folder"
        shutil.copytree(scenario.folder / "template", folder)
        with nearly_full(disk, pages):
            end = scenario.run(folder)
        if end.state == "refused":
            said[pages] = end.text
            scenario.finish(folder)
        else:
            assert end.state == "done", (pages, end.text)
        assert scenario.wrong(folder, and_after=False) == "", pages
        shutil.rmtree(folder)
    assert said
    assert [text for text in said.values() if "There is no disk space left to write" not in text] == []
    assert [text for text in said.values() if "run the same command again" not in text] == []
