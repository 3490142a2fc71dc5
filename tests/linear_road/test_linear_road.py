"""Linear Road: the traffic, its recomputation against answers reckoned by hand, and the queries against both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.linear_road import __main__ as linear_road
from benchmarks.linear_road import generator, recompute, run, source
from benchmarks.linear_road.generator import MILE, REPORT, Traffic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CROWD = 52


@pytest.fixture(scope="module")
def small() -> Traffic:
    return generator.traffic(2, 300, 6)


def made(reports: list[tuple[int, ...]], seconds: int, requests: Sequence[tuple[int, ...]] = ()) -> Traffic:
    """Traffic of these reports (second, car, speed, direction, position, lane) and requests (second, car, type)."""
    columns = np.array(sorted(reports)).T
    scd, vid, speed, way, pos, lane = columns
    told = {"scd": scd, "vid": vid, "speed": speed, "xway": 0 * vid, "lane": lane, "dir": way, "seg": pos // MILE}
    asked = np.array(requests, np.int64).reshape(-1, 3).T
    questions = {"scd": asked[0], "vid": asked[1], "type": asked[2], "qid": np.arange(len(requests))}
    nothing = {"scd": np.array([], np.int64), "vid": np.array([], np.int64), "amount": np.array([])}
    return Traffic(1, seconds, {**told, "pos": pos}, questions, nothing)


def crowd(speed: int = 30, way: int = 0, standing: int = 0) -> Traffic:
    """52 cars that are in segment 10 for four minutes and then in the next one; so many of them stand in segment 12."""
    reports = []
    for car in range(CROWD):
        for number in range(10):
            mile = 10 if number < 8 else 11 if way == 0 else 9
            reports.append((car % 3 + REPORT * number, car, speed, way, mile * MILE + 60 * car + number, 2))
    for car in range(standing):
        reports += [(car + REPORT * number, 100 + car, 0, way, 12 * MILE + 5, 2) for number in range(10)]
    return made(reports, 300, [(250, 3, generator.BALANCE), (10, 4, generator.BALANCE)])


def test_traffic_is_that_of_its_seed(small: Traffic):
    again, other = generator.traffic(2, 300, 6), generator.traffic(2, 300, 6, seed=2)
    for name, column in small.reports.items():
        assert np.array_equal(column, again.reports[name])
    assert not np.array_equal(small.reports["pos"], other.reports["pos"])


def test_each_car_reports_every_thirty_seconds_on_its_way(small: Traffic):
    for track in recompute.tracks(small).values():
        times = np.array([report.scd for report in track])
        assert (np.diff(times) == REPORT).all()
        assert len({report.segment[:2] for report in track}) == 1
        moved = np.diff([report.pos for report in track]) * (1 if track[0].segment[1] == 0 else -1)
        assert moved.tolist() == [generator.FEET * report.speed for report in track[1:]]
        assert all(report.segment[2] == report.pos // MILE for report in track)


def test_there_are_tolls_and_accidents_on_each_expressway(small: Traffic):
    answers = recompute.script(small, list(range(0, small.seconds, 30)))
    ways = {segment // 1000 for _, segment, *_ in answers.streams["SegTollStr"]}
    assert ways == {0, 1}
    accidents = {row[0] for (name, _), bag in answers.relations.items() if name == "AccSeg" for row in bag}
    assert accidents == {0, 1}
    assert all(answers.streams[name] for name in run.PROGRAMS["script"].streams)
    answers = recompute.page(small, linear_road.checked(small))
    assert all(answers.streams[name] for name in run.PROGRAMS["page"].streams)


def test_tables_tell_the_same_reports(small: Traffic):
    tables = source.tables(small)
    common, cars = tables["common_input"], tables["CarLocStr"]
    positions = common.filter(pc.equal(common["type"], 0))  # pyright: ignore[reportAttributeAccessIssue]
    assert positions["pos"].to_pylist() == cars["x_pos"].to_pylist()
    assert common.num_rows == cars.num_rows + tables["AccBalQueryStr"].num_rows + tables["ExpQueryStr"].num_rows
    assert tables["AllSeg"].num_rows == 2 * 200
    assert tables["minute_segments"].num_rows == 7 * 400


def test_both_texts_are_of_the_language(small: Traffic, tmp_path: Path):
    source.write(tmp_path / "traffic", small)
    for name, count in (("script", 37), ("page", 16)):
        program = run.PROGRAMS[name]
        application = run.opened(program, tmp_path / "traffic", tmp_path / name)[0]
        queries = application.catalog.queries
        assert len(queries) == count
        assert {*program.streams, *program.relations} <= set(queries)
        relations = {query for query in queries if not application.plans.plan(query).stream}
        assert relations.isdisjoint(program.streams)
        assert relations >= set(program.relations)


def test_toll_of_a_crowded_slow_segment_by_hand():
    answers = recompute.script(crowd(), [60, 239])
    # 52 cars in minutes 0 to 3: a toll of 2 * 2^2 in minutes 1 to 4; the fifth minute's cars are in segment 11
    told = {(60 * minute, 10, 8, 30.0): 1 for minute in (1, 2, 3, 4)} | {(300, 11, 8, 30.0): 1}
    assert answers.streams["SegTollStr"] == Counter(told)
    # all entered in minute 0, when there was none, and the next segment's begins when they are gone
    assert answers.streams["tollstr"] == Counter()
    assert recompute.script(crowd(speed=40), []).streams["SegTollStr"] == Counter()
    assert answers.relations["VolSM", 60] == Counter({(0, 10, 52): 1, (1, 10, 18): 1})


def test_toll_is_charged_when_the_car_goes_on():
    late = [(90 + REPORT * number, 200, 20, 0, (10 + number // 2) * MILE, 2) for number in range(4)]
    reports = crowd().reports
    rows = zip(*(reports[name].tolist() for name in ("scd", "vid", "speed", "dir", "pos", "lane")), strict=True)
    traffic = made([*rows, *late], 300, [(149, 200, 2), (150, 200, 2), (200, 200, 2), (160, 1, 2)])
    answers = recompute.script(traffic, [149, 150])
    assert answers.streams["tollstr"] == Counter({(90, 200, 30.0, 8): 1})
    assert answers.streams["TollAssessStr"] == Counter({(150, 200, 8): 1})
    assert answers.streams["accbalout"] == Counter({(150, 1, 8): 1, (200, 2, 8): 1})
    assert answers.relations["AccBal", 150] == Counter({(200, 8): 1})
    assert ("AccBal", 149) not in answers.relations or not answers.relations["AccBal", 149]


@pytest.mark.parametrize("way", [0, 1])
def test_two_that_stand_are_an_accident_and_one_is_none(way: int):
    second = recompute.script(crowd(standing=2, way=way), [89, 90, 91, 300])
    # the fourth reports are at 90 and 91 seconds
    assert [bool(second.relations["AccSeg", s]) for s in (89, 90, 91, 300)] == [False, False, True, False]
    # of what goes east segment 10 lies before it, of what goes west behind it
    tolled = {at for at, *_ in second.streams["SegTollStr"]}
    assert tolled == ({60} if way == 0 else {60, 120, 180, 240, 300})
    alone = recompute.script(crowd(standing=1, way=way), [91])
    assert not alone.relations["AccSeg", 91]
    # for the page one that stands is enough
    assert recompute.page(crowd(standing=1, way=way), [91]).relations["AccSeg", 91] == {
        (0, way, 12, 12.0 * MILE + 5): 1
    }


def test_page_counts_what_is_in_the_windows():
    answers = recompute.page(crowd(), [2, 30, 302, 303])
    assert answers.relations["SegVol", 2] == Counter({(0, 0, 10, 52): 1})
    assert answers.relations["SegAvgSpeed", 2] == Counter({(0, 0, 10, 30.0): 1})
    assert answers.relations["SegToll", 2] == Counter({(0, 0, 10, 8): 1})
    # the first cars of the crowd come into a segment that is not full yet
    last = [car for car in range(CROWD) if car % 3 == 2]
    assert answers.streams["TollStr"] == Counter({(at, car, 8): 1 for at in (2, 242) for car in last})
    assert answers.streams["CarExitStr"] == Counter({(270 + car % 3 + 31, car): 1 for car in range(CROWD)})


def test_a_difference_is_told():
    assert run.difference(Counter({(1, 2): 1}), Counter({(1, 2): 1})) == ""
    told = run.difference(Counter({(1, 2): 2, (3, 4): 1}), Counter({(1, 2): 1, (5, 6): 1}))
    assert told == "of 3 rows 2 missing, such as (1, 2) and 1 too many, such as (5, 6)"


def test_a_relation_is_read_at_a_second():
    instants = [generator.instants(np.array([at])).to_pylist()[0] for at in (10, 20, 30)]
    kind = pa.timestamp("us", "UTC")
    begins, ends = pa.array([instants[0], instants[1]], kind), pa.array([instants[1], None], kind)
    table = pa.table({"a": [1, 2], "valid_from": begins, "valid_to": ends})
    found = {second: run.snapshot(table, second) for second in (9, 10, 19, 20, 40)}
    assert {second: sorted(bag) for second, bag in found.items()} == {
        9: [],
        10: [(1,)],
        19: [(1,)],
        20: [(2,)],
        40: [(2,)],
    }


class Told:
    """What ran, as ``run.wrong`` reads it: tables that hold given answers."""

    def __init__(self, answers: recompute.Answers, seconds: Sequence[int]) -> None:
        self.answers, self.seconds = answers, seconds

    def table(self, name: str) -> pa.Table:
        if name in self.answers.streams:
            rows, bounds = [*self.answers.streams[name].elements()], ("ts",)
        else:
            each = [(second, self.answers.relations[name, second].elements()) for second in self.seconds]
            rows, bounds = [(at, at + 1, *row) for at, bag in each for row in bag], ("valid_from", "valid_to")
        columns = list(zip(*rows, strict=True))
        times = {bound: generator.instants(np.array(columns[i])) for i, bound in enumerate(bounds)}
        return pa.table({**times, **{f"c{i}": list(values) for i, values in enumerate(columns[len(bounds) :])}})


@pytest.mark.parametrize("name", [*run.PROGRAMS])
def test_one_wrong_row_is_found_in_every_answer(name: str):
    program, seconds = run.PROGRAMS[name], [140, 300]
    traffic = generator.traffic(1, 300, 6)
    right, told = program.answers(traffic, seconds), program.answers(traffic, seconds)
    ran = cast("run.Ran", Told(told, seconds))
    assert run.wrong(ran, program, right, seconds) == []
    for query in (*program.streams, *program.relations):
        bags = [told.streams[query]] if query in program.streams else [told.relations[query, at] for at in seconds]
        bag = next(bag for bag in bags if bag)
        row = next(iter(bag))
        other = (*row[:-1], row[-1] + 1)
        bag.subtract([row])
        bag.update([other])
        (fault,) = run.wrong(ran, program, right, seconds)
        assert fault.startswith(query)
        assert "1 missing" in fault
        assert "1 too many" in fault
        bag.subtract([other])
        bag.update([row])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", [*run.PROGRAMS])
def test_answers_are_the_recomputation_s_however_sliced(spark: SparkSession, name: str):
    lines: list[str] = []
    linear_road.measured(spark, run.PROGRAMS[name], generator.traffic(1, 400, 6), 120, lines.append)
    assert "answers equal" in lines[0]
