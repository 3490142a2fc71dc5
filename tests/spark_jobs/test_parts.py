"""Versions judged in parts by their keys: the same tables as from the whole, and nothing left behind."""

from __future__ import annotations

import collections
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.state import open_rows
from sweeparea.operators.time.ticks import MAX_TICK, MIN_TICK
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.admission.judging import parts
from sweeparea.spark_jobs.admission.judging.duplicates import Near
from sweeparea.spark_jobs.admission.relation import change_table
from sweeparea.spark_jobs.admission.relation.static import refresh
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.slices import result_tables
from sweeparea.tables.log.delta_log import DeltaLog
from tests.spark_jobs.relations import admitted, application, schema, table

ROWS = schema("item string, n bigint, f time, t time, op string, v double")
AT = "HEARTBEAT FOR f AS f"
BEHIND = "HEARTBEAT FOR f AS f - INTERVAL 3 SECONDS"
STREAM = f"CREATE STREAM r FROM DELTA '{{}}' TIMESTAMP BY f {BEHIND}"
RELATION = "CREATE RELATION r FROM DELTA '{}'"
KINDS = {
    "dropped": f"{STREAM} LATE REPAIR DEDUPLICATE BY item, v WITHIN INTERVAL 4 SECONDS",
    "late": f"{STREAM} DEDUPLICATE BY item WITHIN INTERVAL 9 SECONDS",
    "remembered": f"{STREAM} LATE REPAIR ON SOURCE CHANGE CORRECT DEDUPLICATE BY item WITHIN INTERVAL 4 SECONDS",
    "history": f"{RELATION} HISTORY BY (f, t) {AT} LATE REPAIR",
    "signed": f"{RELATION} CHANGES BY (op, f) {AT} LATE REPAIR",
    "keyed": f"{RELATION} CHANGES BY (op, f) KEY (item) SEQUENCE BY n {AT}",
    "feed": f"{RELATION} CHANGE DATA FEED",
}
CHANGED = ("remembered", "history", "feed")


KEYS = st.tuples(st.sampled_from([None, 0, 1, 2, 3, 7, 99]), st.sampled_from([0.0, -0.0, None]))


@settings(deadline=None)
@given(st.lists(st.lists(KEYS, max_size=9)), st.integers(1, 12))
def test_a_part_has_all_rows_of_its_keys(tmp_path_factory, tables, size):
    scratch = tmp_path_factory.mktemp("scratch")
    kind = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("at", pa.int64())])
    count = iter(range(1_000))
    given_ = [pa.table([[k for k, _ in rows], [x for _, x in rows], [next(count) for _ in rows]], schema=kind)
              for rows in tables]  # fmt: skip
    found = list(parts.by_keys(iter(given_), ["k", "x"], str(scratch), size))
    assert sorted(at for part in found for at in part.column("at").to_pylist()) == list(range(next(count)))
    seen: set[Any] = set()
    for part in found:
        keys = {(row["k"], None if row["x"] is None else 0) for row in part.to_pylist()}
        assert not keys & seen
        seen |= keys
        assert part.num_rows <= size or len(keys) == 1
        assert part.num_rows > 0
        for key in keys:
            at = [row["at"] for row in part.to_pylist() if (row["k"], None if row["x"] is None else 0) == key]
            assert at == sorted(at)
    assert list(scratch.iterdir()) == []


TICKS = st.integers(-6, 6) | st.sampled_from([MIN_TICK, MIN_TICK + 3, MAX_TICK - 3, MAX_TICK])
PAIRS = st.lists(st.tuples(st.sampled_from([None, "a", "b"]), TICKS), max_size=8)


@settings(deadline=None)
@given(PAIRS, PAIRS, st.integers(0, 5) | st.just(MAX_TICK))
def test_near_rows_have_the_key_and_lie_within_reach(rows, others, reach):
    def columns(pairs: list[tuple]) -> pa.Table:
        keys, ticks = [k for k, _ in pairs], [t for _, t in pairs]
        return pa.table({"k": pa.array(keys, pa.string()), "__tick": pa.array(ticks, pa.int64())})

    near = Near(columns(rows), ["k"], reach)(columns(others))
    assert near.dtype == np.bool_
    assert near.tolist() == [any(k == key and abs(t - tick) <= reach for k, t in rows) for key, tick in others]


def test_a_shelf_gives_back_what_it_was_given(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "PIECE", 5)
    given_ = [pa.table({"x": list(range(n))}) for n in (2, 0, 3, 1, 4, 9, 1)]
    with parts.shelves(str(tmp_path), 2) as (shelf, empty):
        for each in given_:
            shelf.put(each)
        assert list(empty) == []
        for _ in range(2):
            assert [each.to_pydict() for each in shelf] == [each.to_pydict() for each in given_ if each.num_rows]
    assert list(tmp_path.iterdir()) == []


def versions(source: str, kind: str, chance: random.Random) -> None:
    """Versions of a source: rows come, and where the kind allows it they change and go."""
    operations = {"signed": ["insert", "insert", "delete"], "keyed": list("IIUUD")}.get(kind, [""])

    def rows(number: int) -> list[tuple]:
        found = []
        for _ in range(number):
            at = chance.randint(0, 20) if chance.random() < 0.95 else None
            end = None if at is None or chance.random() < 0.3 else at + chance.randint(-1, 9)
            item = chance.choice(["a", "b", "c", "d", "e", "f", None])
            value = chance.choice([0.0, -0.0, 1.5])
            found.append((item, chance.randint(0, 2), at, end, chance.choice(operations), value))
        return found

    for number in (30, 25, 1, 40):
        write_deltalake(source, table(ROWS, rows(number)), mode="append")
        if kind in CHANGED:
            item = chance.choice("abcdef")
            DeltaTable(source).delete(f"item = '{item}' AND n = {chance.randint(0, 2)}")
            DeltaTable(source).update({"n": "2 - n"}, predicate=f"item = '{chance.choice('abcdef')}'")


def stored(app: Application) -> list[Any]:
    """The rows of all tables as bags, and the ledger's rows."""
    layout = app.layout
    paths = [layout.admitted("r"), layout.quarantine("r"), layout.state("r", "changes")]
    logs = [DeltaLog(path) for path in paths]
    bags = [collections.Counter(map(repr, log.read().to_pylist())) for log in logs if log.exists()]
    row = app.ledger.head()["r"]
    # which attempt was judged, and how long that took, is its own
    info = {k: v for k, v in row.info.items() if (k != "policy" or v) and k != "judged"}
    info["verdicts"] = [{k: v for k, v in each.items() if k != "seconds"} for each in info.get("verdicts") or ()]
    return [*bags, row.committed, row.seq, info]


def both(folder: Path, kind: str, run: Any, monkeypatch: Any) -> tuple[list[Any], list[Any]]:
    """What is stored of a kind when it is taken as a whole, and in small parts."""
    found = []
    for name, size in (("whole", parts.PIECE), ("parts", 4)):
        app = application(folder / name, KINDS[kind].format(folder / "src") + ";")
        monkeypatch.setattr(parts, "PIECE", size)
        run(app)
        spill = Path(str(app.data)) / "_sweeparea/spill"
        assert not spill.exists() or list(spill.iterdir()) == []
        found.append(stored(app))
    return found[0], found[1]


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["history", "signed", "keyed"])
def test_relations_in_parts_are_those_of_the_whole(tmp_path, monkeypatch, kind, seed):
    versions(str(tmp_path / "src"), kind, random.Random(seed))
    whole, in_parts = both(tmp_path, kind, admitted, monkeypatch)
    assert in_parts == whole
    assert sum(whole[0].values()) > 5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_feed_in_parts_is_that_of_the_whole(tmp_path, monkeypatch, seed):
    versions(str(tmp_path / "src"), "feed", random.Random(seed))
    whole, in_parts = both(tmp_path, "feed", admitted, monkeypatch)
    assert in_parts[:3] == whole[:3]  # its heartbeat is the time at which the log was read


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_in_parts_are_those_of_the_whole(spark, tmp_path, monkeypatch, seed):
    for kind in ("dropped", "late", "remembered"):
        folder = tmp_path / kind
        folder.mkdir()
        versions(str(folder / "src"), kind, random.Random(seed))
        whole, in_parts = both(folder, kind, lambda app: admit(app, "r", spark), monkeypatch)
        assert in_parts == whole, kind
        assert whole[-1]["totals"]["deduplicated"] > 0


def test_a_refreshed_snapshot_in_parts(spark, tmp_path, monkeypatch):
    """What comes and goes, record by record."""
    source, whole = str(tmp_path / "src"), parts.PIECE
    versions(source, "plain", random.Random(3))
    apps = [application(tmp_path / name, f"CREATE RELATION r FROM DELTA '{source}' STATIC;") for name in "ab"]
    for app in apps:
        admit(app, "r", spark)
    versions(source, "history", random.Random(4))
    found = []
    for app, size in zip(apps, (whole, 4), strict=True):
        monkeypatch.setattr(parts, "PIECE", size)
        found.append((refresh(app, "r", spark), *stored(app)))
    assert found[0] == found[1]
    assert {row["__n"] > 0 for row in DeltaLog(apps[0].layout.admitted("r")).read().to_pylist()} == {True, False}


QUERY = """
CREATE CONTINUOUS QUERY q START AT TIMESTAMP '2020-01-01 12:00:00' AS
SELECT item, n, COUNT(*) AS c FROM r [RANGE INTERVAL 4 SECONDS] GROUP BY item, n;
"""


def test_rows_that_end_are_taken_out_of_the_open_ones_in_parts(spark, tmp_path, monkeypatch):
    """Whether the driver holds all of them or reads them range by range."""
    found, chance = [], random.Random(5)
    apps = [application(tmp_path / name, f"{STREAM.format(tmp_path / 'src')};{QUERY}") for name in "ab"]
    for number in range(4):
        told = [(chance.choice("abcdefgh"), chance.randint(0, 3), 5 * number + i % 5, None, "", 0.0) for i in range(60)]
        write_deltalake(str(tmp_path / "src"), table(ROWS, told), mode="append")
        for app in apps:
            monkeypatch.setattr(result_tables, "ENDED_ROWS", 2_000_000 if app is apps[0] else 0)
            monkeypatch.setattr(open_rows, "PART_ROWS", 1 << 21 if app is apps[0] else 8)
            monkeypatch.setattr(open_rows, "LEAF_ROWS", 1 << 11 if app is apps[0] else 4)
            admit(app, "r", spark)
            process(app, "q", spark)
    for app in apps:
        found.append(collections.Counter(map(repr, DeltaLog(app.layout.result("q")).read().to_pylist())))
    assert found[0] == found[1]
    assert sum(found[0].values()) > 60


def test_only_small_files_of_a_log_are_merged(tmp_path, monkeypatch):
    """So that what the driver reads for a merge has a bound."""
    app = application(tmp_path, KINDS["signed"].format(tmp_path / "src") + ";")
    monkeypatch.setattr(change_table, "MERGED", 20)
    monkeypatch.setattr(change_table, "MOST_MERGED", 30)
    rows = 0
    for number in range(24):
        size = 25 if number in (3, 9) else 4
        told = [("x", rows + i, rows + i, None, "insert", 0.0) for i in range(size)]
        rows += size
        write_deltalake(str(tmp_path / "src"), table(ROWS, told), mode="append")
    admitted(app)
    files = DeltaLog(app.layout.state("r", "changes")).files()
    assert sum(file.rows for file in files) == rows
    assert max(file.rows for file in files) <= 30 + 4
    assert len(files) < 16
