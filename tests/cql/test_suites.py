"""``SUITE``: Great Expectations' own JSON beside the texts, and what can be wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweeparea.cql.binding.expectations import bind_expectations
from sweeparea.cql.declarations.catalog import Catalog
from sweeparea.cql.declarations.suites import specs_of, suite_json
from sweeparea.cql.text.errors import CqlError
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.domain import TimeDomain, TimeKind

CLOCK = TimeDomain(TimeKind.TIMESTAMP, 1_000_000)
BETWEEN = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "x", "min_value": 0}}
SUITE = {
    "name": "orders",
    "expectations": [
        {**BETWEEN, "id": "a-1", "severity": "warning"},
        {
            "expectation_type": "expect_column_quantile_values_to_be_between",
            "kwargs": {"column": "x", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[0, None]]}},
            "meta": {"sweeparea": "middle", "notes": "why"},
        },
        {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1, "max_value": None}},
    ],
    "meta": {"great_expectations_version": "1.24.1"},
}


def load(folder: Path, suite: str, clauses: str = "SUITE 's.json' PER INTERVAL 1 DAY") -> Catalog:
    (folder / "s.json").write_text(suite)
    (folder / "a.cql").write_text(f"CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t\n  {clauses};")
    return Catalog.load(folder)


def test_a_suite_is_read_checked_and_written_again(tmp_path: Path):
    stream = load(tmp_path, json.dumps(SUITE, indent=1)).streams["s"]
    found, faults = bind_expectations(stream.expectations, ["x", "t"], CLOCK, of_query=False)
    assert not faults
    assert [(e.name, e.on_violation, e.per) for e in found] == [
        ("a-1", "warn", 86_400),
        ("middle", "fail", 86_400),
        ("expect_table_row_count_to_be_between_3", "fail", 86_400),
    ]
    written = suite_json("orders", found)
    assert [e["kwargs"] for e in written["expectations"]] == [e["kwargs"] for e in SUITE["expectations"]]  # type: ignore[index]
    wrong: list[CqlError] = []
    again = specs_of(json.dumps(written), "written", wrong)
    assert not wrong
    assert [(e.name, e.expectation, e.on_violation) for e in again] == [(e.name, e.type, e.on_violation) for e in found]


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        ('{"expectations": [}', "s.json:1:19: ParseError: this suite is no JSON"),
        ("", "this suite is no JSON"),
        ("[]", 'it has no list of "expectations"'),
        ('{"expectations": 3}', 'it has no list of "expectations"'),
        ('{"expectations": [3]}', "expectation 1 of this suite has no type"),
        ('{"expectations": [{"type": "expect_column_to_exist", "kwargs": []}]}', "are no object"),
        (json.dumps({"expectations": [{**BETWEEN, "id": "a"}, {**BETWEEN, "id": "a"}]}), "the id a is given twice"),
        (json.dumps({"expectations": [{**BETWEEN, "severity": "critcal"}]}), "Did you mean critical?"),
        (json.dumps({"expectations": [{**BETWEEN, "kwargs": {"min_value": {"$PARAMETER": "m"}}}]}), "is a parameter"),
    ],
)
def test_what_is_wrong_with_a_suite_is_told_with_its_place(tmp_path: Path, suite: str, told: str):
    with pytest.raises(CqlError) as caught:
        load(tmp_path, suite)
    assert told in str(caught.value)
    assert f"{tmp_path}/s.json:" in str(caught.value)


def test_unknown_columns_and_expectations_of_a_suite_have_their_line(tmp_path: Path):
    items = [{"type": "expect_column_to_exst", "kwargs": {"column": "x"}}, {**BETWEEN, "kwargs": {"column": "xx"}}]
    stream = load(tmp_path, json.dumps({"expectations": items}, indent=1)).streams["s"]
    _, faults = bind_expectations(stream.expectations, ["x", "t"], CLOCK, of_query=False)
    assert ["Did you mean" in str(fault) or "Columns are" in str(fault) for fault in faults] == [True, True]
    assert f"{tmp_path}/s.json:4:" in str(faults[0])
    assert f"{tmp_path}/s.json:10:" in str(faults[1])


def test_a_suite_that_is_not_there_or_elsewhere_or_names_twice(tmp_path: Path):
    for clauses, told in (
        ("SUITE 'z.json'", "there is no such file"),
        ("SUITE '../s.json'", "lies outside"),
        ("CONSTRAINT `a-1` EXPECT (x > 0) SUITE 's.json'", "are named a-1"),
        ("SUITE 's.json' SUITE 's.json'", "are named a-1"),
    ):
        with pytest.raises(SweepAreaError) as caught:
            load(tmp_path, json.dumps(SUITE), clauses)
        assert told in str(caught.value)


def test_references_name_what_there_is(tmp_path: Path):
    for other, told in (("shopz", "Did you mean shops?"), ("s", "is a stream")):
        (tmp_path / "a.cql").write_text(
            "CREATE RELATION shops FROM DELTA 'r' STATIC;\nCREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t\n"
            f"  CONSTRAINT known EXPECT shop REFERENCES {other}(id);"
        )
        with pytest.raises(CqlError, match=told.replace("?", r"\?")):
            Catalog.load(tmp_path)
