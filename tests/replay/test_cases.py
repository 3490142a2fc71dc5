"""The replay cases of ``cases/*.jsonl``: worked by hand, one behaviour a file. Engine and oracle must both agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.slices import slice as slices
from sweeparea.spark_jobs.spark import frames
from sweeparea.tables.log import scan
from tests.replay.compare import MEMBERS, broken_law, difference
from tests.replay.oracle import Oracle, expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = sorted((Path(__file__).parent / "cases").glob("*.jsonl"))


def cases(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


@pytest.mark.parametrize("file", [f for f in FILES if not f.stem.startswith("error_")], ids=lambda f: f.stem)
def test_the_oracle_agrees(file: Path):
    """The oracle is tested too: a wrong one would find no defects."""
    for case in cases(file):
        wrong = difference(case["expected"], expected(case, 10**6 if "time" in case else 1))
        assert not wrong, f"{case['name']}\n{wrong}"


SPREAD = (
    "edge_maps",
    "outer_joins",
    "semi_and_anti_joins",
    "difference_and_intersection",
    "window_rows",
    "combining",
    "values_of_all_types",
    "streams_nest",
)
"""Cases that several workers do in every run of the tests; the others in the long one."""


@pytest.mark.spark
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_the_engine_agrees(spark: SparkSession, file: Path):
    _agrees(spark, file)


@pytest.mark.spark
@pytest.mark.parametrize(
    "file",
    [f if f.stem in SPREAD else pytest.param(f, marks=pytest.mark.slow) for f in FILES],
    ids=lambda f: f.stem,
)
def test_the_engine_agrees_in_several_partitions(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, file: Path):
    monkeypatch.setattr(slices, "SMALL_SLICE", -1)
    _agrees(spark, file)


JOINED = (
    "edge_types_as_keys",
    "join_side_waits",
    "outer_joins",
    "relation_is_retroactive",
    "self_join_multiplies",
    "semi_and_anti_joins",
)


@pytest.mark.spark
@pytest.mark.parametrize("file", [f for f in FILES if f.stem in JOINED], ids=lambda f: f.stem)
def test_the_engine_agrees_where_a_join_reads_only_what_can_match(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, file: Path
):
    monkeypatch.setattr(scan, "SMALL_BYTES", -1)
    monkeypatch.setattr(frames, "SELECTED_ROWS", 0)
    _agrees(spark, file)


def _agrees(spark: SparkSession, file: Path) -> None:
    wanted = cases(file)
    results = list(replay(file.read_text(encoding="utf-8").splitlines(), spark))
    assert len(results) == len(wanted)
    for case, result in zip(wanted, results, strict=True):
        assert result["name"] == case["name"]
        wrong = difference(case["expected"], result, MEMBERS)
        assert not wrong, f"{case['name']}\n{wrong}"
        aside = [row[:3] for row in result.get("quarantine", [])]
        assert aside == case["expected"].get("quarantine", []), case["name"]
        assert all(row[3] for row in result.get("quarantine", [])), f"{case['name']}: a reason is missing"
        if "error" not in result:
            assert not (law := broken_law(result, Oracle(case, 10**6).tick)), f"{case['name']}: {law}"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"query": None}, 'The case needs a member "query", but it has streams, heartbeats.'),
        ({"heartbeats": None}, 'The case needs a member "heartbeats", but it has streams, query.'),
        ({"streams": {"S": {"rows": []}}}, 'Stream S needs a member "columns", but it has rows.'),
        ({"streams": {"S": {}}}, 'Stream S needs a member "columns", but it has none at all.'),
        ({"streams": {"S": 5}}, 'Stream S needs a member "columns", but it is 5.'),
        ({"streams": ["S"]}, "The member streams is an object, not ['S']."),
        ({"queries": [{"name": "x"}]}, 'Number 1 of queries needs a member "query", but it has name.'),
        ({"streams": {"S": {"columns": {"k": "int"}, "rows": 5}}}, "What stream S holds is a list, not 5."),
        ({"streams": {"S": {"columns": {"k": "int"}, "rows": [[1]]}}}, "S: a row is [tick, [values]], not [1]."),
        ({"query": "SELECT 7 % k AS m FROM S"}, "Remainder by zero. Use `try_mod` to tolerate divisor being 0"),
        ({"query": "SELECT 7 % k AS m FROM S"}, " It is in: 7 % `k`."),
    ],
)
def test_a_case_with_a_fault_is_told_what_it_lacks(spark: SparkSession, changes: dict[str, Any], told: str):
    case = {"streams": {"S": {"columns": {"k": "int"}, "rows": [[1, [0]]]}}, "query": "SELECT k FROM S"}
    case = {k: v for k, v in {**case, "heartbeats": [1], **changes}.items() if v is not None}
    (result,) = replay([json.dumps(case)], spark)
    assert result["error"]["type"] == "DataError"
    assert told in result["error"]["message"]


@pytest.mark.spark
def test_what_is_no_case_has_no_name_and_stops_nobody(spark: SparkSession):
    good = (
        '{"name": "good", "streams": {"S": {"columns": {"k": "int"}}}, "query": "SELECT k FROM S", "heartbeats": [1]}'
    )
    results = list(replay(['{"name": "cut', "", "[1]", '"text"', good], spark))
    assert [(r["name"], r.get("error", {}).get("type")) for r in results] == [
        (None, "DataError"),
        (None, "DataError"),
        (None, "DataError"),
        ("good", None),
    ]
    assert results[-1]["relation"] == []


@pytest.mark.spark
def test_fields_have_any_name(spark: SparkSession):
    """Names of nested fields that a type's text must quote: in aggregates, state, set operations, outer joins."""
    held = {
        "columns": {"r": "struct<`a b`:int,`c:d`:int,`e,f``g.x`:int>"},
        "rows": [[1, [[1, 2, 3]]], [2, [[1, 2, 3]]]],
    }
    case = {"name": "odd names", "streams": {"S": held, "T": {**held, "rows": held["rows"][1:]}}, "heartbeats": [1, 9]}
    wanted = {
        "SELECT r, COUNT(*) AS n, MAX(r) AS m FROM S [Range 1] GROUP BY r": [
            [1, 2, [[1, 2, 3], 1, [1, 2, 3]]],
            [2, 3, [[1, 2, 3], 2, [1, 2, 3]]],
            [3, 4, [[1, 2, 3], 1, [1, 2, 3]]],
        ],
        "SELECT S.r, T.r AS q FROM S [Now] FULL JOIN T [Now] ON S.r = T.r": [
            [1, 2, [[1, 2, 3], None]],
            [2, 3, [[1, 2, 3], [1, 2, 3]]],
        ],
        "SELECT r FROM S [Rows 1] EXCEPT ALL SELECT r FROM T [Now]": [[1, 2, [[1, 2, 3]]], [3, None, [[1, 2, 3]]]],
    }
    results = replay([json.dumps({**case, "query": query}) for query in wanted], spark)
    assert [r.get("relation", r) for r in results] == list(wanted.values())
