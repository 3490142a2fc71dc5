"""Traffic on expressways: cars that enter, report their position every 30 seconds, stand in accidents, leave.

A function of its numbers alone. As in the Linear Road benchmark (Arasu et al., VLDB 2004) an expressway has two
directions of 100 segments of a mile, lanes 0 (entering), 1 to 3 and 4 (leaving), positions in feet, speeds in miles an
hour; a car reports every 30 seconds from a second of its own on. The benchmark's own traffic comes from a simulator
(MITSIM), whose cars see each other; ours do not. What the queries have to find is put in: on each expressway most cars
crawl through the same segments (the *jam*), where tolls become due; pairs of cars stand at one place of it for six
to twelve reports (accidents), and some cars stand alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

BEGIN = datetime(2004, 8, 31, 6, tzinfo=UTC)
REPORT = 30
"""Seconds between two reports of a car."""
MILE, SEGMENTS = 5_280, 100
FEET = 44
"""What a mile an hour is in 30 seconds."""
SHORTEST, LONGEST = 8, 32
"""Reports of a trip."""
JAM = 0.75
"""Of the cars that are in a jam; the others pass anywhere."""
JAM_CARS = 300
"""Cars on an expressway for which its jam is a segment longer."""
APPROACH = 3
"""Reports before a car that will stand stands, and after it."""
ACCIDENT_EVERY, LONE_STOP_EVERY = 240, 120
"""Seconds between accidents, and between cars that stand alone, on an expressway."""
ASKS = 0.01
"""Of the reports that are followed by a request for the car's balance, and for its expenditure."""
CREDITED = 0.05
"""Of the cars that are given a credit."""
FIRST_LANE, LAST_LANE = 0, 4
POSITION, BALANCE, EXPENDITURE = 0, 2, 3
"""Types of the benchmark's input tuples."""

COLUMNS = ("scd", "vid", "speed", "xway", "lane", "dir", "seg", "pos")


@dataclass(frozen=True)
class Traffic:
    """``reports`` by second, then car, as columns ``COLUMNS`` (int64; ``scd`` are seconds since ``BEGIN``);
    ``requests`` as columns scd, vid, type, qid; ``credits`` as scd, vid, amount. ``seconds`` is when it ends.
    """

    expressways: int
    seconds: int
    reports: dict[str, np.ndarray]
    requests: dict[str, np.ndarray]
    credits: dict[str, np.ndarray]

    @property
    def rate(self) -> float:
        """Reports a second."""
        return len(self.reports["scd"]) / self.seconds


def traffic(expressways: int, cars: int, minutes: int, seed: int = 1) -> Traffic:
    """``cars`` are about how many are on each expressway at a time."""
    seconds, ways, first = 60 * minutes, [], 0
    for xway in range(expressways):
        drawn = _expressway(xway, cars, seconds, first, np.random.default_rng([seed, xway]))
        first = int(drawn["vid"].max(initial=first)) + 1
        ways.append(drawn)
    reports = {name: np.concatenate([way[name] for way in ways]) for name in COLUMNS}
    order = np.lexsort((reports["vid"], reports["scd"]))
    reports = {name: column[order] for name, column in reports.items()}
    chance = np.random.default_rng([seed, expressways, 1])
    return Traffic(expressways, seconds, reports, _requests(reports, seconds, chance), _credits(reports, chance))


def _expressway(xway: int, cars: int, seconds: int, first: int, chance: np.random.Generator) -> dict[str, np.ndarray]:
    longest = LONGEST * REPORT
    count = round(cars * (seconds + longest) / ((SHORTEST + LONGEST) / 2 * REPORT))
    accidents, lone = max(seconds // ACCIDENT_EVERY, 1), max(seconds // LONE_STOP_EVERY, 1)
    standing = 2 * accidents + lone
    n, way = count + standing, xway % 2
    jammed = chance.random(n) < JAM
    heading = np.where(jammed, way, chance.integers(0, 2, n))
    begin = chance.integers(-longest, seconds, n)
    steps = chance.integers(SHORTEST, LONGEST + 1, n)
    # miles behind the begin of the road, in the direction of travel
    length = min(max(cars // JAM_CARS, 1), SEGMENTS // 2)
    ahead = (20 + 7 * xway) % (SEGMENTS - 10 - length)
    miles = np.where(jammed, ahead + length * chance.random(n), chance.random(n) * (SEGMENTS - 10))
    speed = np.where(jammed, chance.integers(6, 27, n), chance.integers(45, 71, n))
    stops, lasts = np.full(n, LONGEST + 1), np.zeros(n, np.int64)
    # those that stand are the last ones: two for each accident, then the lone ones
    place = slice(count, n)
    at = np.concatenate([np.repeat(chance.integers(0, max(seconds - 300, 1), accidents), 2),
                         chance.integers(0, seconds, lone)])  # fmt: skip
    at[1 : 2 * accidents : 2] += chance.integers(0, REPORT, accidents)
    lasting = np.concatenate([np.repeat(chance.integers(6, 13, accidents), 2), chance.integers(4, 9, lone)])
    where = 1 + ahead + length * np.concatenate([np.repeat(chance.random(accidents), 2), chance.random(lone)])
    heading[place], speed[place], begin[place] = way, 20, at - APPROACH * REPORT
    stops[place], lasts[place], steps[place] = APPROACH, lasting, lasting + 2 * APPROACH
    miles[place] = where - APPROACH * 20 * FEET / MILE
    wobble = chance.integers(-3, 4, (n, LONGEST + 1))
    wobble[place] = 0
    step = np.arange(LONGEST + 1)
    reported = np.clip(speed[:, None] + wobble, 1, 100)
    reported[(step > stops[:, None]) & (step <= (stops + lasts - 1)[:, None])] = 0
    forward = (miles * MILE).astype(np.int64)[:, None] + np.cumsum(reported, axis=1) * FEET - reported[:, :1] * FEET
    scd = begin[:, None] + REPORT * step
    on_road = (step < steps[:, None]) & (forward < SEGMENTS * MILE)
    last = on_road & ~np.roll(on_road, -1, axis=1)
    lane = np.where(step == 0, FIRST_LANE, np.where(last, LAST_LANE, 1 + np.arange(n)[:, None] % 3))
    lane[place] = np.where(last[place], LAST_LANE, np.where(step == 0, FIRST_LANE, 2))
    seen = on_road & (scd >= 0) & (scd < seconds)
    pos = np.where(heading[:, None] == 0, forward, SEGMENTS * MILE - 1 - forward)
    columns = {
        "scd": scd,
        "vid": np.broadcast_to(first + np.arange(n)[:, None], seen.shape),
        "speed": reported,
        "xway": np.full(seen.shape, xway),
        "lane": lane,
        "dir": np.broadcast_to(heading[:, None], seen.shape),
        "seg": pos // MILE,
        "pos": pos,
    }
    return {name: column[seen].astype(np.int64) for name, column in columns.items()}


def _requests(reports: dict[str, np.ndarray], seconds: int, chance: np.random.Generator) -> dict[str, np.ndarray]:
    asked = np.flatnonzero(chance.random(len(reports["scd"])) < 2 * ASKS)
    scd = reports["scd"][asked] + chance.integers(1, REPORT, len(asked))
    kept = scd < seconds
    asked, scd = asked[kept], scd[kept]
    kind = np.where(chance.integers(0, 2, len(asked)) == 0, BALANCE, EXPENDITURE)
    order = np.lexsort((reports["vid"][asked], scd))
    asked, scd, kind = asked[order], scd[order], kind[order]
    return {"scd": scd, "vid": reports["vid"][asked], "type": kind, "qid": np.arange(len(asked))}


def _credits(reports: dict[str, np.ndarray], chance: np.random.Generator) -> dict[str, np.ndarray]:
    vid, first = np.unique(reports["vid"], return_index=True)
    given = chance.random(len(vid)) < CREDITED
    scd, vid = reports["scd"][first[given]], vid[given]
    order = np.argsort(scd, kind="stable")
    return {"scd": scd[order], "vid": vid[order], "amount": chance.integers(1, 2_000, len(vid)) / 4}


def instants(scd: np.ndarray) -> pa.Array:
    """Seconds of the traffic as instants."""
    return pa.array((int(BEGIN.timestamp()) + scd) * 1_000_000).cast(pa.timestamp("us", "UTC"))
