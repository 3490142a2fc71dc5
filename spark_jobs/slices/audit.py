"""Great Expectations' verdict over the rows that a slice has staged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.operators.plan.plan import Constraint, Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.sweeps.quarantine import CONSTRAINT, REASON
from sweeparea.operators.time.domain import TimeKind
from sweeparea.quality import counts, records, slice_laws, suites, verdict
from sweeparea.spark_jobs.slices.result_tables import HISTORIES, Line, file_of
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
    labels = [c.label for c in plan.root.columns]
    if key in HISTORIES[ResultKind.QUARANTINE]:
        return suites.relation_checks([*labels, CONSTRAINT, REASON], low, high)
    of = suites.relation_checks if key in HISTORIES[ResultKind.RELATION] else suites.stream_checks
    return of(labels, low, high, constraints_of(plan, key))


def constraints_of(plan: Plan, key: str) -> tuple[Constraint, ...]:
    """The constraints by which what is written as ``key`` is judged: each row once, when it comes. What leaves has been
    judged, unless nothing but that is kept; and of what is kept out nothing is asked.
    """
    if key in HISTORIES[ResultKind.QUARANTINE]:
        return ()
    came = {ResultKind.RELATION, ResultKind.ISTREAM} & set(plan.materialize)
    if key == ResultKind.DSTREAM and came:
        return tuple(c for c in plan.constraints if c.on_violation == "quarantine")
    return plan.constraints


def counter_of(plan: Plan, key: str, since: int, h1: int) -> Callable[[pa.Table], dict[str, Any]]:
    """What counts the rows that break a check, where they are written as ``key`` by a slice ``(since, h1]``."""
    return partial(
        counts.counted_staged,
        checks=checks_of(plan, key, since, h1),
        constraints=constraints_of(plan, key),
        since=since * plan.time.stored_scale,
    )


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
    laws, broken = slice_laws.of_slice([json.loads(li["broken"]) for li in lines if li["target"] == slice_laws.SLICE])
    total = sum(table.rows for *_, table in told)
    of_slice = verdict.Counted(f"{plan.name} (slice)", laws, broken, total)
    *found, of_all = verdict.of_counts([*(table for *_, table in told), of_slice])
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
    if laws:
        verdicts.append(records.entry(of_slice.name, of_all))
    for i, ((path, schema, files, table), judged) in enumerate(zip(told, found, strict=True)):
        if not judged.ok:
            slice_ = slice_text(plan.time, since, h1)
            again = judged
            if any(r["status"] != "pass" for r in judged.results if r["id"] in table.counts):
                key = next(key for key, value in tables.items() if value == (path, schema))
                rows = _staged(spark, plan, since, key, path, schema, files)
                looked_at = verdict.audit(rows, table.name, table.checks, row_count=table.rows)
                more = [r for r in judged.results if r["id"] not in table.counts]
                again = verdict.with_results(looked_at, more)
                if not again.ok:
                    verdicts[i] = records.entry(table.name, again, shown[i])
            refuse(verdicts)
            verdict.require(again, table.name, slice_)
            verdict.require(judged, table.name, slice_)  # what the counts say holds, whatever is read again
    if not of_all.ok:
        refuse(verdicts)
        verdict.require(of_all, of_slice.name, slice_text(plan.time, since, h1))
    return records.bounded(verdicts)


def _staged(
    spark: SparkSession, plan: Plan, since: int, key: str, path: str, schema: pa.Schema, files: list[DataFile]
) -> DataFrame:
    """The rows that are staged as ``key``, with the truths of the constraints."""
    frame = frames.of_files(spark, frames.ddl(schema), *(f"{path}/{f.path}" for f in files))
    constraints = constraints_of(plan, key)
    if not constraints:
        return frame
    names = {c.id: frames.quoted(c.label) for c in plan.root.columns}
    inner = frame.selectExpr("*", *(f"{label} AS {id_}" for id_, label in names.items()))
    instant = "valid_from" if "valid_from" in schema.names else "ts"
    guard = f"CAST({instant} AS STRING) = ''"  # an instant is no empty text
    truths = suites.truths(constraints, guard)
    if instant == "valid_from":  # what has begun before was judged then
        begun = f"unix_micros({instant})" if plan.time.kind == TimeKind.TIMESTAMP else instant
        before = f"{begun} <= {since * plan.time.stored_scale}L"
        truths = {column: f"CASE WHEN {before} THEN TRUE ELSE {sql} END" for column, sql in truths.items()}
    return inner.selectExpr(
        *(frames.quoted(n) for n in schema.names), *(f"{sql} AS {column}" for column, sql in truths.items())
    )
