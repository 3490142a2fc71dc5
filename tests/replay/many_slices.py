"""Random cases of many slices: each kind of operator over keys of every type, so that SweepAreas are merged meanwhile.

Also how the work is divided: from slice to slice among other numbers of workers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from sweeparea.operators.state import area_files, sweep_area
from sweeparea.spark_jobs.evaluation import hot_keys
from sweeparea.spark_jobs.slices import slice as slices
from tests.replay.generate import STRATEGIES, VALUES, Generator

END = 36

KEYS: dict[str, list[Any]] = {
    **{kind: VALUES[kind] for kind in ("int", "double", "string", "decimal(8,2)", "binary", "date", "timestamp")},
    **{kind: VALUES[kind] for kind in ("array<double>", "struct<x:int,y:double>", "boolean")},
    "map<string,double>": [[["a", 0.0], ["b", 1.0]], [["b", 1.0], ["a", -0.0]], [], None, [["a", "NaN"]]],
    "struct<m:map<int,int>>": [[[[1, 1], [2, 2]]], [[[2, 2], [1, 1]]], [None], None, [[]]],
}
"""Values by type; a key of a map cannot be compared by Spark, so one worker has them all."""

QUERIES = (
    "SELECT k, SUM(v) AS s, COUNT(*) AS n, MIN(v) AS m FROM S {w} GROUP BY k",
    "SELECT k, MAX(v) AS m FROM S {w} GROUP BY k HAVING MAX(v) > 1",
    "SELECT k, AVG(v) AS a, COUNT(DISTINCT v) AS d FROM S {w} GROUP BY k",
    "SELECT DISTINCT k FROM S {w}",
    "SELECT DISTINCT k, v FROM S {w}",
    "SELECT k FROM S {w} EXCEPT SELECT k FROM T {x}",
    "SELECT k FROM S {w} EXCEPT ALL SELECT k FROM T {x}",
    "SELECT k FROM S {w} INTERSECT ALL SELECT k FROM T {x}",
    "SELECT k, v FROM S {w} INTERSECT SELECT k, v FROM T {x}",
    "SELECT k, v FROM S [Partition By {p} Rows 2]",
    "SELECT k, v FROM S [Partition By {p} Rows 2 Range 5]",
    "SELECT k, v FROM S [Rows 3 Slide 2]",
    "SELECT k, v FROM S [Session 3 Partition By {p}]",
    "SELECT k, v FROM S [Tumbling When (v > 1) Partition By {p}]",
    "SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM S {w} GROUP BY k) AS q GROUP BY n",
    "SELECT k, v FROM (ISTREAM(SELECT DISTINCT k, v FROM S {w})) [Range 4] AS q",
    "SELECT a.v, b.v AS u FROM (SELECT DISTINCT k, v FROM S {w}) AS a JOIN (SELECT DISTINCT k, v FROM T {x}) AS b"
    " ON a.v = b.v",
    "SELECT a.k, b.m FROM S {w} AS a JOIN (SELECT v, COUNT(*) AS m FROM T {x} GROUP BY v) AS b ON a.v = b.v",
    "SELECT k, v FROM S {w} WHERE v IN (SELECT v FROM T {x})",
    "SELECT k, v FROM S {w} WHERE v NOT IN (SELECT v FROM T {x} WHERE v IS NOT NULL)",
    "SELECT a.k, a.v, b.v AS u FROM S {w} AS a LEFT JOIN T {x} AS b ON a.v = b.v",
    "SELECT a.v, b.v AS u FROM S {w} AS a FULL JOIN T [Rows 2] AS b ON a.v = b.v",
    "SELECT k, v FROM (SELECT k, v, RANK() OVER (PARTITION BY {p} ORDER BY v DESC NULLS LAST) AS r FROM S {w}) AS q"
    " WHERE r <= 2",
    "SELECT v, WINDOW_START(S) AS a, COUNT(*) AS n, COUNT(DISTINCT k) AS d FROM S [Hopping 7 Slide 3]"
    " GROUP BY v, WINDOW_START(S)",
    # the greatest of the same rows: one top-k
    "SELECT a.k, a.v FROM S {w} AS a, (SELECT MAX(v) AS m FROM S {w}) AS b WHERE a.v = b.m",
    "WITH c AS (SELECT v, COUNT(*) AS n, WINDOW_START(S) AS s FROM S [Hopping 7 Slide 3] GROUP BY v, WINDOW_START(S))"
    " SELECT v, n, s FROM c WHERE n = (SELECT MAX(n) FROM c)",
    "SELECT a.k, a.v FROM S {w} AS a WHERE v = (SELECT MIN(v) FROM S {w} AS b WHERE b.k = a.k) AND v < 3",
)
"""``w`` and ``x``: windows over time; ``p``: what to partition by."""

LONG_KEYS: dict[str, list[Any]] = {
    **KEYS,
    **{kind: VALUES[kind] for kind in ("bigint", "timestamp_ntz")},
    "decimal(38,0)": ["1", "-1", "99999999999999999999999999999999999999", "18446744073709551616", None],
    "array<struct<s:string,b:binary>>": [[["a", "AQ=="]], [[None, ""]], [None], [], None, [["", None]]],
    "struct<d:date,a:array<decimal(8,2)>>": [["2024-02-29", ["1.00"]], [None, [None]], [None, None], None],
    "map<string,array<double>>": [[["a", [0.0]]], [["a", [-0.0]]], [["a", ["NaN", None]]], [["é", None]], [], None],
}
LONG_QUERIES = (
    *QUERIES,
    # sides of joins that only a log remembers, some of which take back what they held
    "SELECT a.k, b.n FROM (SELECT DISTINCT k FROM S {w}) AS a JOIN (SELECT v, COUNT(*) AS n FROM T {x} GROUP BY v) AS b"
    " ON b.n < 3 JOIN (SELECT MAX(v) AS m FROM S [Rows 3]) AS c ON c.m = b.v",
    "SELECT a.v, b.v AS u FROM (SELECT v FROM S {w} EXCEPT ALL SELECT v FROM T {x}) AS a"
    " JOIN (SELECT v FROM T [Rows 3] INTERSECT ALL SELECT v FROM S {w}) AS b ON a.v <=> b.v",
    "SELECT a.k, b.v FROM S [Partition By {p} Rows 2] AS a JOIN T [Session 4 Partition By {p}] AS b ON a.v = b.v",
    "SELECT a.n, b.v FROM (SELECT k, COUNT(*) AS n FROM S {w} GROUP BY k) AS a FULL JOIN"
    " (SELECT DISTINCT v FROM T {x}) AS b ON a.n = b.v",
    "SELECT a.k, a.v FROM (SELECT DISTINCT k, v FROM S {w}) AS a LEFT ANTI JOIN (SELECT DISTINCT v FROM T {x}) AS b"
    " ON a.v < b.v",
    # without a key
    "SELECT SUM(v) AS s, MIN(v) AS m, COUNT(DISTINCT v) AS d FROM S {w}",
    "SELECT k, v FROM S {w} WHERE v > (SELECT AVG(v) FROM T {x})",
    "SELECT k, v FROM (RSTREAM(SELECT DISTINCT k, v FROM S {w} EVERY 3)) [Range 4] AS q",
    "RSTREAM(SELECT k, COUNT(*) AS n FROM S {w} GROUP BY k EVERY 5 ANCHOR 2)",
    # one stream of ends, several sweeps one upon the other
    "SELECT k, v FROM (DSTREAM(SELECT k, v FROM S {w} EXCEPT SELECT k, v FROM T {x})) [Rows 4] AS q",
    "SELECT n, MAX(m) AS m FROM (SELECT k, COUNT(*) AS n, MIN(v) AS m FROM (SELECT DISTINCT k, v FROM S {w}) AS p"
    " GROUP BY k HAVING COUNT(*) > 1) AS q GROUP BY n",
    "SELECT k, COUNT(*) OVER (PARTITION BY v) AS c FROM S {w}",
    "SELECT v, k FROM S {w} UNION SELECT v, k FROM T [Partition By v Rows 1 Range 6]",
)
"""As ``QUERIES``, for cases of many slices more: what is held for long, taken back, and held by one worker alone."""

WINDOWS = ("[Range 3]", "[Range 8 Exclusive]", "[Range 12 Slide 4]", "[Tumbling 5]", "[Fixed 6]", "[Now]", "")


def case(rng: random.Random, query: str, rows: int = 40, most: int = 25) -> dict[str, Any]:
    """A case of 12 to ``most`` slices, in some of which nothing comes, for one of ``QUERIES``."""
    kind = rng.choice(list(KEYS))
    if "EXCEPT" in query or "INTERSECT" in query:  # Spark has no set operations on maps
        kind = rng.choice([k for k in KEYS if "map" not in k])
    columns = {"k": kind, "v": "int"}
    pool = rng.sample(KEYS[kind], min(len(KEYS[kind]), rng.choice([3, 5, 9])))

    def given(count: int) -> list[list[Any]]:
        return [[_burst(rng), [rng.choice(pool), rng.choice([1, 2, 3, None])]] for _ in range(count)]

    partition = rng.choice(["k", "v", "k, v"]) if "map" not in kind and "<" not in kind else "v"
    text = query.format(w=rng.choice(WINDOWS), x=rng.choice(WINDOWS), p=partition)
    streams = {name: {"columns": columns, "rows": given(rows)} for name in ("S", "T") if f" {name} " in f"{text} "}
    inner = sorted(rng.sample(range(END), rng.randint(11, most - 1)))
    return {
        "streams": streams,
        "query": text,
        "strategy": rng.choice(["upa", "direct", "negative"]),
        "heartbeats": [*inner, END + 12],
    }


def long_case(rng: random.Random) -> dict[str, Any]:
    """A case of 20 to 60 slices, now and then without anything between two: keys come, expire and come back.

    Settings of SweepAreas are at either end.
    """
    query = rng.choice(LONG_QUERIES)
    unmapped = any(word in query for word in ("EXCEPT", "INTERSECT", "UNION"))  # Spark has no set operations on maps
    kind = rng.choice([k for k in LONG_KEYS if not (unmapped and "map" in k)])
    columns = {"k": kind, "v": "int"}
    pool = rng.sample(LONG_KEYS[kind], min(len(LONG_KEYS[kind]), rng.choice([2, 4, 9])))
    end = rng.choice([40, 64, 90])
    bursts = [rng.randint(0, end) for _ in range(rng.choice([2, 4, 30]))]

    def given() -> list[list[Any]]:
        ticks = (min(rng.choice(bursts) + rng.randint(0, 3), end) for _ in range(rng.choice([8, 30, 60])))
        return [[tick, [rng.choice(pool), rng.choice([1, 2, 3, None])]] for tick in ticks]

    partition = "v" if "<" in kind else rng.choice(["k", "v", "k, v"])
    text = query.format(w=rng.choice(WINDOWS), x=rng.choice(WINDOWS), p=partition)
    inner = sorted(rng.sample(range(end), rng.randint(19, min(59, end - 1))))
    return {
        "streams": {name: {"columns": columns, "rows": given()} for name in "ST" if f" {name} " in f"{text} "},
        "query": text,
        "strategy": rng.choice(STRATEGIES),
        "settings": {
            "state.expiry_partitions": rng.choice(["1", "10", "9999"]),
            "state.lazy_percent": rng.choice(["1", "5", "100"]),
        },
        "heartbeats": [*inner, inner[-1], end + 14],
    }


def random_case(rng: random.Random, rows: int = 30) -> dict[str, Any]:
    """A case of ``generate`` of 12 to 25 slices."""
    generator = Generator(rng, rows)
    generator.end = generator.start + 26
    made = generator.case()
    ends = sorted(rng.sample(range(26), rng.randint(12, 22)))
    made["heartbeats"] = [generator.instant(generator.start + end) for end in [*ends, 34]]
    return made


def _burst(rng: random.Random) -> int:
    # nothing comes for a while, and then much
    return rng.choice([rng.randint(0, END), rng.randint(0, 8), rng.randint(25, END)])


class Workers:
    """In place of ``slice.SMALL_SLICE`` and ``slice.ROWS_PER_PARTITION``: 1, 2, 3, .. workers, slice by slice."""

    def __init__(self, *counts: int) -> None:
        self.counts = itertools.cycle(counts)
        self.now = 1

    def __ge__(self, rows: object) -> bool:
        self.now = next(self.counts)
        return self.now == 1

    def __rfloordiv__(self, rows: int) -> int:
        return -self.now


@contextmanager
def shared_by(counts: Sequence[int]) -> Iterator[None]:
    """Has slices run by so many workers in turn, and SweepAreas so small that they are rewritten as large ones are.
    Workers share each key of which one has more rows than the others.
    """
    workers = Workers(*counts)
    with (
        mock.patch.object(slices, "SMALL_SLICE", workers),
        mock.patch.object(slices, "ROWS_PER_PARTITION", workers),
        mock.patch.object(sweep_area, "_GROUP", 8),
        mock.patch.object(area_files, "_SLACK", 8),  # else no case is large enough for the merge of all files
        mock.patch.multiple(hot_keys, UNEVEN=1.0, LEAST=-(10**9), HOT=0.0, KEPT=10**9),
    ):
        yield
