"""The oracle against values worked out by hand, and against Python that evaluates each minute alone."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pyarrow as pa
import pytest

from tests.flights import oracle
from tests.flights.compare import difference, rows
from tests.flights.oracle import CONGESTION_ALERTS, DELAY_BY_ORIGIN, MINUTE, QUERIES, SEATS_IN_AIR, START, Query

INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("departed", INSTANT),
        ("origin", pa.string()),
        ("dep_delay", pa.int64()),
        ("tailnum", pa.string()),
        ("distance_km", pa.float64()),
    ]
)
NO_PLANES = pa.table({"tailnum": ["N1"], "manufacturer": ["BOEING"], "seats": [100], "year": [1999]})


def at(hour: int, minute: int = 0, day: int = 1) -> datetime:
    return datetime(2013, 1, day, hour, minute, tzinfo=UTC)


def flights(*seen: tuple[datetime | None, str, int | None]) -> pa.Table:
    rows = [
        {"id": k, "departed": d, "origin": o, "dep_delay": delay, "tailnum": "N1", "distance_km": 1.5}
        for k, (d, o, delay) in enumerate(seen, 1)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def tuples(table: pa.Table) -> list[tuple]:
    return [tuple(row.values()) for row in table.to_pylist()]


def test_hourly_average_by_hand():
    seen = flights(
        (None, "JFK", None),  # cancelled: no element
        (START - MINUTE, "JFK", 99),  # before START: takes no part
        (at(10), "JFK", 10),  # on the hop itself: seen from 10:00 to before 16:00
        (at(10, 1), "JFK", 21),  # seen from 11:00 to before 17:00
        (at(12, 30), "EWR", -3),  # seen from 13:00 to before 19:00
    )
    tables = oracle.history(DELAY_BY_ORIGIN, seen, NO_PLANES, h1=at(17, 59))
    assert tuples(tables["delay_by_origin"]) == [
        ("JFK", 10.0, 1, at(10), at(11)),
        ("JFK", 15.5, 2, at(11), at(16)),
        ("EWR", -3.0, 1, at(13), None),
        ("JFK", 21.0, 1, at(16), at(17)),
    ]
    assert tuples(tables["delay_by_origin__istream"]) == [
        ("JFK", 10.0, 1, at(10)),
        ("JFK", 15.5, 2, at(11)),
        ("EWR", -3.0, 1, at(13)),
        ("JFK", 21.0, 1, at(16)),
    ]
    assert tuples(tables["delay_by_origin__dstream"]) == [
        ("JFK", 10.0, 1, at(11)),
        ("JFK", 15.5, 2, at(16)),
        ("JFK", 21.0, 1, at(17)),
    ]


def test_an_end_is_published_at_the_committed_instant_and_not_before():
    seen = flights((at(10), "JFK", 10))
    before = oracle.history(DELAY_BY_ORIGIN, seen, NO_PLANES, h1=at(15, 59))["delay_by_origin"]
    after = oracle.history(DELAY_BY_ORIGIN, seen, NO_PLANES, h1=at(16))["delay_by_origin"]
    assert tuples(before) == [("JFK", 10.0, 1, at(10), None)]
    assert tuples(after) == [("JFK", 10.0, 1, at(10), at(16))]


def test_alerts_by_hand():
    on_time = [(at(8), "JFK", 29)] * 20
    late = [(at(8, k), "JFK", 30) for k in range(9)]
    tenth = [(at(9), "JFK", 125)]  # the closed window of one hour still holds the flight of 8:00
    then = [(at(9, 5), "JFK", 40)] * 6  # 8:05 .. 8:08, 9:00 and these six
    seen = flights(*on_time, *late, *tenth, *then)
    alerts = oracle.history(CONGESTION_ALERTS, seen, NO_PLANES, h1=at(12))["congestion_alerts"]
    assert tuples(alerts) == [("JFK", 10, 2, at(9)), ("JFK", 10, 2, at(9, 5))]


def test_seats_by_hand():
    planes = pa.table(
        {
            "tailnum": ["N1", "N2", "N3"],
            "manufacturer": ["BOEING", "BOEING", "AIRBUS"],
            "seats": [100, 50, 200],
            "year": pa.array([2001, None, None], pa.int64()),
        }
    )
    seen = pa.Table.from_pylist(
        [
            {"departed": at(10), "tailnum": "N1", "distance_km": 0.1},
            {"departed": at(10, 1), "tailnum": "N2", "distance_km": 1e16},
            {"departed": at(10, 1), "tailnum": "N9", "distance_km": 5.0},
            {"departed": at(10, 1), "tailnum": None, "distance_km": 5.0},
            {"departed": at(11), "tailnum": "N3", "distance_km": 2.0},
        ],
        schema=SCHEMA,
    )
    assert tuples(oracle.history(SEATS_IN_AIR, seen, planes, h1=at(13))["seats_in_air"]) == [
        ("BOEING", 1, 100, 10.0, 2001, at(10), at(10, 1)),
        ("BOEING", 2, 150, 5e17, 2001, at(10, 1), at(12, 1)),
        ("AIRBUS", 1, 200, 400.0, None, at(11), None),
        ("BOEING", 1, 50, 5e17, None, at(12, 1), at(12, 2)),
    ]


def _average(seen: list[dict]) -> Counter[tuple]:
    delays = defaultdict(list)
    for row in seen:
        delays[row["origin"]].append(row["dep_delay"])
    return Counter((o, float(sum(d)) / float(len(d)), len(d)) for o, d in delays.items())


def _alerts(seen: list[dict]) -> Counter[tuple]:
    delays = defaultdict(list)
    for row in seen:
        if row["dep_delay"] >= 30:
            delays[row["origin"]].append(row["dep_delay"])
    return Counter((o, len(d) // 5 * 5, max(d) // 60) for o, d in delays.items() if len(d) >= 10)


def _seats(seen: list[dict], fleet: dict[str, dict]) -> Counter[tuple]:
    groups = defaultdict(list)
    for row in seen:
        plane = fleet.get(row["tailnum"])
        if plane:
            groups[plane["manufacturer"]].append((plane, row["distance_km"]))
    result: Counter[tuple] = Counter()
    for maker, pairs in groups.items():
        seats = sum(plane["seats"] for plane, _ in pairs)
        exact = sum((Fraction(float(plane["seats"]) * km) for plane, km in pairs), Fraction())
        built = [plane["year"] for plane, _ in pairs if plane["year"] is not None]
        result[maker, len(pairs), seats, float(exact), min(built, default=None)] += 1
    return result


def _brute_force(
    query: Query, seen: list[dict], evaluate: Callable[[list[dict]], Counter], h1: datetime
) -> dict[str, Counter]:
    """The rows of each table: minute by minute, each minute from the whole input, by the windows' definitions."""
    opened: dict[tuple, list[datetime]] = defaultdict(list)  # record -> starts of its open copies
    relation: list[tuple] = []
    before: Counter = Counter()
    now = START
    while now <= h1:
        if query is DELAY_BY_ORIGIN:
            hop = now.replace(minute=0)
            inside = [row for row in seen if hop - timedelta(hours=6) < row["departed"] <= hop]
        else:
            length = timedelta(hours=1 if query is CONGESTION_ALERTS else 2)
            inside = [row for row in seen if row["departed"] <= now <= row["departed"] + length]
        after = evaluate(inside)
        for record, n in (before - after).items():
            relation += [(record, opened[record].pop(), now) for _ in range(n)]
        for record, n in (after - before).items():
            opened[record] += [now] * n
        before, now = after, now + MINUTE
    relation += [(record, start, None) for record, starts in opened.items() for start in starts]
    shapes = {
        "relation": [(*record, start, end) for record, start, end in relation],
        "istream": [(*record, start) for record, start, _ in relation],
        "dstream": [(*record, end) for record, _, end in relation if end is not None],
    }
    return {table: Counter(shapes[form]) for table, form in query.tables.items()}


@pytest.mark.parametrize("name", QUERIES)
def test_brute_force_on_a_sample(january: pa.Table, planes: pa.Table, name: str):
    """About 200 real flights around the midnight of a stormy day, moved next to START, with a third of them doubled."""
    query = QUERIES[name]
    start_of_sample = at(22, day=30)
    end_of_sample = start_of_sample + timedelta(hours=5)
    sample = [row for row in january.to_pylist() if start_of_sample <= row["departed"] < end_of_sample][:200]
    shift = start_of_sample - START
    chosen = random.Random(7)
    seen = [{**row, "departed": row["departed"] - shift} for row in sample for _ in range(chosen.choice((1, 1, 2)))]
    fleet = {row["tailnum"]: row for row in planes.to_pylist()}
    evaluate = {
        "delay_by_origin": _average,
        "congestion_alerts": _alerts,
        "seats_in_air": lambda inside: _seats(inside, fleet),
    }[name]
    h1 = START + timedelta(hours=12, minutes=17)
    expected = _brute_force(query, seen, evaluate, h1)
    actual = oracle.history(query, pa.Table.from_pylist(seen, schema=SCHEMA), planes, h1)
    assert set(actual) == set(expected)
    for table, found in actual.items():
        bag = Counter(tuples(found))
        assert bag == expected[table], table
        assert bag, f"{table} is empty: the sample shows nothing"


def test_january(january: pa.Table, planes: pa.Table):
    """The counts that the engine is held to, and law R2: Istream less Dstream, summed up, is the relation."""
    h1 = oracle.heartbeat(january)
    assert (january.num_rows, h1) == (26_308, at(23, 28, day=31))
    tables = {n: t for q in QUERIES.values() for n, t in oracle.history(q, january, planes, h1).items()}
    assert {name: table.num_rows for name, table in tables.items()} == {
        "delay_by_origin": 2_154,
        "delay_by_origin__istream": 2_154,
        "delay_by_origin__dstream": 2_151,
        "congestion_alerts": 155,
        "seats_in_air": 37_104,
    }
    still_open = tables["delay_by_origin"].to_pylist()
    held: Counter = Counter()
    for row in tables["delay_by_origin__istream"].to_pylist():
        held[row["origin"], row["avg_delay"], row["departures"]] += 1
    for row in tables["delay_by_origin__dstream"].to_pylist():
        held[row["origin"], row["avg_delay"], row["departures"]] -= 1
    assert +held == Counter((r["origin"], r["avg_delay"], r["departures"]) for r in still_open if r["valid_to"] is None)
    assert min(held.values()) == 0


def test_difference_names_what_parts():
    one = pa.table({"a": [1, 1], "ts": [at(1), at(2)]})
    assert difference(one, one.take([1, 0])) == ""
    assert "missing" in difference(one.slice(1), one)
    assert "columns" in difference(one.rename_columns(["b", "ts"]), one)
    assert rows(pa.table({"a": [1, 1]})) == Counter({(1,): 2})
