"""What dead attempts leave is removed, what living or committed ones have is not; what is committed is on the disk."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sweeparea.tables.layout import Layout
from sweeparea.tables.log.files import SYNC, write_file
from sweeparea.tables.publication.attempts import FOREIGN_SECONDS, Attempts
from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from tests.faults import publications

DEAD = "0123456789abcdef" * 2


@pytest.fixture
def data(tmp_path: Path) -> Path:
    publications.admit(str(tmp_path), 1)
    publications.publish(str(tmp_path), "q", 1)
    return tmp_path


def _left(data: Path, attempt: str) -> list[Path]:
    """As an attempt of q would leave them: a staged file, a SweepArea's, a spilled one and a folder beside."""
    layout = Layout(str(data))
    tables = publications.result_tables(Ledger(str(data)), "q")
    left = [Path(t, "data", attempt) for t in tables]
    left += [Path(layout.spill(attempt)), Path(layout.build("q", attempt))]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "part.parquet").write_text("half")
    return left


def _lock(data: Path, text: str) -> Path:
    lock = Path(Layout(str(data)).attempts) / f"q.{DEAD}"
    lock.write_text(text)
    return lock


def test_a_dead_attempt_of_this_machine_is_removed_at_once(data: Path) -> None:
    left, lock = _left(data, DEAD), _lock(data, os.uname().nodename)
    publications.publish(str(data), "q", 2)
    assert not any(path.exists() for path in [*left, lock])


def test_one_of_another_machine_only_after_a_week(data: Path) -> None:
    left, lock = _left(data, DEAD), _lock(data, "elsewhere")
    publications.publish(str(data), "q", 2)
    assert all(path.exists() for path in [*left, lock])
    week_ago = time.time() - FOREIGN_SECONDS - 60
    os.utime(lock, (week_ago, week_ago))
    publications.publish(str(data), "q", 3)
    assert not any(path.exists() for path in [*left, lock])


def test_a_living_attempt_keeps_what_it_has_and_removes_it_when_it_ends_in_vain(data: Path) -> None:
    ledger = Ledger(str(data))
    living = Publication(str(data), ledger, "q", NameKind.QUERY, "q-1")
    left = _left(data, living.begin())
    other = Publication(str(data), Ledger(str(data)), "q", NameKind.QUERY, "q-1")
    other.begin()
    assert all(path.exists() for path in left)
    del living, other
    assert not any(path.exists() for path in left)
    assert list(Path(ledger.layout.attempts).iterdir()) == []


def test_another_names_attempt_is_not_looked_at(data: Path) -> None:
    left, lock = _left(data, DEAD), _lock(data, os.uname().nodename)
    publications.admit(str(data), 2)
    publications.publish(str(data), "q_more", 1)
    assert all(path.exists() for path in [*left, lock])


def test_what_lies_among_the_spilled_for_a_week_is_removed(data: Path) -> None:
    spill = Path(Layout(str(data)).spill("of-some-sort"))
    spill.mkdir(parents=True)
    publications.publish(str(data), "q", 2)
    assert spill.exists()
    old = time.time() - FOREIGN_SECONDS - 60
    os.utime(spill, (old, old))
    publications.publish(str(data), "q", 3)
    assert not spill.exists()


def test_attempts_on_an_object_store_have_no_locks() -> None:
    attempts = Attempts(Layout("s3://bucket/data"))
    assert attempts.begin("q", DEAD) is None
    assert attempts.bury("q", lambda attempt: False) == []


def test_each_step_is_on_the_disk_before_the_next_rests_on_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        forced.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    monkeypatch.delenv(SYNC, raising=False)
    monkeypatch.setattr(os, "fsync", fsync)
    publications.publish(str(data), "q", 2)
    relative = [path.removeprefix(f"{data}/") for path in forced]
    staged = [i for i, path in enumerate(relative) if "/data/" in path and not path.startswith("_sweeparea")]
    ledger = [i for i, path in enumerate(relative) if path.startswith("_sweeparea/ledger/_delta_log/")]
    tables = [i for i, path in enumerate(relative) if "/_delta_log/" in path and not path.startswith("_sweeparea")]
    history = [i for i, path in enumerate(relative) if path.startswith("_sweeparea/ledger_history/_delta_log/")]
    assert len(staged) >= 5
    assert len(tables) == 3
    assert max(staged) < min(ledger) <= max(ledger) < min(tables)
    assert max(tables) < min(history)


def test_forcing_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SYNC, "off")
    monkeypatch.setattr(os, "fsync", lambda handle: pytest.fail("forced"))
    write_file(publications.rows(1), str(tmp_path), "a", "b")
