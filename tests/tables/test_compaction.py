"""Packing small files beside live slices, deleting old ones, and looks into a long log."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from sweeparea.infra.errors import SweepAreaError
from sweeparea.tables.log import compaction, delta_log, scan
from sweeparea.tables.log.compaction import compact
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile, write_file
from sweeparea.tables.log.stats import dump
from sweeparea.tables.publication import retention
from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover
from tests.tables.slices import QUERY, SCHEMA, publish_slice, rows, stage_slice, tables


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "data")


@pytest.fixture(autouse=True)
def three_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FAN", 3)


def texts(log: DeltaLog) -> list[str]:
    return sorted(log.read().column("text").to_pylist())


def istream(ledger: Ledger) -> DeltaLog:
    return DeltaLog(ledger.layout.result(f"{QUERY}__istream"))


def test_small_files_become_one_in_the_order_of_its_instants_and_slices_go_on(ledger: Ledger) -> None:
    for tick in (2, 1, 3, 4):
        publish_slice(ledger, tick)
    log = istream(ledger)
    before = texts(log)
    assert compact(log, "tick", dry_run=True).removed == 4
    assert len(log.files()) == 4
    done = compact(log, "tick")
    assert (done.removed, done.added, done.rows, done.left) == (4, 1, 8, 0)
    assert texts(log) == before
    (file,) = log.files()
    assert scan.bounds(file, "tick") == (1, 4)
    assert scan.plan(log, [file]).read(["tick"]).column("tick").to_pylist() == [1, 1, 2, 2, 3, 3, 4, 4]
    publish_slice(ledger, 5)
    assert len(texts(log)) == 10
    assert compact(log, "tick").removed == 0


def test_a_packed_table_is_read_as_before_at_the_version_of_a_reader(ledger: Ledger) -> None:
    for tick in range(1, 5):
        publish_slice(ledger, tick)
    log = istream(ledger)
    pinned = log.version_tagged("q:r1", 3)
    compact(log, "tick")
    assert log.version_tagged("q:r1", 3) == pinned
    assert log.read(version=pinned).num_rows == 6


def test_files_that_a_commit_at_work_replaces_are_packed_and_it_finds_its_rows(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice that stands in the ledger and is not applied yet removes a file that was packed meanwhile."""
    for tick in range(1, 5):
        publish_slice(ledger, tick)
    log = istream(ledger)
    publication = Publication(ledger.layout.data_folder, ledger, QUERY, NameKind.QUERY, "r1")
    stage_slice(publication, 5)
    publication.stage(log.uri, removes=[f for f in log.files() if scan.bounds(f, "tick") == (3, 3)])
    with monkeypatch.context() as patched:
        patched.setattr("sweeparea.tables.publication.publish.apply", lambda *_: None)
        publication.commit(5)
    assert compact(log, "tick").removed == 4
    assert recover(ledger.layout.data_folder, ledger) == [QUERY]
    assert texts(log) == sorted(f"{tick}.{i}" for tick in (1, 2, 4, 5) for i in (0, 1))


def test_a_commit_that_comes_in_between_is_no_harm_and_one_that_takes_a_file_leaves_the_rest_to_the_next_run(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tick in range(1, 5):
        publish_slice(ledger, tick)
    log, written = istream(ledger), []

    def slice_comes(*arguments: object) -> object:
        if not written:
            written.append(publish_slice(ledger, 5))
        return write_file(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(compaction, "write_file", slice_comes)
    assert compact(log, "tick").removed == 4
    assert len(texts(log)) == 10

    for tick in range(6, 9):
        publish_slice(ledger, tick)
    taken = min((f for f in log.files() if f.rows == 2), key=lambda f: f.path)

    def file_goes(*arguments: object) -> object:
        log.commit([], [taken], app=("q:r1", 9), base_version=log.version())
        return write_file(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(compaction, "write_file", file_goes)
    assert compact(log, "tick").left == 1
    assert len(texts(log)) == 14
    assert not [p for p in Path(log.uri).rglob("packed.parquet") if str(p.relative_to(log.uri)) not in log.paths()]


def test_a_row_is_written_again_only_when_its_file_has_grown_by_the_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FAN", 8)
    files: list[DataFile] = []
    written = 0
    for number in range(20_000):
        files.append(DataFile(f"{number}", 10_000, 1, dump({"minValues": {"tick": number}})))
        if number % 60 == 59:
            for group in compaction.groups(files, "tick"):
                whole = DataFile(
                    f"{group[0].path}+", sum(f.size for f in group), sum(f.rows for f in group), group[0].stats
                )
                assert whole.size <= compaction.TARGET_BYTES
                files = [f for f in files if f not in group] + [whole]
                written += whole.rows
            assert len(files) < 45
    assert sum(f.rows for f in files) == 20_000
    assert written < 4 * 20_000


def test_rows_that_do_not_fit_into_memory_become_several_files(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for tick in range(1, 7):
        publish_slice(ledger, tick)
    log = istream(ledger)
    monkeypatch.setattr(compaction, "MEMORY_BYTES", 3 * rows(1).nbytes)
    before = texts(log)
    done = compact(log, "tick")
    assert done.added in (2, 3)
    assert texts(log) == before


def test_vacuum_keeps_what_a_reader_has_pinned(ledger: Ledger) -> None:
    for tick in range(1, 4):
        publish_slice(ledger, tick)
    log = DeltaLog(ledger.layout.result(QUERY))
    old = time.time() - 3 * 3600
    for path in Path(log.uri).rglob("*.parquet"):
        os.utime(path, (old, old))
    for path in Path(log.uri, "_delta_log").glob("*.json"):
        text = path.read_text()
        path.write_text(text.replace('"deletionTimestamp":', f'"deletionTimestamp":{int(old * 1000)},"was":'))
    kept = retention.pinned_versions(log, "q:r1", [2])
    assert len(kept) == 1
    log = DeltaLog(log.uri)
    assert len(retention.vacuum(log, 1, kept, dry_run=True)) == 1
    assert len(retention.vacuum(log, 1, kept)) == 1
    assert log.read(version=kept[0]).num_rows == 2
    with pytest.raises(SweepAreaError, match="at least 1 hour"):
        retention.vacuum(log, 0)


def test_what_dead_runs_have_left_goes_and_living_ones_keep_theirs(ledger: Ledger) -> None:
    publish_slice(ledger, 1)
    layout = ledger.layout
    alive = Publication(layout.data_folder, ledger, QUERY, NameKind.QUERY, "r1")
    attempt = alive.begin()
    old = time.time() - 8 * 86_400
    for build in ("dead", attempt):
        folder = Path(layout.build(QUERY, build))
        folder.mkdir(parents=True)
        os.utime(folder, (old, old))
    empty = Path(ledger.layout.result(QUERY), "data", "e" * 32)
    empty.mkdir()
    os.utime(empty, (old, old))
    assert retention.left_over(layout, 24 * 7) == [f"_sweeparea/builds/{QUERY}-dead"]
    assert Path(layout.build(QUERY, attempt)).exists()
    assert retention.empty_folders(layout.result(QUERY)) == 1
    assert DeltaLog(tables(ledger)[0]).read().num_rows == 1


def test_the_version_of_a_commit_is_found_in_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_log, "NEAR", 2)
    log = DeltaLog(tmp_path / "t")
    log.create(SCHEMA, name="t", description="a table of a test")
    version_of = {}
    for number in range(1, 25):
        app = ("q:r1", 2 * number) if number % 5 else None
        file = write_file(rows(number), log.uri, "a", f"part-{number}")
        version = log.commit([file], [], app=app, base_version=log.version(), data_change=app is not None)
        if app:
            version_of[2 * number] = version
    for seq in range(50):
        wanted = max((v for s, v in version_of.items() if s <= seq), default=0)
        assert log.version_tagged("q:r1", seq) == wanted, seq
    for version in range(12):
        Path(log.uri, "_delta_log", f"{version:020d}.json").unlink()
    assert log.version_tagged("q:r1", 4) is None
    assert log.version_tagged("q:r1", 32) == version_of[32]
    assert log.version_tagged("other", 1) is None


def test_a_kept_handle_sees_commits_of_others_without_listing_the_log(tmp_path: Path) -> None:
    mine, other = DeltaLog(tmp_path / "t"), DeltaLog(tmp_path / "t")
    mine.create(SCHEMA, name="t", description="a table of a test")
    assert mine.version() == other.version() == 0
    for number in range(3):
        file = write_file(pa.table(rows(number)), mine.uri, "a", f"part-{number}")
        mine.commit([file], [], app=None, base_version=number)
        assert other.version() == number + 1


def test_a_log_is_shortened_up_to_what_is_needed_and_everybody_goes_on(ledger: Ledger) -> None:
    log = DeltaLog(ledger.layout.result(QUERY))
    for tick in range(1, 30):
        publish_slice(ledger, tick)
    behind = DeltaLog(log.uri)
    assert behind.files(3)
    assert log.trim(2, seconds=3600) == 0
    assert log.trim(2, seconds=0, kept=[20]) == 0
    assert log.trim(2, seconds=0) == 24
    assert behind.version() == log.version() == 29
    assert log.app_version("q:r1") == 29
    assert log.version_tagged("q:r1", 27) == 27
    assert log.version_tagged("q:r1", 20) is None
    publish_slice(ledger, 30)
    assert DeltaLog(log.uri).read().num_rows == 30
    assert DeltaLog(log.uri).exists()
    assert not DeltaLog(f"{log.uri}s").exists()


def test_slices_and_packing_at_the_same_time_lose_nothing(ledger: Ledger) -> None:
    folder, slices = ledger.layout.data_folder, 15
    publish_slice(ledger, 1)

    def publish() -> None:
        mine = Ledger(folder)
        for tick in range(2, slices + 1):
            publish_slice(mine, tick)

    done = compaction.Compacted()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(publish)
        mine = Ledger(folder)
        while not running.done():
            done += compact(mine.log(f"results/{QUERY}__istream"), "tick")
            done += compact(mine.log(mine.layout.history), "seq", ("name", "seq"))
        running.result()
    assert done.removed > slices
    assert texts(istream(ledger)) == sorted(f"{tick}.{i}" for tick in range(1, slices + 1) for i in (0, 1))
    assert [row.seq for row in ledger.history()] == list(range(1, slices + 1))
