"""The ledger's rows, and names of tables."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import pytest

from sweeparea.tables.errors import TableError
from sweeparea.tables.layout import Layout
from sweeparea.tables.publication.ledger import Ledger, LedgerRow, now_micros
from sweeparea.tables.publication.name_kinds import NameKind


def row(name: str, seq: int, **values: object) -> LedgerRow:
    return LedgerRow(name, NameKind.STREAM, "r1", seq, seq * 10, uuid.uuid4().hex, at=now_micros(), **values)  # type: ignore[arg-type]


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.head() == {}
    assert ledger.row("s") is None
    assert ledger.history() == []
    full = row(
        "s",
        1,
        pins={"a": {"seq": 2**62, "heartbeat": -(2**62)}},
        info={"né": [1.5, None, True]},
        actions={"results/q": {"base_version": 0, "adds": [{"path": 'a"b'}]}},
    )
    ledger.commit(full, None)
    ledger.commit(LedgerRow("q", NameKind.QUERY, "r2", 1, None, "x"), None)
    assert Ledger(tmp_path).head() == {"s": full, "q": LedgerRow("q", NameKind.QUERY, "r2", 1, None, "x")}


def test_other_commits_in_between_do_no_harm(tmp_path: Path) -> None:
    mine, other = Ledger(tmp_path), Ledger(tmp_path)
    mine.commit(row("a", 1), None)
    for seq in range(1, 31):
        other.commit(row("b", seq), seq - 1 or None)
    mine.commit(row("a", 2), 1)
    assert {name: r.seq for name, r in mine.head().items()} == {"a": 2, "b": 30}


def test_a_sequence_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="sequence 3 cannot follow 1"):
        Ledger(tmp_path).commit(row("a", 3), 1)


def test_replaced_heads_are_cleaned_up_after_an_hour(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for seq in range(1, 6):
        ledger.commit(row("a", seq), seq - 1 or None)
    folder = Path(ledger.layout.ledger) / "data" / "head"
    assert ledger.clean() == 0
    for file in folder.iterdir():
        os.utime(file, (time.time() - 7200, time.time() - 7200))
    ledger.clean()
    assert ledger.head()["a"].seq == 5
    ledger.commit(row("a", 6), 5)
    assert Ledger(tmp_path).head()["a"].seq == 6


def test_paths_of_tables() -> None:
    layout = Layout("/d/")
    assert layout.admitted("s") == "/d/admitted/s"
    assert layout.quarantine("s") == "/d/quarantine/s"
    assert layout.result("q__istream") == "/d/results/q__istream"
    assert layout.state("q", "aggregate_1") == "/d/state/q/aggregate_1"
    assert (layout.ledger, layout.history) == ("/d/_sweeparea/ledger", "/d/_sweeparea/ledger_history")
    assert layout.relative("/d/state/q/a") == layout.relative("state/q/a") == "state/q/a"
    assert layout.absolute("state/q/a") == "/d/state/q/a"


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a/b", "..", "é", "a b", "a\n", "x" * 129])
def test_names_that_cannot_be_folders_are_refused(name: str) -> None:
    with pytest.raises(TableError, match="cannot name a table"):
        Layout("/d").admitted(name)


@pytest.mark.parametrize("path", ["/other/t", "../t", "/d", ""])
def test_tables_outside_the_data_folder_are_refused(path: str) -> None:
    with pytest.raises(TableError, match="leads out of it"):
        Layout("/d").relative(path)
