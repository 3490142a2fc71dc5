"""A small application for tests of the jobs: sales of a shop, arriving in commits of their source table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from sweeparea.infra.locations import Folder
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication

SCHEMA = pa.schema(
    [("at", pa.timestamp("us", tz="UTC")), ("shop", pa.string()), ("amount", pa.float64()), ("items", pa.int64())]
)
STREAM = """
CREATE STREAM sales FROM DELTA 'source/sales' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND
  HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS
  CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION QUARANTINE ROW;
"""
QUERY = """
CREATE CONTINUOUS QUERY turnover START AT TIMESTAMP '2020-01-01 00:00:00' MATERIALIZE RELATION, ISTREAM AS
SELECT shop, SUM(amount) AS amount, MAX(items) AS most, COUNT(*) AS n FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY
shop;
"""
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def tick(seconds: int) -> int:
    """Seconds after noon as a tick of the stream."""
    return (NOON - EPOCH) // timedelta(seconds=1) + seconds


def application(folder: Path, text: str = STREAM + QUERY) -> Application:
    """The application in ``folder``: its declarations and its data folder."""
    queries = folder / "shop"
    queries.mkdir(parents=True, exist_ok=True)
    (queries / "shop.cql").write_text(text)
    return Application.open(queries, folder / "data")


Rows = list[tuple[int | None, str, float, int]]


def sell(folder: Folder, rows: Rows, schema: pa.Schema = SCHEMA) -> None:
    """One commit to the source: (seconds after noon, shop, amount, items)."""
    sell_to(folder / "data" / "source" / "sales", rows, schema)


def sell_to(table_folder: Folder, rows: list[tuple[int | None, str, float, int]], schema: pa.Schema = SCHEMA) -> None:
    """As ``sell``, to a table anywhere."""
    columns = [
        [None if s is None else NOON + timedelta(seconds=s) for s, *_ in rows],
        *([row[i] for row in rows] for i in (1, 2, 3)),
    ]
    table = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    write_deltalake(str(table_folder), table, mode="append")


DAYS: list[Rows] = [
    [(0, "a", 0.1, 3), (5, "b", 1e16, 1), (9, "a", 0.2, 7), (30, "a", 0.3, 2)],
    [(40, "b", 1.0, 9), (None, "a", 5.0, 1), (41, "b", -1.0, 9), (61, "a", 0.7, 1), (90, "b", 2.5, 4)],
    [(100, "a", 0.1, 8), (20, "a", 9.9, 9), (130, "b", 1e-3, 2), (400, "c", 4.0, 1)],
]


def contents(app: Application, table: str) -> list[tuple]:
    """All rows of a result table, in an order of their own."""
    rows = DeltaLog(app.layout.result(table)).read().to_pylist()
    return sorted((tuple(r.values()) for r in rows), key=repr)


def damage(app: Application, query: str) -> None:
    """Another number of items in every row of turnover's like, by a commit that looks like one of the query's own."""
    place = SlicePlace.of(app, query)
    publication = Publication(place.data, place.ledger, query, NameKind.QUERY, place.registration)
    attempt = publication.begin()
    log = DeltaLog(app.layout.result(query))
    rows = log.read()
    at = rows.column_names.index("most")
    wrong = rows.set_column(at, rows.schema.field("most"), pa.array([99] * rows.num_rows, pa.int64()))
    publication.stage(log.uri, adds=[write_file(wrong, log.uri, attempt, "wrong")], removes=log.files())
    row = publication.previous
    assert row is not None
    publication.commit(committed=row.committed, pins=row.pins, info=row.info)
