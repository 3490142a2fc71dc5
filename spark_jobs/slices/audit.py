"""Great Expectations' verdict over the rows that a slice has staged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators import bridge
from sweeparea.operators.plan.plan import Plan
from sweeparea.quality import suites, verdict
from sweeparea.spark_jobs.slices.result_tables import Line, file_of
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.instants import as_instant, slice_text
from sweeparea.tables.log import scan
from sweeparea.tables.log.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUDIT_ARROW_ROWS = verdict.PANDAS_ROWS


def audit(
    spark: SparkSession, plan: Plan, since: int, h1: int, tables: Mapping[str, tuple[str, pa.Schema]], lines: list[Line]
) -> list[dict[str, Any]]:
    """Great Expectations' verdict over the staged rows of every table; a critical failure ends the slice."""
    verdicts: list[dict[str, Any]] = []
    labels = [c.label for c in plan.root.columns]
    low, high = (as_instant(plan.time, tick) for tick in (since, h1))
    if plan.time.kind == "TIMESTAMP":  # START may be the first instant that there is
        low, high = (None if isinstance(at, int) else at for at in (low, high))
    for path, schema in dict.fromkeys(tables.values()):
        keys = [key for key, value in tables.items() if value == (path, schema)]
        relation = "open" in keys
        files = [file_of(line) for line in lines if line["target"] in keys]
        if not files:
            continue
        truths = {line["stats"]: line["path"] for line in lines if line["target"] == bridge.AUDIT}
        rows = _audited(spark, plan, path, schema, files, truths)
        count = sum(f.rows for f in files)
        suite = (suites.relation_checks if relation else suites.stream_checks)(labels, low, high, plan.constraints)
        judged = verdict.audit(rows, Path(path).name, suite, row_count=count)
        verdict.require(judged, Path(path).name, slice_text(plan.time, since, h1))
        verdicts.append(
            {
                "table": Path(path).name,
                "rows": judged.rows,
                "checks": len(judged.results),
                "warnings": {r["id"]: r["unexpected"] for r in judged.warnings},
            }
        )
    return verdicts


def _audited(
    spark: SparkSession, plan: Plan, path: str, schema: pa.Schema, files: list[DataFile], truths: dict[str, str]
) -> Any:
    """The staged rows and the truths of the constraints: as Arrow where they are few, else as a DataFrame."""
    checks = [suites.check_column(c.name) for c in suites.judged(plan.constraints)]
    if sum(f.rows for f in files) <= AUDIT_ARROW_ROWS:
        parts = []
        for file in files:
            part = _staged(path, file.path, schema)
            if checks:
                beside = _staged(path, truths[file.path], pa.schema([(c, pa.bool_()) for c in checks]))
                for name in checks:
                    part = part.append_column(name, beside.column(name))
            parts.append(part)
        return pa.concat_tables(parts)
    frame = spark.read.schema(frames.ddl(schema)).parquet(*(f"{path}/{f.path}" for f in files))
    names = {c.id: frames.quoted(c.label) for c in plan.root.columns}
    constraints = suites.judged(plan.constraints)
    inner = frame.selectExpr("*", *(f"{label} AS {id_}" for id_, label in names.items()))
    judged = (f"coalesce(({c.condition.sql}), TRUE) AS {suites.check_column(c.name)}" for c in constraints)
    return inner.selectExpr(*(frames.quoted(n) for n in schema.names), *judged)


def _staged(root: str, path: str, schema: pa.Schema) -> pa.Table:
    return scan.ScanPlan(schema, (f"{root}/{path}",), 0, 0).read(schema.names)
