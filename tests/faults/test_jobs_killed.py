"""Law S3 for the jobs: killed within Spark's writes and anywhere else, suspended and overtaken. On a Connect server,
which outlives the runs that are killed.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sweeparea.spark_jobs.commands.sql import Reader
from tests.faults import jobs
from tests.faults.server import JOBS, Server
from tests.faults.state import contents

pytestmark = pytest.mark.spark


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


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("replace", "replace.staged_areas"),
        pytest.param("replace", "commit.before:_sweeparea/deployed", marks=pytest.mark.slow),
        pytest.param("columns", "publish.ledger_committed", marks=pytest.mark.slow),
        pytest.param("backfill", "publish.ledger_committed", marks=pytest.mark.slow),
        pytest.param("backfill", "rewrite.staged_areas", marks=pytest.mark.slow),
    ],
)
def test_what_is_computed_beside_is_killed_before_and_after_its_exchange(server: Server, name: str, point: str) -> None:
    scenario = server.scenario(name)
    struck = [(each, nth) for each, nth in scenario.passed if each == point]
    assert struck, sorted({each for each, _ in scenario.passed if ":" not in each})
    tally = scenario.kill_at(struck[-2:])
    assert tally.wrong == [], "\n".join(tally.wrong)


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
    scenario.zygote.run(f"{JOBS}:after", "repair", folder)
    results = {key: rows for key, rows in contents(folder / "data").items() if key.startswith("results")}
    assert results == {key: rows for key, rows in scenario.expected_after.items() if key.startswith("results")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["stream", "relation", "first", "drop", "repair", "backfill", "landed", "netted", "replace", "columns", "in_place"],
)
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
