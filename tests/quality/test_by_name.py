"""Expectations by name: the list is Great Expectations', each of them can pass and can fail, and units are whole."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from sweeparea.cql.binding.expectations import bind_expectations
from sweeparea.cql.functions import expectations as of_gx
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateStream
from sweeparea.operators.plan.plan import Expectation
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.quality import by_name, expectation_list

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "x": pa.array([1.0, 2.0, 2.0, 10.0]),
        "y": pa.array([1.0, 2.0, 2.0, 9.0]),
        "half": pa.array([0.5, 1.0, 1.0, 5.0]),
        "hole": pa.array([1, None, 3, 4], pa.int64()),
        "none": pa.nulls(4, pa.string()),
        "word": pa.array(["ab", "ac", "ad", "b"]),
        "day": pa.array(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]),
        "doc": pa.array(['{"a": 1}', '{"a": 2}', '{"a": 3}', "[]"]),
        "one": pa.array(["s", "s", "s", "t"]),
        "money": pa.array([Decimal("1.10"), Decimal("2.20"), Decimal("3.30"), Decimal("4.40")], pa.decimal128(9, 2)),
        "at": pa.array([datetime(2024, 1, d, tzinfo=UTC) for d in (1, 2, 3, 4)], pa.timestamp("us", "UTC")),
        "n": pa.array([1, 1, 1, 1], pa.int64()),
    }
)
C, AB = "expect_column", {"column_A": "x", "column_B": "y"}
CASES: dict[str, tuple[dict, dict]] = {
    f"{C}_distinct_values_to_be_in_set": (
        {"column": "one", "value_set": ["s", "t"]},
        {"column": "one", "value_set": ["s"]},
    ),
    f"{C}_distinct_values_to_contain_set": (
        {"column": "one", "value_set": ["s"]},
        {"column": "one", "value_set": ["z"]},
    ),
    f"{C}_distinct_values_to_equal_set": (
        {"column": "one", "value_set": ["t", "s"]},
        {"column": "one", "value_set": ["s"]},
    ),
    f"{C}_kl_divergence_to_be_less_than": (
        {"column": "one", "partition_object": {"values": ["s", "t"], "weights": [0.75, 0.25]}, "threshold": 0.1},
        {"column": "one", "partition_object": {"values": ["s", "t"], "weights": [0.01, 0.99]}, "threshold": 0.1},
    ),
    f"{C}_max_to_be_between": ({"column": "x", "max_value": 10}, {"column": "x", "max_value": 9}),
    f"{C}_mean_to_be_between": ({"column": "x", "min_value": 3}, {"column": "x", "max_value": 3}),
    f"{C}_median_to_be_between": ({"column": "x", "max_value": 2}, {"column": "x", "max_value": 1}),
    f"{C}_min_to_be_between": (
        {"column": "at", "min_value": "2024-01-01"},
        {"column": "at", "min_value": "2024-01-02"},
    ),
    f"{C}_most_common_value_to_be_in_set": (
        {"column": "one", "value_set": ["s"]},
        {"column": "one", "value_set": ["t"]},
    ),
    f"{C}_pair_values_a_to_be_greater_than_b": ({**AB, "or_equal": True}, AB),
    f"{C}_pair_values_to_be_equal": ({"column_A": "x", "column_B": "x"}, AB),
    f"{C}_pair_values_to_be_in_set": (
        {"column_A": "one", "column_B": "n", "value_pairs_set": [["s", 1], ["t", 1]]},
        {"column_A": "one", "column_B": "n", "value_pairs_set": [["s", 1]]},
    ),
    f"{C}_proportion_of_non_null_values_to_be_between": (
        {"column": "hole", "min_value": 0.7},
        {"column": "hole", "min_value": 0.8},
    ),
    f"{C}_proportion_of_unique_values_to_be_between": (
        {"column": "one", "max_value": 0.5},
        {"column": "one", "min_value": 0.8},
    ),
    f"{C}_quantile_values_to_be_between": (
        {"column": "x", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[1, 3]]}},
        {"column": "x", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[3, 4]]}},
    ),
    f"{C}_stdev_to_be_between": ({"column": "x", "min_value": 1, "max_value": 9}, {"column": "x", "max_value": 1}),
    f"{C}_sum_to_be_between": ({"column": "x", "min_value": 15}, {"column": "x", "min_value": 16}),
    f"{C}_to_exist": ({"column": "x", "column_index": 1}, {"column": "x", "column_index": 2}),
    f"{C}_type_to_be": ({"column": "x", "type_": "float64"}, {"column": "x", "type_": "int64"}),
    f"{C}_unique_value_count_to_be_between": ({"column": "one", "max_value": 2}, {"column": "one", "max_value": 1}),
    f"{C}_value_lengths_to_be_between": ({"column": "word", "min_value": 1}, {"column": "word", "min_value": 2}),
    f"{C}_value_lengths_to_equal": ({"column": "day", "value": 10}, {"column": "word", "value": 2}),
    f"{C}_value_z_scores_to_be_less_than": (
        {"column": "x", "threshold": 3, "double_sided": True},
        {"column": "x", "threshold": 1, "double_sided": True},
    ),
    f"{C}_values_to_be_between": ({"column": "money", "max_value": 5}, {"column": "at", "min_value": "2024-01-02"}),
    f"{C}_values_to_be_dateutil_parseable": ({"column": "day"}, {"column": "word"}),
    f"{C}_values_to_be_decreasing": ({"column": "n"}, {"column": "id"}),
    f"{C}_values_to_be_in_set": ({"column": "one", "value_set": ["s", "t"]}, {"column": "one", "value_set": ["s"]}),
    f"{C}_values_to_be_in_type_list": (
        {"column": "word", "type_list": ["str", "object"]},
        {"column": "x", "type_list": ["int64"]},
    ),
    f"{C}_values_to_be_increasing": ({"column": "id", "strictly": True}, {"column": "x", "strictly": True}),
    f"{C}_values_to_be_json_parseable": ({"column": "doc"}, {"column": "word"}),
    f"{C}_values_to_be_null": ({"column": "none"}, {"column": "hole"}),
    f"{C}_values_to_be_of_type": ({"column": "x", "type_": "float64"}, {"column": "x", "type_": "int64"}),
    f"{C}_values_to_be_unique": ({"column": "id"}, {"column": "x"}),
    f"{C}_values_to_match_json_schema": (
        {"column": "doc", "json_schema": {"type": ["object", "array"]}},
        {"column": "doc", "json_schema": {"type": "object"}},
    ),
    f"{C}_values_to_match_like_pattern": (
        {"column": "day", "like_pattern": "2024-__-%"},
        {"column": "word", "like_pattern": "a%"},
    ),
    f"{C}_values_to_match_like_pattern_list": (
        {"column": "word", "like_pattern_list": ["a_", "b"]},
        {"column": "word", "like_pattern_list": ["a_", "c"]},
    ),
    f"{C}_values_to_match_regex": ({"column": "word", "regex": "^[ab]"}, {"column": "word", "regex": "^a"}),
    f"{C}_values_to_match_regex_list": (
        {"column": "word", "regex_list": ["^a", "^b"]},
        {"column": "word", "regex_list": ["^a"]},
    ),
    f"{C}_values_to_match_strftime_format": (
        {"column": "day", "strftime_format": "%Y-%m-%d"},
        {"column": "day", "strftime_format": "%d.%m.%Y"},
    ),
    f"{C}_values_to_not_be_in_set": ({"column": "word", "value_set": ["z"]}, {"column": "word", "value_set": ["b"]}),
    f"{C}_values_to_not_be_null": ({"column": "id"}, {"column": "hole"}),
    f"{C}_values_to_not_be_outliers": (
        {"column": "x", "method": "std", "multiplier": 3},
        {"column": "x", "method": "std", "multiplier": 1},
    ),
    f"{C}_values_to_not_match_like_pattern": (
        {"column": "word", "like_pattern": "a"},
        {"column": "word", "like_pattern": "b"},
    ),
    f"{C}_values_to_not_match_like_pattern_list": (
        {"column": "word", "like_pattern_list": ["x%"]},
        {"column": "word", "like_pattern_list": ["%b"]},
    ),
    f"{C}_values_to_not_match_regex": ({"column": "word", "regex": "z"}, {"column": "word", "regex": "b"}),
    f"{C}_values_to_not_match_regex_list": (
        {"column": "word", "regex_list": ["z"]},
        {"column": "word", "regex_list": ["b"]},
    ),
    "expect_compound_columns_to_be_unique": ({"column_list": ["x", "id"]}, {"column_list": ["x", "y"]}),
    "expect_multicolumn_sum_to_equal": (
        {"column_list": ["n", "n"], "sum_total": 2},
        {"column_list": ["n", "id"], "sum_total": 2},
    ),
    "expect_multicolumn_values_to_be_equal": ({"column_list": ["n", "n"]}, {"column_list": ["n", "id"]}),
    "expect_select_column_values_to_be_unique_within_record": (
        {"column_list": ["one", "word"]},
        {"column_list": ["n", "id"]},
    ),
    "expect_table_column_count_to_be_between": ({"max_value": 13}, {"max_value": 12}),
    "expect_table_column_count_to_equal": ({"value": 13}, {"value": 12}),
    "expect_table_columns_to_match_ordered_list": ({"column_list": ROWS.column_names}, {"column_list": ["id"]}),
    "expect_table_columns_to_match_set": ({"column_set": ROWS.column_names[::-1]}, {"column_set": ["id"]}),
    "expect_table_row_count_to_be_between": ({"min_value": 4}, {"min_value": 5}),
    "expect_table_row_count_to_equal": ({"value": 4}, {"value": 5}),
}


def expectation(kind: str, kwargs: dict, name: str = "c", on_violation: str = "fail") -> Expectation:
    return Expectation(name, "gx", kind, tuple((k, _told(k, v)) for k, v in kwargs.items()), on_violation)


def _told(name: str, value: object) -> object:
    if name in ("value_pairs_set", "quantile_ranges", "partition_object", "json_schema"):
        return json.dumps(value)
    return tuple(value) if isinstance(value, list) else value


def test_the_list_is_that_of_the_great_expectations_that_is_installed():
    assert json.loads(of_gx.PATH.read_text()) == expectation_list.listed()


def test_every_expectation_can_pass_and_can_fail():
    assert CASES.keys() == of_gx.known().expectations.keys()
    asked = [expectation(kind, kwargs, f"{kind}-{i}") for kind, both in CASES.items() for i, kwargs in enumerate(both)]
    found = by_name.judge(ROWS, asked)
    told = {r["id"]: (r["status"], r["error"]) for r in found}
    wanted = {by_name.check_id(e): ("fail" if e.name.endswith("-1") else "pass", None) for e in asked}
    assert told == wanted


def test_only_the_columns_that_are_needed_are_read():
    several = [
        expectation(k, CASES[k][0])
        for k in ("expect_column_pair_values_to_be_equal", "expect_compound_columns_to_be_unique")
    ]
    assert by_name.columns_of(several, ROWS.column_names) == ["id", "x"]
    assert by_name.columns_of([expectation("expect_table_row_count_to_equal", {"value": 1})], ROWS.column_names) == []
    whole = expectation("expect_table_columns_to_match_set", {"column_set": ["id"]})
    assert by_name.columns_of([whole], ROWS.column_names) == ROWS.column_names


def test_what_great_expectations_cannot_build_or_run_is_an_error_and_not_a_pass():
    wrong = [
        expectation("expect_column_values_to_be_between", {"column": "id"}, "no bounds"),
        expectation("expect_column_values_to_match_regex", {"column": "word", "regex": "("}, "no regex"),
        expectation("expect_column_values_to_be_between", {"column": "word", "max_value": 3}, "text", "warn"),
        expectation("expect_column_values_to_not_be_null", {"column": "id"}, "good"),
    ]
    found = {r["id"]: r for r in by_name.judge(ROWS, wrong)}
    assert {id_: r["status"] for id_, r in found.items()} == {
        "constraint:no bounds": "error",
        "constraint:no regex": "error",
        "constraint:text": "error",
        "constraint:good": "pass",
    }
    assert all(r["error"] for id_, r in found.items() if id_ != "constraint:good")


def test_types_with_nulls_are_judged_by_their_values():
    rows = pa.table(
        {
            "d": pa.array([Decimal("1.10"), None, Decimal("3.30")], pa.decimal128(9, 2)),
            "day": pa.array([date(2024, 1, 1), None, date(2024, 1, 3)]),
            "i": pa.array([1, None, 1 << 60], pa.int64()),
            "f": pa.array([1.5, None, 2.0], pa.float32()),
            "a.b'c\"d é": pa.array([1, None, 3], pa.int8()),
        }
    )
    asked = [
        expectation(
            f"expect_column_{what}_to_be_between",
            {"column": column, "min_value": low, "max_value": high},
            f"{what} {column}",
        )
        for column, low, high in (
            ("d", 0, 5),
            ("i", 0, 1 << 61),
            ("f", 0, 5),
            ("a.b'c\"d é", 0, 5),
            ("day", "2024-01-01", "2024-01-03"),
        )
        for what in (
            ("min", "max", "values") if column == "day" else ("min", "max", "values", "mean", "median", "sum", "stdev")
        )
    ]
    found = by_name.judge(rows, asked)
    assert [(r["id"], r["status"], r["error"]) for r in found if r["status"] != "pass"] == []
    assert [r["id"] for r in found] == [by_name.check_id(e) for e in asked]
    assert next(r["observed"] for r in found if r["id"] == "constraint:sum d") == pytest.approx(4.4)


def timed(ticks: list[int]) -> pa.Table:
    return pa.table({"x": pa.array(ticks, pa.int64()), "__tick": pa.array(ticks, pa.int64())})


def test_units_are_judged_one_by_one_and_empty_ones_too():
    volume = Expectation("v", "volume", "volume", (("min", 1), ("max", 2)), "fail", 10)
    great = Expectation("m", "gx", "expect_column_max_to_be_between", (("column", "x"), ("max_value", 25)), "warn", 10)
    found = by_name.of_units(timed([1, 2, 3, 12, 31]), [volume, great], 10, 0, 0, 4)
    told = [(r["id"], r["status"], r["observed"], r["meta"]["unit"], r["meta"]["rows"]) for r in found]
    assert told == [
        ("constraint:v", "fail", 3, [0, 10], 3),
        ("constraint:v", "pass", 1, [10, 20], 1),
        ("constraint:v", "fail", 0, [20, 30], 0),
        ("constraint:v", "pass", 1, [30, 40], 1),
        ("constraint:m", "pass", 3, [0, 10], 3),
        ("constraint:m", "pass", 12, [10, 20], 1),
        ("constraint:m", "fail", 31, [30, 40], 1),
    ]


def test_volume_against_its_own_past():
    usual = Expectation("v", "volume", "volume", (("deviations", 2), ("last", 3)), "fail", 10)
    counts = [100, 110, 104, 105, 500, 10]
    ticks = [unit * 10 for unit, count in enumerate(counts) for _ in range(count)]
    found = by_name.of_units(timed(ticks), [usual], 10, 0, 0, 6)
    assert [r["status"] for r in found] == ["pass", "pass", "pass", "pass", "fail", "pass"]  # after 500 all is usual
    later = by_name.of_units(timed(ticks), [usual], 10, 1, 4, 5)  # the same unit, by a slice of its own
    assert [(r["status"], r["meta"]["unit"]) for r in later] == [("fail", [40, 50])]


def test_a_verdict_tells_of_so_many_units_and_of_all_that_are_not_met():
    volume = Expectation("v", "volume", "volume", (("min", 1), ("max", None)), "warn", 1)
    ticks = [t for t in range(5_000) if t not in (7, 2_000)]
    found = by_name.of_units(timed(ticks), [volume], 1, 0, 0, 5_000)
    assert len(found) <= by_name.MOST_UNITS
    assert [r["meta"]["unit"][0] for r in found if r["status"] == "fail"] == [7, 2_000]
    assert found[-1]["meta"]["unit"] == [4_999, 5_000]


CLOCK = TimeDomain(TimeKind.TIMESTAMP, 1_000_000)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gx.expect_column_values_to_be_betwen(column => 'x')", "Did you mean expect_column_values_to_be_between"),
        ("gx.expect_column_values_to_be_between(colum => 'x')", "Did you mean column?"),
        ("gx.expect_column_values_to_be_between(min_value => 1)", "needs column"),
        ("gx.expect_column_values_to_be_between(column => 'amuont')", "Did you mean amount?"),
        ("gx.expect_column_values_to_be_between(column => 'x', strict_min => 3)", "strict_min is TRUE or FALSE, not 3"),
        ("gx.expect_column_values_to_be_in_set(column => 'x', value_set => 3)", "value_set is a list"),
        ("gx.expect_column_pair_values_to_be_equal(column_A => 'x', column_B => 'y', ignore_row_if => 'x')", "Did you"),
        ("gx.expect_column_quantile_values_to_be_between(column => 'x', quantile_ranges => '[')", "JSON in quotes"),
        ("gx.unexpected_rows_expectation(unexpected_rows_query => 'SELECT 1')", "not offered"),
        ("gx.expect_table_row_count_to_be_between(row_condition => 'x > 1')", "no argument row_condition"),
        ("VOLUME WITHIN 2 DEVIATIONS OF LAST 9", "which unit of time"),
        ("VOLUME BETWEEN 1 AND 2 PER 5", "has no unit"),
        ("VOLUME BETWEEN 1 AND 2 PER INTERVAL 1 MILLISECOND", "chronon"),
        ("zz REFERENCES r(id)", "there is no column zz"),
    ],
)  # fmt: skip
def test_an_expectation_is_checked_without_great_expectations(text: str, told: str):
    (stream,) = parse_text(f"CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CONSTRAINT c EXPECT {text}")
    assert isinstance(stream, CreateStream)
    found, faults = bind_expectations(stream.expectations, ["x", "y", "amount"], CLOCK, of_query=False)
    assert not found
    assert told in str(faults[0]) or told == "Did you"
    assert "<text>:1:" in str(faults[0])


def test_names_are_spelt_as_they_are_declared():
    text = "gx.EXPECT_COLUMN_PAIR_VALUES_TO_BE_EQUAL(COLUMN_a => 'X', column_B => 'Amount', mostly => 0.5)"
    (stream,) = parse_text(
        f"CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CONSTRAINT c EXPECT {text} PER INTERVAL 1 DAY"
    )
    assert isinstance(stream, CreateStream)
    (found,), faults = bind_expectations(stream.expectations, ["x", "amount"], CLOCK, of_query=False)
    assert not faults
    assert dict(found.arguments) == {"column_A": "x", "column_B": "amount", "mostly": 0.5}
    assert found.per == 86_400
