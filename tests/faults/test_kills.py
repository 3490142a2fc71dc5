"""Law S3: a run killed anywhere and started again leaves the tables of a run that nobody disturbed. Without Spark."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.snapshot import Snapshot
from tests.faults import publications
from tests.faults.strikes import Scenario
from tests.faults.zygote import Zygote


def test_the_points_are_before_between_and_after_everything_that_is_written(later: Scenario) -> None:
    names = {name for name, _ in later.passed}
    files = ("admitted/s", "quarantine/s", "results/q", "results/q__istream", "q/agg")
    for table in (*files, "_sweeparea/ledger", "_sweeparea/ledger_history"):
        moments = {
            name.split(":")[0] for name in names if name.endswith(f":{table}") and name[:5] in ("file.", "commi")
        }
        assert moments == {
            "file.before", "file.half", "file.written", "file.staged", "commit.before", "commit.within", "commit.after",
        }, table  # fmt: skip
    assert ("file.staged:results/q__istream", 2) in later.passed, "two files of one slice"


def test_killed_at_the_points_of_a_first_run(first: Scenario) -> None:
    tally = first.kill_at(first.passed[::14], and_after=False)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.survived > 6


def test_killed_at_the_points_of_a_later_run(later: Scenario) -> None:
    between = {name: nth for name, nth in later.passed if name.startswith("publish.")}
    tally = later.kill_at([*between.items(), *later.passed[3::20]], and_after=False)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.survived > 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first", "later"])
def test_killed_at_every_point(name: str, request: pytest.FixtureRequest) -> None:
    scenario: Scenario = request.getfixturevalue(name)
    tally = scenario.kill_at(scenario.passed)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.survived == len(scenario.passed)


def test_the_ledger_commit_decides(later: Scenario) -> None:
    for point, seq in (("commit.within:_sweeparea/ledger", 2), ("commit.after:_sweeparea/ledger", 3)):
        folder, _, outcome = later.struck(point, 1)
        assert outcome.state == "killed"
        row = Ledger(str(folder / "data")).row("s")
        assert row is not None
        assert row.seq == seq, point


def test_runs_of_which_each_is_killed_a_little_later_come_to_the_end(later: Scenario) -> None:
    """Recovery is killed too: each run goes on from what the ones before it have left."""
    folder = later.copy()
    kills = 0
    for nth in range(1, 1000, 3):
        later.faults.plan("*", nth)
        outcome = later.run(folder, faults=later.faults.folder)
        kills += outcome.state == "killed"
        if outcome.state == "done":
            break
        assert outcome.state == "killed", outcome.text
    later.faults.clear()
    assert kills > 10
    assert later.wrong(folder) == ""


def _storm(scenario: Scenario, most_kills: int, longest: float, seed: int) -> tuple[Path, int]:
    """A folder in which runs were killed at random moments until one came to its end, and how many were."""
    chance, folder, kills = random.Random(seed), scenario.copy(), 0
    while kills < most_kills:
        pid = scenario.start(folder)
        time.sleep(chance.uniform(0.02, longest))
        os.kill(pid, signal.SIGKILL)  # of a run that has just ended too: it is not waited for yet
        outcome = scenario.zygote.wait(pid)
        if outcome.state == "done":
            return folder, kills
        assert outcome.state == "killed", outcome.text
        kills += 1
        # or the runs would never get beyond what takes longest
        longest *= 1.05
    scenario.finish(folder)
    return folder, kills


def test_killed_at_random_moments_while_somebody_reads(many: Scenario) -> None:
    folder, stop, seen = many.folder / f"copy-{many._copies + 1}", threading.Event(), [0]
    reader = threading.Thread(target=_read_until, args=(folder / "data", stop, seen))
    reader.start()
    try:
        struck, kills = _storm(many, 25, 0.3, 1)
    finally:
        stop.set()
        reader.join()
    assert struck == folder
    assert seen[0] >= 0, "a reader has seen a half slice"
    assert seen[0] > 5, "the reader read too little to tell"
    assert kills > 3
    assert many.wrong(folder) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_killed_at_random_moments_many_times(many: Scenario, seed: int) -> None:
    folder, kills = _storm(many, 120, 0.2, seed)
    assert kills > 3
    assert many.wrong(folder) == ""


def _read_until(data: Path, stop: threading.Event, seen: list[int]) -> None:
    """Reads all tables at one ledger state, again and again; -1 for a half slice."""
    while not stop.is_set():
        time.sleep(0.01)
        if not (data / "_sweeparea" / "ledger_history" / "_delta_log").exists():
            continue
        ledger = Ledger(str(data))
        snapshot = Snapshot(ledger)
        for name, row in snapshot.head.items():
            if row.kind != "query" or row.committed is None:
                continue
            relation, istream, state = (ledger.log(t) for t in publications.result_tables(ledger, name))
            ticks = {
                log.uri: sorted(log.read(["tick"], version=snapshot.version(log, row)).column("tick").to_pylist())
                for log in (relation, istream, state)
            }
            last = row.committed
            each = [t for t in range(1, last + 1) for _ in range(2 * publications.FILES)]
            both = sorted([*range(1, last + 1), *([last] * last)])
            if ticks != {relation.uri: both, istream.uri: each, state.uri: [last]}:
                seen[0] = -10_000_000
            seen[0] += 1


def test_what_killed_and_failed_runs_leave_is_removed_by_the_next(later: Scenario) -> None:
    folder, _, _ = later.struck("commit.before:_sweeparea/ledger", 1)
    data = folder / "data"
    staged = [p for p in data.glob("admitted/s/data/*") if len(list(data.glob(f"*/s/data/{p.name}"))) == 2]
    assert len(staged) >= 1
    later.finish(folder)
    live = {name.split("/")[1] for t in ("admitted/s", "quarantine/s") for name in Ledger(str(data)).log(t).paths()}
    assert {p.name for p in data.glob("admitted/s/data/*")} <= live
    assert list((data / "_sweeparea" / "attempts").iterdir()) == []
    assert not list(data.rglob("*.tmp"))


def test_an_attempt_that_was_committed_is_never_removed(later: Scenario, zygote: Zygote) -> None:
    folder, _, _ = later.struck("publish.ledger_committed", 2)
    data = folder / "data"
    assert len(list((data / "_sweeparea" / "attempts").iterdir())) == 1
    later.finish(folder)
    assert later.wrong(folder) == ""
    assert list((data / "_sweeparea" / "attempts").iterdir()) == []
