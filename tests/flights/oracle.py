"""The three queries of ``queries/flights`` recomputed from scratch by plain SQL in DuckDB, sharing no engine code.

Snapshot by snapshot, as Law S1 reads: collect the instants at which anything can change, evaluate the query at each of
them over the elements that are valid there, and merge equal neighbours. Nothing is incremental, nothing is clever.
Ticks are minutes since 1970-01-01 (the stream's chronon). The windows are arithmetic from their definitions:

* ``[RANGE T]`` is closed: an element of instant s is valid at t iff ``s <= t <= s + T`` (Arasu et al. 2003, section
  6.1.1);
* ``[RANGE T SLIDE b]``: valid at the hops H (multiples of b) with ``H - T < s <= H``, each until the next (Patroumpas &
  Sellis 2006, section 3).

Sums over DOUBLE are rounded once, by ``math.fsum``.
"""

from __future__ import annotations

import math
import tempfile
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa

MINUTE = timedelta(minutes=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = datetime(2013, 1, 1, tzinfo=UTC)
DISORDER = timedelta(minutes=30)
"""The stream's HEARTBEAT clause: departed - INTERVAL 30 MINUTES."""


@dataclass(frozen=True)
class Query:
    """One query as SQL.

    ``elements``: SELECT over the tables flights (with ``s``, the tick of departure) and planes, giving what the query
    uses plus ``ts`` and ``te``. ``columns``: output column and its SQL over the elements ``e`` valid at an instant; for
    those in ``exact_sums`` it is a list that is summed afterwards. ``tables``: what is published (relation, istream or
    dstream), by table name.
    """

    name: str
    elements: str
    columns: dict[str, str]
    keys: tuple[str, ...]
    tables: dict[str, str]
    having: str = "TRUE"
    exact_sums: tuple[str, ...] = field(default=())


DELAY_BY_ORIGIN = Query(
    name="delay_by_origin",
    # first hop >= s, and the first hop that is >= s + 360: the hops in between see the element
    elements="""SELECT origin, dep_delay, (s + 59) // 60 * 60 AS ts, (s + 360 + 59) // 60 * 60 AS te FROM flights""",
    columns={
        "origin": "e.origin",
        "avg_delay": "sum(e.dep_delay)::DOUBLE / count(e.dep_delay)::DOUBLE",
        "departures": "count(*)",
    },
    keys=("e.origin",),
    tables={
        "delay_by_origin": "relation",
        "delay_by_origin__istream": "istream",
        "delay_by_origin__dstream": "dstream",
    },
)
CONGESTION_ALERTS = Query(
    name="congestion_alerts",
    elements="SELECT origin, dep_delay, s AS ts, s + 60 + 1 AS te FROM flights WHERE dep_delay >= 30",
    columns={
        "origin": "e.origin",
        "at_least": "count(*) // 5 * 5",
        "worst_hours": "max(e.dep_delay) // 60",
    },
    keys=("e.origin",),
    having="count(*) >= 10",
    tables={"congestion_alerts": "istream"},
)
SEATS_IN_AIR = Query(
    name="seats_in_air",
    elements="""SELECT p.manufacturer, p.seats, p.year, p.seats::DOUBLE * f.distance_km AS seat_km,
                       s AS ts, s + 120 + 1 AS te
                FROM flights AS f JOIN planes AS p ON f.tailnum = p.tailnum""",
    columns={
        "manufacturer": "e.manufacturer",
        "departures": "count(*)",
        "seats": "sum(e.seats)::BIGINT",
        "seat_km": "list(e.seat_km)",
        "oldest": "min(e.year)",
    },
    keys=("e.manufacturer",),
    tables={"seats_in_air": "relation"},
    exact_sums=("seat_km",),
)
QUERIES = {query.name: query for query in (DELAY_BY_ORIGIN, CONGESTION_ALERTS, SEATS_IN_AIR)}


def history(
    query: Query, flights: pa.Table, planes: pa.Table, h1: datetime, start: datetime = START
) -> dict[str, pa.Table]:
    """Every result table of ``query`` as it must stand once h1 is committed, sorted by instant and columns.

    ``flights`` and ``planes`` have the columns of the source tables; rows without ``departed`` or before ``start`` take
    no part. Relation tables: the query's columns, ``valid_from``, ``valid_to`` (NULL unless <= h1); stream tables: the
    query's columns, ``ts``; TIMESTAMP in microseconds, UTC.
    """
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'; SET threads = 2")
        db.register("flights_in", flights)
        db.register("planes", planes)
        first, last = tick(start), tick(h1)
        db.execute(
            f"""CREATE TABLE flights AS SELECT *, epoch_us(departed) // 60_000_000 AS s FROM flights_in
                WHERE departed IS NOT NULL AND epoch_us(departed) // 60_000_000 >= {first}"""
        )
        db.execute(f"CREATE TABLE elements AS SELECT * FROM ({query.elements}) WHERE ts <= {last}")
        db.execute(
            f"""CREATE TABLE instants AS
                SELECT t, row_number() OVER (ORDER BY t) AS i
                FROM (SELECT {first} AS t UNION SELECT ts FROM elements UNION SELECT te FROM elements)
                WHERE t BETWEEN {first} AND {last}"""
        )
        outputs = ", ".join(f"{sql} AS {name}" for name, sql in query.columns.items())
        snapshots = db.sql(
            f"""SELECT any_value(instants.i) AS i, {outputs}
                FROM instants JOIN elements AS e ON e.ts <= instants.t AND instants.t < e.te
                GROUP BY instants.t, {", ".join(query.keys)} HAVING {query.having}"""
        ).to_arrow_table()
        for name in query.exact_sums:
            sums = pa.array([math.fsum(numbers) for numbers in _lists(snapshots[name])], pa.float64())
            snapshots = snapshots.set_column(snapshots.schema.get_field_index(name), name, sums)
        db.register("snapshots_in", snapshots)
        db.execute("CREATE TABLE snapshots AS SELECT * FROM snapshots_in")
        return _publish(db, tuple(query.columns), query.tables)


def _publish(db: duckdb.DuckDBPyConnection, columns: tuple[str, ...], tables: dict[str, str]) -> dict[str, pa.Table]:
    """The canonical tables (semantics, section 5) of the relation that ``snapshots`` gives instant by instant.

    Copy k of a record holds at the instants where its multiplicity is at least k; its maximal runs of neighbouring
    instants are the relation's rows. A run's start is one row of Istream and its end one of Dstream, since
    max(0, m(t) - m(t-1)) counts exactly the copies that hold at t and did not before.
    """
    record = ", ".join(columns)
    order = ", ".join(f"{column} NULLS FIRST" for column in columns)
    db.execute(
        f"""CREATE TABLE runs AS
            WITH copies AS (SELECT *, row_number() OVER (PARTITION BY {record}, i) AS k FROM snapshots),
                 islands AS (SELECT *, i - row_number() OVER (PARTITION BY {record}, k ORDER BY i) AS island
                             FROM copies),
                 bounds AS (SELECT {record}, min(i) AS i_first, max(i) AS i_last
                            FROM islands GROUP BY {record}, k, island)
            SELECT {record}, make_timestamp(f.t * 60_000_000)::TIMESTAMPTZ AS valid_from,
                   make_timestamp(n.t * 60_000_000)::TIMESTAMPTZ AS valid_to
            FROM bounds JOIN instants f ON f.i = i_first LEFT JOIN instants n ON n.i = i_last + 1"""
    )
    forms = {
        "relation": f"SELECT {record}, valid_from, valid_to FROM runs ORDER BY valid_from, {order}, valid_to",
        "istream": f"SELECT {record}, valid_from AS ts FROM runs ORDER BY ts, {order}",
        "dstream": f"SELECT {record}, valid_to AS ts FROM runs WHERE valid_to IS NOT NULL ORDER BY ts, {order}",
    }
    return {name: db.sql(forms[form]).to_arrow_table() for name, form in tables.items()}


def _lists(column: pa.ChunkedArray) -> list[list[float]]:
    """The lists of ``column`` as Python lists (through NumPy: a float a row would be slow)."""
    lists: list[list[float]] = []
    for chunk in column.chunks:
        values = chunk.values.to_numpy(zero_copy_only=False)
        offsets = chunk.offsets.to_numpy()
        lists.extend(values[a:b].tolist() for a, b in pairwise(offsets))
    return lists


def tick(instant: datetime) -> int:
    """Minutes since 1970-01-01, floored."""
    return (instant - EPOCH) // MINUTE


def heartbeat(flights: pa.Table) -> datetime:
    """The stream's heartbeat once ``flights`` are admitted: the last minute that lies wholly at or before the greatest
    departure less half an hour. That moment's own minute has only begun: an element may still fall into it.
    """
    greatest = max(d for d in flights["departed"].to_pylist() if d is not None)
    return EPOCH + (tick(greatest - DISORDER) - 1) * MINUTE


def flights_from_csv(folder: Path) -> pa.Table:
    """What the queries need of ``flights.csv.zip``, read by DuckDB: id, departed, origin, dep_delay, tailnum and
    distance_km.
    """
    with tempfile.TemporaryDirectory() as temporary:
        with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
            file = archive.extract("flights.csv", temporary)
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'; SET threads = 2")
            return db.sql(
                """SELECT row_number() OVER () AS id,
                          time_hour::TIMESTAMPTZ + to_minutes("minute" + dep_delay) AS departed,
                          origin, dep_delay, tailnum, distance::DOUBLE * 1.609344::DOUBLE AS distance_km
                   FROM read_csv(?, nullstr = 'NA', parallel = false)""",
                params=[file],
            ).to_arrow_table()


def planes_from_csv(folder: Path) -> pa.Table:
    """``planes.csv``, read by DuckDB: tailnum, manufacturer, seats, year."""
    with duckdb.connect() as db:
        return db.sql(
            "SELECT tailnum, manufacturer, seats, year FROM read_csv(?, nullstr = 'NA')",
            params=[str(folder / "planes.csv")],
        ).to_arrow_table()
