"""Previews of results: at an instant, over time, of any names and values, within bounds, and without a write."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from sweeparea.dags.page import bounds, quarantine, results, tables
from sweeparea.infra.errors import UsageError
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from tests.dags.page.made import EVIL, SECOND

ODD = "a \"quoted\" 'column'"
KEY, NUMBER = EVIL % ("k", "k"), "select"


def published(folder: Path, rows: pa.Table, committed: int, chronon: int, name: str = "q") -> Ledger:
    ledger = Ledger(str(folder))
    publication = Publication(str(folder), ledger, name, NameKind.QUERY, "r1")
    attempt = publication.begin()
    path = ledger.layout.result(name)
    DeltaLog(path).create(rows.schema, name="made", description="made for a test")
    publication.stage(path, [write_file(rows, path, attempt, "part-0")])
    publication.commit(committed, {}, {"chronon": chronon})
    return ledger


def relation(ticks: list[tuple[int, int | None]], stamps: bool) -> pa.Table:
    kind = pa.timestamp("us", "UTC") if stamps else pa.int64()

    def at(tick: int | None):
        return datetime.fromtimestamp(tick, UTC) if stamps and tick is not None else tick

    return pa.table(
        {
            ODD: pa.array([KEY if i % 2 else None for i in range(len(ticks))], pa.string()),
            NUMBER: pa.array(range(len(ticks)), pa.int64()),
            "valid_from": pa.array([at(a) for a, _ in ticks], kind),
            "valid_to": pa.array([at(b) for _, b in ticks], kind),
        }
    )


@pytest.mark.parametrize("stamps", [True, False])
def test_an_instant_shows_what_held_then(tmp_path: Path, stamps: bool):
    ledger = published(tmp_path, relation([(10, 20), (20, 30), (20, None)], stamps), 40, SECOND if stamps else 0)
    table = tables.result(ledger, "q")
    assert table is not None
    text = {True: "1970-01-01 00:00:{:02}", False: "{}"}[stamps]
    for tick, wanted in ((9, []), (10, ["0"]), (19, ["0"]), (20, ["1", "2"]), (30, ["2"]), (40, ["2"])):
        found = results.rows_at(table, tables.instant(table, text.format(tick)))
        assert [row[1] for row in found["rows"]] == wanted, tick
    assert [row[1] for row in results.rows_at(table, None)["rows"]] == ["2"]
    with pytest.raises(UsageError, match="known up to its committed instant only"):
        tables.instant(table, text.format(41))
    with pytest.raises(UsageError, match=r"is no (instant|tick)"):
        tables.instant(table, "'; DROP TABLE shown")


@pytest.mark.parametrize("stamps", [True, False])
def test_rows_over_time_by_key_and_measure(tmp_path: Path, stamps: bool):
    ledger = published(tmp_path, relation([(10, 20), (20, 30), (30, None)], stamps), 40, SECOND if stamps else 0)
    table = tables.result(ledger, "q")
    assert table is not None
    unit = 1000 if stamps else 1
    found = results.over_time(table)
    assert (found["measure"], found["keys"], found["more"]) == (NUMBER, [ODD], False)
    assert [(row[0], row[2], row[3]) for row in found["rows"]] == [
        ("NULL", 20 * unit, 0.0),
        (KEY[:60], 30 * unit, 1.0),
        ("NULL", None, 2.0),
    ]
    assert [row[3] for row in results.over_time(table, most=2)["rows"]] == [1.0, 2.0]  # the newest
    assert len(results.over_time(table, until=20 * (SECOND if stamps else 1))["rows"]) == 2
    assert {row[0] for row in results.over_time(table, keys=[])["rows"]} == {""}
    for measure, keys in ((ODD, None), ("nothing", None), (None, ["nothing"])):
        with pytest.raises(UsageError):
            results.over_time(table, measure=measure, keys=keys)


def test_rows_columns_and_letters_are_bounded(tmp_path: Path):
    many = {f"c{i}": pa.array(["x" * 5000] * 300) for i in range(60)}
    rows = pa.table({**many, "ts": pa.array(range(300), pa.int64())})
    table = tables.result(published(tmp_path, rows, 400, 0), "q")
    assert table is not None
    found = results.rows_at(table, None)
    assert (len(found["rows"]), len(found["columns"]), found["left_out"], found["more"]) == (200, 40, 20, True)
    assert max(len(value) for value in found["rows"][0][:40]) == 300
    assert found["rows"][0][-1] == {"tick": "299"}  # the newest first


def test_what_takes_long_is_stopped():
    with pytest.raises(bounds.TooMuch, match=r"stopped after 0\.2 s"), bounds.bounded(0.2) as connection:
        connection.execute("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b").fetchall()


def test_other_tables_are_not_led_to(tmp_path: Path):
    ledger = published(tmp_path, relation([(1, None)], False), 5, 0)
    for name in ("../secret", "other", "q__istream", ""):
        with pytest.raises(UsageError, match="keeps no table"):
            tables.result(ledger, "q", name)
    assert tables.result(ledger, "nothing") is None


def test_values_that_no_browser_holds(tmp_path: Path):
    rows = pa.table(
        {
            "f": pa.array([float("nan"), float("inf"), 1.5]),
            "b": pa.array([b"\xff\x00", None, b""]),
            "l": pa.array([[1, 2], [], None]),
            "ts": pa.array([1 << 61, 2, 3], pa.int64()),
        }
    )
    table = tables.result(published(tmp_path, rows, (1 << 61) + 1, 0), "q")
    assert table is not None
    assert results.rows_at(table, None)["rows"][0][-1] == {"tick": str(1 << 61)}
    assert [row[3] for row in results.over_time(table, measure="f", keys=[])["rows"]].count(None) == 2


def test_a_preview_writes_nothing(tmp_path: Path):
    ledger = published(tmp_path, relation([(1, None)], False), 5, 0)
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    table = tables.result(ledger, "q")
    assert table is not None
    results.rows_at(table, None)
    results.over_time(table)
    quarantine.kept_out(ledger, "nothing", None)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
