from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from sweeparea.operators.plan.plan import Constraint
from sweeparea.operators.sql.expressions import Expr
from sweeparea.quality import suites, verdict

BEGIN = datetime(2013, 1, 1, tzinfo=UTC)
CONSTRAINTS = [
    Constraint("sane", Expr("c0 < 100", "delay < 100"), "fail"),
    Constraint("usual", Expr("c0 < 10", "delay < 10"), "warn"),
    Constraint("kept_out", Expr("c0 IS NOT NULL"), "quarantine"),
]


def stream_slice(delays: Sequence[int | None], **columns: pa.Array) -> pa.Table:
    truth = [[d is None or d < bound for d in delays] for bound in (100, 10)]
    return pa.table(
        {
            "delay": pa.array(delays, pa.int64()),
            **columns,
            "ts": pa.array([BEGIN + timedelta(seconds=i + 1) for i in range(len(delays))], pa.timestamp("us", "UTC")),
            "__check_sane": pa.array(truth[0], pa.bool_()),
            "__check_usual": pa.array(truth[1], pa.bool_()),
            "__check_kept_out": pa.array([True] * len(delays), pa.bool_()),
        }
    )


def judge(rows: pa.Table, *extra: str) -> verdict.Verdict:
    end = BEGIN + timedelta(seconds=rows.num_rows)
    return verdict.audit(rows, "delays", suites.stream_checks(["delay", *extra], BEGIN, end, CONSTRAINTS))


def by_id(found: verdict.Verdict) -> dict:
    return {r["id"]: r for r in found.results}


def relation_slice(rows: Sequence[tuple[int | None, ...]]) -> pa.Table:
    return pa.table(
        {"v": ["x"] * len(rows)}
        | dict(zip(("valid_from", "valid_to"), map(pa_int64, zip(*rows, strict=True)), strict=True))
    )


def pa_int64(values) -> pa.Array:
    return pa.array(list(values), pa.int64())


def test_a_good_slice_passes_and_nulls_satisfy_constraints():
    found = judge(stream_slice([1, 2, None]))
    assert found.ok
    assert found.rows == 3
    assert {r["status"] for r in found.results} == {"pass"}
    assert [r["id"] for r in found.results] == [
        "law:columns",
        "law:instant is known",
        "law:instant lies in the slice",
        "constraint:sane",
        "computed:sane",
        "constraint:usual",
        "computed:usual",
        "law:kept out by kept_out",
        "law:computed, or kept out by kept_out",
    ]
    assert verdict.require(found, "delays", "(0, 3]") is found


def test_a_row_that_is_kept_out_is_not_published():
    rows = stream_slice([1, 2])
    found = judge(rows.set_column(4, "__check_kept_out", pa.array([True, False])))
    assert [(r["id"], r["unexpected"]) for r in found.failures] == [("law:kept out by kept_out", 1)]


@pytest.mark.parametrize(("at", "name", "stops"), [(2, "sane", True), (3, "usual", False)])
def test_a_condition_that_cannot_be_computed_has_the_outcome_of_a_violation(at, name, stops):
    rows = stream_slice([1, 2])
    found = judge(rows.set_column(at, f"__check_{name}", pa.array([True, None])))
    (told,) = found.failures if stops else found.warnings
    assert (told["id"], told["status"], told["unexpected"]) == (f"computed:{name}", "error", 1)
    assert "cannot be computed" in told["error"]
    assert found.ok is not stops
    if stops:
        with pytest.raises(verdict.QualityFailure, match=r"computed:sane .*cannot be computed.*, 1, such as"):
            verdict.require(found, "delays", "(0, 2]")


def test_a_warning_is_counted_and_published():
    found = judge(stream_slice([1, 20, 30]))
    assert found.ok
    assert [(r["id"], r["unexpected"]) for r in found.warnings] == [("constraint:usual", 2)]


def test_a_failure_names_check_count_rows_table_slice_and_the_way_out():
    found = judge(stream_slice([1, 200, 3, *[300] * 7]))
    assert not found.ok
    with pytest.raises(verdict.QualityFailure) as caught:
        verdict.require(found, "delays", "(2013-01-01, 2013-01-02]")
    text = str(caught.value)
    for part in (
        "(2013-01-01, 2013-01-02]",
        "table delays",
        "constraint:sane (EXPECT delay < 100) fails for 8 rows",
        '"delay": 200',
    ):
        assert part in text
    assert "ON VIOLATION WARN" in text
    assert len(by_id(found)["constraint:sane"]["sample"]) == 5


def test_an_empty_slice_passes():
    assert judge(stream_slice([])).ok


def test_instants_outside_the_slice_or_unknown_fail():
    rows = stream_slice([1, 2, 3])
    checks = suites.stream_checks(["delay"], BEGIN + timedelta(seconds=1), BEGIN + timedelta(seconds=2), CONSTRAINTS)
    assert by_id(verdict.audit(rows, "delays", checks))["law:instant lies in the slice"]["unexpected"] == 2
    unknown = rows.set_column(1, "ts", pa.nulls(3, pa.timestamp("us", "UTC")))
    assert by_id(judge(unknown))["law:instant is known"]["unexpected"] == 3


def test_columns_missing_or_in_another_order_fail():
    rows = stream_slice([1, 2])
    assert (
        by_id(judge(rows.select(["ts", *(c for c in rows.column_names if c != "ts")])))["law:columns"]["status"]
        == "fail"
    )
    found = judge(rows.select(["delay", "ts", "__check_usual"]))
    assert not found.ok
    assert by_id(found)["constraint:sane"]["status"] == "error"
    with pytest.raises(verdict.QualityFailure, match=r"constraint:sane .* could not be judged"):
        verdict.require(found, "delays", "(0, 2]")


@pytest.mark.parametrize("base", [0, 10**17, (1 << 62) - 10])
def test_laws_of_a_relation_hold_to_the_last_tick(base):
    def failing(*rows):
        shifted = [tuple(None if v is None else base + v for v in row) for row in rows]
        found = verdict.audit(relation_slice(shifted), "q", suites.relation_checks(["v"], base, base + 5))
        return {r["id"].removeprefix("law:"): r["unexpected"] for r in found.failures}

    assert failing((1, 5), (-7, 1), (5, None)) == {}
    assert failing((1, 6), (-3, 0), (5, None)) == {"validity ends in the slice": 2}
    assert failing((2, 2), (3, 2), (1, 2)) == {"validity is not empty": 2}
    assert failing((None, 2)) == {"validity has a start": 1}


def test_every_type_of_column_can_be_shown_as_a_sample():
    nested = pa.array([{"a": 1, "b": [1.5]}, {"a": None, "b": []}])
    columns = {
        "d": pa.array([Decimal("1.50"), None]),
        "n": nested,
        "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "bin": pa.array([b"\x01", None]),
        "day": pa.array([BEGIN.date(), None]),
        "f": pa.array([float("nan"), float("inf")]),
        "l": pa.array([1, None], pa.int64()),
    }
    found = judge(stream_slice([200, 200], **columns), *columns)
    assert by_id(found)["constraint:sane"]["unexpected"] == 2
    sample = json.loads(found.to_json())["results"][3]["sample"]
    assert sample[0]["d"] == "1.50"
    assert sample[0]["bin"] == "01"
    assert sample[0]["l"] == 1
    assert sample[1]["l"] is None


def test_checks_that_cannot_be_trusted_are_refused():
    check = suites.expectation_check("x", "expect_nothing_at_all", {})
    with pytest.raises(verdict.SuiteError, match="constraint:x of table q cannot be built"):
        verdict.audit(pa.table({"a": [1]}), "q", [check])
    with pytest.raises(verdict.SuiteError, match="cannot be built"):
        verdict.audit(
            pa.table({"a": [1]}), "q", [{**check, "type": "expect_column_values_to_not_be_null", "severity": "high"}]
        )
    with pytest.raises(verdict.SuiteError, match="SQL expectation"):
        verdict.audit(pa.table({"a": [1]}), "q", [{**check, "type": verdict.SQL_TYPE}])
    with pytest.raises(verdict.SuiteError, match="repeated ids"):
        verdict.audit(pa.table({"a": [1]}), "q", [check, check])


def test_table_level_expectations_of_great_expectations():
    check = suites.expectation_check("some", "expect_table_row_count_to_be_between", {"min_value": 2})
    found = verdict.audit(pa.table({"a": [1]}), "q", [check])
    assert found.failures[0]["observed"] == 1
    with pytest.raises(verdict.QualityFailure, match="constraint:some fails, observed 1"):
        verdict.require(found, "q", "(0, 1]")


def test_threads_do_not_mix_up_their_rows():
    wrong = []

    def work(bad: int) -> None:
        for _ in range(5):
            found = judge(stream_slice([200] * bad + [1] * 10))
            if by_id(found)["constraint:sane"]["unexpected"] != bad:
                wrong.append(bad)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
