"""What users and other programs do to the tables while a run is between its steps."""

from __future__ import annotations

import signal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from sweeparea.tables.errors import ForeignWrite, TableError
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover
from sweeparea.tables.publication.snapshot import version_at
from tests.faults import publications
from tests.faults.state import contents
from tests.faults.strikes import Scenario

TABLES = ("admitted/s", "results/q", "results/q__istream", "state/q/agg")


def _optimize(folder: Path) -> int:
    """A user's OPTIMIZE on every table; returns how many files it packed."""
    return sum(DeltaTable(str(folder / "data" / t)).optimize.compact()["numFilesRemoved"] for t in TABLES)


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("file.before:results/q", 1),
        ("publish.staged", 2),
        pytest.param("commit.within:_sweeparea/ledger", 2, marks=pytest.mark.slow),
        ("publish.ledger_committed", 2),
        ("commit.within:results/q", 1),
        pytest.param("publish.applied:results/q", 1, marks=pytest.mark.slow),
        pytest.param("publish.ledger_committed", 3, marks=pytest.mark.slow),
    ],
)
def test_an_optimize_at_any_moment_is_adopted(later: Scenario, point: str, nth: int) -> None:
    """It puts open and ended rows into one file, of which the commit that is under way removes the open ones."""
    folder, pid, outcome = later.struck(point, nth, signal.SIGSTOP)
    assert outcome.state == "stopped"
    assert _optimize(folder) > 2
    end = later.zygote.resume(pid)
    assert end.state == "done", end.text
    assert later.wrong(folder) == ""


def test_a_vacuum_at_default_retention_and_a_reader_of_old_versions_harm_nothing(later: Scenario) -> None:
    folder, _, _ = later.struck("publish.ledger_committed", 2)
    for table in TABLES:
        assert DeltaTable(str(folder / "data" / table)).vacuum(dry_run=False, full=True) == []
    later.finish(folder)
    for table in TABLES:
        DeltaTable(str(folder / "data" / table)).vacuum(dry_run=False, full=True)
    assert later.wrong(folder) == ""


def test_a_foreign_write_stops_the_run_and_says_what_when_and_by_which_engine(later: Scenario) -> None:
    folder, pid, _ = later.struck("publish.ledger_committed", 2, signal.SIGSTOP)
    table = str(folder / "data/results/q__istream")
    version = DeltaTable(table).version()
    write_deltalake(table, publications.rows(99), mode="append")
    end = later.zygote.resume(pid)
    assert end.state == "refused"
    for said in (f"version {version + 1} is a WRITE by delta-rs", "at 20", "Nothing was overwritten", "RESTORE TABLE"):
        assert said in end.text
    DeltaTable(table).restore(version)
    later.finish(folder)
    assert later.wrong(folder) == ""


def test_who_reads_a_table_is_stopped_by_a_foreign_write_too(later: Scenario) -> None:
    log = DeltaLog(str(later.copy() / "data/results/q__istream"))
    log.refuse_foreign("q")
    DeltaTable(log.uri).optimize.compact()
    log.refuse_foreign("q")
    write_deltalake(log.uri, publications.rows(99), mode="append")
    with pytest.raises(ForeignWrite, match="is a WRITE by delta-rs"):
        log.refuse_foreign("q")


def test_a_version_that_an_optimize_replaced_is_not_needed_any_more(later: Scenario) -> None:
    folder = later.copy()
    ledger = Ledger(str(folder / "data"))
    row = ledger.row("q")
    assert row is not None
    log = ledger.log("results/q__istream")
    before = sorted(log.read().column("text").to_pylist())
    at_two = log.version_tagged(row.app, 2)
    assert at_two is not None
    DeltaTable(log.uri).optimize.compact()
    DeltaTable(log.uri).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    now = version_at(log, row.app, 2)
    assert now is not None
    assert now > at_two
    assert sorted(log.read(version=now).column("text").to_pylist()) == before
    later.finish(folder)
    assert log.version() > now
    assert version_at(log, row.app, 2) == now
    assert version_at(log, row.app, 0) == 0
    assert sorted(log.read(version=version_at(log, row.app, 2)).column("text").to_pylist()) == before


def test_what_a_killed_commit_leaves_in_the_log_is_passed_over(later: Scenario) -> None:
    """delta-rs writes a commit beside its place and links it there; a kill in between leaves the half."""
    folder = later.copy()
    for table in ("_sweeparea/ledger", *TABLES):
        log = folder / "data" / table / "_delta_log"
        last = max(path.name for path in log.glob("*.json"))
        following = f"{int(last.split('.')[0]) + 1:020d}.json"
        (log / f"{following}#1").write_text('{"add":{"path":"half')
    later.finish(folder)
    assert later.wrong(folder) == ""


def test_a_table_older_than_the_ledger_is_refused(later: Scenario) -> None:
    """As after a power cut on a disk that lied, or a folder restored alone: what it lacks would never be noticed."""
    folder = later.copy()
    old = (folder / "data/results/q__istream/_delta_log").glob("*.json")
    sorted(old)[-1].unlink()
    with pytest.raises(TableError, match=r"q__istream holds commit 1 of q as its last, the ledger says 2.*one state"):
        publications.publish(str(folder / "data"), "q", 3)


def test_a_table_newer_than_the_ledger_is_refused(later: Scenario) -> None:
    """A ledger that was restored without its tables would give numbers anew that the tables have seen."""
    folder = later.copy()
    ledger = Ledger(str(folder / "data"))
    row = ledger.row("q")
    assert row is not None
    past = next(p for p in ledger.history("q") if p.seq == 1)
    ledger.forget("q", row.seq)
    log = ledger.log(ledger.layout.history)
    assert log.app_version(row.app) == 2
    ledger._swap("q", "restored", lambda rows: past if "q" in rows else {**rows, "q": past})
    with pytest.raises(TableError, match="holds commit 2 of q as its last, the ledger says 1"):
        publications.publish(str(folder / "data"), "q", 3)


def test_a_committed_file_that_was_deleted_before_it_was_applied_is_named(later: Scenario) -> None:
    folder, _, _ = later.struck("publish.ledger_committed", 2)
    data = folder / "data"
    ledger = Ledger(str(data))
    row = ledger.row("q")
    assert row is not None
    gone = row.actions["results/q__istream"]["adds"][0]["path"]
    (data / "results/q__istream" / gone).unlink()
    with pytest.raises(TableError, match=r"Commit 3 of q stands in the ledger, but its file .*drop q and run it anew"):
        recover(str(data), ledger)


def test_a_heartbeat_decided_on_an_old_row_is_not_committed(later: Scenario) -> None:
    """What a commit rests on is the row that it follows: a run that began before another's commit loses."""
    folder = str(later.copy() / "data")
    slow = Publication(folder, Ledger(folder), "s", NameKind.STREAM, "s-1")
    slow.begin()
    publications.admit(folder, 3)
    before = contents(Path(folder))
    with pytest.raises(Exception, match="another run was faster"):
        slow.commit(2)
    assert contents(Path(folder)) == before
    assert pa.table(DeltaTable(f"{folder}/admitted/s").to_pyarrow_table()).num_rows == 9
