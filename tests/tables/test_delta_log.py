"""Reading and committing one Delta log: compare-and-swap, and what delta-rs does not check."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from sweeparea.tables.errors import CommitConflict, ForeignWrite, TableError
from sweeparea.tables.log import log_reader, stats
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, write_file

SCHEMA = pa.schema([("tick", pa.int64()), ("text", pa.string())])


def file(root: Path, *ticks: int, stem: str = "", folder: str = "a1") -> DataFile:
    table = pa.Table.from_pylist([{"tick": t, "text": str(t)} for t in ticks], schema=SCHEMA)
    return write_file(table, str(root), folder, stem or f"p{ticks[0]}")


def ticks(log: DeltaLog, version: int | None = None) -> list[int]:
    return sorted(log.read(columns=["tick"], version=version).column("tick").to_pylist())


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(tmp_path / "t")
    log.create(SCHEMA, name="t", description="a table")
    return log


def test_creating_twice_is_harmless_and_other_columns_are_an_error(log: DeltaLog) -> None:
    again = DeltaLog(log.uri)
    again.create(SCHEMA, name="t", description="a table")
    assert (log.version(), again.version()) == (0, 0)
    with pytest.raises(
        TableError, match=r"other columns. It has \(tick bigint, text string\); wanted are \(tick int\)"
    ):
        again.create(pa.schema([("tick", pa.int32())]), name="t", description="a table")


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "nothing")
    assert not log.exists()
    with pytest.raises(TableError, match=f"no Delta table at {tmp_path}/nothing"):
        log.version()


def test_commit_adds_and_removes_in_one_version_and_tags_it(log: DeltaLog) -> None:
    root = Path(log.uri)
    first, second = file(root, 1, 2), file(root, 3)
    assert log.commit([first, second], [], app=("q:r1", 0), base_version=0) == 1
    assert log.app_version("q:r1") == 0
    assert log.app_version("other") is None
    assert log.commit([file(root, 4)], [first], app=("q:r1", 1), base_version=1, metadata={"sweeparea": "q/1"}) == 2
    assert (ticks(log), ticks(log, 1)) == ([3, 4], [1, 2, 3])
    assert log.history(1)[0]["sweeparea"] == "q/1"
    assert [log.version_tagged("q:r1", sequence) for sequence in (0, 1, 9)] == [1, 2, 2]
    assert sorted(log.uris(log.files())) == [f"{root}/data/a1/p3.parquet", f"{root}/data/a1/p4.parquet"]


def test_live_files_carry_their_statistics(log: DeltaLog) -> None:
    written = file(Path(log.uri), 1, 2)
    log.commit([written], [], app=None, base_version=0)
    assert log.files() == [written]


def test_files_are_listed_once_for_each_version(log: DeltaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    root, listed = Path(log.uri), []
    plain = log_reader.live_files
    monkeypatch.setattr(log_reader, "live_files", lambda *given: listed.append(given[0].version()) or plain(*given))
    first, second = file(root, 1), file(root, 2)
    log.commit([first], [], app=None, base_version=0)
    found = log.files()
    found.clear()  # whose it is
    assert (log.files(), log.files(1)) == ([first], [first])
    DeltaLog(log.uri).commit([second], [first], app=None, base_version=1)
    assert (log.files(), log.files(2), log.files(1)) == ([second], [second], [first])
    assert log.files(2, ["tick"])[0].stats != second.stats
    assert listed == [1, 2, 1, 2]
    monkeypatch.setattr(log_reader, "KEPT_FILES", 0)
    assert log.files() == log.files() == [second]
    assert listed == [1, 2, 1, 2, 2, 2]


def test_a_file_of_a_writer_without_statistics_is_looked_at(log: DeltaLog) -> None:
    written = file(Path(log.uri), 1, 2)
    log.commit([replace(written, stats="")], [], app=None, base_version=0)
    (found,) = log.files()
    assert (found.path, found.rows) == (written.path, written.rows)
    assert stats.nulls(found.stats, "tick") == 0


def test_statistics_of_some_columns_alone(log: DeltaLog) -> None:
    written = file(Path(log.uri), 1, 2)
    log.commit([written], [], app=None, base_version=0)
    (found,) = log.files(1, ["tick"])
    assert replace(found, stats="") == replace(written, stats="")
    assert (stats.bounds(found.stats, "tick"), stats.nulls(found.stats, "tick")) == ((1, 2), 0)
    assert (stats.nulls(written.stats, "text"), stats.nulls(found.stats, "text")) == (0, None)
    (found,) = log.files(1, [])
    assert (found.rows, stats.nulls(found.stats, "tick")) == (2, None)


def test_a_file_that_was_looked_into_must_still_be_there_when_it_is_committed(log: DeltaLog) -> None:
    written = file(Path(log.uri), 1)
    log.validate([written], [], 0)
    log.validate([written], [], 0)
    path = Path(log.uri) / written.path
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TableError, match="no complete Parquet file"):
        log.commit([written], [], app=None, base_version=0)
    path.unlink()
    with pytest.raises(TableError, match="is missing"):
        log.commit([written], [], app=None, base_version=0)


def test_a_table_whose_folder_was_removed_is_not_there_any_more(log: DeltaLog) -> None:
    assert log.exists()
    assert log.version() == 0
    shutil.rmtree(log.uri)
    assert not log.exists()


def test_texts_with_other_ends_of_lines_stand_in_commits(log: DeltaLog) -> None:
    rows = pa.table({"tick": [1, 2], "text": ["a\u2028b", "z\x85"]})
    written = write_file(rows, log.uri, "a1", "odd")
    log.commit([written], [], app=("q:r", 1), base_version=0)
    assert log.last_version_of({"q"}) == 1
    assert log.foreign_commits(0, {"q"}) == []
    commit = log.commit_of(1)
    assert commit is not None
    assert [action.rows for action in commit.adds] == [2]


def test_a_moved_version_is_a_conflict(log: DeltaLog) -> None:
    stale = DeltaLog(log.uri)
    assert stale.version() == 0
    log.commit([file(Path(log.uri), 1)], [], app=None, base_version=0)
    with pytest.raises(CommitConflict, match="at version 1, not 0"):
        stale.commit([file(Path(log.uri), 2)], [], app=None, base_version=0)
    assert ticks(stale) == [1]


def test_a_remove_of_a_path_with_odd_signs_is_no_silent_nothing(log: DeltaLog) -> None:
    """delta-rs reports such paths percent-encoded; a remove action must have them raw."""
    root = Path(log.uri)
    odd = file(root, 1, folder="a=1")
    os.rename(root / "data" / "a=1", root / "data" / "a 1%é")
    odd = replace(odd, path="data/a 1%é/p1.parquet")
    log.commit([odd], [], app=None, base_version=0)
    assert [f.path for f in log.files()] == [odd.path]
    log.commit([], log.files(), app=None, base_version=1)
    assert log.files() == []
    assert ticks(log) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: replace(f, path="data/a1/gone.parquet"), "gone.parquet is missing"),
        (lambda f: replace(f, size=f.size + 1), "instead of"),
        (lambda f: replace(f, partition={"p": "1"}), "partition columns"),
    ],
)
def test_files_that_are_not_what_they_are_said_to_be_are_refused(log: DeltaLog, change, message: str) -> None:
    with pytest.raises(TableError, match=message):
        log.commit([change(file(Path(log.uri), 1))], [], app=None, base_version=0)
    assert log.version() == 0


def test_files_of_other_columns_are_refused(log: DeltaLog) -> None:
    wrong = write_file(pa.table({"tick": pa.array([1], pa.int32()), "text": ["a"]}), log.uri, "a1", "wrong")
    with pytest.raises(TableError, match="column tick is int in the file and bigint in the table"):
        log.commit([wrong], [], app=None, base_version=0)
    more = write_file(pa.table({"tick": [1], "text": ["a"], "x": [1]}), log.uri, "a1", "more")
    with pytest.raises(TableError, match="column x is bigint in the file and missing in the table"):
        log.commit([more], [], app=None, base_version=0)


def test_adding_twice_and_removing_what_is_not_there_are_refused(log: DeltaLog) -> None:
    one = file(Path(log.uri), 1)
    with pytest.raises(TableError, match="does not hold the file"):
        log.commit([], [one], app=None, base_version=0)
    with pytest.raises(TableError, match="a second time"):
        log.commit([one, one], [], app=None, base_version=0)
    log.commit([one], [], app=None, base_version=0)
    with pytest.raises(TableError, match="a second time"):
        log.commit([one], [], app=None, base_version=1)


def test_partition_values_stand_in_the_log_only(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.create(pa.schema([*SCHEMA, ("day", pa.date32())]), name="t", description="t", partition_by=["day"])
    part = replace(file(tmp_path, 1), partition={"day": "2024-01-02"})
    log.commit([part], [], app=None, base_version=0)
    assert log.files() == [part]
    assert str(log.read().column("day")[0]) == "2024-01-02"
    log.commit([], log.files(), app=None, base_version=1)
    assert log.files() == []


def test_many_commits_pass_checkpoints_and_a_handle_left_behind_catches_up(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    settings = {"delta.checkpointInterval": "5", "delta.logRetentionDuration": "interval 0 seconds"}
    log.create(SCHEMA, name="t", description="t", configuration=settings)
    behind = DeltaLog(tmp_path)
    assert behind.version() == 0
    last: list[DataFile] = []
    for i in range(12):
        new = file(tmp_path, i)
        log.commit([new], last, app=("q:r", i), base_version=i)
        last = [new]
    assert not (tmp_path / "_delta_log" / f"{1:020d}.json").exists()
    assert (behind.version(), behind.app_version("q:r"), ticks(behind)) == (12, 11, [11])
    assert behind.version_tagged("q:r", 0) is None


def some_commits(log: DeltaLog) -> int:
    root = Path(log.uri)
    log.commit([file(root, 1)], [], app=("q:r", 1), base_version=0)
    return log.commit([file(root, 2)], [], app=("q:r", 2), base_version=1)


def test_optimize_and_vacuum_are_adopted(log: DeltaLog) -> None:
    version = some_commits(log)
    DeltaTable(log.uri).optimize.compact()
    DeltaTable(log.uri).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert log.version() > version + 1
    adopted = log.foreign_commits(version, {"q"})
    assert adopted[0].operation == "OPTIMIZE"
    assert len(adopted[0].removes) == 2
    assert log.last_version_of({"q"}) == version
    assert log.last_version_of({"other"}) == 0


def test_our_own_commits_are_not_foreign_whatever_they_do(log: DeltaLog) -> None:
    some_commits(log)
    assert log.foreign_commits(0, {"q"}) == []
    with pytest.raises(ForeignWrite):
        log.foreign_commits(0, {"p"})


def test_an_append_a_delete_and_a_setting_are_refused_and_named(log: DeltaLog) -> None:
    version = some_commits(log)
    row = pa.Table.from_pylist([{"tick": 9, "text": "x"}], schema=SCHEMA)
    for change, operation in (
        (lambda table: write_deltalake(table, row, mode="append"), "WRITE"),
        (lambda table: table.delete("tick = 1"), "DELETE"),
        (lambda table: table.alter.set_table_properties({"delta.appendOnly": "true"}), "SET TBLPROPERTIES"),
    ):
        change(DeltaTable(log.uri))
        with pytest.raises(ForeignWrite, match=rf"version {version + 1} is a {operation} by delta-rs.* at 20.*RESTORE"):
            log.foreign_commits(version, {"q"})
        if operation != "SET TBLPROPERTIES":
            # The way out that the message names.
            DeltaTable(log.uri).restore(version)
            assert log.foreign_commits(version, {"q"}) == []
            version = log.version()
            log.commit([file(Path(log.uri), version + 100)], [], app=("q:r", version), base_version=version)
            version += 1
