"""Great Expectations' verdict over the rows that a slice has staged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.time.domain import TimeKind
from sweeparea.quality import counts, records, suites, verdict
from sweeparea.spark_jobs.slices.result_tables import Line, file_of
from sweeparea.spark_jobs.spark import frames
from sweeparea.spark_jobs.spark.instants import as_instant, slice_text
from sweeparea.tables.log.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def checks_of(plan: Plan, key: str, since: int, h1: int) -> list[suites.Check]:
    """The checks of what a slice ``(since, h1]`` writes as ``key`` (``closed``, ``open``, ``istream``, ..)."""
    low, high = (as_instant(plan.time, tick) for tick in (since, h1))
    if plan.time.kind == TimeKind.TIMESTAMP:  # START may be the first instant that there is
        low, high = (None if isinstance(at, int) else at for at in (low, high))
    of = suites.relation_checks if key in ("closed", "open") else suites.stream_checks
    return of([c.label for c in plan.root.columns], low, high, plan.constraints)


def audit(
    spark: SparkSession,
    plan: Plan,
    since: int,
    h1: int,
    tables: Mapping[str, tuple[str, pa.Schema]],
    lines: list[Line],
    refuse: Callable[[list[records.Entry]], None] = lambda entries: None,
    by_name: tuple[str, list[dict[str, Any]]] | None = None,
) -> list[records.Entry]:
    """Great Expectations' verdict over the staged rows of every table; a critical failure ends the slice.

    Returns what the ledger keeps of it; ``refuse`` is given the same of a slice that ends so. It judges what the
    workers have counted; only rows of a table that fails are looked at again, to show some. ``by_name``: a table's
    folder and what its expectations over several rows have found.
    """
    told: list[tuple[str, pa.Schema, list[DataFile], verdict.Counted]] = []
    shown: list[dict[str, list[str]]] = []
    for path, schema in dict.fromkeys(tables.values()):
        keys = [key for key, value in tables.items() if value == (path, schema)]
        staged = [line for line in lines if line["target"] in keys]
        if staged:
            files, suite = [file_of(line) for line in staged], checks_of(plan, keys[0], since, h1)
            parts = [json.loads(line["broken"]) for line in staged]
            broken = counts.summed(parts, suite)
            shown.append(counts.shown(parts))
            table = verdict.Counted(Path(path).name, suite, broken, sum(f.rows for f in files))
            told.append((path, schema, files, table))
    found = verdict.of_counts([table for *_, table in told])
    if by_name is not None and by_name[1]:
        path, results = by_name
        at = next((i for i, (other, *_) in enumerate(told) if other == path), None)
        if at is None:  # a slice without a row can complete a unit
            schema = next(schema for other, schema in tables.values() if other == path)
            told.append((path, schema, [], verdict.Counted(Path(path).name, [], {}, 0)))
            found.append(verdict.Verdict(True, [], 0.0, 0))
            shown.append({})
            at = len(told) - 1
        found[at] = verdict.with_results(found[at], results)
    verdicts = [records.entry(table.name, v, rows) for (*_, table), v, rows in zip(told, found, shown, strict=True)]
    for i, ((path, schema, files, table), judged) in enumerate(zip(told, found, strict=True)):
        if not judged.ok:
            slice_ = slice_text(plan.time, since, h1)
            again = judged
            if any(r["status"] != "pass" for r in judged.results if r["id"] in table.counts):
                rows = _staged(spark, plan, path, schema, files)
                looked_at = verdict.audit(rows, table.name, table.checks, row_count=table.rows)
                more = [r for r in judged.results if r["id"] not in table.counts]
                again = verdict.with_results(looked_at, more)
                if not again.ok:
                    verdicts[i] = records.entry(table.name, again, shown[i])
            refuse(verdicts)
            verdict.require(again, table.name, slice_)
            verdict.require(judged, table.name, slice_)  # what the counts say holds, whatever is read again
    return records.bounded(verdicts)


def _staged(spark: SparkSession, plan: Plan, path: str, schema: pa.Schema, files: list[DataFile]) -> DataFrame:
    """The staged rows with the truths of the constraints."""
    frame = frames.of_files(spark, frames.ddl(schema), *(f"{path}/{f.path}" for f in files))
    names = {c.id: frames.quoted(c.label) for c in plan.root.columns}
    inner = frame.selectExpr("*", *(f"{label} AS {id_}" for id_, label in names.items()))
    return inner.selectExpr(*(frames.quoted(n) for n in schema.names), *suites.truths(plan.constraints))
