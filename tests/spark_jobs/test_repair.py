"""Late elements and backfills over real Delta sources: the tables become those of a run in which all was on time."""

from __future__ import annotations

from datetime import UTC, timedelta
from pathlib import Path

import pytest

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.rewriting import difference
from sweeparea.spark_jobs.rewriting.backfill import backfill, outlook
from sweeparea.tables.log.delta_log import DeltaLog
from tests.spark_jobs import shop

pytestmark = pytest.mark.spark
STREAM = shop.STREAM.replace("  CONSTRAINT", "  LATE REPAIR WITHIN INTERVAL 1 HOUR\n  CONSTRAINT")
BELOW = """
CREATE CONTINUOUS QUERY busy START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT shop, most FROM turnover WHERE n > 1;
CREATE CONTINUOUS QUERY moves START AT TIMESTAMP '2020-01-01 00:00:00' MATERIALIZE RELATION AS
SELECT COUNT(*) AS n FROM turnover__istream [RANGE INTERVAL 30 SECONDS];
"""
EVER = """
CREATE CONTINUOUS QUERY ever START AT TIMESTAMP '2020-01-01 00:00:00' AS
SELECT shop, COUNT(*) AS n, MAX(items) AS most FROM sales [RANGE UNBOUNDED] GROUP BY shop;
"""
QUERIES = ("turnover", "busy", "moves", "ever")
TABLES = ("turnover", "turnover__istream", "busy", "moves", "ever")
ON_TIME = [
    [(0, "a", 1.5, 3), (5, "b", 2.5, 1), (9, "a", 0.25, 7), (30, "a", 4.0, 2)],
    [(70, "b", 1.0, 9), (150, "c", 8.0, 1)],
]
LATE = [(20, "a", 0.5, 9), (33, "b", 16.0, 2)]


def _application(folder: Path) -> Application:
    return shop.application(folder, STREAM + shop.QUERY + BELOW + EVER)


def _day(app: Application, folder: Path, spark, rows) -> None:
    shop.sell(folder, rows)
    admit(app, "sales", spark)
    for query in QUERIES:
        process(app, query, spark)


@pytest.fixture(scope="module")
def on_time(spark, tmp_path_factory) -> Application:
    folder = tmp_path_factory.mktemp("on_time")
    app = _application(folder)
    _day(app, folder, spark, ON_TIME[0] + LATE)
    _day(app, folder, spark, ON_TIME[1])
    return app


@pytest.fixture(scope="module")
def repaired(spark, tmp_path_factory) -> tuple[Application, Path]:
    folder = tmp_path_factory.mktemp("repaired")
    app = _application(folder)
    for day in (*ON_TIME, LATE):
        _day(app, folder, spark, day)
    return app, folder


def test_late_elements_are_as_if_they_had_been_on_time(on_time, repaired):
    app, _ = repaired
    for table in TABLES:
        assert shop.contents(app, table) == shop.contents(on_time, table), table


def test_corrections_are_logged_with_their_cause(repaired):
    app, _ = repaired
    rows = DeltaLog(app.layout.result("turnover__corrections")).read().to_pylist()
    assert {row["kind"] for row in rows} == {"relation", "istream"}
    assert all("sales" in row["cause"] for row in rows)
    assert {row["row"]["shop"] for row in rows} == {"a", "b"}
    # the difference of a relation begins and ends: nothing of it is left behind the last instant touched
    total: dict[str, int] = {}
    for row in rows:
        if row["kind"] == "relation":
            total[str(row["row"])] = total.get(str(row["row"]), 0) + row["sign"]
    assert set(total.values()) == {0}


def test_a_repair_touches_only_the_files_that_it_changes(repaired):
    """The stretch is closed: the SweepAreas were not exchanged, and the heartbeat stands where it stood."""
    app, _ = repaired
    row = app.ledger.head()["turnover"]
    assert not [table for table in row.actions if table.startswith("state/")]
    assert row.info["rewrite"]["upto"] - row.info["rewrite"]["since"] < 120


def test_what_never_ends_is_computed_on_from_an_earlier_slice(repaired):
    """An unbounded window has no reach: the SweepAreas that the first slice left are the beginning, not START."""
    app, _ = repaired
    first = next(row for row in app.ledger.history("ever") if row.seq == 1)
    assert app.ledger.head()["ever"].info["rewrite"]["since"] == first.committed


def test_a_backfill_writes_nothing_where_nothing_differs(spark, repaired):
    app, _ = repaired
    before = app.ledger.head()["turnover"].seq
    report = backfill(app, "turnover", spark, shop.tick(3), shop.tick(60), print)
    assert "nothing differs" in report.words
    assert not report.added
    assert app.ledger.head()["turnover"].seq == before
    text = outlook(app, "turnover", shop.tick(3), shop.tick(60))
    assert "would be computed again" in text
    assert "busy" in text


@pytest.mark.parametrize("at_a_time", [difference.PART_ROWS, 3])
def test_a_backfill_replaces_what_was_damaged(spark, on_time, repaired, monkeypatch, at_a_time):
    monkeypatch.setattr(difference, "PART_ROWS", at_a_time)
    app, _ = repaired
    shop.damage(app, "turnover")
    assert shop.contents(app, "turnover") != shop.contents(on_time, "turnover")
    report = backfill(app, "turnover", spark, None, shop.tick(60), print)
    assert report.removed["relation"] == report.added["relation"] > 0
    for query in ("busy", "moves"):
        process(app, query, spark)
    for table in TABLES:
        assert shop.contents(app, table) == shop.contents(on_time, table), table


def test_a_range_that_is_not_there_yet_is_refused(spark, repaired):
    app, _ = repaired
    with pytest.raises(SweepAreaError, match="nothing of that range has been committed"):
        backfill(app, "turnover", spark, shop.tick(10_000), None, print)


ALL = """
CREATE CONTINUOUS QUERY held START AT TIMESTAMP '2020-01-01 00:00:00' MATERIALIZE RELATION AS
SELECT shop, items FROM sales [RANGE UNBOUNDED];
"""


def test_one_repair_after_another_where_nothing_ends(spark, tmp_path):
    """The SweepAreas and the open rows that a slice left behind two repairs are what the third goes on from."""
    app = shop.application(tmp_path, STREAM + ALL)
    days = [[(0, "a", 1.0, 1), (100, "b", 1.0, 2)], [(200, "c", 1.0, 4)], [(300, "a", 1.0, 6)], [(400, "b", 1.0, 8)]]
    sold = []
    for number, day in enumerate(days):
        for rows in (day, [(100 * number + 50, "d", 1.0, 10 + number)]):
            shop.sell(tmp_path, [*rows])
            admit(app, "sales", spark)
            process(app, "held", spark)
            sold += rows
    assert sum("rewrite" in row.info for row in app.ledger.history("held")) > 3
    expected = [(name, items, shop.NOON + timedelta(seconds=s), None) for s, name, _, items in sold if s < 390]
    found = [(name, items, at.astimezone(UTC), end) for name, items, at, end in shop.contents(app, "held__relation")]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


KINDS = """
CREATE CONTINUOUS QUERY plain MATERIALIZE RELATION, ISTREAM, DSTREAM AS
SELECT shop, amount FROM sales [RANGE INTERVAL 60 SECONDS];
CREATE CONTINUOUS QUERY hops AS
SELECT shop, amount FROM sales [HOPPING INTERVAL 60 SECONDS SLIDE INTERVAL 15 SECONDS];
CREATE CONTINUOUS QUERY seen AS SELECT DISTINCT shop FROM sales [RANGE INTERVAL 60 SECONDS];
CREATE CONTINUOUS QUERY gone AS DSTREAM(SELECT shop, amount FROM sales [RANGE INTERVAL 60 SECONDS]);
CREATE CONTINUOUS QUERY rolled AS
RSTREAM(SELECT shop, amount FROM sales [RANGE INTERVAL 60 SECONDS] EVERY INTERVAL 10 SECONDS);
CREATE CONTINUOUS QUERY pairs AS
SELECT l.shop, l.items, r.items AS other FROM sales [RANGE INTERVAL 60 SECONDS] l
JOIN sales [RANGE INTERVAL 20 SECONDS] r ON l.shop = r.shop;
"""
"""Results whose rows know their ends when they come."""


def test_a_repair_whose_warm_up_takes_several_slices(spark, tmp_path):
    """Ends that lie within the warm-up are nobody's: what they end was never shown."""
    queries = [line.split()[3] for line in KINDS.splitlines() if line.startswith("CREATE")]
    rows: list[tuple[int | None, str, float, int]] = [(5 * i, "abc"[i % 3], 2.0**i, i % 5) for i in range(48)]
    rows.append((300, "a", 1.0, 1))
    late: tuple[int | None, str, float, int] = (152, "b", 0.5, 3)
    apps = []
    for name, commits in (("twin", [[*rows, late]]), ("late", [rows, [late]])):
        folder = tmp_path / name
        app = shop.application(folder, STREAM + KINDS)
        for number, commit in enumerate(commits):
            if number:
                app = shop.application(folder, "SET slice.max_rows = 4;" + STREAM + KINDS)
            shop.sell(folder, commit)
            admit(app, "sales", spark)
            for query in queries:
                told: list[str] = []
                process(app, query, spark, tell=told.append)
                shown = [line for line in told if "recomputed" in line]
                assert not number or (len(shown) > 4 and " 0 rows out" in shown[1]), (query, told)
        apps.append(app)
    for query in [*queries, "plain__istream", "plain__dstream"]:
        assert shop.contents(apps[1], query) == shop.contents(apps[0], query), query


COPIES = "".join(
    f"CREATE CONTINUOUS QUERY {strategy} MATERIALIZE RELATION, DSTREAM WITH (strategy = '{strategy}') AS\n"
    "SELECT shop FROM sales [RANGE INTERVAL 60 SECONDS];\n"
    for strategy in ("upa", "negative", "direct")
)


def test_copies_that_begin_behind_a_repaired_stretch_stay(spark, tmp_path):
    """The late one joins what ended at 71 with what began at 75: a copy is there since 10, and that of 90 stays."""
    on_time: list[tuple[int | None, str, float, int]] = [(10, "a", 1.0, 1), (75, "a", 1.0, 1)]
    on_time += [(90, "a", 1.0, 1), (110, "b", 1.0, 1)]
    late: list[tuple[int | None, str, float, int]] = [(20, "a", 1.0, 1)]
    after: list[tuple[int | None, str, float, int]] = [(300, "b", 1.0, 1)]
    apps = []
    for name, commits in (("twin", [[*on_time, *late, *after]]), ("late", [on_time, late, after])):
        for commit in commits:
            app = shop.application(tmp_path / name, STREAM + COPIES)
            shop.sell(tmp_path / name, commit)
            admit(app, "sales", spark)
            for query in ("upa", "negative", "direct"):
                process(app, query, spark)
        apps.append(app)
    for query in ("upa", "negative", "direct"):
        assert any("rewrite" in row.info for row in apps[1].ledger.history(query))
        for table in (query, f"{query}__dstream"):
            assert shop.contents(apps[1], table) == shop.contents(apps[0], table), table
