"""Relations from Delta tables: what is admitted of each kind of history, and what of bad input."""

from __future__ import annotations

import collections
import datetime as dt
import json
import random
import re
import shutil
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sweeparea.cql.text.errors import BindError, CqlErrors, ParseError, TypeError_
from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.operators.time.domain import TimeKind
from sweeparea.operators.time.ticks import MAX_TICK
from sweeparea.spark_jobs.admission.heartbeat import advance
from sweeparea.spark_jobs.admission.relation.change_log import BELOW_ZERO, NO_ROW
from sweeparea.spark_jobs.admission.relation.change_relation import RelationAdmission
from sweeparea.spark_jobs.admission.release.release_relation import BY_ITSELF, release_changes
from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.drop import drop
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.sources.source import SourceTable
from tests.spark_jobs import relations as rel
from tests.spark_jobs.relations import admitted, application, changes, contents, put, quarantine, schema, tick

HISTORY = "CREATE RELATION r FROM DELTA 'src' HISTORY BY (f, t) HEARTBEAT {} {};"
HISTORY_ROWS = schema("item string, price double, f time, t time")
LOG = "CREATE RELATION r FROM DELTA 'src' CHANGES BY (op, at) {} HEARTBEAT {} {};"
LOG_ROWS = schema("op string, item string, price double, n bigint, at time")


def history(folder: Path, heartbeat: str = "FOR f AS f", more: str = "") -> Application:
    return application(folder, HISTORY.format(heartbeat, more))


def log(folder: Path, key: str = "", heartbeat: str = "FOR at AS at", more: str = "") -> Application:
    return application(folder, LOG.format(key, heartbeat, more))


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]


# -- HISTORY BY ------------------------------------------------------------------------------------------------------


def test_validity_is_contents(tmp_path):
    """Half-open intervals; overlapping ones of one record are so many copies; empty ones hold nothing."""
    app = history(tmp_path)
    rows = [("a", 1.0, 0, 10), ("a", 1.0, 5, 15), ("a", 2.0, 10, None), ("b", 1.0, 7, 7), ("a", 1.0, 20, None)]
    put(tmp_path, "src", HISTORY_ROWS, rows)
    assert admitted(app).heartbeat == tick(20)
    a, b = ("a", 1.0), ("a", 2.0)
    at = {s: contents(app, tick(s)) for s in (-1, 0, 5, 9, 10, 14, 15, 20)}
    assert at == {-1: {}, 0: {a: 1}, 5: {a: 2}, 9: {a: 2}, 10: {a: 1, b: 1}, 14: {a: 1, b: 1}, 15: {b: 1},
                  20: {a: 1, b: 1}}  # fmt: skip
    assert quarantine(app) == []
    assert DeltaLog(app.layout.admitted("r")).schema().names == ["item", "price", "__tick", "__seq", "__n"]


def test_a_row_whose_end_is_filled_in_is_that_end_alone(tmp_path):
    """So it is on time, though its beginning lies behind the heartbeat."""
    app = history(tmp_path)
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, 0, None), ("b", 1.0, 30, None)])
    admitted(app)
    DeltaTable(str(tmp_path / "data/src")).update({"t": "timestamp '2020-01-01 12:00:40+00'"}, predicate="item = 'a'")
    put(tmp_path, "src", HISTORY_ROWS, [("b", 2.0, 50, None)])
    report = admitted(app)
    assert (report.versions, report.rows, dict(report.quarantined)) == (2, 2, {})
    assert contents(app, tick(39)) == {("a", 1.0): 1, ("b", 1.0): 1}
    assert contents(app, tick(40)) == {("b", 1.0): 1}


def test_what_lies_ahead_waits_for_its_instant(tmp_path):
    """Ends in year 9999 are usual; they, and beginnings to come, move no heartbeat."""
    app = history(tmp_path)
    far = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, 0, far), ("b", 1.0, far, None), ("c", 1.0, 5, 60)])
    assert admitted(app).heartbeat == tick(5)
    assert contents(app, MAX_TICK) == {("a", 1.0): 1, ("c", 1.0): 1}
    DeltaTable(str(tmp_path / "data/src")).update({"t": "timestamp '2020-01-01 12:00:50+00'"}, predicate="item = 'a'")
    put(tmp_path, "src", HISTORY_ROWS, [("d", 1.0, 70, None)])
    assert not admitted(app).quarantined
    assert contents(app, tick(70)) == {("d", 1.0): 1}


def test_bad_rows_of_a_history(tmp_path):
    app = history(tmp_path)
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, None, 5), ("a", 2.0, 9, 8), ("a", 3.0, 10, None)])
    report = admitted(app)
    assert dict(report.quarantined) == {
        "timestamp column f is NULL": 1,
        "ends before it starts: t is before f": 1,
    }
    found = quarantine(app)
    assert [(reason, at, n) for reason, at, n, _ in found] == [
        ("ends before it starts", tick(9), 1),
        ("timestamp column f is NULL", None, 1),
    ]
    assert json.loads(found[1][3]) == {"item": "a", "price": 1.0, "f": None, "t": "2020-01-01T12:00:05Z"}
    # corrected in the source: the bad row goes, the good one is on time
    src = DeltaTable(str(tmp_path / "data/src"))
    src.update(
        {"t": "timestamp '2020-01-01 12:00:30+00'", "f": "timestamp '2020-01-01 12:00:20+00'"}, predicate="price = 2.0"
    )
    report = admitted(app)
    assert (report.cancelled, len(quarantine(app))) == (1, 1)
    assert contents(app, tick(20)) == {("a", 2.0): 1, ("a", 3.0): 1}


def test_late_rows_of_a_history(tmp_path):
    """REJECT: what is left of the version is judged change by change."""
    app = history(tmp_path)
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, 30, None)])
    admitted(app)
    put(tmp_path, "src", HISTORY_ROWS, [("b", 1.0, 10, 50), ("c", 1.0, 40, None)])
    put(tmp_path, "src", HISTORY_ROWS, [("c", 2.0, 60, None)])
    report = admitted(app)
    # b's beginning is late; at its end there is no b to take away
    assert dict(report.quarantined) == {"late: at or below the heartbeat": 1, BELOW_ZERO: 1}
    assert {(reason, at, n) for reason, at, n, _ in quarantine(app)} == {
        ("late", tick(10), 1),
        ("net count below zero", tick(50), -1),
    }
    assert contents(app, tick(60)) == {("a", 1.0): 1, ("c", 1.0): 1, ("c", 2.0): 1}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_is_its_source_at_every_instant(tmp_path, seed):
    """However the versions are cut into runs, and whatever one of them adds, fills in, moves and deletes."""
    chance = random.Random(seed)
    one, each = history(tmp_path / "one", "MANUAL"), history(tmp_path / "each", "MANUAL")
    rows: list[tuple] = []
    for version in range(5):
        now = 10 * version
        rows = [row for row in rows if row[2] <= now - 10 or chance.random() < 0.8]  # what has not begun may go
        rows = [
            (item, price, f, now + chance.randint(1, 9)) if t is None and f < now and chance.random() < 0.4
            else (item, price, f, t)
            for item, price, f, t in rows
        ]  # fmt: skip
        for _ in range(4):
            f = now + chance.randint(1, 15)
            t = chance.choice([None, None, f + chance.randint(0, 9)])
            rows.append((chance.choice("ab"), chance.choice([0.0, -0.0, 1.0]), f, t))
        for app in (one, each):
            put(Path(str(app.data)).parent, "src", HISTORY_ROWS, rows, mode="overwrite")
        assert not admitted(each).quarantined
        advance(each, "r", tick(now))
    admitted(one)
    advance(one, "r", tick(40))
    told = changes(one), changes(each)
    for second in range(41):
        held: dict = {}
        for item, price, f, t in rows:
            if f <= second and (t is None or second < t):
                held[(item, abs(price))] = held.get((item, abs(price)), 0) + 1
        assert [contents(each, tick(second)) for each in told] == [held, held]
    assert quarantine(one) == quarantine(each) == []


# -- CHANGES BY ------------------------------------------------------------------------------------------------------


def test_a_log_of_signed_rows(tmp_path):
    app = log(tmp_path)
    rows = [
        ("insert", "a", 1.0, 0, 0), ("insert", "a", 1.0, 0, 0), ("delete", "a", 1.0, 0, 5),
        ("update_preimage", "a", 1.0, 0, 7), ("update_postimage", "a", 2.0, 0, 7), ("insert", "b", None, 0, 9),
    ]  # fmt: skip
    put(tmp_path, "src", LOG_ROWS, rows)
    assert admitted(app).heartbeat == tick(9)
    a = ("a", 1.0, 0)
    assert [contents(app, tick(s)) for s in (0, 5, 7)] == [{a: 2}, {a: 1}, {("a", 2.0, 0): 1}]
    assert contents(app, tick(9)) == {("a", 2.0, 0): 1, ("b", None, 0): 1}


def test_bad_rows_of_a_log(tmp_path):
    """Unknown and missing operations, no instant, and deletes of rows that never were."""
    app = log(tmp_path)
    rows = [
        ("upsert", "a", 1.0, 0, 0), (None, "a", 1.0, 0, 0), ("I", "a", 1.0, 0, 0), ("insert", "a", 1.0, 0, None),
        ("insert", "b", 1.0, 0, 3), ("delete", "b", 1.0, 0, 2), ("delete", "b", 1.0, 0, 4), ("delete", "b", 1.0, 0, 4),
    ]  # fmt: skip
    put(tmp_path, "src", LOG_ROWS, rows)
    report = admitted(app)
    unknown = "unknown operation code: op must be insert, update_postimage, delete or update_preimage"
    assert dict(report.quarantined) == {unknown: 3, "timestamp column at is NULL": 1, BELOW_ZERO: 2}
    below = [
        (at, n, json.loads(row)["op"]) for reason, at, n, row in quarantine(app) if reason == "net count below zero"
    ]
    assert below == [(tick(2), 1, "delete"), (tick(4), 1, "delete")]
    assert contents(app, tick(3)) == {("b", 1.0, 0): 1}
    assert contents(app, tick(4)) == {}


def test_the_net_count_is_judged_when_the_heartbeat_passes(tmp_path):
    """A delete may come before its insert, in versions as well as in rows."""
    app = log(tmp_path, heartbeat="MANUAL")
    put(tmp_path, "src", LOG_ROWS, [("delete", "a", 1.0, 0, 9)])
    admitted(app)
    advance(app, "r", tick(5))
    put(tmp_path, "src", LOG_ROWS, [("insert", "a", 1.0, 0, 8)])
    assert (admitted(app).rows, changes(app)) == (1, {})
    advance(app, "r", tick(20))
    assert changes(app) == {(("a", 1.0, 0), tick(8)): 1, (("a", 1.0, 0), tick(9)): -1}
    assert quarantine(app) == []


def test_keys_set_and_end_their_rows(tmp_path):
    """The last of a key's changes at one instant by SEQUENCE BY counts; D looks at nothing else; NULL is a key."""
    app = log(tmp_path, "KEY (item) SEQUENCE BY n")
    rows = [
        ("U", "a", 1.0, 2, 0), ("I", "a", 9.0, 1, 0), ("I", None, 3.0, 1, 0), ("D", "a", 77.0, 1, 5),
        ("I", "a", 4.0, 2, 6), ("D", "a", None, 3, 6), ("U", None, 3.5, 1, 7), ("I", "b", 1.0, 1, 8),
    ]  # fmt: skip
    put(tmp_path, "src", LOG_ROWS, rows)
    assert not admitted(app).quarantined
    null = (None, 3.0, 1)
    assert contents(app, tick(0)) == {("a", 1.0, 2): 1, null: 1}
    assert contents(app, tick(5)) == contents(app, tick(6)) == {null: 1}
    assert contents(app, tick(8)) == {(None, 3.5, 1): 1, ("b", 1.0, 1): 1}


def test_ties_of_a_key_without_a_sequence_by_operation_and_columns(tmp_path):
    app = log(tmp_path, "KEY (item)")
    put(tmp_path, "src", LOG_ROWS, [("U", "a", 1.0, 0, 0), ("I", "a", 9.0, 0, 0), ("U", "a", None, 0, 0)])
    put(tmp_path, "src", LOG_ROWS, [("D", "a", 1.0, 0, 4), ("I", "a", 2.0, 0, 4), ("I", "z", 0.0, 0, 9)])
    admitted(app)
    assert contents(app, tick(0)) == {("a", 1.0, 0): 1}  # U after I; of two U the greater price
    assert contents(app, tick(4)) == {("a", 2.0, 0): 1}  # D before I


def test_bad_rows_of_a_keyed_log(tmp_path):
    app = log(tmp_path, "KEY (item)")
    rows = [("X", "a", 1.0, 0, 0), ("insert", "a", 1.0, 0, 0), ("D", "a", 1.0, 0, 1), ("I", "a", 1.0, 0, 2)]
    put(tmp_path, "src", LOG_ROWS, rows)
    report = admitted(app)
    assert dict(report.quarantined) == {"unknown operation code: op must be I, U or D": 2, NO_ROW: 1}
    assert contents(app, tick(2)) == {("a", 1.0, 0): 1}


def test_a_log_is_only_appended_to(tmp_path):
    app = log(tmp_path)
    put(tmp_path, "src", LOG_ROWS, [("insert", "a", 1.0, 0, 0), ("insert", "b", 1.0, 0, 1)])
    admitted(app)
    DeltaTable(str(tmp_path / "data/src")).delete("item = 'a'")
    with pytest.raises(SweepAreaError, match=r"version 1 of its source removes or changes 1 rows, but a log"):
        admitted(app)
    assert app.ledger.head()["r"].info["source_version"] == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_however_versions_are_cut_and_however_late(tmp_path, seed):
    """Law L1: with REPAIR a relation is the same whether its changes came on time or late."""
    chance = random.Random(seed)
    rows = [
        (chance.choice("IUUD"), chance.choice("abc"), float(chance.randint(0, 2)), chance.randint(0, 2), s)
        for s in range(20)
        for _ in range(2)
    ]
    on_time = log(tmp_path / "on_time", "KEY (item) SEQUENCE BY n", more="LATE REPAIR")
    late = log(tmp_path / "late", "KEY (item) SEQUENCE BY n", more="LATE REPAIR")
    together = log(tmp_path / "together", "KEY (item) SEQUENCE BY n", more="LATE REPAIR")
    put(tmp_path / "on_time", "src", LOG_ROWS, rows)
    admitted(on_time)
    shuffled = chance.sample(rows, len(rows))
    for start in range(0, len(rows), 10):
        for app in (late, together):
            put(Path(str(app.data)).parent, "src", LOG_ROWS, shuffled[start : start + 10])
        admitted(late)
    admitted(together)
    for app in (late, together):
        assert changes(app) == changes(on_time)
        assert [(r, t) for r, t, _, _ in quarantine(app)] == [(r, t) for r, t, _, _ in quarantine(on_time)]
    row = late.ledger.head()["r"]
    assert 1 < row.info["correction_seq"] <= row.seq
    # what was admitted of them, commit by commit, is the same too
    logs = [DeltaLog(app.layout.admitted("r")).read().to_pylist() for app in (late, together)]
    assert sorted(map(repr, logs[0])) == sorted(map(repr, logs[1]))


def test_late_changes_within_and_beyond_a_bound(tmp_path):
    app = log(tmp_path, more="LATE REPAIR WITHIN INTERVAL 5 SECONDS")
    put(tmp_path, "src", LOG_ROWS, [("insert", "a", 1.0, 0, 20)])
    admitted(app)
    assert app.ledger.head()["r"].info["correction_seq"] == 0
    put(tmp_path, "src", LOG_ROWS, [("insert", "b", 1.0, 0, 15), ("insert", "c", 1.0, 0, 14.999999)])
    report = admitted(app)
    assert (report.rows, report.late, dict(report.quarantined)) == (1, 1, {"late: older than LATE REPAIR WITHIN": 1})
    assert contents(app, tick(15)) == {("b", 1.0, 0): 1}
    assert app.ledger.head()["r"].info["correction_seq"] == 2


def test_a_late_row_lets_a_change_leave_the_quarantine(tmp_path):
    """The delete that found nothing finds it now: as if the insert had been on time."""
    app = log(tmp_path, more="LATE REPAIR")
    put(tmp_path, "src", LOG_ROWS, [("delete", "a", 1.0, 0, 8), ("insert", "z", 1.0, 0, 20)])
    assert dict(admitted(app).quarantined) == {BELOW_ZERO: 1}
    put(tmp_path, "src", LOG_ROWS, [("insert", "a", 1.0, 0, 3)])
    report = admitted(app)
    assert (report.cancelled, quarantine(app)) == (1, [])
    assert contents(app, tick(7)) == {("a", 1.0, 0): 1}
    assert contents(app, tick(8)) == {}


# -- CHANGE DATA FEED ------------------------------------------------------------------------------------------------

FEED = "CREATE RELATION r FROM DELTA 'src' CHANGE DATA FEED {};"
FEED_ROWS = schema("item string, price double")


def test_a_feed_happens_when_it_is_committed(tmp_path):
    app = application(tmp_path, FEED.format(""))
    begun = time.time_ns() // 1000
    put(tmp_path, "src", FEED_ROWS, [("a", 1.0), ("b", 1.0)])
    first = admitted(app)
    DeltaTable(str(tmp_path / "data/src")).update({"price": "price + 1"}, predicate="item = 'a'")
    DeltaTable(str(tmp_path / "data/src")).delete("item = 'b'")
    second = admitted(app)
    idle = admitted(app)
    assert (idle.versions, idle.heartbeat > second.heartbeat > first.heartbeat > begun) == (0, True)  # type: ignore[operator]
    assert contents(app, first.heartbeat) == {("a", 1.0): 1, ("b", 1.0): 1}  # type: ignore[arg-type]
    assert contents(app, second.heartbeat) == {("a", 2.0): 1}  # type: ignore[arg-type]
    ticks = sorted({at for _, at in changes(app)})
    assert len(ticks) == 3
    # nothing at or below a heartbeat that was published before it was read
    assert ticks[0] <= first.heartbeat < ticks[1] <= ticks[2] <= second.heartbeat  # type: ignore[operator]
    assert app.plans.input_schema("r").time.kind == TimeKind.TIMESTAMP


def test_a_feed_whose_clock_goes_back(tmp_path, monkeypatch):
    """c(v) = max(commit time, c(v-1), published heartbeat + 1 tick)."""
    from sweeparea.tables.sources.source import SourceTable

    app = application(tmp_path, FEED.format(""))
    times = {0: 5_000, 1: 3_000, 2: 9_000}
    monkeypatch.setattr(SourceTable, "commit_time", lambda self, version: times[version])
    for price in (1.0, 2.0, 3.0):
        put(tmp_path, "src", FEED_ROWS, [("a", price)])
    admitted(app)
    assert [at for _, at in sorted(changes(app), key=str)] == [5_000, 5_000, 9_000]


def test_a_feed_of_any_table_nets_what_a_version_rewrites(tmp_path):
    app = application(tmp_path, FEED.format(""))
    put(tmp_path, "src", FEED_ROWS, [("a", 1.0), ("a", 1.0), ("b", 1.0)])
    admitted(app)
    put(tmp_path, "src", FEED_ROWS, [("a", -0.0), ("a", 1.0), ("b", 1.0)], mode="overwrite")
    report = admitted(app)
    assert report.rows == 2
    assert contents(app, MAX_TICK) == {("a", 1.0): 1, ("a", 0.0): 1, ("b", 1.0): 1}


# -- heartbeats ------------------------------------------------------------------------------------------------------


def test_a_manual_heartbeat_makes_changes_ripe(tmp_path):
    app = history(tmp_path, "MANUAL")
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, 0, 9)])
    assert (admitted(app).heartbeat, changes(app)) == (None, {})
    assert advance(app, "r", tick(4)) is None
    assert contents(app, MAX_TICK) == {("a", 1.0): 1}
    assert advance(app, "r", tick(9)) == tick(4)
    assert contents(app, MAX_TICK) == {}
    with pytest.raises(DataError, match="cannot go back"):
        advance(app, "r", tick(8))
    with pytest.raises(SweepAreaError, match="moves its heartbeat by itself"):
        advance(history(tmp_path / "other"), "r", 0)


def test_a_clock_and_ordered_batches(tmp_path):
    clock = history(tmp_path / "clock", "FROM CLOCK LAG INTERVAL 1 SECOND")
    put(tmp_path / "clock", "src", HISTORY_ROWS, [("a", 1.0, 0, None)])
    first, second = admitted(clock), admitted(clock)
    assert tick(0) < first.heartbeat < second.heartbeat  # type: ignore[operator]
    batch = history(tmp_path / "batch", "EACH BATCH")
    put(tmp_path / "batch", "src", HISTORY_ROWS, [("a", 1.0, 0, 50), ("a", 1.0, 20, None)])
    assert admitted(batch).heartbeat == tick(20) - 1


def test_ticks_may_be_numbers_or_days(tmp_path):
    numbers = application(tmp_path / "n", "CREATE RELATION r FROM DELTA 'src' HISTORY BY (f, t) HEARTBEAT FOR f AS f;")
    put(
        tmp_path / "n",
        "src",
        schema("item string, f bigint, t bigint"),
        [("a", 3, 5), ("b", 4, None), ("c", 1 << 62, None)],
    )
    assert admitted(numbers).heartbeat == 1 << 62
    put(
        tmp_path / "n2",
        "src",
        schema("item string, f bigint, t bigint"),
        [("a", (1 << 62) + 1, None), ("b", 1, -(1 << 63))],
    )
    ends = application(tmp_path / "n2", "CREATE RELATION r FROM DELTA 'src' HISTORY BY (f, t) HEARTBEAT FOR f AS f;")
    assert dict(admitted(ends).quarantined) == {"timestamp is outside the time domain of [-2^62, 2^62] ticks": 2}
    days = application(tmp_path / "d", "CREATE RELATION r FROM DELTA 'src' HISTORY BY (f, t) HEARTBEAT FOR f AS f;")
    first, last = dt.date(2020, 1, 1), dt.date(2020, 1, 2)
    put(tmp_path / "d", "src", schema("item string, f date, t date"), [("a", first, last), ("b", last, None)])
    admitted(days)
    assert contents(days, tick(0)) == {("a",): 1}
    assert contents(days, tick(12 * 3600)) == {("b",): 1}


# -- release ---------------------------------------------------------------------------------------------------------


def released(app: Application, where: str, **assigned: str):
    return release_changes(app, "r", None, WantedRows(where=where, assigned=assigned))  # type: ignore[arg-type]


def test_changes_that_a_person_releases_repair_even_under_reject(tmp_path):
    """Late ones, and rows of a log that were corrected; what follows them is adjusted."""
    app = log(tmp_path, "KEY (item)")
    put(tmp_path, "src", LOG_ROWS, [("I", "a", 1.0, 0, 0), ("X", "b", 5.0, 0, 2), ("U", "a", 2.0, 0, 8)])
    put(tmp_path, "src", LOG_ROWS, [("U", "a", 7.0, 0, 4), ("D", "q", 1.0, 0, 9), ("I", "z", 1.0, 0, 20)])
    admitted(app)
    seq = app.ledger.head()["r"].seq
    assert [reason for reason, _, _, _ in quarantine(app)] == [
        "D of a key that has no row",
        "late",
        "unknown operation code",
    ]
    done = released(app, "__reason LIKE 'late%' OR op = 'X'", op="U")
    assert (done.rows, done.repaired, done.refused) == (2, 2, [])
    assert app.ledger.head()["r"].info["correction_seq"] == seq + 1
    a = {s: {r: n for r, n in contents(app, tick(s)).items() if r[0] in "ab"} for s in (3, 4, 8)}
    assert a == {
        3: {("a", 1.0, 0): 1, ("b", 5.0, 0): 1},
        4: {("a", 7.0, 0): 1, ("b", 5.0, 0): 1},
        8: {("a", 2.0, 0): 1, ("b", 5.0, 0): 1},
    }
    done = released(app, "op = 'D'")
    assert (done.rows, [why for _, why in done.refused]) == (0, [BY_ITSELF])
    assert len(quarantine(app)) == 1


def test_a_late_beginning_that_is_released_brings_its_end_along(tmp_path):
    app = history(tmp_path)
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, 30, None), ("x", 1.0, None, 3)])
    put(tmp_path, "src", HISTORY_ROWS, [("b", 1.0, 10, 50), ("c", 1.0, 60, None)])
    admitted(app)
    assert len(quarantine(app)) == 3
    assert "put it right in the source" in str(released(app, "item = 'x'").refused)
    assert (released(app, "__reason LIKE 'late%'").rows, len(quarantine(app))) == (1, 1)
    assert [contents(app, tick(s)).get(("b", 1.0)) for s in (9, 10, 49, 50)] == [None, 1, 1, None]
    with pytest.raises(SweepAreaError, match="put the row right in its source"):
        release_changes(application(tmp_path / "feed", FEED.format("")), "r", None, WantedRows(where="TRUE"))  # type: ignore[arg-type]


# -- what a declaration may say --------------------------------------------------------------------------------------

TYPED = schema("op string, item string, price double, n bigint, f time, t time")


FAULTS = [
    ("HISTORY BY (from_, t) HEARTBEAT FOR f AS f", BindError, r"column from_ of HISTORY BY is unknown"),
    ("HISTORY BY (f, F) HEARTBEAT FOR f AS f", BindError, r"HISTORY BY names f twice"),
    ("HISTORY BY (f, price) HEARTBEAT FOR f AS f", TypeError_, r"of type DOUBLE, which is no time.*f, t"),
    ("HISTORY BY (f, n) HEARTBEAT FOR f AS f", TypeError_, r"mixes BIGINT ticks \(n\) and times of the clock \(f\)"),
    ("CHANGES BY (price, f) HEARTBEAT FOR f AS f", TypeError_, r"operations are told in a STRING"),
    ("CHANGES BY (op, item) HEARTBEAT FOR f AS f", TypeError_, r"item .* is of type STRING, which is no time"),
    ("CHANGES BY (op, f) KEY (itme) HEARTBEAT FOR f AS f", BindError, r"itme of KEY is unknown. Did you mean item"),
    ("CHANGES BY (op, f) KEY (item, op) HEARTBEAT FOR f AS f", BindError, r"KEY of relation r names op"),
    ("CHANGES BY (op, f) KEY (item, item) HEARTBEAT FOR f AS f", BindError, r"KEY names item twice"),
    ("CHANGES BY (op, f) KEY (item) SEQUENCE BY m HEARTBEAT FOR f AS f", BindError, r"m of SEQUENCE BY is unknown"),
    ("HISTORY BY (f, t) HEARTBEAT FOR g AS f", BindError, r"column g of HEARTBEAT is unknown"),
    ("HISTORY BY (f, t) HEARTBEAT FOR f AS price", TypeError_, r"HEARTBEAT needs an instant"),
    ("HISTORY BY (f, t) HEARTBEAT FOR f AS f CONSTRAINT c EXPECT (pice > 0)", BindError, r"pice is unknown"),
    ("HISTORY BY (f, t) HEARTBEAT FOR f AS f LATE REPAIR WITHIN 5", ParseError, r"WITHIN 5 has no unit"),
    ("CHANGE DATA FEED CONSTRAINT c EXPECT (price)", TypeError_, r"constraint c needs a condition"),
]


@pytest.fixture(scope="module")
def typed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("typed")
    put(folder, "src", TYPED, [("I", "a", 1.0, 1, 0, None)])
    return folder


@pytest.mark.parametrize(("clauses", "error", "said"), FAULTS)
def test_columns_that_cannot_be_meant(typed, clauses, error, said):
    """Each with its place, before anything is admitted."""
    app = application(typed, f"CREATE RELATION r FROM DELTA 'src' {clauses};")
    with pytest.raises(error, match=f"(?s){said}") as caught:
        app.sources.check("r")
    assert caught.value.place is not None
    assert plan(app).problems


def test_all_faults_of_a_relation_at_once(typed):
    app = application(typed, "CREATE RELATION r FROM DELTA 'src' CHANGES BY (opp, g) KEY (x) HEARTBEAT FOR f AS f;")
    with pytest.raises(CqlErrors) as caught:
        app.sources.check("r")
    assert len(caught.value.errors) == 3


@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        ("CHANGE DATA FEED HEARTBEAT FROM CLOCK", "takes no HEARTBEAT"),
        ("CHANGES BY (op, f) SEQUENCE BY n HEARTBEAT FOR f AS f", "relation r has no KEY"),
    ],
)
def test_clauses_that_do_not_fit_each_other(tmp_path, clauses, said):
    with pytest.raises(ParseError, match=said):
        application(tmp_path, f"CREATE RELATION r FROM DELTA 'src' {clauses};")


def test_a_source_of_nothing_but_time(tmp_path):
    put(tmp_path, "src", schema("f time, t time"), [(0, None)])
    app = history(tmp_path)
    with pytest.raises(TypeError_, match="nothing is left of the rows of relation r"):
        app.sources.check("r")


# -- sources and tables ----------------------------------------------------------------------------------------------


def test_a_source_that_became_another(tmp_path):
    app = history(tmp_path)
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, 0, None)])
    admitted(app)
    write = rel.table(schema("item string, price double, f time, t time, note string"), [("a", 1.0, 5, None, "x")])
    rel.write_deltalake(str(tmp_path / "data/src"), write, mode="append", schema_mode="merge")
    with pytest.raises(SweepAreaError, match=r"gained the column\(s\) note"):
        admitted(Application.open(tmp_path / "app", tmp_path / "data"))
    shutil.rmtree(tmp_path / "data/src")
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, 0, None)])
    with pytest.raises(SweepAreaError, match="made anew"):
        admitted(app)


VERSIONS = {
    "history": [[("a", 1.0, 0, None)], [("b", 1.0, 5, 9), ("b", 1.0, None, 1)], [("c", 1.0, 2, 30)], [],
                [("a", 1.0, 0, None), ("d", 1.0, 40, None)]],
    "log": [[("I", "a", 1.0, 0, 0)], [("I", "b", 1.0, 0, 5), ("X", "b", 1.0, 0, 5)], [("U", "c", 1.0, 0, 2)], [],
            [("D", "a", 1.0, 0, 50)]],
    "feed": [[("a", 1.0)], [("b", 1.0), ("b", 2.0)], [("a", 1.0)], [], [("c", 1.0)]],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["history", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("log", "feed"))])
def test_versions_that_are_gone(tmp_path, kind):
    """A first run takes the source as it is; a later one stops, and goes on by difference where it is told to."""

    def opened(folder: Path) -> Application:
        if kind == "feed":
            return application(folder, FEED.format(""))
        return history(folder) if kind == "history" else log(folder, "KEY (item)")

    whole, gap = opened(tmp_path / "whole"), opened(tmp_path / "gap")
    columns = {"history": HISTORY_ROWS, "log": LOG_ROWS, "feed": FEED_ROWS}[kind]
    source = tmp_path / "gap/data/src"
    for version, rows in enumerate(VERSIONS[kind]):
        for app in (whole, gap):
            put(Path(str(app.data)).parent, "src", columns, rows)
        admitted(whole)
        if version in (1, 4):
            DeltaTable(str(source)).create_checkpoint()
            (source / f"_delta_log/{version - 1:020}.json").unlink()
        if version == 1:
            assert (admitted(gap).versions, gap.ledger.head()["r"].info["source_version"]) == (1, 1)
        elif version == 2:
            admitted(gap)
    with pytest.raises(SweepAreaError, match=r"no longer holds version 3.*--baseline"):
        admitted(gap)
    row = gap.ledger.head()["r"]
    done = RelationAdmission(gap, "r", gap.registry.registration("r", row), baseline=True).run()
    assert (done.versions, done.source_version) == (1, 4)
    assert contents(gap, MAX_TICK) == contents(whole, MAX_TICK)
    if kind != "feed":
        assert changes(gap) == changes(whole)
        assert quarantine(gap) == quarantine(whole)


def test_a_log_of_changes_that_was_lost(tmp_path):
    app = history(tmp_path)
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, 0, None)])
    admitted(app)
    shutil.rmtree(tmp_path / "data/state/r")
    with pytest.raises(SweepAreaError, match=r"missing.*Restore the data folder"):
        admitted(app)


def test_dropping_a_relation_leaves_nothing(tmp_path):
    app = history(tmp_path)
    put(tmp_path, "src", HISTORY_ROWS, [("a", 1.0, 0, None)])
    admitted(app)
    drop(app, "r")
    assert not any((tmp_path / "data" / folder / "r").exists() for folder in ("state", "admitted", "quarantine"))


def test_the_log_of_changes_keeps_few_files(tmp_path):
    app = log(tmp_path, "KEY (item)")
    for s in range(9):
        put(tmp_path, "src", LOG_ROWS, [("U", "a", float(s), 0, s)])
    admitted(app)
    assert len(DeltaLog(app.layout.state("r", "changes")).files()) < 5
    assert contents(app, tick(8)) == {("a", 8.0, 0): 1}
    assert len(changes(app)) == 17


SLOW_POINTS = ("publish.staged", "publish.ledger_committed")
POINTS = ["publish.applied:", *(pytest.param(point, marks=pytest.mark.slow) for point in SLOW_POINTS)]


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.mark.parametrize("point", POINTS)
def test_a_run_that_dies_anywhere_is_continued(tmp_path, monkeypatch, point):
    """Law S3, in the second version of a log whose first one has changes that lie ahead."""
    armed: list[bool] = []

    def maybe(name: str) -> None:
        if armed and name.startswith(point):
            armed.clear()
            raise Killed(name)

    monkeypatch.setattr("sweeparea.tables.publication.publish.crash_point", maybe)
    found = []
    for dies in (False, True):
        folder = tmp_path / str(dies)
        app = log(folder, "KEY (item)")
        put(folder, "src", LOG_ROWS, [("I", "a", 1.0, 0, 0), ("U", "b", 1.0, 0, 0), ("D", "q", 1.0, 0, 0)])
        admitted(app)
        put(folder, "src", LOG_ROWS, [("U", "a", 2.0, 0, 5), ("D", "b", 1.0, 0, 4), ("D", "b", 1.0, 0, 5)])
        if dies:
            armed.append(True)
            with pytest.raises(Killed):
                admitted(app)
        admitted(app)
        found.append((changes(app), quarantine(app), app.ledger.head()["r"].seq))
    assert found[0] == found[1]
    assert len(found[0][1]) == 2


SPARK_SOURCES = Path(__file__).parents[1] / "tables" / "spark_sources"


@pytest.mark.parametrize("name", sorted(path.name for path in SPARK_SOURCES.iterdir() if path.is_dir()))
def test_tables_of_spark_with_every_feature_are_admitted(tmp_path: Path, name: str) -> None:
    """Our tables have the source's columns, and nothing else that its log says of them."""
    app = application(tmp_path, f"CREATE RELATION r FROM DELTA '{SPARK_SOURCES / name}' CHANGE DATA FEED;")
    assert admitted(app).rows > 0
    source = SourceTable(SPARK_SOURCES / name)
    held: collections.Counter[str] = collections.Counter()
    for row in DeltaLog(app.layout.admitted("r")).read().to_pylist():
        held[repr({column: row[column] for column in source.schema().names})] += row["__n"]
    rows = map(repr, source.snapshot(source.version()).to_pylist())
    wanted = collections.Counter(re.sub(r"-0\.0\b", "0.0", row) for row in rows)  # one value, held as 0.0
    assert {row: n for row, n in held.items() if n} == dict(wanted)
    features = DeltaTable(app.layout.admitted("r")).protocol().writer_features or []
    assert set(features) <= {"timestampNtz"}
