"""What is counted where rows are written is what Great Expectations finds in the rows, and its verdict is upon these
counts.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle, product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sweeparea.operators import bridge
from sweeparea.operators.plan.plan import Constraint
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.sweeps import relation_to_stream
from sweeparea.operators.sweeps.relation_to_stream import MaterializeSpec
from sweeparea.operators.values.columns import BAG_FIELDS
from sweeparea.quality import counts, suites, verdict

BEGIN = datetime(2013, 1, 1, tzinfo=UTC)
UTC_US = pa.timestamp("us", "UTC")
CONSTRAINTS = [Constraint("sane", Expr("c0 < 100"), "fail"), Constraint("usual", Expr("c0 < 10"), "warn")]
TRUTHS = (True, False, None)


def instants(values: list[int | None], base: int | datetime) -> pa.Array:
    if isinstance(base, int):
        return pa.array([None if v is None else base + v for v in values], pa.int64())
    return pa.array([None if v is None else base + timedelta(seconds=v) for v in values], UTC_US)


@pytest.mark.parametrize("bounds", [(0, 4), (None, 4), (0, None)])
@pytest.mark.parametrize("base", [0, (1 << 62) - 10, BEGIN])
@pytest.mark.parametrize("is_relation", [False, True])
def test_counts_are_what_great_expectations_finds_in_the_rows(base, bounds, is_relation):
    offsets = [None, *range(-2, 7)]
    rows = [(*at, *truth) for at, truth in zip(product(offsets, offsets), cycle(product(TRUTHS, TRUTHS)), strict=False)]
    first, second, sane, usual = (list(column) for column in zip(*rows, strict=True))
    low, high = (instants([b], base)[0].as_py() for b in bounds)
    columns = {"v": pa.array(range(len(rows)), pa.int64())}
    if is_relation:
        checks = suites.relation_checks(["v"], low, high, CONSTRAINTS)
        columns |= {"valid_from": instants(first, base), "valid_to": instants(second, base)}
    else:
        checks = suites.stream_checks(["v"], low, high, CONSTRAINTS)
        columns |= {"ts": instants(first, base)}
    judged = {"__check_sane": pa.array(sane, pa.bool_()), "__check_usual": pa.array(usual, pa.bool_())}
    table = pa.table(columns | judged)
    of_rows = verdict.audit(table, "q", checks)
    (of_counts,) = verdict.of_counts([verdict.Counted("q", checks, counts.counted(table, checks), table.num_rows)])
    assert of_counts.ok == of_rows.ok
    assert [(r["id"], r["status"], r["unexpected"]) for r in of_counts.results if r["id"] != "law:columns"] == [
        (r["id"], r["status"], r["unexpected"]) for r in of_rows.results if r["id"] != "law:columns"
    ]


def test_other_columns_break_a_law():
    checks = suites.stream_checks(["a", "b"], 0, 5)
    rows = pa.table({"b": [1], "a": [1], "ts": [3]})
    assert counts.counted(rows, checks)["law:columns"] == 1
    assert counts.counted(rows.select(["a", "b", "ts"]), checks)["law:columns"] == 0


def test_verdicts_on_several_tables_do_not_mix():
    checks = suites.stream_checks(["v"], 0, 5, CONSTRAINTS)
    clean = dict.fromkeys((c["id"] for c in checks), 0)
    tables = [
        verdict.Counted("a", checks, clean, 3),
        verdict.Counted("b", checks, clean | {"constraint:usual": 2}, 4),
        verdict.Counted("c", checks, clean | {"law:instant is known": 1}, 5),
    ]
    found = verdict.of_counts(tables)
    assert [(v.ok, v.rows, [(r["id"], r["unexpected"]) for r in (*v.failures, *v.warnings)]) for v in found] == [
        (True, 3, []),
        (True, 4, [("constraint:usual", 2)]),
        (False, 5, [("law:instant is known", 1)]),
    ]
    with pytest.raises(verdict.QualityFailure, match=r"table c .* law:instant is known fails for 1 rows"):
        verdict.require(found[2], "c", "(0, 5]")


def test_a_check_that_nobody_counted_stops_the_slice():
    checks = suites.stream_checks(["v"], 0, 5)
    counted = {c["id"]: 0 for c in checks[1:]}
    (found,) = verdict.of_counts([verdict.Counted("q", checks, counted, 1)])
    assert [(r["id"], r["status"]) for r in found.failures] == [("law:columns", "error")]
    (nothing,) = verdict.of_counts([verdict.Counted("q", checks, {}, 1)])
    assert len(nothing.failures) == len(checks)
    with pytest.raises(KeyError):
        counts.summed([counted], checks)


def test_counts_of_files_are_added():
    checks = suites.stream_checks(["v"], 0, 5)
    parts = [{c["id"]: i for c in checks} for i in (1, 2)]
    assert set(counts.summed(parts, checks).values()) == {3}


def test_a_sweep_that_breaks_a_law_is_found_where_its_rows_are_written(tmp_path, monkeypatch):
    def shifted(rows, spec, h0, h1):
        out = sweep(rows, spec, h0, h1)
        late = out.istream.set_column(1, "__tick", pa.array([h1 + 1] * out.istream.num_rows, pa.int64()))
        return replace(out, istream=late)

    sweep = relation_to_stream.sweep
    checks = suites.stream_checks(["v"], 0, 6)
    schema = pa.schema([("c0", pa.int64()), *BAG_FIELDS])
    task = bridge.MaterializeTask(
        MaterializeSpec(("c0",), istream=True), 0, 6, 0, schema,
        {"istream": bridge.Target(str(tmp_path), pa.schema([("v", pa.int64()), ("ts", pa.int64())]), "istream")},
        {"istream": lambda rows: counts.counted(rows, checks)},
        {"c0": "v"}, "attempt", None,
    )  # fmt: skip
    rows = pa.record_batch([[7, 8], [1, 2], [3, 9], [1, 1]], schema=schema)

    def broken() -> dict[str, int]:
        (line,) = [line for batch in task(iter([rows])) for line in batch.to_pylist()]
        assert pq.read_metadata(tmp_path / line["path"]).num_rows == line["rows"] == 2
        return {id_: n for id_, n in json.loads(line["broken"]).items() if n}

    assert broken() == {}
    monkeypatch.setattr(relation_to_stream, "sweep", shifted)
    assert broken() == {"law:instant lies in the slice": 2}
