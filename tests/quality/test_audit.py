"""What a slice's workers have counted stops it, whatever the staged rows look like when they are read again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from sweeparea.operators.linear.scan import StreamScan
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import StreamKind
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.quality import verdict
from sweeparea.spark_jobs.slices import audit as audits

V = Column("c0", "v", "BIGINT")
SPARK: Any = None
PLAN = Plan("q", StreamScan("s", ((V, "v"),)), StreamKind.ISTREAM, TimeDomain())
TABLES = {"istream": ("results/q", pa.schema([("v", pa.int64()), ("ts", pa.int64())]))}
ROWS = pa.table({"v": [1], "ts": [3]})


def line(**broken: int) -> dict[str, object]:
    clean = {check["id"]: 0 for check in audits.checks_of(PLAN, "istream", 0, 5)}
    told = json.dumps(clean | {f"law:{name.replace('_', ' ')}": n for name, n in broken.items()})
    return {"target": "istream", "path": "f.parquet", "size": 1, "rows": 4, "stats": "{}", "broken": told}


@pytest.fixture(autouse=True)
def rows_read_again(monkeypatch):
    monkeypatch.setattr(audits, "_staged", lambda *_: ROWS)


def test_clean_files_are_told_of_with_their_rows():
    (told,) = audits.audit(SPARK, PLAN, 0, 5, TABLES, [line(), line()])
    seconds, results = told.pop("seconds"), told.pop("results")
    assert told == {"table": "q", "rows": 8, "checks": 3, "warnings": {}}
    assert [tuple(one[1:]) for one in results] == [("critical", "pass", 0)] * 3
    assert seconds >= 0


def test_counts_stop_a_slice_though_its_rows_look_right_afterwards():
    with pytest.raises(verdict.QualityFailure, match=r"law:instant is known fails for 2 rows"):
        audits.audit(SPARK, PLAN, 0, 5, TABLES, [line(), line(instant_is_known=2)])


def test_rows_are_shown_where_they_still_break_the_law(monkeypatch):
    monkeypatch.setattr(audits, "_staged", lambda *_: pa.table({"v": [7], "ts": [9]}))
    with pytest.raises(verdict.QualityFailure, match=r'law:instant lies in the slice fails for 1 rows, .*"v": 7'):
        audits.audit(SPARK, PLAN, 0, 5, TABLES, [line(instant_lies_in_the_slice=1)])


def test_a_file_that_nobody_counted_is_an_error():
    with pytest.raises(KeyError):
        audits.audit(SPARK, PLAN, 0, 5, TABLES, [{**line(), "broken": "{}"}])
