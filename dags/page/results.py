"""What a query's results are: now, as of an instant, and over time for a plot. Read by DuckDB within bounds."""

from __future__ import annotations

import re
from typing import Any

from sweeparea.dags.page.bounds import COLUMNS, LETTERS, POINTS, ROWS, bounded
from sweeparea.dags.page.moments import Json
from sweeparea.dags.page.tables import PinnedTable, shown_columns
from sweeparea.infra.errors import UsageError
from sweeparea.spark_jobs.commands.sql import Reader

_NUMBER = re.compile(r"(u?int|float|double|halffloat|decimal)")


def rows_at(table: PinnedTable, instant: int | None, most: int = ROWS) -> Json:
    """The rows of a relation that hold at an ``instant`` (None: now), or the newest of a stream up to it. Values are
    texts of at most ``LETTERS`` letters.
    """
    names, left_out = shown_columns(table.columns, COLUMNS)
    times = ["valid_from", "valid_to"] if table.relation else [table.time] if table.time else []
    files = list(table.files) if instant is None else table.until(instant)
    listed = ", ".join([*(_cut(name) for name in names), *(_time(table, name) for name in times)])
    where, values = _holding(table, instant)
    order = "" if table.relation or table.time is None else f" ORDER BY {quoted(table.time)} DESC"
    with bounded() as connection:
        Reader.view(connection, "main", "shown", table.log, files, None)
        found = connection.execute(
            f"SELECT {listed} FROM shown WHERE {where}{order} LIMIT {most + 1}", values
        ).fetchall()
    return {
        "table": table.name,
        "columns": [{"name": name, "type": str(table.schema.field(name).type)} for name in names],
        "left_out": left_out,
        "rows": [[*row[: len(names)], *(_instant(table, at) for at in row[len(names) :])] for row in found[:most]],
        "times": times,
        "ticks": table.ticks,
        "more": len(found) > most,
    }


def over_time(
    table: PinnedTable,
    until: int | None = None,
    measure: str | None = None,
    keys: list[str] | None = None,
    most: int = POINTS,
) -> Json:
    """The newest rows that began at or before ``until``, oldest first: the text of the columns ``keys`` (default: all
    that are no numbers), when each began and ended (None: it holds), and the value of a ``measure`` (default: the first
    column of numbers).
    """
    if table.time is None:
        raise UsageError(f"{table.name} has no instants.")
    numbers = [name for name in table.columns if is_number(table, name)]
    for name in [*(keys or ()), *([measure] if measure else [])]:
        if name not in table.columns:
            raise UsageError(f"{table.name} has no column {name}.")
    if measure is not None and measure not in numbers:
        raise UsageError(
            f"{measure} is no number, so it cannot be plotted. Choose one of {', '.join(numbers) or 'none'}."
        )
    chosen = measure or next(iter(numbers), None)
    key_columns = [name for name in table.columns if name not in numbers][:4] if keys is None else keys
    text = " || ' · ' || ".join(f"coalesce({_cut(name, 60)}, 'NULL')" for name in key_columns) or "''"
    value = f"CAST({quoted(chosen)} AS DOUBLE)" if chosen else "NULL"
    to = _time(table, "valid_to") if table.relation else "NULL"
    begun = _time(table, table.time)
    files = list(table.files) if until is None else table.until(until)
    where = "TRUE" if until is None else f"{begun} <= ?"
    statement = (
        f"SELECT {text}, {begun} AS begun, {to}, {value} FROM shown WHERE {where} ORDER BY begun DESC LIMIT {most + 1}"
    )
    with bounded() as connection:
        Reader.view(connection, "main", "shown", table.log, files, None)
        found = connection.execute(statement, [] if until is None else [until]).fetchall()
    scale = 1 if table.ticks else 1000
    rows = [
        [key, begun / scale, None if ended is None else ended / scale, _finite(value)]
        for key, begun, ended, value in reversed(found[:most])
    ]
    return {
        "table": table.name,
        "relation": table.relation,
        "ticks": table.ticks,
        "measure": chosen,
        "measures": numbers,
        "keys": key_columns,
        "columns": table.columns,
        "end": None if table.end is None else table.end / scale,
        "rows": rows,
        "more": len(found) > most,
    }


def is_number(table: PinnedTable, name: str) -> bool:
    """Whether a column can be a measure."""
    return bool(_NUMBER.match(str(table.schema.field(name).type)))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cut(name: str, letters: int = LETTERS) -> str:
    return f"left(CAST({quoted(name)} AS VARCHAR), {letters})"


def _time(table: PinnedTable, name: str) -> str:
    """An instant column as a number: microseconds, or the tick that it is."""
    return quoted(name) if table.ticks else f"epoch_us({quoted(name)})"


def _holding(table: PinnedTable, instant: int | None) -> tuple[str, list[Any]]:
    if not table.relation:
        return (
            ("TRUE", []) if instant is None or table.time is None else (f"{_time(table, table.time)} <= ?", [instant])
        )
    if instant is None:
        return "valid_to IS NULL", []
    start, end = _time(table, "valid_from"), _time(table, "valid_to")
    return f"{start} <= ? AND (valid_to IS NULL OR {end} > ?)", [instant, instant]


def _instant(table: PinnedTable, value: int | None) -> Json | None:
    return None if value is None else {"tick": str(value)} if table.ticks else {"ms": value / 1000}


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None
