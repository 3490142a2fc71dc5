"""The quarantine of streams and relations: what was kept out, and why. Reads tables only, no Spark.

A row is named by an id made of the commit that kept it out and of the row itself; equal rows of one commit share it.
Conditions are SQL over the row's own columns and ``__id``, ``__version``, ``__seq``, ``__reason``, ``__tick``, as
``sweeparea sql`` reads it. Dropped duplicates that are remembered lie there too; nothing is wrong with them, so lists
leave them out unless a condition is given.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.infra.text_table import text_table
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging.duplicates import DUPLICATE
from sweeparea.spark_jobs.admission.judging.stage import QUARANTINE_SCHEMA
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark import json_values
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DataFile, DeltaLog
from sweeparea.tables.sources.landing import MALFORMED

SHOWN = 100
"""Rows that a list shows unless it is asked for more."""
_ABOUT = ("__version", "__seq", "__reason", "__tick", "__row", "__n")


@dataclass(frozen=True)
class Held:
    """Rows of one name's quarantine: the columns ``_ABOUT``, ``__id``, and where each lies (``__file``, ``__at``)."""

    name: str
    rows: pa.Table
    files: tuple[DataFile, ...]

    def where(self, wanted: pa.Array | pa.ChunkedArray) -> Held:
        return Held(self.name, self.rows.filter(wanted), self.files)

    def total(self) -> int:
        """Copies."""
        return pc.sum(pc.abs(self.rows.column("__n"))).as_py() or 0


def held(application: Application, name: str, version: int | None = None) -> Held:
    """The quarantine of a stream or relation, newest first, at a version of its table (the latest if None)."""
    application.source(name)
    log = DeltaLog(application.layout.quarantine(name))
    files = tuple(log.files(version)) if log.exists() else ()
    parts = [_numbered(log, file, number) for number, file in enumerate(files)]
    rows = pa.concat_tables([_EMPTY, *parts]).sort_by([("__seq", "descending"), ("__at", "ascending")])
    ids = [row_id(*values) for values in zip(*(rows.column(c).to_pylist() for c in _OF_ID), strict=True)]
    return Held(name, rows.append_column("__id", pa.array(ids, pa.string())), files)


def counted(application: Application, name: str) -> tuple[int, int]:
    """Rows in quarantine: those that something is wrong with, and duplicates that are remembered."""
    log = DeltaLog(application.layout.quarantine(name))
    if not log.exists():
        return 0, 0
    reasons = scan.plan(log).read(["__reason"]).column("__reason")
    duplicates = pc.sum(pc.starts_with(reasons, DUPLICATE)).as_py() or 0
    return len(reasons) - duplicates, duplicates


_OF_ID = ("__seq", "__row", "__reason")
_EMPTY = pa.schema([*list(QUARANTINE_SCHEMA)[1:], ("__file", pa.int64()), ("__at", pa.int64())]).empty_table()


def row_id(seq: int, row: str, reason: str) -> str:
    """``17-3fa9c1d2``: the commit, and eight digits that tell its rows apart."""
    digest = hashlib.sha256(json.dumps([row, reason]).encode()).hexdigest()
    return f"{seq}-{digest[:8]}"


def _numbered(log: DeltaLog, file: DataFile, number: int) -> pa.Table:
    rows = scan.plan(log, [file]).read(log.schema().names)
    count = rows.num_rows
    if "__n" not in rows.column_names:  # of an earlier version, which counted no copies
        rows = rows.append_column("__n", pa.repeat(pa.scalar(1, pa.int64()), count))
    rows = rows.append_column("__file", pa.repeat(pa.scalar(number, pa.int64()), count))
    return (
        rows.append_column("__at", pa.array(range(count), pa.int64())).select(_EMPTY.column_names).cast(_EMPTY.schema)
    )


def typed(rows: pa.Table, columns: Sequence[pa.Field], what: str) -> pa.Table:
    """The rows themselves in the types of ``columns``; one that the row lacks is NULL. DataError for a value that does
    not fit.
    """
    values = [json.loads(text) for text in rows.column("__row").to_pylist()]
    if columns and any(MALFORMED in value for value in values):
        raise DataError(
            f"{what}: a malformed record has no columns. Write what it should have been with --row, or all columns with"
            " --set."
        )
    return pa.table(
        [json_values.column([v.get(f.name) for v in values], f.type, f"{what}, column {f.name}") for f in columns],
        schema=pa.schema(list(columns)),
    )


def matching(held_: Held, condition: str, columns: Sequence[pa.Field]) -> Held:
    """The rows for which a condition is true. SweepAreaError if it cannot be read."""
    import duckdb

    about = held_.rows.select([*_ABOUT, "__id"]).append_column("__i", pa.array(range(held_.rows.num_rows), pa.int64()))
    readable = _readable(held_, columns)
    for field_ in columns:
        about = about.append_column(field_, readable.column(field_.name))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("quarantine", about)
    try:
        found = connection.execute(f"SELECT __i FROM quarantine WHERE {condition}").fetchall()
    except duckdb.Error as error:
        raise SweepAreaError(
            f"The condition {condition!r} cannot be used: {str(error).strip()}\nColumns: "
            f"{', '.join([*(f.name for f in columns), *_ABOUT, '__id'])}."
        ) from None
    wanted = {i for (i,) in found}
    return held_.where(pa.array([i in wanted for i in range(held_.rows.num_rows)], pa.bool_()))


def _readable(held_: Held, columns: Sequence[pa.Field]) -> pa.Table:
    """As ``typed``, but a row that does not fit the columns any more has NULLs."""
    try:
        return typed(held_.rows, columns, held_.name)
    except (DataError, AttributeError):
        parts = []
        for i in range(held_.rows.num_rows):
            try:
                parts.append(typed(held_.rows.slice(i, 1), columns, held_.name))
            except (DataError, AttributeError):
                parts.append(pa.table([pa.nulls(1, f.type) for f in columns], schema=pa.schema(list(columns))))
        return pa.concat_tables(parts)


def columns_of(application: Application, name: str) -> list[pa.Field]:
    """The columns of the rows of a quarantine: those of the admitted stream, or of a relation's source."""
    log = DeltaLog(application.layout.admitted(name))
    if name in application.catalog.streams and log.exists():
        return [f for f in log.schema() if not f.name.startswith("__")]
    return list(application.sources.table(name).schema())


def listing(
    application: Application, name: str | None = None, where: str | None = None, form: str = "table",
    limit: int | None = SHOWN,
) -> str:  # fmt: skip
    """What is in the quarantine of one name or of all, newest first, as text: a table, or JSON lines."""
    names = [name] if name else [*application.catalog.streams, *application.catalog.relations]
    rows: list[dict[str, Any]] = []
    copies = duplicates = 0
    for each in names:
        found = held(application, each)
        if where is None:
            wrong = pc.invert(pc.starts_with(found.rows.column("__reason"), DUPLICATE))
            everything, found = found.total(), found.where(wrong)
            duplicates += everything - found.total()
        elif found.rows.num_rows:
            found = matching(found, where, columns_of(application, each))
        copies += found.total()
        time = application.plans.input_schema(each).time if found.rows.num_rows else TimeDomain()
        rows += _shown(found, time, None if limit is None else max(0, limit - len(rows)))
    if form == "json":
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    left_out = (
        f"\n{duplicates} dropped duplicates are remembered (ON SOURCE CHANGE CORRECT);"
        """ --where "__reason LIKE 'duplicate%'" shows them"""
        if duplicates
        else ""
    )
    if not copies:
        return f"Nothing {'' if where is None else f'that fulfils {where} '}is in quarantine.{left_out}"
    if not rows:
        return f"{copies} rows are in quarantine; --limit {copies} shows them{left_out}"
    table = text_table(list(rows[0]), [list(row.values()) for row in rows])
    shown = sum(abs(row["copies"]) for row in rows)
    more = "" if shown == copies else f"\n{copies - shown} more; --limit {copies} shows all, --where chooses"
    return table + more + left_out


def _shown(found: Held, time: TimeDomain, limit: int | None) -> list[dict[str, Any]]:
    """One entry for equal rows of a commit, in the order of the first of each."""
    codes, first, counts = np.unique(
        keys.codes([found.rows.column("__id")])[0] if found.rows.num_rows else np.zeros(0, np.int64),
        return_index=True,
        return_inverse=True,
    )
    copies = np.bincount(counts, keys.int64_of(found.rows.column("__n")), len(codes)).astype(np.int64)
    order = np.argsort(first)[:limit]
    shown = found.rows.take(pa.array(first[order], pa.int64())).to_pylist()
    return [
        {
            "id": row["__id"],
            "stream": found.name,
            "version": row["__version"],
            "tick": row["__tick"],
            "instant": None if row["__tick"] is None else instant_text(time, row["__tick"]),
            "copies": n,
            "reason": row["__reason"],
            "row": row["__row"],
        }
        for row, n in zip(shown, copies[order].tolist(), strict=True)
    ]
