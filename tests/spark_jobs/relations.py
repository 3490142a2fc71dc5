"""Relations over real Delta tables, for tests: their sources, and what they hold at an instant."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from sweeparea.spark_jobs.admission.judging.report import Admitted
from sweeparea.spark_jobs.admission.relation.change_relation import RelationAdmission
from sweeparea.spark_jobs.application import Application
from sweeparea.tables.log.delta_log import DeltaLog

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", tz="UTC")
SECOND = 1_000_000


def tick(seconds: float | None) -> int:
    """Seconds after noon as a relation's tick: microseconds."""
    assert seconds is not None
    return round(((NOON - EPOCH).total_seconds() + seconds) * SECOND)


def schema(text: str) -> pa.Schema:
    """``item string, price double, valid_from time``."""
    kinds = {"string": pa.string(), "double": pa.float64(), "bigint": pa.int64(), "time": TIME, "date": pa.date32()}
    pairs = [part.split() for part in text.split(",")]
    return pa.schema([(name, kinds[kind]) for name, kind in pairs])


def table(columns: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Rows as Arrow; times are seconds after noon, or datetimes."""
    cells = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
    arrays = []
    for values, field in zip(cells, columns, strict=True):
        if field.type == TIME:
            values = [NOON + timedelta(seconds=v) if isinstance(v, int | float) else v for v in values]
        arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=columns)


def put(folder: Path, source: str, columns: pa.Schema, rows: Iterable[Sequence[Any]], mode: Any = "append") -> None:
    """One version of a source."""
    write_deltalake(str(folder / "data" / source), table(columns, rows), mode=mode)


def application(folder: Path, text: str) -> Application:
    """The application in ``folder``: its declarations and its data folder."""
    files = folder / "app"
    files.mkdir(parents=True, exist_ok=True)
    (files / "app.cql").write_text(text)
    return Application.open(files, folder / "data")


def admitted(app: Application, name: str = "r") -> Admitted:
    """Admits a relation that changes, without Spark."""
    row = app.ledger.head().get(name)
    return RelationAdmission(app, name, app.registry.registration(name, row)).run()


def changes(app: Application, name: str = "r") -> dict[tuple, int]:
    """The admitted changes, netted: (record, tick) to copies."""
    found: collections.Counter = collections.Counter()
    for row in DeltaLog(app.layout.admitted(name)).read().to_pylist():
        record = tuple(value for column, value in row.items() if not column.startswith("__"))
        found[(record, row["__tick"])] += row["__n"]
    return {key: n for key, n in found.items() if n}


def contents(app: Application | dict[tuple, int], at: int, name: str = "r") -> dict[tuple, int]:
    """What a relation holds at a tick, from its ``changes``."""
    found: collections.Counter = collections.Counter()
    for (record, instant), n in (changes(app, name) if isinstance(app, Application) else app).items():
        if instant <= at:
            found[record] += n
    return {record: n for record, n in found.items() if n}


def quarantine(app: Application, name: str = "r") -> list[tuple[str, int | None, int, str]]:
    """(reason up to its first colon or blank before a parenthesis, tick, copies, row), sorted."""
    rows = DeltaLog(app.layout.quarantine(name)).read().to_pylist()
    assert all(row["__stream"] == name and row["__version"] is not None for row in rows)
    return sorted((r["__reason"].split(":")[0], r["__tick"], r["__n"], r["__row"]) for r in rows)
