"""What Linear Road's answers are, computed anew from all reports: numpy and loops, by the benchmark's definitions.

It shares nothing with the engine but the traffic, and does not go through the queries' steps: a stop is found in a
car's track, volumes and speeds are counted per minute or in the window of an instant. Streams are bags of tuples of the
second and a row, relations bags of rows at a second; columns are in the order of the queries'. AVG is the exact sum,
rounded once, by the number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from math import fsum
from typing import Any

import numpy as np

from benchmarks.linear_road.generator import BALANCE, EXPENDITURE, LAST_LANE, REPORT, SEGMENTS, Traffic

Row = tuple[Any, ...]
Bag = Counter[Row]
STOPPED = 4
"""Reports from one place, of a car that stands."""
CROWD, SLOW = 50, 40
"""A toll is due beyond so many cars, below such a speed."""
UPSTREAM = 4
"""Segments before an accident that it slows."""
HISTORY = 300
"""Seconds whose speed counts."""
Segment = tuple[int, int, int]
"""Expressway, direction, mile."""


@dataclass
class Answers:
    """``streams``: all elements by query, with their seconds. ``relations``: rows by query and second asked."""

    streams: dict[str, Bag] = field(default_factory=lambda: defaultdict(Counter))
    relations: dict[tuple[str, int], Bag] = field(default_factory=lambda: defaultdict(Counter))


@dataclass(frozen=True)
class Report:
    """A position report."""

    scd: int
    vid: int
    speed: int
    segment: Segment
    lane: int
    pos: int


def toll(volume: int) -> int:
    """The benchmark's formula."""
    return 2 * (volume - CROWD) ** 2


def slowed(segment: Segment) -> Iterator[Segment]:
    """The segments that an accident in ``segment`` slows: it and those before it in the direction of travel."""
    xway, way, seg = segment
    for back in range(UPSTREAM + 1):
        mile = seg - back if way == 0 else seg + back
        if 0 <= mile < SEGMENTS:
            yield xway, way, mile


def code(segment: Segment) -> int:
    """The script's number of a segment."""
    xway, way, seg = segment
    return 1000 * xway + 100 * way + seg


def tracks(traffic: Traffic) -> dict[int, list[Report]]:
    """The reports of each car, in the order of time."""
    columns = (traffic.reports[name].tolist() for name in ("scd", "vid", "speed", "xway", "dir", "seg", "lane", "pos"))
    found: dict[int, list[Report]] = defaultdict(list)
    for scd, vid, speed, xway, way, seg, lane, pos in zip(*columns, strict=True):
        found[vid].append(Report(scd, vid, speed, (xway, way, seg), lane, pos))
    return found


def stands(track: list[Report]) -> Iterator[tuple[int, int, Report]]:
    """From which second to before which one a car stands, with its first report there: from its fourth report of one
    place, until the first one of another place would be due.
    """
    for _, group in groupby(track, key=lambda report: (report.segment, report.pos)):
        there = list(group)
        if len(there) >= STOPPED:
            yield there[STOPPED - 1].scd, there[-1].scd + REPORT, there[0]


def entries(track: list[Report], leaving: bool) -> Iterator[Report]:
    """The reports in which a car says another segment than in the one before, or its first; with ``leaving`` the one
    from the last lane is one of them.
    """
    before = None
    for report in track:
        if report.lane == LAST_LANE and not leaving:
            return
        if report.segment != before:
            yield report
        before = report.segment


def script(traffic: Traffic, seconds: list[int]) -> Answers:
    """The answers of STREAM's script; the benchmark's rules, minute by minute."""
    found, cars = Answers(), tracks(traffic)
    standing: dict[tuple[Segment, int], list[tuple[int, int]]] = defaultdict(list)
    for track in cars.values():
        for begin, end, report in stands(track):
            standing[report.segment, report.pos].append((begin, end))
    wrecked: dict[int, set[Segment]] = defaultdict(set)
    for (segment, _), times in standing.items():
        # from when the second car stands until the last but one goes
        for instant in {begin for begin, _ in times} | {end for _, end in times}:
            after = min((t for pair in times for t in pair if t > instant), default=instant)
            if sum(begin <= instant < end for begin, end in times) > 1:
                for minute in range(instant // 60, (after - 1) // 60 + 1):
                    wrecked[minute].add(segment)
        for second in seconds:
            if sum(begin <= second < end for begin, end in times) > 1:
                found.relations["AccSeg", second][segment] += 1
    speeds: dict[tuple[int, Segment], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for vid, track in cars.items():
        for report in track:
            speeds[report.scd // 60, report.segment][vid].append(report.speed)
    mean = {key: _mean([sum(each) / len(each) for each in of.values()]) for key, of in speeds.items()}
    told: dict[tuple[int, Segment], tuple[float, int]] = {}
    for minute, segment in speeds:
        latest = [mean[m, segment] for m in range(minute - HISTORY // 60 + 1, minute + 1) if (m, segment) in mean]
        speed, volume = _mean(latest), len(speeds[minute, segment])
        hit = any(segment in slowed(accident) for accident in wrecked[minute])
        if speed < SLOW and volume > CROWD and not hit and 60 * (minute + 1) <= traffic.seconds:
            told[minute + 1, segment] = speed, toll(volume)
            found.streams["SegTollStr"][60 * (minute + 1), code(segment), toll(volume), speed] += 1
    paid: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for vid, track in cars.items():
        owed: dict[Segment, int] = {}
        for report in entries(track, leaving=False):
            minute = report.scd // 60
            if (minute, report.segment) in told:
                speed, due = told[minute, report.segment]
                owed[report.segment] = due
                found.streams["tollstr"][report.scd, vid, speed, due] += 1
            if any(report.segment in slowed(accident) for accident in wrecked[minute - 1]):
                found.streams["accnot"][report.scd, vid, code(report.segment)] += 1
        for before, report in pairwise(track):
            if before.segment != report.segment and before.segment in owed:
                paid[vid].append((report.scd, owed[before.segment]))
                found.streams["TollAssessStr"][report.scd, vid, owed[before.segment]] += 1
    for scd, vid, qid in _asked(traffic, BALANCE):
        if due := [amount for when, amount in paid[vid] if when <= scd]:
            found.streams["accbalout"][scd, qid, sum(due)] += 1
    for second in seconds:
        for vid, of in paid.items():
            if due := [amount for when, amount in of if when <= second]:
                found.relations["AccBal", second][vid, sum(due)] += 1
        for (minute, segment), of in speeds.items():
            # the last 61 seconds, by the minute that they belong to
            if minute in (second // 60, second // 60 - 1):
                inside = _inside(cars, of, minute, segment, second)
                if inside:
                    found.relations["VolSM", second][minute, code(segment), inside] += 1
        for key, (speed, due) in told.items():
            if key[0] == second // 60:
                found.relations["SegTollRel", second][code(key[1]), due, speed] += 1
    return found


def _inside(cars: dict[int, list[Report]], of: dict[int, list[int]], minute: int, segment: Segment, second: int) -> int:
    """How many of the cars were there in that minute and in the 61 seconds up to ``second``."""
    return sum(
        any(r.segment == segment and r.scd // 60 == minute and second - 61 < r.scd <= second for r in cars[vid])
        for vid in of
    )


def page(traffic: Traffic, seconds: list[int]) -> Answers:
    """The answers of the page's queries: at every second by what is in the windows then."""
    found, cars = Answers(), tracks(traffic)
    wanted, balance = set(seconds), defaultdict(list)
    came: dict[int, list[Report]] = defaultdict(list)
    for vid, track in cars.items():
        for report in entries(track, leaving=True):
            came[report.scd].append(report)
        found.streams["CarExitStr"][track[-1].scd + REPORT + 1, vid] += 1
    for scd, vid, amount in zip(*(traffic.credits[name].tolist() for name in ("scd", "vid", "amount")), strict=True):
        balance[vid].append((scd, amount))
    stood = _standing(cars)
    accidents: set[Row] = set()
    for second in range(traffic.seconds + REPORT + 2):
        # a car that left while it stood is not seen any more
        now = {(*segment, float(pos)) for begin, end, segment, pos in stood if begin <= second < end}
        new, accidents = now - accidents, now
        closed = {segment for accident in now for segment in slowed(accident[:3])}
        if second in wanted:
            found.relations["AccSeg", second].update(now)
        if not (came[second] or new or second in wanted):
            continue
        volume = _volume(traffic, second)
        for accident in new:
            for segment in slowed(accident[:3]):
                for vid in volume.get(segment, ()):
                    found.streams["AccNotifyStr"][second, vid, accident[3]] += 1
        speed = _speed(traffic, second)
        due = {
            segment: toll(len(volume[segment]))
            for segment, mean in speed.items()
            if mean < SLOW and len(volume.get(segment, ())) > CROWD and segment not in closed
        }
        for report in came[second]:
            if report.segment in due:
                found.streams["TollStr"][second, report.vid, due[report.segment]] += 1
                balance[report.vid].append((second, -1.0 * due[report.segment]))
        if second in wanted:
            found.relations["SegVol", second].update({(*segment, len(of)): 1 for segment, of in volume.items()})
            found.relations["SegAvgSpeed", second].update({(*segment, mean): 1 for segment, mean in speed.items()})
            found.relations["SegToll", second].update({(*segment, amount): 1 for segment, amount in due.items()})
    for second in seconds:
        for vid, of in balance.items():
            if known := [amount for when, amount in of if when <= second]:
                found.relations["AccBal", second][vid, fsum(known)] += 1
    for kind, query in ((BALANCE, "AccBalOutStr"), (EXPENDITURE, "ExpOutStr")):
        for scd, vid, qid in _asked(traffic, kind):
            if known := [amount for when, amount in balance[vid] if when <= scd]:
                # all of it is of one day
                total = fsum(known) if kind == BALANCE else -1 * fsum(known)
                found.streams[query][scd, qid, vid, total] += 1
    return found


def _standing(cars: dict[int, list[Report]]) -> list[tuple[int, int, Segment, int]]:
    """For each car that stands: from its fourth report on until its next one of another place, or until it is gone."""
    found = []
    for track in cars.values():
        for begin, end, report in stands(track):
            gone = track[-1].scd == end - REPORT
            found.append((begin, end + 1 if gone else end, report.segment, report.pos))
    return found


def _volume(traffic: Traffic, second: int) -> dict[Segment, list[int]]:
    """The cars of each segment: by their last report, if it is not older than 30 seconds."""
    part = _between(traffic, second - REPORT, second)
    last = dict(zip(part["vid"].tolist(), range(len(part["vid"])), strict=True))
    found: dict[Segment, list[int]] = defaultdict(list)
    where = list(zip(*(part[name].tolist() for name in ("xway", "dir", "seg")), strict=True))
    for vid, number in last.items():
        found[where[number]].append(vid)
    return found


def _speed(traffic: Traffic, second: int) -> dict[Segment, float]:
    """The mean speed of the reports of the last five minutes, by segment."""
    part = _between(traffic, second - HISTORY, second)
    number = (part["xway"] * 2 + part["dir"]) * SEGMENTS + part["seg"]
    count, total = np.bincount(number), np.bincount(number, weights=part["speed"])
    return {
        (at // SEGMENTS // 2, at // SEGMENTS % 2, at % SEGMENTS): int(total[at]) / int(count[at])
        for at in np.flatnonzero(count).tolist()
    }


def _between(traffic: Traffic, first: int, last: int) -> dict[str, np.ndarray]:
    """The reports from ``first`` to ``last``, both with them."""
    begin, end = np.searchsorted(traffic.reports["scd"], [first, last + 1])
    return {name: column[begin:end] for name, column in traffic.reports.items()}


def _asked(traffic: Traffic, kind: int) -> list[tuple[int, int, int]]:
    rows = zip(*(traffic.requests[name].tolist() for name in ("scd", "vid", "qid", "type")), strict=True)
    return [row[:3] for row in rows if row[3] == kind]


def _mean(values: list[float]) -> float:
    return fsum(values) / len(values)
