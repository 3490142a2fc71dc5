"""Law S3 for the jobs: killed within Spark's writes and anywhere else, suspended and overtaken. On a Connect server,
which outlives the runs that are killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sweeparea.infra import spark_connect
from sweeparea.spark_jobs.sql import Reader
from tests.faults import jobs
from tests.faults.state import contents
from tests.faults.strikes import Scenario, nearly_full
from tests.faults.zygote import Zygote

pytestmark = pytest.mark.spark
MODULE = "tests.faults.jobs"


@dataclass
class Server:
    """Scenarios on one Connect server, each prepared once."""

    zygote: Zygote
    folder: Path
    faults: Path
    made: dict[str, Scenario]

    def scenario(self, name: str) -> Scenario:
        if name not in self.made:
            self.made[name] = Scenario(self.zygote, MODULE, name, self.folder / name, self.faults)
        return self.made[name]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("jobs")
    faults = folder / "faults"
    faults.mkdir()
    os.environ["SWEEPAREA_FAULTS"] = str(faults)  # for the server's workers
    try:
        with spark_connect.running(folder / "run") as address:
            del os.environ["SWEEPAREA_FAULTS"]
            environment = {"SPARK_REMOTE": address, "SWEEPAREA_RUN": str(folder / "run"), "SWEEPAREA_SYNC": "off"}
            zygote = Zygote("pyspark.sql.connect.session", MODULE, environment=environment)
            yield Server(zygote, folder, faults, {})
            zygote.close()
    finally:
        os.environ.pop("SWEEPAREA_FAULTS", None)


def test_killed_within_a_write_of_spark_and_between_commits(server: Server) -> None:
    scenario = server.scenario("relation")
    assert ("file.half:results/turnover", 1) in scenario.of_workers
    inside = scenario.kill_at([("file.half:results/turnover", 1)], and_after=False, driver=True)
    between = scenario.kill_at([("commit.after:results/turnover", 1)])
    assert inside.wrong + between.wrong == []


def test_a_worker_that_is_killed_ends_the_run_with_a_clear_error(server: Server) -> None:
    scenario = server.scenario("relation")
    point = next((name, nth) for name, nth in scenario.of_workers if name.startswith("file.written:turnover/"))
    folder, _, outcome = scenario.struck(*point)
    assert outcome.state == "refused", outcome
    assert "turnover, slice" in outcome.text
    assert "Python worker" in outcome.text
    assert "run again" in outcome.text.lower()
    scenario.finish(folder)
    assert scenario.wrong(folder, and_after=False) == ""


def test_a_slice_that_was_suspended_and_overtaken_changes_nothing(server: Server) -> None:
    scenario = server.scenario("relation")
    folder, pid, outcome = scenario.struck("slice.staged_files", 1, signal.SIGSTOP)
    assert outcome.state == "stopped"
    scenario.finish(folder)
    end = scenario.zygote.resume(pid)
    assert end.state == "refused", end
    assert "another run" in end.text
    assert scenario.wrong(folder, and_after=False) == ""


def test_a_repair_is_killed_before_and_after_its_commit(server: Server) -> None:
    scenario = server.scenario("repair")
    assert any("corrections" in name for name, _ in scenario.passed), "late elements were repaired"
    last = max(nth for name, nth in scenario.passed if name == "publish.staged")
    tally = scenario.kill_at([("publish.staged", last), ("publish.ledger_committed", last)], and_after=False)
    assert tally.wrong == []


def _optimize(folder: Path) -> int:
    """A user's OPTIMIZE on every table, SweepAreas too; returns how many files it packed."""
    tables = [log.parent for log in (folder / "data").rglob("_delta_log")]
    own = [table for table in tables if table.relative_to(folder / "data").parts[0] in ("admitted", "results", "state")]
    return sum(DeltaTable(str(table)).optimize.compact()["numFilesRemoved"] for table in own)


@pytest.mark.parametrize(
    ("point", "nth"), [("slice.staged_files", -1), pytest.param("publish.ledger_committed", -1, marks=pytest.mark.slow)]
)
def test_an_optimize_in_the_middle_of_a_slice_is_adopted(server: Server, point: str, nth: int) -> None:
    scenario = server.scenario("repair")
    last = [passed for name, passed in scenario.passed if name == point][nth]
    folder, pid, outcome = scenario.struck(point, last, signal.SIGSTOP)
    assert outcome.state == "stopped", outcome
    assert _optimize(folder) > 4
    end = scenario.zygote.resume(pid)
    assert end.state == "done", end.text
    assert scenario.wrong(folder, and_after=False) == ""
    _optimize(folder)
    # SweepAreas were put together: what they hold counts, not in which files
    scenario.zygote.run(f"{MODULE}:after", "repair", folder)
    results = {key: rows for key, rows in contents(folder / "data").items() if key.startswith("results")}
    assert results == {key: rows for key, rows in scenario.expected_after.items() if key.startswith("results")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stream", "relation", "first", "drop", "repair"])
def test_killed_at_every_point(server: Server, name: str) -> None:
    scenario = server.scenario(name)
    tally = scenario.kill_at(scenario.passed, and_after=False)
    within = scenario.kill_at(scenario.of_workers, and_after=False, driver=True)
    print(f"{name}: {tally.kills + within.kills} kills, {tally.survived + within.survived} survived")
    assert tally.wrong + within.wrong == [], "\n".join(tally.wrong + within.wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relation", "repair"])
def test_suspended_and_overtaken_at_every_point_of_the_driver(server: Server, name: str) -> None:
    scenario, wrong = server.scenario(name), []
    for point, nth in scenario.passed:
        if (point, nth) in scenario.of_workers:
            continue
        folder, pid, outcome = scenario.struck(point, nth, signal.SIGSTOP)
        assert outcome.state == "stopped", (point, nth, outcome)
        scenario.finish(folder)
        end = scenario.zygote.resume(pid)
        told = end.state == "done" or (end.state == "refused" and "another run" in end.text)
        if not told or (found := scenario.wrong(folder, and_after=False)):
            wrong.append(f"{point}#{nth}: {end} {'' if not told else found}")
    assert wrong == [], "\n".join(wrong)


@pytest.mark.slow
def test_a_disk_that_is_full_within_a_write_of_spark(server: Server, disk: Path) -> None:
    scenario, said = server.scenario("relation"), set()
    for pages in (8, 24, 48, 96):
        folder = disk / "folder"
        shutil.copytree(scenario.folder / "template", folder)
        with nearly_full(disk, pages):
            end = scenario.run(folder)
        if end.state == "refused":
            said.add("There is no disk space left to write" in end.text)
            scenario.finish(folder)
        else:
            assert end.state == "done", (pages, end.text)
        assert scenario.wrong(folder, and_after=False) == "", pages
        shutil.rmtree(folder)
    assert said == {True}


def test_two_processes_and_readers_of_the_views(server: Server) -> None:
    """One of two runs wins, the other says so; who reads by SQL meanwhile sees whole slices."""
    scenario = server.scenario("relation")
    folder = scenario.copy()
    stop, wrong, seen = threading.Event(), [], [0]

    def read() -> None:
        application = jobs._SCENARIOS["relation"].application(str(folder))
        while not stop.is_set():
            # what has begun by an instant and what the istream tells of it are two tables of one slice
            text = Reader(application).run(
                "SELECT (SELECT count(*) FROM turnover__istream) AS told, (SELECT count(*) FROM turnover) AS begun",
                "csv",
            )
            told, begun = text.splitlines()[-1].split(",")
            if told != begun:
                wrong.append(text)
            seen[0] += 1
            time.sleep(0.02)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        ends = [server.zygote.wait(pid) for pid in [scenario.start(folder), scenario.start(folder)]]
    finally:
        stop.set()
        reader.join()
    assert "done" in [end.state for end in ends], ends
    assert all(end.state == "done" or "another run" in end.text for end in ends), ends
    assert wrong == []
    assert seen[0] > 3
    assert scenario.wrong(folder, and_after=False) == ""
