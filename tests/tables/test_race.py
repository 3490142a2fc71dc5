"""Several writers at the same time."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from sweeparea.tables.errors import CommitConflict, LostRace
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.ledger import Ledger, LedgerRow, now_micros
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from tests.tables.processes import finish, start
from tests.tables.slices import QUERY, contents, publish_slice, stage_slice, tables


def test_of_two_processes_that_commit_the_same_slice_one_wins(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    ledger = Ledger(folder)
    ledger.create()
    tables(ledger)
    racers = [start("racers", "slice", folder, me, tmp_path / "line") for me in ("a", "b")]
    outcomes = sorted(finish(racer)[1] for racer in racers)
    assert outcomes[1] == "won"
    assert outcomes[0].startswith("lost: q: another run was faster"), outcomes
    found = contents(folder)
    assert found["/results/q__istream"] == [{"tick": 1, "text": f"1.{i}"} for i in range(2)]
    assert [row["seq"] for row in found["history"]] == [1]


def test_a_storm_of_commits_by_two_names_loses_none(tmp_path: Path) -> None:
    # The ledger does not exist yet: they race for its creation too.
    folder = str(tmp_path / "data")
    racers = [start("racers", "storm", folder, me, tmp_path / "line", 30) for me in ("a", "b")]
    outcomes = [finish(racer) for racer in racers]
    assert [out for _, out, _ in outcomes] == ["done", "done"], outcomes
    head = Ledger(folder).head()
    assert {name: row.seq for name, row in head.items()} == {"a": 30, "b": 30}
    assert len(DeltaLog(Ledger(folder).layout.ledger).files()) == 1


def test_a_run_left_over_from_before_loses_and_changes_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path)
    ledger = Ledger(folder)
    slow = Publication(folder, Ledger(folder), QUERY, NameKind.QUERY, "r1")
    stage_slice(slow, 1)
    publish_slice(ledger, 1)
    publish_slice(ledger, 2)
    before = contents(folder)
    with pytest.raises(LostRace, match="commit 2, instant 2"):
        slow.commit(1)
    assert contents(folder) == before


def test_a_commit_whose_answer_was_lost_is_found_again(tmp_path: Path) -> None:
    """The writer believes what the ledger or its history says, not what the call said."""
    ledger = Ledger(tmp_path)
    first = LedgerRow("q", NameKind.QUERY, "r1", 1, 10, uuid.uuid4().hex, at=now_micros())
    assert ledger.commit(first, None) == first
    assert ledger.commit(first, None) == first
    ledger.append_history(first)
    second = LedgerRow("q", NameKind.QUERY, "r1", 2, 20, uuid.uuid4().hex, at=now_micros())
    ledger.commit(second, 1)
    assert ledger.commit(first, None) == first
    with pytest.raises(LostRace):
        ledger.commit(LedgerRow("q", NameKind.QUERY, "r1", 1, 10, "somebody else"), None)


def test_a_commit_reported_done_at_a_version_long_gone_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path)
    ledger.create()
    real = DeltaLog.commit
    calls: list[int] = []

    def first_call_lies(self: DeltaLog, *arguments: object, **options: object) -> int:
        calls.append(1)
        return 1 if len(calls) == 1 else real(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaLog, "commit", first_call_lies)
    row = LedgerRow("q", NameKind.QUERY, "r1", 1, 10, uuid.uuid4().hex, at=now_micros())
    assert ledger.commit(row, None) == row
    assert len(calls) == 2
    assert ledger.row("q") == row


def test_an_exception_after_the_commit_went_through_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path)
    ledger.create()
    real = DeltaLog.commit

    def fails_after(self: DeltaLog, *arguments: object, **options: object) -> int:
        real(self, *arguments, **options)  # type: ignore[arg-type]
        raise CommitConflict("the answer was lost")

    monkeypatch.setattr(DeltaLog, "commit", fails_after)
    row = LedgerRow("q", NameKind.QUERY, "r1", 1, 10, uuid.uuid4().hex, at=now_micros())
    assert ledger.commit(row, None) == row
    ledger.append_history(row)
    assert ledger.history() == [row]


def test_a_new_registration_ends_the_old_ones_runs(tmp_path: Path) -> None:
    folder = str(tmp_path)
    ledger = Ledger(folder)
    publish_slice(ledger, 1)
    new = Publication(folder, ledger, QUERY, NameKind.QUERY, "r2", replaces=True)
    new.begin()
    row = new.commit(None)
    assert (row.seq, row.registration) == (2, "r2")
    with pytest.raises(LostRace, match="registered anew"):
        Publication(folder, ledger, QUERY, NameKind.QUERY, "r1").begin()
