"""Stage, ledger, apply; and what others do to the tables in between."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from sweeparea.tables.errors import ForeignWrite, TableError
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, apply, recover
from tests.tables.slices import QUERY, SCHEMA, contents, publish_slice, rows, stage_slice, tables


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "data")


def publication(ledger: Ledger) -> Publication:
    return Publication(ledger.layout.data_folder, ledger, QUERY, NameKind.QUERY, "r1")


def commit_to_ledger_only(ledger: Ledger, slice_: Publication, monkeypatch: pytest.MonkeyPatch) -> LedgerRow:
    """What a run leaves that dies after its ledger commit."""
    with monkeypatch.context() as patched:
        patched.setattr("sweeparea.tables.publication.publish.apply", lambda *_: None)
        return slice_.commit(9)


def test_a_slice_appears_in_all_tables_and_the_ledger_says_what_it_was(ledger: Ledger) -> None:
    publish_slice(ledger, 1)
    row = publish_slice(ledger, 2)
    assert ledger.row(QUERY) == row
    assert (row.seq, row.committed, row.kind) == (2, 2, "query")
    assert row.pins == {"s": {"seq": 2, "heartbeat": 2}}
    action = row.actions["results/q"]
    assert (action["base_version"], action["previous_seq"]) == (1, 1)
    assert len(action["adds"]) == len(action["removes"]) == 1
    found = contents(ledger.layout.data_folder)
    assert [r["tick"] for r in found["/results/q__istream"]] == [1, 1, 2, 2]
    assert [r["tick"] for r in found["/state/q/agg"]] == [2]
    assert [past.seq for past in ledger.history(QUERY)] == [1, 2]
    assert {DeltaLog(path).app_version("q:r1") for path in tables(ledger)} == {2}


def test_staged_files_are_seen_by_nobody(ledger: Ledger) -> None:
    stage_slice(publication(ledger), 1)
    assert all(DeltaLog(path).files() == [] for path in tables(ledger))
    assert ledger.head() == {}


def test_applying_twice_and_applying_an_old_row_are_harmless(ledger: Ledger) -> None:
    first, second = publish_slice(ledger, 1), publish_slice(ledger, 2)
    before = contents(ledger.layout.data_folder)
    for row in (second, first):
        apply(ledger, row)
    assert recover(ledger.layout.data_folder, ledger) == []
    assert contents(ledger.layout.data_folder) == before


def test_a_new_slice_completes_the_one_before(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = publication(ledger)
    stage_slice(dead, 1)
    commit_to_ledger_only(ledger, dead, monkeypatch)
    publish_slice(ledger, 2)
    assert [r["tick"] for r in contents(ledger.layout.data_folder)["/results/q__istream"]] == [1, 1, 2, 2]
    assert [past.seq for past in ledger.history()] == [1, 2]


def test_a_slice_without_rows_moves_the_ledger_alone(ledger: Ledger) -> None:
    publish_slice(ledger, 1)
    empty = publication(ledger)
    empty.begin()
    empty.stage(ledger.layout.result(QUERY))
    row = empty.commit(7)
    assert (row.seq, row.committed, row.actions) == (2, 7, {})
    assert DeltaLog(ledger.layout.result(QUERY)).app_version("q:r1") == 1
    assert publish_slice(ledger, 8).actions["results/q"]["previous_seq"] == 1


def test_mistakes_of_the_caller_are_refused_before_the_commit(ledger: Ledger, tmp_path: Path) -> None:
    relation = tables(ledger)[0]
    slice_ = publication(ledger)
    with pytest.raises(TableError, match="begin"):
        slice_.stage(relation)
    attempt = slice_.begin()
    with pytest.raises(TableError, match="no Delta table"):
        slice_.stage(ledger.layout.result("unknown"))
    with pytest.raises(TableError, match="leads out of it"):
        slice_.stage("/elsewhere/t")
    wrong = write_file(pa.table({"tick": [1]}), relation, attempt, "wrong")
    with pytest.raises(TableError, match="column text is missing in the file"):
        slice_.stage(relation, [wrong])
    with pytest.raises(TableError, match="cannot commit to tables in"):
        Publication(tmp_path / "other", ledger, QUERY, NameKind.QUERY, "r1")


def test_a_foreign_append_stops_the_query_until_it_is_undone(ledger: Ledger) -> None:
    publish_slice(ledger, 1)
    istream = ledger.layout.result(f"{QUERY}__istream")
    write_deltalake(istream, rows(99), mode="append")
    with pytest.raises(ForeignWrite, match="q__istream was changed from outside: version 2 is a WRITE by delta-rs"):
        publish_slice(ledger, 2)
    row = ledger.row(QUERY)
    assert row is not None
    assert row.committed == 1
    DeltaTable(istream).restore(1)
    publish_slice(ledger, 2)
    assert [r["tick"] for r in contents(ledger.layout.data_folder)["/results/q__istream"]] == [1, 1, 2, 2]


def test_a_foreign_append_between_ledger_and_apply_loses_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_slice(ledger, 1)
    dead = publication(ledger)
    stage_slice(dead, 2)
    commit_to_ledger_only(ledger, dead, monkeypatch)
    istream = ledger.layout.result(f"{QUERY}__istream")
    write_deltalake(istream, rows(99), mode="append")
    with pytest.raises(ForeignWrite):
        recover(ledger.layout.data_folder, ledger)
    DeltaTable(istream).restore(1)
    assert recover(ledger.layout.data_folder, ledger) == [QUERY]
    assert [r["tick"] for r in contents(ledger.layout.data_folder)["/results/q__istream"]] == [1, 1, 2, 2]


def test_tables_restored_without_their_ledger_are_noticed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_slice(ledger, 1)
    slice_ = publication(ledger)
    stage_slice(slice_, 2)
    row = commit_to_ledger_only(ledger, slice_, monkeypatch)
    row.actions["results/q"]["previous_seq"] = 5
    with pytest.raises(TableError, match="holds commit 1 of q, but commit 2 follows 5"):
        apply(ledger, row)


class TestOptimizeInBetween:
    """Three files; a slice removes the second, and a user's OPTIMIZE has packed them before the slice is applied."""

    @pytest.fixture
    def table(self, ledger: Ledger) -> str:
        path = ledger.layout.result("r")
        DeltaLog(path).create(SCHEMA, name="r", description="a table")
        for tick in (1, 2, 3):
            slice_ = publication(ledger)
            attempt = slice_.begin()
            slice_.stage(path, [write_file(rows(tick), path, attempt, f"p{tick}")])
            slice_.commit(tick)
        return path

    def replace_second(self, ledger: Ledger, table: str) -> Publication:
        slice_ = publication(ledger)
        attempt = slice_.begin()
        old = [f for f in ledger.log(table).files() if f.path.endswith("p2.parquet")]
        slice_.stage(table, [write_file(rows(9, 1), table, attempt, "p9")], old)
        return slice_

    def ticks(self, table: str) -> list[int]:
        return sorted(DeltaLog(table).read().column("tick").to_pylist())

    def test_it_is_undone_where_the_slice_needs_it(
        self, ledger: Ledger, table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit_to_ledger_only(ledger, self.replace_second(ledger, table), monkeypatch)
        DeltaTable(table).optimize.compact()
        assert len(DeltaLog(table).files()) == 1
        assert recover(ledger.layout.data_folder, ledger) == [QUERY]
        assert self.ticks(table) == [1, 1, 3, 3, 9]
        assert sorted(f.rows for f in DeltaLog(table).files()) == [1, 2, 2]
        # Who follows the table's changes sees the slice and nothing else.
        changes = pa.table(DeltaTable(table).load_cdf(5, 5).read_all()).to_pylist()
        assert sum(1 if r["_change_type"] == "insert" else -1 for r in changes) == 1 - 2

    def test_a_second_one_over_the_first_is_undone_too(
        self, ledger: Ledger, table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit_to_ledger_only(ledger, self.replace_second(ledger, table), monkeypatch)
        DeltaTable(table).optimize.compact()
        DeltaTable(table).optimize.z_order(["tick"])
        assert DeltaLog(table).history(1)[0]["operation"] == "OPTIMIZE"
        assert DeltaLog(table).version() == 5
        recover(ledger.layout.data_folder, ledger)
        assert self.ticks(table) == [1, 1, 3, 3, 9]

    def test_it_stays_where_the_slice_only_adds(
        self, ledger: Ledger, table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slice_ = publication(ledger)
        attempt = slice_.begin()
        slice_.stage(table, [write_file(rows(9, 1), table, attempt, "p9")])
        commit_to_ledger_only(ledger, slice_, monkeypatch)
        DeltaTable(table).optimize.compact()
        recover(ledger.layout.data_folder, ledger)
        assert self.ticks(table) == [1, 1, 2, 2, 3, 3, 9]
        assert sorted(f.rows for f in DeltaLog(table).files()) == [1, 6]

    def test_one_before_the_slice_began_changes_nothing(self, ledger: Ledger, table: str) -> None:
        DeltaTable(table).optimize.compact()
        slice_ = publication(ledger)
        attempt = slice_.begin()
        slice_.stage(table, [write_file(rows(9, 1), table, attempt, "p9")], ledger.log(table).files())
        slice_.commit(9)
        assert self.ticks(table) == [9]

    def test_one_while_the_slice_ran_is_undone(self, ledger: Ledger, table: str) -> None:
        slice_ = self.replace_second(ledger, table)
        DeltaTable(table).optimize.compact()
        slice_.commit(9)
        assert self.ticks(table) == [1, 1, 3, 3, 9]

    def test_files_read_before_it_are_staged_on_the_version_they_were_read_at(self, ledger: Ledger, table: str) -> None:
        log = DeltaLog(table)
        version = log.version()
        old = [f for f in log.files(version) if f.path.endswith("p2.parquet")]
        DeltaTable(table).optimize.compact()
        slice_ = publication(ledger)
        attempt = slice_.begin()
        with pytest.raises(TableError, match="rearranged since it was read"):
            slice_.stage(table, [], old)
        slice_.stage(table, [write_file(rows(9, 1), table, attempt, "p9")], old, base_version=version)
        slice_.commit(9)
        assert self.ticks(table) == [1, 1, 3, 3, 9]

    def test_bytes_that_vacuum_took_are_named(
        self, ledger: Ledger, table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit_to_ledger_only(ledger, self.replace_second(ledger, table), monkeypatch)
        DeltaTable(table).optimize.compact()
        DeltaTable(table).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        with pytest.raises(TableError, match=r"VACUUM has deleted .*p[13]\.parquet"):
            recover(ledger.layout.data_folder, ledger)
