"""A case that is not as docs/running.md shows: whatever part of it is wrong, the error is a DataError and names it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.cases.case import Case
from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.spark import json_values
from sweeparea.tables.log.schema import arrow_type

CASE = {
    "name": "x",
    "streams": {
        "S": {
            "columns": {"k": "int"},
            "rows": [[1, [2]]],
            "arrivals": [[1, 2, [3]]],
            "sequence_by": "k",
            "late": "repair",
        }
    },
    "relations": {"R": {"columns": {"k": "int"}, "retroactive": True, "changes": [[1, "+", [1]], [2, "-", [1]]]}},
    "query": "SELECT k FROM S",
    "queries": [{"name": "q", "query": "SELECT k FROM S"}],
    "start_at": 0,
    "heartbeats": [5],
    "settings": {},
    "materialize": ["relation"],
    "rstream": {"every": 1, "anchor": 0},
    "time": "BIGINT",
}
WRONG = [
    *(None, 5, -1, 1.5, True, "abc", "", [], {}, [1], [None], [[1]], [["x", 1]], [[1, 2, 3]], [[1, "+"]]),
    *({"a": 1}, {"S": 5}, {"S": [1.5]}, {"S": ["x"]}, [1.5], [True], [[None, [None]]], [5, None]),
]

TAKEN = {
    ("name",),
    ("time",),
    ("settings",),
    ("materialize",),
    ("materialize", 0),
    ("streams", "S", "arrivals", 0, 2, 0),
}
"""What is told or looked at later; the value of a row that arrives when all heartbeats have passed is not."""


def _places(part: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if place:
        yield place
    for key in part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ():
        yield from _places(part[key], (*place, key))


def _with(place: tuple[Any, ...], wrong: Any) -> dict[str, Any]:
    case: Any = copy.deepcopy(CASE)
    part = case
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = wrong
    return case


def _read_all(case: dict[str, Any], folder: Path) -> dict[str, list[Any]]:
    """All that a case does with its JSON before the engine sees any of it; returns the admitted rows by source."""
    made = Case(case, folder, None)  # type: ignore[arg-type]
    steps, admitted = made.steps(), dict[str, list[Any]]()
    for source in made.sources.values():
        source.check_arrivals(len(steps))
    for k in range(len(steps) + 1):
        for source in made.sources.values():
            source.deliver(k)
        for name, heartbeat in steps[k].items() if k < len(steps) else ():
            rows = None if heartbeat is None else made.sources[name].advance(heartbeat)
            if rows is not None and made.sources[name].kind == "relation":
                made.sources[name].check_net(rows)
            admitted[name] = admitted.get(name, []) + ([] if rows is None else rows.to_pylist())
    return admitted


def test_a_right_case_is_read_whole(tmp_path: Path) -> None:
    admitted = _read_all(CASE, tmp_path)
    assert {name: [row["k"] for row in rows] for name, rows in admitted.items()} == {"S": [2], "R": [1, 1]}


@pytest.mark.parametrize("place", list(_places(CASE)), ids=lambda place: ".".join(map(str, place)))
def test_a_wrong_part_is_an_error_in_words(place: tuple[Any, ...], tmp_path: Path) -> None:
    refused: list[str] = []
    for wrong in WRONG:
        try:
            _read_all(_with(place, wrong), tmp_path)
        except SweepAreaError as error:  # anything else is a fault of replay
            refused.append(str(error))
    assert bool(refused) == (place not in TAKEN), refused
    assert all(" " in text for text in refused)


@pytest.mark.parametrize(
    ("place", "wrong", "says"),
    [
        (("streams", "S", "arrivals"), [[1, 2]], "S: one of arrivals is .heartbeat, tick, .values"),
        (("streams", "S", "arrivals"), [["x", 2, [3]]], "S: the heartbeat after which a row arrives is a whole number"),
        (("streams", "S", "columns", "k"), 5, "S.k: a column's type is a string, not 5"),
        (("relations", "R", "retroactive"), "no", "R: retroactive is true or false"),
        (("heartbeats",), 5, "heartbeats is a list, not 5"),
        (("rstream",), [1], "rstream is an object"),
        (("query",), 5, "The query is a string, not 5"),
    ],
)
def test_errors_name_the_place(place: tuple[Any, ...], wrong: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(SweepAreaError, match=says):
        _read_all(_with(place, wrong), tmp_path)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("decimal(5,2)", "123.456"),
        ("decimal(38,0)", 1.5),
        ("double", True),
        ("string", "\ud800"),
        ("array<int>", ""),
        ("array<int>", {"a": 1}),
        ("map<string,int>", [["x", 1], ["x", 2]]),
        ("map<string,int>", [[None, 1]]),
        ("struct<a:int>", [1, 2]),
        ("struct<a:int>", {"b": 1}),
        ("struct<a:int>", {"a": 1, "b": 1}),
        ("binary", "!"),
        ("date", "2020-13-01"),
        ("tinyint", 300),
    ],
)
def test_a_value_that_its_type_does_not_hold_is_refused_not_changed(kind: str, value: Any) -> None:
    with pytest.raises(SweepAreaError, match=r"S\.c: "):
        json_values.column([value], arrow_type(kind), "S.c")


def test_a_struct_may_be_an_object() -> None:
    kind = arrow_type("struct<a:int,b:struct<c:array<int>>>")
    given = [{"b": {"c": [1, 2]}, "a": 5}, [5, [[1, 2]]]]
    assert json_values.column(given, kind, "S.c").to_pylist() == [{"a": 5, "b": {"c": [1, 2]}}] * 2


def test_replay_shows_where_an_error_of_a_case_comes_from() -> None:
    """What `replay --debug` writes to the standard error: the results stay what they are without it."""
    lines = [json.dumps(CASE | {"name": "wrong", "query": "SELEC k FROM S"}), "no JSON"]
    told: list[str] = []
    assert [*replay(lines, None, told.append)] == [*replay(lines, None)]  # type: ignore[arg-type]
    [trace] = told
    assert trace.startswith("case wrong:\nTraceback (most recent call last):")
    assert "query_statement.py" in trace
    assert "ParseError: SELECT is expected, found 'SELEC'. Did you mean SELECT?" in trace
