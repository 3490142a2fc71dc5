"""The figures of Golab & Oezsu (2005) and Hammad et al. (2004): queries, what varies, what the papers found.

Golab's windows go from 2,000 to 200,000 ticks, one element a tick and link; Hammad's rates from 5 to 40 elements a
tick, selectivities from 0.2 to 1. Traffic and sales are drawn, from a seed, in place of the papers' traces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

WINDOWS = (2_000, 20_000, 200_000)
RATES = (5, 10, 40)
LENGTHS = (10_000, 40_000, 120_000)
"""Elements of a slice, where its length varies."""
FIXED_RATE = 20
WINDOW = 2_000
"""Ticks, where it does not vary."""
SOURCES, DESTINATIONS, STORES, ITEMS = 2_000, 10, 100, 20_000
PROTOCOLS = {"ftp": 0.02, "telnet": 0.2, "http": 0.78}

_JOIN = """SELECT a.source, a.destination, b.destination AS other
FROM link1 [RANGE {window}] AS a JOIN link2 [RANGE {window}] AS b ON a.source = b.source
WHERE a.protocol = '{protocol}' AND b.protocol = '{protocol}'"""
_DISTINCT = "SELECT DISTINCT {columns} FROM link1 [RANGE {window}]"
_Q1 = "SELECT SUM(price) AS total FROM sales [RANGE {window}] WHERE chance < {selectivity}"
_Q2 = """SELECT DISTINCT s.item FROM sales [RANGE {window}] AS s, favourite_items AS f
WHERE s.item = f.item AND f.place < {selectivity}"""
_Q3 = """SELECT s.store, SUM(s.price * s.quantity) AS sales FROM sales [RANGE {window}] AS s, favourite_stores AS f
WHERE s.store = f.store AND f.place < {selectivity} GROUP BY s.store"""
_Q4 = """SELECT a.store, b.store AS other, a.item FROM sales [RANGE {window}] AS a, sales [RANGE {window}] AS b
WHERE a.item = b.item AND a.store <> b.store AND a.chance < {selectivity} AND b.chance < {selectivity}"""
_Q5 = """SELECT MAX(m.sales) AS best
FROM (ISTREAM(SELECT s.store, SUM(s.price) AS sales FROM sales [RANGE {window}] AS s, favourite_stores AS f
      WHERE s.store = f.store AND f.place < {selectivity} GROUP BY s.store)) [RANGE {longer}] AS m"""
_QUERIES = {"Q1": (_Q1, 0.25), "Q2": (_Q2, 0.1), "Q3": (_Q3, 0.1), "Q4": (_Q4, 0.25), "Q5": (_Q5, 0.1)}
"""Hammad's workload with the selectivities of his section 6."""

Place = float | str


@dataclass(frozen=True)
class Figure:
    """A query whose ``across`` varies over ``places``; ``fixed`` is what else its text and its elements ask for.

    ``paper`` is the text under the plot: what the paper shows there. ``space`` is the figure that shows the rows of
    state of the same runs, with its text.
    """

    title: str
    text: str
    across: str
    places: Sequence[Place]
    paper: str
    fixed: Mapping[str, Place] = field(default_factory=dict)
    space: tuple[str, str] | None = None

    def told(self, place: Place) -> dict[str, Place]:
        """Window (ticks), rate (elements a tick), selectivity and the rest at a place of the axis."""
        return {"window": WINDOW, "rate": 1, "selectivity": 1.0, **self.fixed, self.across: place}

    def query(self, place: Place) -> str:
        """The text at a place of the axis."""
        told = self.told(place)
        if self.across == "query":
            text, told["selectivity"] = _QUERIES[str(place)]
        else:
            text = self.text
        return text.format(**told, longer=6 * int(told["window"]))


FIGURES = (
    Figure(
        "Golab 9: join, ftp",
        _JOIN,
        "window",
        WINDOWS,
        "Query 1 with the selective predicate. In the paper upa takes about half the time of the other two, and"
        " direct less than negative, for the result is small.",
        {"protocol": "ftp"},
    ),
    Figure(
        "Golab 10: join, telnet",
        _JOIN,
        "window",
        WINDOWS[:2],
        "Query 1 with ten times the results; 200,000 ticks would give some hundred results for each element, and are"
        " left out. In the paper direct, which scans its result, is by far the slowest, and upa with fifty partitions"
        " up to ten times faster than negative. Here nothing scans a result.",
        {"protocol": "telnet"},
    ),
    Figure(
        "Golab 11: distinct sources",
        _DISTINCT,
        "window",
        WINDOWS,
        "Query 2 with few results. In the paper upa is ten times faster than the other two.",
        {"columns": "source"},
        (
            "Golab 13: space of distinct sources",
            "The space of figure 11. In the paper upa takes up to a hundredth of the others: it keeps a row of state"
            " for each result, not for each element. Bytes of state here; the stream itself is not counted.",
        ),
    ),
    Figure(
        "Golab 12: distinct pairs",
        _DISTINCT,
        "window",
        WINDOWS,
        "Query 2 with ten times the results. In the paper upa is twice as fast as negative, and direct slowest.",
        {"columns": "source, destination"},
        ("Golab 14: space of distinct pairs", "The space of figure 12. In the paper upa's advantage is smaller here."),
    ),
    Figure(
        "Golab 15: negation",
        "SELECT source FROM link1 [RANGE {window}] EXCEPT ALL SELECT source FROM link2 [RANGE {window}]",
        "window",
        WINDOWS,
        "Query 3. In the paper upa is slightly faster than negative for small windows, slower for large ones, and"
        " direct has no negation. Here expiry behind a difference is unknown: upa takes negative tuples there,"
        " direct keeps intervals up to the difference.",
    ),
    Figure(
        "Golab 16: join of distinct sources",
        "SELECT a.source FROM (SELECT DISTINCT source FROM link1 [RANGE {window}]) AS a,"
        " (SELECT DISTINCT source FROM link2 [RANGE {window}]) AS b WHERE a.source = b.source",
        "window",
        WINDOWS,
        "Query 4. In the paper as figures 9 to 12: upa fastest, direct slowest.",
    ),
    Figure(
        "Hammad 10: the workload",
        "",
        "query",
        tuple(_QUERIES),
        "Response times of the five queries at 20 elements a second. In the paper time probing answers first in Q1 to"
        " Q4, negative tuples in Q5, which has two windows.",
        {"rate": FIXED_RATE},
    ),
    Figure(
        "Hammad 11: Q3, sums of a join",
        _Q3,
        "rate",
        RATES,
        "Average and maximal response time by input rate. In the paper time probing is ahead of negative tuples, and"
        " the approaches come together as the rate grows.",
        {"selectivity": 0.1},
    ),
    Figure(
        "Hammad 12: Q1, sum of a selection",
        _Q1,
        "selectivity",
        (0.2, 0.6, 1.0),
        "In the paper time probing and negative tuples answer ten times sooner than waiting for input where little is"
        " selected, and all are equal where everything is.",
        {"rate": FIXED_RATE},
    ),
    Figure(
        "Hammad 13: Q4, throughput of a join",
        _Q4,
        "elements",
        LENGTHS,
        "Time until so many results are out, at more input than can be taken; here seconds of slices of so many"
        " elements. In the paper time probing is ahead of negative tuples, which pass through the join twice.",
        {"rate": FIXED_RATE, "selectivity": 0.25},
    ),
    Figure(
        "Hammad 14: Q5, maximum of sums",
        _Q5,
        "rate",
        RATES,
        "In the paper negative tuples are fastest, for they find what expires by a hash where the others scan.",
        {"selectivity": 0.2},
    ),
    Figure(
        "Hammad 15: Q5, maximum of sums",
        _Q5,
        "selectivity",
        (0.1, 0.4, 0.8),
        "In the paper negative tuples are fastest, and all come together as selectivity grows.",
        {"rate": FIXED_RATE},
    ),
    Figure(
        "Hammad 16: Q5, throughput",
        _Q5,
        "elements",
        LENGTHS,
        "As figure 13. In the paper negative tuples have the best throughput, and time probing none over waiting.",
        {"rate": FIXED_RATE, "selectivity": 0.1},
    ),
)
STREAMS = {"link": ("link1", "link2"), "sales": ("sales",)}
RELATIONS = {"favourite_stores": STORES, "favourite_items": ITEMS}
"""Tables with a row for each store or item and its place between 0 and 1."""


def declared() -> list[str]:
    """The statements that declare the streams and relations."""
    return [
        f"CREATE STREAM {name} FROM DELTA 'source/{name}' TIMESTAMP BY at HEARTBEAT MANUAL;"
        for names in STREAMS.values()
        for name in names
    ] + [f"CREATE RELATION {name} FROM DELTA 'source/{name}' STATIC;" for name in RELATIONS]


def inputs(text: str) -> tuple[list[str], list[str]]:
    """The streams and the relations that a query reads."""
    streams = [name for names in STREAMS.values() for name in names]
    return [name for name in streams if f"{name} [" in text], [name for name in RELATIONS if name in text]


def drawn(name: str, first: int, last: int, rate: int) -> pa.Table:
    """The elements of the ticks from ``first`` up to ``last``, ``rate`` of each."""
    ticks = np.repeat(np.arange(first, last), rate)
    chance, n = np.random.default_rng([first, sum(name.encode())]), (last - first) * rate
    if name == "sales":
        columns = {"store": chance.integers(0, STORES, n), "price": chance.integers(1, 1_000, n)}
        columns |= {"quantity": chance.integers(1, 10, n), "chance": chance.random(n)}
        columns |= {"item": chance.integers(0, ITEMS, n)}
    else:
        # few sources are in most of the traffic
        columns = {"source": (SOURCES * chance.random(n) ** 3).astype(np.int64)}
        columns |= {"destination": chance.integers(0, DESTINATIONS, n)}
        columns |= {"protocol": chance.choice(list(PROTOCOLS), n, p=list(PROTOCOLS.values()))}
    return pa.table({"at": ticks, **columns})


def favourites(name: str) -> pa.Table:
    """The rows of a relation."""
    rows, key = RELATIONS[name], "store" if name == "favourite_stores" else "item"
    return pa.table({key: np.arange(rows), "place": np.arange(rows) / rows})
