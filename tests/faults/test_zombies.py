"""A run that was suspended at a point and goes on after others have done its work changes nothing."""

from __future__ import annotations

import signal

import pytest

from sweeparea.tables.publication.ledger import Ledger
from tests.faults.publications import drop, made_anew, trim_log
from tests.faults.state import contents, difference
from tests.faults.strikes import Scenario


def _overtaken(scenario: Scenario, point: str, nth: int) -> str:
    """What is wrong with the tables after a zombie has gone on; empty if nothing is."""
    folder, pid, outcome = scenario.struck(point, nth, signal.SIGSTOP)
    assert outcome.state == "stopped", (point, outcome)
    scenario.finish(folder)
    end = scenario.zygote.resume(pid)
    if end.state not in ("done", "refused"):
        return f"{point}#{nth}: {end.text}"
    if end.state == "refused" and "LostRace" not in end.text:
        return f"{point}#{nth}: {end.text}"
    wrong = scenario.wrong(folder, and_after=False)
    return f"{point}#{nth}: {end} {wrong}" if wrong else ""


def test_suspended_at_points_of_a_later_run(later: Scenario) -> None:
    chosen = [
        ("file.half:admitted/s", 1),
        ("publish.staged", 1),
        ("commit.within:_sweeparea/ledger", 1),
        ("commit.within:admitted/s", 1),
        ("commit.within:_sweeparea/ledger_history", 1),
        ("file.staged:q/agg", 1),
        ("commit.before:_sweeparea/ledger", 2),
        ("commit.within:results/q__istream", 1),
        ("publish.applied:results/q", 1),
    ]
    assert set(chosen) <= set(later.passed)
    assert [wrong for point, nth in chosen if (wrong := _overtaken(later, point, nth))] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first", "later"])
def test_suspended_at_every_point(name: str, request: pytest.FixtureRequest) -> None:
    scenario: Scenario = request.getfixturevalue(name)
    assert [wrong for point, nth in scenario.passed if (wrong := _overtaken(scenario, point, nth))] == []


def test_the_loser_is_told_that_another_run_was_faster(later: Scenario) -> None:
    folder, pid, _ = later.struck("publish.staged", 2, signal.SIGSTOP)
    later.finish(folder)
    end = later.zygote.resume(pid)
    assert end.state == "refused"
    assert "LostRace: q: another run was faster. The ledger is at commit 4, instant 4" in end.text
    assert "nothing to repair" in end.text
    left = {p.name for p in (folder / "data").glob("results/q/data/*")}
    assert left == {name.split("/")[1] for name in _ever(folder / "data", "results/q")}, "its files are gone"


def _ever(data, table: str) -> set[str]:
    """The files that the versions of a table have held."""
    log = Ledger(str(data)).log(table)
    return {path for version in range(log.version() + 1) for path in log.paths(version)}


@pytest.mark.parametrize(
    ("point", "nth"), [("commit.within:_sweeparea/ledger", 1), ("commit.within:_sweeparea/ledger", 2)]
)
def test_held_within_a_commit_while_the_log_was_cleaned(later: Scenario, point: str, nth: int) -> None:
    """Its commit may be told done, at a version long gone: what it reads afterwards decides."""
    folder, pid, _ = later.struck("commit.within:_sweeparea/ledger", nth, signal.SIGSTOP)
    later.finish(folder)
    trim_log(str(folder))
    end = later.zygote.resume(pid)
    assert end.state == "refused", end
    assert "LostRace" in end.text
    assert later.wrong(folder) == ""


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        pytest.param("file.staged:results/q__istream", 2, marks=pytest.mark.slow),
        ("publish.staged", 2),
        ("commit.within:_sweeparea/ledger", 2),
        ("publish.ledger_committed", 2),
        ("commit.before:results/q", 1),
        pytest.param("publish.applied:results/q", 1, marks=pytest.mark.slow),
        pytest.param("commit.within:_sweeparea/ledger_history", 2, marks=pytest.mark.slow),
    ],
)
def test_a_name_that_was_dropped_and_made_anew_is_another_one(later: Scenario, point: str, nth: int) -> None:
    """Its sequence numbers begin again, so that a number alone does not tell whose commit it is."""
    folder, pid, outcome = later.struck(point, nth, signal.SIGSTOP)
    assert outcome.state == "stopped"
    drop(str(folder))
    # to the number that the zombie began from, so that it would follow
    made_anew(str(folder), 2)
    before = contents(folder / "data")
    end = later.zygote.resume(pid)
    assert end.state == "refused", end
    assert difference(contents(folder / "data"), {**before, "history": contents(folder / "data")["history"]}) == ""
    made_anew(str(folder), 4)


def test_one_that_was_dropped_for_good_does_not_come_back(first: Scenario) -> None:
    """A first commit expects no row; the history knows that there was one."""
    folder, pid, _ = first.struck("commit.before:_sweeparea/ledger", 2, signal.SIGSTOP)
    first.finish(folder)
    drop(str(folder))
    end = first.zygote.resume(pid)
    assert end.state == "refused", end
    assert Ledger(str(folder / "data")).row("q") is None


@pytest.mark.parametrize("name", ["first", "later"])
def test_of_several_at_the_same_time_one_wins_each_slice(name: str, request: pytest.FixtureRequest) -> None:
    scenario: Scenario = request.getfixturevalue(name)
    folder = scenario.copy()
    ends = [scenario.zygote.wait(pid) for pid in [scenario.start(folder) for _ in range(3)]]
    assert "done" in [end.state for end in ends], ends
    assert all(end.state == "done" or "LostRace" in end.text for end in ends), ends
    assert scenario.wrong(folder) == ""
