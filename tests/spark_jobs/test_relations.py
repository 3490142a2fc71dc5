"""Queries over relations that change, from real Delta sources, against plain SQL at every instant."""

from __future__ import annotations

import sqlite3
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit, advance
from sweeparea.spark_jobs.admission.relation.static import refresh
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.status import status
from sweeparea.spark_jobs.orchestration.explaining import explained
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.tables.log.delta_log import DeltaLog
from tests.spark_jobs.relations import NOON, application, contents, put, quarantine, schema, tick

pytestmark = pytest.mark.spark

STREAM = """
CREATE STREAM sales FROM DELTA 'sales' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND HEARTBEAT MANUAL;
"""
RELATIONS = """
CREATE RELATION prices FROM DELTA 'prices' HISTORY BY (f, t) HEARTBEAT MANUAL;
CREATE RELATION stock FROM DELTA 'stock' CHANGES BY (op, at) KEY (item) HEARTBEAT MANUAL LATE REPAIR;
CREATE RELATION tags FROM DELTA 'tags' CHANGES BY (op, at) HEARTBEAT MANUAL NON RETROACTIVE;
"""
START = "START AT TIMESTAMP '2020-01-01 12:00:00'"
QUERIES = f"""
CREATE CONTINUOUS QUERY worth {START} AS
  SELECT s.item, price, units FROM sales [RANGE 10 SECONDS EXCLUSIVE] s JOIN prices p ON s.item = p.item
  LEFT JOIN stock k ON k.item = s.item;
CREATE CONTINUOUS QUERY tagged {START} MATERIALIZE RELATION AS
  SELECT s.item, tag FROM sales [RANGE 10 SECONDS EXCLUSIVE] s JOIN tags g ON s.item = g.item;
CREATE CONTINUOUS QUERY dear {START} AS SELECT item, COUNT(*) AS n, MAX(price) AS most FROM prices GROUP BY item;
"""
SALES = schema("item string, at time")
PRICES = schema("item string, price double, f time, t time")
STOCK = schema("op string, item string, units bigint, at time")
TAGS = schema("op string, item string, tag string, at time")

SOLD = [("a", 0), ("b", 2.5), ("a", 6.75), ("c", 7), ("a", 21), ("b", 29)]
PRICED = [("a", 1.0, -60, 3.25), ("a", 2.0, 3.25, None), ("b", 5.0, -1, 8), ("b", 5.0, 6, 25), ("c", 9.0, 12.5, 14)]
STOCKED = [("I", "a", 7, -5), ("U", "a", 6, 4.5), ("I", "b", 3, 1), ("D", "b", None, 5), ("U", "b", 4, 23)]
TAGGED = [("insert", "a", "x", -3), ("insert", "b", "y", 2.5), ("delete", "a", "x", 6), ("insert", "a", "z", 21)]
END = 35


def sources(folder: Path, stocked: list[tuple] = STOCKED) -> None:
    put(folder, "sales", SALES, SOLD)
    put(folder, "prices", PRICES, PRICED)
    put(folder, "stock", STOCK, stocked)
    put(folder, "tags", TAGS, TAGGED)


def reach(app: Application, spark, second: int, names: tuple[str, ...] = ("prices", "stock", "tags")) -> None:
    """Admits everything, and moves all heartbeats to the end of a second."""
    for name in ("sales", *names):
        admit(app, name, spark)
        last = tick(second) // 1_000_000 if name == "sales" else tick(second + 1) - 1
        advance(app, name, last)


def result(app: Application, query: str) -> list[tuple[tuple, float, float | None]]:
    """A result's rows: (record, from, to), in seconds after noon."""
    found = []
    for row in DeltaLog(app.layout.result(query)).read().to_pylist():
        *record, start, end = row.values()
        times = [None if x is None else (x - NOON) / timedelta(seconds=1) for x in (start, end)]
        found.append((tuple(record), *times))
    return found  # type: ignore[return-value]


def at(rows: list[tuple[tuple, float, float | None]], second: int) -> list[tuple]:
    """A relation's contents at a second."""
    return sorted((r for r, start, end in rows if start <= second and (end is None or second < end)), key=repr)


def sql(query: str, **tables: tuple[str, list[tuple]]) -> list[tuple]:
    """Plain SQL over tables: name to (columns, rows)."""
    with sqlite3.connect(":memory:") as db:
        for name, (columns, rows) in tables.items():
            db.execute(f"CREATE TABLE {name} ({columns})")
            if rows:
                db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        return sorted(db.execute(query).fetchall(), key=repr)


def floor(second: float | None) -> float:
    """The second in which something happens: the query's chronon is a second."""
    return float("inf") if second is None else second // 1


def held(second: int, stocked: list[tuple] = STOCKED) -> dict[str, tuple[str, list[tuple]]]:
    """What the inputs hold at a second, by hand."""
    stock: dict[str, int] = {}
    for op, item, units, when in sorted(stocked, key=lambda row: row[3]):
        if floor(when) <= second:
            stock.pop(item, None)
            if op != "D":
                stock[item] = units
    return {
        "s": ("item", [(item,) for item, when in SOLD if floor(when) <= second < floor(when) + 10]),
        "p": ("item, price", [(i, p) for i, p, f, t in PRICED if floor(f) <= second < floor(t)]),
        "k": ("item, units", [*stock.items()]),
    }


WORTH = "SELECT s.item, price, units FROM s JOIN p ON s.item = p.item LEFT JOIN k ON k.item = s.item"
DEAR = "SELECT item, COUNT(*), MAX(price) FROM p GROUP BY item"


def enriched(second: int) -> list[tuple]:
    """NON RETROACTIVE: each sale with the tags from changes before its second, then its window."""
    found = []
    for item, when in SOLD:
        if floor(when) <= second < floor(when) + 10:
            tags: list[str] = []
            for op, name, tag, instant in TAGGED:
                if name == item and floor(instant) < floor(when):
                    tags.append(tag) if op == "insert" else tags.remove(tag)
            found += [(item, tag) for tag in tags]
    return sorted(found, key=repr)


@pytest.fixture(scope="module")
def whole(spark, tmp_path_factory) -> Application:
    """Everything at once, in one slice."""
    folder = tmp_path_factory.mktemp("whole")
    app = application(folder, STREAM + RELATIONS + QUERIES)
    sources(folder)
    reach(app, spark, END)
    for query in ("worth", "tagged", "dear"):
        process(app, query, spark)
    return app


def test_queries_are_plain_sql_at_every_instant(whole):
    """Law S1, for a history and a log of keys that change what was joined before, and for a log that does not."""
    worth, tagged, dear = (result(whole, query) for query in ("worth", "tagged", "dear"))
    for second in range(END + 1):
        inputs = held(second)
        assert at(worth, second) == sql(WORTH, **inputs)
        assert at(tagged, second) == enriched(second)
        # no stream: the query counts microseconds, so the end of the second is looked at
        micros = [(r, f, t) for r, f, t in dear if f < second + 1 and (t is None or second + 1 <= t)]
        priced = [(i, p) for i, p, f, t in PRICED if f < second + 1 and (t is None or second + 1 <= t)]
        assert sorted((r for r, _, _ in micros), key=repr) == sql(DEAR, p=("item, price", priced))
    assert len(worth) > 5
    assert whole.ledger.head()["worth"].committed == tick(END) // 1_000_000


def test_late_changes_and_small_slices_give_the_same(spark, tmp_path, whole):
    """Laws S2 and L1: cut into slices, with changes of a key that come when later ones have been told long ago."""
    app = application(tmp_path, STREAM + RELATIONS + QUERIES)
    late = [row for row in STOCKED if row[3] in (4.5, 5)]
    sources(tmp_path, [row for row in STOCKED if row not in late])
    for second in (3, 30):
        reach(app, spark, second)
        process(app, "worth", spark)
    assert result(app, "worth") != result(whole, "worth")
    put(tmp_path, "stock", STOCK, late)
    assert admit(app, "stock", spark).late == 2
    report = process(app, "worth", spark)
    assert (report.slices, len(report.repaired)) == (0, 1)
    reach(app, spark, END)
    process(app, "worth", spark)
    assert sorted(result(app, "worth"), key=repr) == sorted(result(whole, "worth"), key=repr)


def test_a_relation_behind_the_stream_makes_the_query_wait(spark, tmp_path):
    text = f"CREATE CONTINUOUS QUERY q {START} AS SELECT s.item, price FROM sales s JOIN prices p ON s.item = p.item;"
    app = application(tmp_path, STREAM + RELATIONS + text)
    sources(tmp_path)
    for name in ("sales", "prices"):
        admit(app, name, spark)
    advance(app, "sales", tick(30) // 1_000_000)
    assert process(app, "q", spark).waits_for == "prices"
    assert "q: not processed yet; waits for the first heartbeat of prices" in status(app)
    # half a second of a tick is not the tick: the last one that lies wholly at or before the heartbeat counts
    advance(app, "prices", tick(10.5))
    assert process(app, "q", spark).committed == tick(9) // 1_000_000
    assert process(app, "q", spark).waits_for == "prices"
    assert "committed up to 2020-01-01 12:00:09; up to date with prices" in status(app)
    told = status(app)
    assert "prices: heartbeat 2020-01-01 12:00:10.500000, source version 0, 6 rows admitted, 0 in" in told
    assert "before START" not in told  # of a relation such changes count
    assert "prices: its changes in (h0, h1]" in explained(app, "q")


def test_inputs_must_count_alike(tmp_path):
    put(tmp_path, "n", schema("item string, at bigint"), [("a", 1)])
    put(tmp_path, "prices", PRICES, PRICED)
    text = "CREATE STREAM n FROM DELTA 'n' TIMESTAMP BY at HEARTBEAT FOR at AS at;"
    text += "CREATE CONTINUOUS QUERY q AS SELECT n.item FROM n JOIN prices ON n.item = prices.item;"
    app = application(tmp_path, RELATIONS + text)
    with pytest.raises(SweepAreaError, match=r"prices.* count time differently: BIGINT ticks and TIMESTAMP"):
        app.plans.plan("q")


@pytest.mark.slow
def test_a_window_over_a_relation_counts_in_the_time_of_the_stream_behind_it(spark, tmp_path):
    text = f"""CREATE CONTINUOUS QUERY q {START} AS SELECT c.item, price FROM
      ISTREAM(SELECT item, price FROM prices) [RANGE 4 SECONDS EXCLUSIVE] c JOIN sales [RANGE 10 SECONDS EXCLUSIVE] s
      ON c.item = s.item;"""
    app = application(tmp_path, STREAM + RELATIONS + text)
    sources(tmp_path)
    reach(app, spark, END, ("prices",))
    process(app, "q", spark)
    rows = result(app, "q")
    for second in range(END + 1):
        # what there is at START begins there
        begun = [(i, p, max(0, floor(f))) for i, p, f, t in PRICED if floor(t) > 0]
        new = [(i, p) for i, p, f in begun if f <= second < f + 4]
        inputs = held(second)
        assert at(rows, second) == sql("SELECT c.item, price FROM c JOIN s ON c.item = s.item",
                                       c=("item, price", new), s=inputs["s"])  # fmt: skip


# -- constraints -----------------------------------------------------------------------------------------------------

LOGGED = (
    "CREATE RELATION r FROM DELTA 'r' CHANGES BY (op, at) KEY (item) HEARTBEAT FOR at AS at - INTERVAL 1 SECOND {};"
)


def test_constraints_of_a_relation(spark, tmp_path):
    """A row that violates one is kept out; D has no other columns to look at; the heartbeat may be an expression."""
    text = LOGGED.format("CONSTRAINT some EXPECT (units > 0) CONSTRAINT few EXPECT (units < 9) ON VIOLATION WARN")
    app = application(tmp_path, text)
    rows = [("I", "a", 5, 0), ("U", "a", 0, 1), ("I", "b", 12, 1), ("D", "b", -1, 3), ("I", "c", None, 3)]
    put(tmp_path, "r", STOCK, rows)
    report = admit(app, "r", spark)
    assert dict(report.quarantined) == {"constraint some is violated: units > 0": 1}
    assert (dict(report.warned), report.heartbeat) == ({"few": 1}, tick(2))
    advanced = contents(app, tick(2))
    assert advanced == {("a", 5): 1, ("b", 12): 1}
    failing = application(tmp_path / "f", LOGGED.format("CONSTRAINT c EXPECT (units > 0) ON VIOLATION FAIL UPDATE"))
    put(tmp_path / "f", "r", STOCK, rows)
    with pytest.raises(SweepAreaError, match=r"Relation r, version 0 of its source: constraint c .* by 1 rows"):
        admit(failing, "r", spark)
    assert not failing.ledger.head()


@pytest.mark.parametrize(
    "clauses", ["CHANGE DATA FEED", "HISTORY BY (at, until) HEARTBEAT FOR at AS at LATE REPAIR", "STATIC"]
)
def test_a_constraint_over_versions_that_only_add_or_only_remove(spark, tmp_path, clauses):
    app = application(tmp_path, f"CREATE RELATION r FROM DELTA 'r' {clauses} CONSTRAINT some EXPECT (units > 0);")
    columns = schema("item string, units bigint, at bigint, until bigint")
    put(tmp_path, "r", columns, [("a", 5, 1, None), ("b", -1, 1, None)])
    report = admit(app, "r", spark)
    assert (report.rows, dict(report.quarantined)) == (1, {"constraint some is violated: units > 0": 1})
    if clauses == "STATIC":
        return
    for predicate, kept, held in (("item = 'b'", 0, 1), ("item = 'a'", 0, 0)):
        DeltaTable(str(tmp_path / "data" / "r")).delete(predicate)
        admit(app, "r", spark)
        assert sum(r["__n"] for r in DeltaLog(app.layout.quarantine("r")).read().to_pylist()) == kept
        now = Counter[str]()
        for row in DeltaLog(app.layout.admitted("r")).read().to_pylist():
            now[row["item"]] += row["__n"]
        assert now["a"] == held


# -- static relations ------------------------------------------------------------------------------------------------

NAMES = schema("item string, name string")
STATIC = f"""
CREATE RELATION names FROM DELTA 'names' CONSTRAINT named EXPECT (name IS NOT NULL);
CREATE CONTINUOUS QUERY called {START} MATERIALIZE RELATION AS
  SELECT s.item, name FROM sales [RANGE 10 SECONDS EXCLUSIVE] s JOIN names n ON s.item = n.item;
"""


def refreshed(app: Application, spark) -> str:
    with app.analyzing(spark):
        return refresh(app, "names", spark)


def test_refresh_is_a_change_behind_what_was_committed(spark, tmp_path):
    app = application(tmp_path, STREAM + STATIC)
    put(tmp_path, "sales", SALES, SOLD)
    put(tmp_path, "names", NAMES, [("a", "apple"), ("b", "bun"), ("c", None)])
    report = admit(app, "names", spark)
    assert (report.rows, dict(report.quarantined)) == (2, {"constraint named is violated: name IS NOT NULL": 1})
    assert "nothing differs" in refreshed(app, spark)
    reach(app, spark, 7, ())
    process(app, "called", spark)
    put(tmp_path, "names", NAMES, [("a", "apricot"), ("b", "bun"), ("c", "cake")], mode="overwrite")
    assert admit(app, "names", spark).versions == 0  # pinned
    assert "3 rows come or go from 2020-01-01 12:00:08 on" in refreshed(app, spark)
    process(app, "called", spark)
    reach(app, spark, END, ())
    process(app, "called", spark)
    rows = result(app, "called")
    for second in range(END + 1):
        names = [("a", "apple"), ("b", "bun")] if second < 8 else [("a", "apricot"), ("b", "bun"), ("c", "cake")]
        assert at(rows, second) == sql(
            "SELECT s.item, name FROM s JOIN n ON s.item = n.item", s=held(second)["s"], n=("item, name", names)
        )
    assert app.ledger.head()["names"].info["refreshed"] == 1


def test_a_query_that_raced_ahead_takes_a_refresh_as_a_correction(spark, tmp_path, monkeypatch):
    """The refresh reads how far queries are, then one commits a slice, then the refresh commits."""
    from sweeparea.spark_jobs.admission.relation import static

    app = application(tmp_path, STREAM + STATIC)
    put(tmp_path, "sales", SALES, SOLD)
    put(tmp_path, "names", NAMES, [("a", "apple")])
    admit(app, "names", spark)
    reach(app, spark, 1, ())
    process(app, "called", spark)
    reach(app, spark, END, ())
    put(tmp_path, "names", NAMES, [("a", "apricot")], mode="overwrite")
    before = static.next_instant

    def slow(application: Application, name: str) -> Any:
        found = before(application, name)
        process(app, "called", spark)
        return found

    monkeypatch.setattr(static, "next_instant", slow)
    refreshed(app, spark)
    assert {r for r, _, _ in result(app, "called")} == {("a", "apple")}
    assert process(app, "called", spark).repaired
    rows = result(app, "called")
    for second in range(END + 1):
        sold = [item for (item,) in held(second)["s"][1] if item == "a"]
        assert at(rows, second) == [("a", "apple" if second < 2 else "apricot")] * len(sold)


@pytest.mark.slow
def test_a_refresh_before_any_query_ran_holds_from_its_start(spark, tmp_path):
    app = application(tmp_path, STREAM + STATIC)
    put(tmp_path, "sales", SALES, SOLD)
    put(tmp_path, "names", NAMES, [("a", "apple")])
    assert "1 rows of version 0 of its source copied and pinned" in refreshed(app, spark)
    put(tmp_path, "names", NAMES, [("a", "apricot")], mode="overwrite")
    assert "from 2020-01-01 12:00:00 on" in refreshed(app, spark)
    reach(app, spark, END, ())
    process(app, "called", spark)
    assert {r for r, _, _ in result(app, "called")} == {("a", "apricot")}


def test_a_feed_joined_with_a_stream_of_now(spark, tmp_path):
    """What happens to the feed's table is seen from the commit on; the query waits until the log has been read."""
    text = """
    CREATE STREAM clicks FROM DELTA 'clicks' TIMESTAMP BY at HEARTBEAT MANUAL MAX AHEAD INTERVAL 36500 DAYS;
    CREATE RELATION names FROM DELTA 'names' CHANGE DATA FEED;
    CREATE CONTINUOUS QUERY q MATERIALIZE RELATION AS SELECT name FROM clicks c JOIN names n ON c.item = n.item;
    """
    app = application(tmp_path, text)
    put(tmp_path, "clicks", SALES, [("a", 0)])
    put(tmp_path, "names", NAMES, [("a", "apple"), ("b", "bun")])
    admit(app, "clicks", spark)
    first = admit(app, "names", spark).heartbeat
    DeltaTable(str(tmp_path / "data/names")).update({"name": "'apricot'"}, predicate="item = 'a'")
    second = admit(app, "names", spark).heartbeat
    assert first is not None
    assert second is not None
    advance(app, "clicks", second + 1)
    assert process(app, "q", spark).committed == second
    names = {r["name"]: r for r in DeltaLog(app.layout.result("q")).read().to_pylist()}
    assert names["apple"]["valid_to"] == names["apricot"]["valid_from"]
    assert names["apricot"]["valid_to"] is None
    assert process(app, "q", spark).waits_for == "names"
    assert quarantine(app, "names") == []
