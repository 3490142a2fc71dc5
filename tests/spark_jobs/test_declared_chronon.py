"""A query over relations alone that declares its CHRONON: its stream joins with a stream of that chronon."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from sweeparea.cql.text.errors import TypeError_
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit, advance
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.tables.log.delta_log import DeltaLog
from tests.spark_jobs.relations import NOON, application, put, schema, tick

pytestmark = pytest.mark.spark

START = "START AT TIMESTAMP '2020-01-01 12:00:00'"
TEXT = f"""
CREATE STREAM sales FROM DELTA 'sales' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND HEARTBEAT MANUAL;
CREATE RELATION prices FROM DELTA 'prices' HISTORY BY (f, t) HEARTBEAT MANUAL;
CREATE CONTINUOUS QUERY news {START} CHRONON INTERVAL 1 SECOND AS ISTREAM(SELECT item, price FROM prices);
CREATE CONTINUOUS QUERY sold_on_news {START} AS
  SELECT s.item, price FROM sales [RANGE 10 SECONDS EXCLUSIVE] s JOIN news [RANGE 5 SECONDS EXCLUSIVE] n
  ON s.item = n.item;
"""
SOLD = [("a", 0), ("b", 2.5), ("a", 6.75), ("c", 7), ("a", 21), ("b", 29)]
PRICED = [
    *(("a", 1.0, -60, 3.25), ("a", 2.0, 3.25, None), ("b", 5.0, -1, 8), ("b", 5.0, 6.5, 25), ("c", 9.0, 12.5, 14)),
    *(("c", 9.0, 9.1, 9.9), ("a", 3.0, 20.999999, 30)),
]
END = 35


def reach(app: Application, spark, second: int) -> None:
    """Admits everything, moves the heartbeats to the end of a second, and lets both queries catch up."""
    for name in ("sales", "prices"):
        admit(app, name, spark)
        advance(app, name, tick(second) // 1_000_000 if name == "sales" else tick(second + 1) - 1)
    for query in ("news", "sold_on_news"):
        process(app, query, spark)


def prices(second: int) -> Counter:
    """What the relation holds during a second: instants are floored to it, so c's price of 9.1 to 9.9 never was."""
    return Counter((i, p) for i, p, f, t in PRICED if f // 1 <= second < (END + 99 if t is None else t // 1))


def news(second: int) -> list[tuple]:
    before = prices(second - 1) if second > 0 else Counter()
    return sorted((prices(second) - before).elements())


def expected(second: int) -> list[tuple]:
    """The join at a second, by hand."""
    sold = [item for item, at in SOLD if at // 1 <= second < at // 1 + 10]
    fresh = [row for s in range(max(0, second - 4), second + 1) for row in news(s)]
    return sorted((item, price) for item in sold for other, price in fresh if item == other)


def rows(app: Application, query: str) -> list[dict]:
    return DeltaLog(app.layout.result(query)).read().to_pylist()


def second_of(instant) -> float | None:
    return None if instant is None else (instant - NOON) / timedelta(seconds=1)


@pytest.fixture(scope="module", params=["one slice", "seven slices"])
def app(spark, tmp_path_factory, request) -> Application:
    folder = tmp_path_factory.mktemp("chronon")
    made = application(folder, TEXT)
    put(folder, "sales", schema("item string, at time"), SOLD)
    put(folder, "prices", schema("item string, price double, f time, t time"), PRICED)
    for second in (END,) if request.param == "one slice" else (0, 2, 3, 8, 9, 21, END):
        reach(made, spark, second)
    return made


def test_a_stream_over_relations_alone_joins_with_a_stream_of_its_chronon(app: Application) -> None:
    assert app.plans.plan("news").time.chronon == 1_000_000
    told = sorted((second_of(row["ts"]), row["item"], row["price"]) for row in rows(app, "news"))
    assert told == sorted((float(s), *row) for s in range(END + 1) for row in news(s))
    result = rows(app, "sold_on_news")
    for second in range(END + 1):
        held = sorted(
            (row["item"], row["price"])
            for row in result
            if second_of(row["valid_from"]) <= second  # type: ignore[operator]
            and (row["valid_to"] is None or second < second_of(row["valid_to"]))  # type: ignore[operator]
        )
        assert held == expected(second), second


def test_without_the_clause_the_error_names_it(tmp_path: Path) -> None:
    app = application(tmp_path, TEXT.replace(f"{START} CHRONON INTERVAL 1 SECOND", START))
    put(tmp_path, "sales", schema("item string, at time"), SOLD)
    put(tmp_path, "prices", schema("item string, price double, f time, t time"), PRICED)
    with pytest.raises(SweepAreaError, match=r"CREATE CONTINUOUS QUERY news CHRONON INTERVAL 1 SECOND AS") as caught:
        app.plans.plan("sold_on_news")
    assert isinstance(caught.value, TypeError_)
