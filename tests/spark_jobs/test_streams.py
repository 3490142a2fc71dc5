"""Streams end to end: what cannot be an element, late and duplicate rows, changed sources, quarantine, heartbeats."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from sweeparea.cql.text.errors import BindError, TypeError_
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import StreamAdmission, admit
from sweeparea.spark_jobs.admission.heartbeat import advance
from sweeparea.spark_jobs.admission.judging import quarantine
from sweeparea.spark_jobs.admission.release.release import release
from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.status import status
from sweeparea.spark_jobs.orchestration.explaining import explained
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.frames import LOCAL_ROWS
from sweeparea.tables.errors import LostRace
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.sources.source import SourceTable
from tests.spark_jobs import shop

pytestmark = pytest.mark.spark
BIG = 1 << 62
HOUR = timedelta(hours=1)
TICKS = pa.schema([("t", pa.int64()), ("id", pa.string()), ("x", pa.float64())])


def stream(folder: Path, clauses: str, time: str = "t") -> Application:
    return shop.application(folder, f"CREATE STREAM s FROM DELTA 'source/s' TIMESTAMP BY {time} {clauses};")


def add(folder: Path, rows: list[tuple[Any, ...]], schema: pa.Schema = TICKS) -> None:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    write_deltalake(str(folder / "data/source/s"), table, mode="append")


def elements(app: Application) -> list[tuple[int, int]]:
    """(tick, copies), net."""
    net: Counter[int] = Counter()
    for row in DeltaLog(app.layout.admitted("s")).read().to_pylist():
        net[row["__tick"]] += row["__n"]
    return sorted((tick, n) for tick, n in net.items() if n)


def test_ends_of_bigint_and_null_everywhere(spark, tmp_path):
    """Ticks at the ends of BIGINT are kept out and overflow nothing; a row of NULLs has no time."""
    app = stream(tmp_path, "HEARTBEAT FOR t AS t - 10 CONSTRAINT positive EXPECT (x > 0)")
    ends = [2**63 - 1, -(2**63), BIG + 1, -BIG - 1]
    add(tmp_path, [(t, "e", 1.0) for t in [*ends, BIG, -BIG, 5]] + [(None, None, None), (7, None, None)])
    report = admit(app, "s", spark)
    assert elements(app) == [(-BIG, 1), (5, 1), (7, 1), (BIG, 1)]  # a NULL passes a constraint, as in a CHECK
    assert report.heartbeat == BIG - 10
    assert report.quarantined == {
        "timestamp column t is NULL": 1,
        "timestamp is outside the time domain of [-2^62, 2^62] ticks": 4,
    }
    assert '"t": "9223372036854775807"' in quarantine.listing(app, "s")


def test_years_that_no_clock_shows(spark, tmp_path):
    """Year 9999 and beyond is more than MAX AHEAD after any commit; before START and before Christ is an element."""
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("id", pa.string())])
    app = stream(tmp_path, "CHRONON INTERVAL 1 SECOND HEARTBEAT FOR at AS at - INTERVAL 1 HOUR", "at")
    micros = [253402300799000000, 9223372036854775807 // 2, -62135596800000000, -70000000000000000, 1577880000_500_000]
    rows = pa.table([pa.array(micros, pa.int64()).cast(schema[0].type), pa.array(list("abcde"))], schema=schema)
    write_deltalake(str(tmp_path / "data/source/s"), rows, mode="append")
    report = admit(app, "s", spark)
    assert report.rows == 3
    assert report.heartbeat == 1577876399  # 11:00:00.5 is in the middle of a tick: the last whole one is that before
    [(reason, n)] = report.quarantined.items()
    assert (n, "MAX AHEAD (1 day" in reason) == (2, True)
    listed = [json.loads(line) for line in quarantine.listing(app, "s", form="json").splitlines()]
    assert {json.loads(row["row"])["at"] for row in listed} == {"9999-12-31T23:59:59Z", str(micros[1])}
    # of one that is wrong only in its date: the date is corrected, and it repairs
    ids = {json.loads(row["row"])["id"]: row["id"] for row in listed}
    refused = release(app, "s", spark, WantedRows((ids["a"],)))
    assert (refused.rows, len(refused.refused)) == (0, 1)
    assert "MAX AHEAD" in refused.refused[0][1]
    done = release(app, "s", spark, WantedRows((ids["b"],), assigned={"AT": "2020-01-01 00:00:00"}))
    assert (done.rows, done.repaired, done.refused) == (1, 1, [])
    row = app.ledger.head()["s"]
    assert row.info["correction_seq"] == row.seq
    with pytest.raises(SweepAreaError, match="may have been released already"):
        release(app, "s", spark, WantedRows((ids["b"],)))
    # two of them lie before 1970, in a file with others
    assert app.folder is not None
    (app.folder / "q.cql").write_text("CREATE CONTINUOUS QUERY q AS SELECT id FROM s [NOW];")
    again = Application.open(app.folder, str(app.data))
    assert "; 2 elements before START take no part" in status(again)
    assert "Admitted, but not read\n  2 elements before START" in explained(again, "q")


def test_a_stream_without_data_and_a_clock_that_goes_back(spark, tmp_path):
    app = stream(tmp_path, "HEARTBEAT EACH BATCH")
    add(tmp_path, [])
    assert admit(app, "s", spark).heartbeat is None
    assert "no heartbeat yet" in status(app)
    add(tmp_path, [(5, "a", 1.0), (9, "a", 1.0)])
    assert admit(app, "s", spark).heartbeat == 8
    instant = app.ledger.head()["s"].info["instant"]
    add(tmp_path, [(9, "a", 2.0), (6, "a", 2.0)])
    log = tmp_path / "data/source/s/_delta_log/00000000000000000002.json"
    text = log.read_text()
    time = json.loads(next(line for line in text.splitlines() if "commitInfo" in line))["commitInfo"]["timestamp"]
    log.write_text(text.replace(str(time), str(time - 86_400_000)))
    report = admit(app, "s", spark)
    assert (report.rows, report.heartbeat, report.quarantined.total()) == (1, 8, 1)
    info = app.ledger.head()["s"].info
    assert info["instant"] == info["commit_time"] == instant  # c(v) does not go back
    assert "1 late" in status(app)


def test_a_source_that_is_gone_or_another_is_told_by_status(spark, tmp_path):
    app = stream(tmp_path, "HEARTBEAT MANUAL")
    add(tmp_path, [(1, "a", 1.0)])
    admit(app, "s", spark)
    assert "goes no further" not in status(app)
    shutil.rmtree(tmp_path / "data/source/s")
    assert "1 rows admitted, 0 in quarantine; goes no further: The source table" in status(app)
    add(tmp_path, [(2, "b", 1.0)])
    assert "goes no further: s: its source" in status(app)
    assert "removed and made anew" in status(app)


def test_heartbeats_per_source_and_by_a_policy(spark, tmp_path):
    app = stream(tmp_path, "HEARTBEAT PER id AS t - 1")
    add(tmp_path, [(10, "a", 1.0), (4, "b", 1.0), (6, None, 1.0)])
    assert admit(app, "s", spark).heartbeat == 3
    add(tmp_path, [(20, "b", 1.0)])
    add(tmp_path, [(20, None, 1.0)])
    assert admit(app, "s", spark).heartbeat == 9
    assert 'held back by "a"' in status(app)
    python = tmp_path / "python"
    (python / "shop").mkdir(parents=True)
    (python / "shop/latest.py").write_text(
        "def two_behind(version):\n"
        "    top = max([version.state.get('top', 0), *version.elements['t'].to_pylist()])\n"
        "    version.state['top'] = top\n"
        "    return top - 2\n"
        "number = 5\n"
    )
    app = stream(python, "HEARTBEAT POLICY 'latest:two_behind'")
    add(python, [(10, "a", 1.0)])
    add(python, [(9, "a", 1.0)])
    assert admit(app, "s", spark).heartbeat == 8
    assert app.ledger.head()["s"].info["policy"] == {"top": 10}
    for target, said in [("latest:number", "no function"), ("latest", "names no Python object"), ("none:x", "none")]:
        with pytest.raises(BindError, match=said):
            stream(python, f"HEARTBEAT POLICY '{target}'").sources.stream_expressions("s")


@pytest.mark.parametrize("clause", ["FROM COLUMN up_to", "FOR t AS up_to", "PER k AS up_to"])
def test_a_heartbeat_in_the_far_future_ends_no_stream(spark, tmp_path, clause):
    text = f"CREATE STREAM s FROM DELTA 'src' TIMESTAMP BY t HEARTBEAT {clause} {{}};"
    day = datetime(2024, 1, 1, tzinfo=UTC)
    instants = [(day, day), (day + HOUR, datetime(9999, 12, 31, tzinfo=UTC)), (day + 2 * HOUR, day + HOUR)]
    for at, up_to in instants:
        rows = pa.table({"t": pa.array([at], pa.timestamp("us", "UTC")), "up_to": [up_to], "k": ["a"]})
        write_deltalake(tmp_path / "src", rows, mode="append")
    for ahead, rows, heartbeat, told in (
        ("", 3, "2024-01-01 01:00:00", ", 1 heartbeats too far in the future (MAX AHEAD)"),
        ("MAX AHEAD INTERVAL 4000000 DAYS", 2, "9999-12-31 00:00:00", "1 in quarantine, 1 late"),
    ):
        folder = tmp_path / str(rows)
        (folder / "app").mkdir(parents=True)
        (folder / "src").symlink_to(tmp_path / "src")
        (folder / "app" / "app.cql").write_text(text.format(ahead))
        app = Application.open(folder / "app", folder)
        assert admit(app, "s", spark).rows == rows
        [line] = [one for one in status(app).splitlines() if one.startswith("  s: ")]
        assert line.startswith(f"  s: heartbeat {heartbeat}")
        assert told in line


def test_many_rows_at_one_instant(spark, tmp_path):
    """More than travel inside a query; the third version delivers half of them again."""
    app = stream(tmp_path, "HEARTBEAT FOR t AS t - 1 DEDUPLICATE BY id WITHIN 10 CONSTRAINT c EXPECT (x > 0)")
    count = LOCAL_ROWS + 10
    x = pa.array([0.0, *[1.0] * (count - 1)])
    table = pa.table([pa.array([7] * count), pa.array(map(str, range(count))), x], names=TICKS.names)
    for part in (table, table.slice(0, count // 2)):
        write_deltalake(str(tmp_path / "data/source/s"), part, mode="append")
    report = admit(app, "s", spark)
    assert (report.rows, report.heartbeat) == (count - 1, 6)
    assert (report.deduplicated, report.quarantined.total()) == (count // 2 - 1, 2)
    assert not list((tmp_path / "data/_sweeparea").glob("spill/*"))


def test_two_runs_at_a_time_admit_nothing_twice(spark, tmp_path, monkeypatch):
    """The slower one is told; nothing of it is seen, and the next run finds nothing left to do."""
    app = stream(tmp_path, "HEARTBEAT EACH BATCH")
    add(tmp_path, [(1, "a", 1.0), (2, "a", 1.0)])
    evaluate, others = StreamAdmission._evaluate, [tmp_path]

    def slow(self, rows):
        if others:
            admit(Application.open(others.pop() / "shop", tmp_path / "data"), "s", spark)
        return evaluate(self, rows)

    monkeypatch.setattr(StreamAdmission, "_evaluate", slow)
    with pytest.raises(LostRace, match="another run was faster"):
        admit(app, "s", spark)
    assert elements(app) == [(1, 1), (2, 1)]
    report = admit(app, "s", spark)
    assert (report.versions, app.ledger.head()["s"].seq) == (0, 1)


def test_a_clock_tells_the_time_at_which_the_source_was_read(spark, tmp_path, monkeypatch):
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("id", pa.string())])
    app = stream(tmp_path, "HEARTBEAT FROM CLOCK LAG INTERVAL 1 HOUR", "at")
    rows = pa.table([pa.array([0], pa.int64()).cast(schema[0].type), pa.array(["a"])], schema=schema)
    write_deltalake(str(tmp_path / "data/source/s"), rows)
    version, read = SourceTable.version, []

    def noted(self):
        read.append(time.time_ns() // 1000)
        return version(self)

    monkeypatch.setattr(SourceTable, "version", noted)
    heartbeat = admit(app, "s", spark).heartbeat
    assert heartbeat is not None
    assert heartbeat + 3_600_000_000 <= read[-1]
    # nothing new: time goes on
    assert (admit(app, "s", spark).heartbeat or 0) > heartbeat


def test_clauses_that_do_not_fit_the_stream_are_told_with_their_place(tmp_path):
    add(tmp_path, [(1, "a", 1.0)])
    for clauses, kind, said in [
        ("HEARTBEAT MANUAL DEDUPLICATE BY idd WITHIN 5", BindError, "column idd of DEDUPLICATE BY"),
        ("HEARTBEAT MANUAL DEDUPLICATE BY id WITHIN INTERVAL 1 DAY", SweepAreaError, "time is BIGINT"),
        ("HEARTBEAT MANUAL LATE REPAIR WITHIN INTERVAL 1 DAY", SweepAreaError, "time is BIGINT"),
        ("HEARTBEAT FROM CLOCK", TypeError_, "BIGINT sequence number"),
        ("HEARTBEAT MANUAL MAX AHEAD INTERVAL 1 DAY", TypeError_, "MAX AHEAD"),
        ("HEARTBEAT PER idd AS t", BindError, "idd"),
        ("HEARTBEAT PER id AS id", TypeError_, "a tick"),
    ]:
        with pytest.raises(kind, match=said) as caught:
            stream(tmp_path, clauses).sources.stream_expressions("s")
        assert "shop.cql:1:" in str(caught.value)


def test_a_person_lists_corrects_and_releases(spark, tmp_path, capsys):
    """By the commands: list, a release by condition that is refused in part, by --set, by --row; nothing twice."""
    from sweeparea.spark_jobs.commands.cli import main

    text = (
        "CREATE STREAM s FROM DELTA 'source/s' TIMESTAMP BY t HEARTBEAT MANUAL"
        " CONSTRAINT positive EXPECT (x > 0) CONSTRAINT named EXPECT (id <> '') ON VIOLATION FAIL UPDATE;"
        "CREATE CONTINUOUS QUERY q MATERIALIZE RELATION AS SELECT COUNT(*) AS n FROM s;"
    )
    app = shop.application(tmp_path, text)
    add(tmp_path, [(1, "a", 1.0), (2, "b", -1.0), (3, "c", -3.0), (None, "d", 4.0)])
    admit(app, "s", spark)
    advance(app, "s", 10)
    process(app, "q", spark)
    add(tmp_path, [(4, "late", 1.0)])
    admit(app, "s", spark)
    where = [str(tmp_path / "shop"), "--data", str(tmp_path / "data")]
    assert main(["quarantine", "list", *where]) == 0
    table = capsys.readouterr().out
    assert "(4 rows)" in table
    assert "constraint positive is violated: x > 0" in table
    assert "late: at or below the heartbeat 10 (tick 10)" in table
    assert '{"t": 4, "id": "late", "x": 1.0}' in table
    for options, said in (
        (["--where", "t = 77"], "Nothing that fulfils t = 77 is in quarantine."),
        (["--limit", "0"], "4 rows are in quarantine; --limit 4 shows them"),
    ):
        assert main(["quarantine", "list", where[0], "s", *options, *where[1:]]) == 0
        assert capsys.readouterr().out.strip() == said
    # one of the two is put right by the correction, the other one not
    wanted = ["--where", "x < 0", "--set", "x=2.5", "--set", "id="]
    assert main(["quarantine", "release", where[0], "s", *wanted, *where[1:]]) == 1
    shown = capsys.readouterr()
    assert "s: 0 rows released" in shown.out
    assert shown.err.count("stays in quarantine: constraint named is violated") == 2
    assert main(["quarantine", "release", where[0], "s", "--where", "x < -2", "--set", "x=3.0", *where[1:]]) == 0
    assert "1 rows released, 1 of them below the heartbeat: results are repaired" in capsys.readouterr().out
    ids = {json.loads(text)["id"]: each for each, text in _ids(app)}
    assert main(["quarantine", "release", where[0], "s", ids["late"], *where[1:]]) == 0
    fixed = '{"t": 5, "id": "d", "x": 4.0}'
    assert main(["quarantine", "release", where[0], "s", ids["d"], "--row", fixed, *where[1:]]) == 0
    capsys.readouterr()
    assert main(["quarantine", "release", where[0], "s", ids["d"], *where[1:]]) == 1
    assert "may have been released already" in capsys.readouterr().err
    assert elements(app) == [(1, 1), (3, 1), (4, 1), (5, 1)]
    assert [json.loads(text)["id"] for _, text in _ids(app)] == ["b"]
    assert app.ledger.head()["s"].info["totals"]["released"] == 3
    for arguments, said in [
        (["s"], "give their ids"),
        (["s", "--where", "y > 1"], "Columns: t, id, x"),
        (["s", ids["b"], "--set", "y=1"], "no such column"),
        (["s", ids["b"], "--row", "{}"], "exactly the columns"),
        (["s", ids["b"], "--set", "x=many"], "no value of type double"),
        (["nothing", "7-1"], "named nothing"),
    ]:
        assert main(["quarantine", "release", where[0], *arguments, *where[1:]]) == (2 if "named" in said else 1)
        assert said in capsys.readouterr().err
    process(app, "q", spark)
    last = max(DeltaLog(app.layout.result("q")).read().to_pylist(), key=lambda row: row["valid_from"])
    assert (last["valid_from"], last["n"]) == (5, 4)


def _ids(app: Application) -> list[tuple[str, str]]:
    rows = quarantine.held(app, "s").rows
    return list(zip(rows.column("__id").to_pylist(), rows.column("__row").to_pylist(), strict=True))


def test_a_changed_source_is_followed(spark, tmp_path):
    """CORRECT end to end: an UPDATE and a DELETE give what a source without the rows would have given (law L1)."""
    text = shop.STREAM.replace(";", " LATE REPAIR ON SOURCE CHANGE CORRECT;") + shop.QUERY
    app = shop.application(tmp_path, text)
    shop.sell(tmp_path, shop.DAYS[0])
    shop.sell(tmp_path, shop.DAYS[1])
    admit(app, "sales", spark)
    process(app, "turnover", spark)
    table = DeltaTable(str(tmp_path / "data/source/sales"))
    table.update(updates={"amount": "0.5"}, predicate="shop = 'a' AND amount = 0.2")
    table.delete("amount = 1.0 OR amount < 0")
    report = admit(app, "sales", spark)
    assert (report.taken_back, report.cancelled, report.rows, report.late) == (2, 1, 1, 1)
    assert app.ledger.head()["sales"].info["taken_back"] is True
    process(app, "turnover", spark)
    other = shop.application(tmp_path / "other", shop.STREAM + shop.QUERY)
    days = [
        [r if r[2] != 0.2 else (r[0], r[1], 0.5, r[3]) for r in day if r[2] not in (1.0, -1.0)] for day in shop.DAYS
    ]
    for day in days[:2]:
        shop.sell(tmp_path / "other", day)
    admit(other, "sales", spark)
    process(other, "turnover", spark)
    assert shop.contents(app, "turnover") == shop.contents(other, "turnover")


def test_deliveries_that_are_taken_back_are_counted(spark, tmp_path):
    """DEDUPLICATE BY with CORRECT, end to end: results are those of a source that never held what was removed."""
    text = (
        "CREATE STREAM s FROM DELTA 'source/s' TIMESTAMP BY t HEARTBEAT FOR t AS t - 2 DEDUPLICATE BY id WITHIN 5"
        " ON SOURCE CHANGE CORRECT CONSTRAINT small EXPECT (x < 100) ON VIOLATION FAIL UPDATE;"
        "CREATE CONTINUOUS QUERY q MATERIALIZE RELATION AS SELECT id, SUM(x) AS x, COUNT(*) AS n FROM s GROUP BY id;"
    )
    app = shop.application(tmp_path, text)

    def results(folder: Path, given: Application) -> list[tuple[Any, ...]]:
        admit(given, "s", spark)
        process(given, "q", spark)
        rows = DeltaLog(given.layout.result("q")).read().to_pylist()
        return sorted(tuple(sorted(row.items())) for row in rows if row.pop("valid_to", 0) is None)

    def again(rows: list[list[tuple[Any, ...]]], name: str) -> list[tuple[Any, ...]]:
        other = shop.application(tmp_path / name, text)
        for version in rows:
            add(tmp_path / name, version)
        return results(tmp_path / name, other)

    first, second = [(10, "a", 1.0), (10, "b", 7.0)], [(12, "a", 2.0), (10, "b", 7.0), (30, "c", 4.0)]
    for version in (first, second, [(9, "b", 1e9)]):  # the constraint does not ask a duplicate
        add(tmp_path, version)
    results(tmp_path, app)
    assert "Nothing is in quarantine.\n3 dropped duplicates are remembered" in quarantine.listing(app, "s")
    assert "besides constraint small is violated" in quarantine.listing(app, "s", where="x > 100")
    assert "0 in quarantine" in status(app)
    assert "3 duplicates remembered" in status(app)
    [held] = [each for each, row in _ids(app) if '"a"' in row]
    refused = release(app, "s", spark, WantedRows((held,))).refused
    assert refused == [(held, "a duplicate of an admitted row (DEDUPLICATE BY)")]
    source = DeltaTable(str(tmp_path / "data/source/s"))
    source.alter.add_columns(Field("note", PrimitiveType("string")))
    assert admit(app, "s", spark, take_columns=True).rows == 0
    # both copies of b but one, the kept row of a
    rest = [(12, "a", 2.0, None), (10, "b", 7.0, None), (30, "c", 4.0, None), (9, "b", 1e9, None)]
    schema = pa.schema([*TICKS, ("note", pa.string())])
    table = pa.table([pa.array(c, f.type) for c, f in zip(zip(*rest, strict=True), schema, strict=True)], schema=schema)
    write_deltalake(source, table, mode="overwrite")
    report = admit(app, "s", spark)
    assert (report.taken_back, report.cancelled, report.reinstated) == (1, 1, 1)
    expected = again([[(10, "b", 7.0)], [(12, "a", 2.0), (30, "c", 4.0)]], "without")
    assert [[pair for pair in row if pair[0] in ("id", "x", "n")] for row in results(tmp_path, app)] == [
        [pair for pair in row if pair[0] in ("id", "x", "n")] for row in expected
    ]
    assert "1 of them elements since a kept row was taken back" in status(app)
