"""Which rows of a quarantine are released, and what a person has put right in them."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.text.errors import nearest
from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.spark_jobs.admission.judging import quarantine
from sweeparea.spark_jobs.admission.judging.stage import Stage
from sweeparea.spark_jobs.admission.release.wanted_rows import WantedRows
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark import json_values


@dataclass
class Released:
    """``rows`` copies were admitted, ``repaired`` of them below the heartbeat; ``refused``: per row that stays in
    quarantine its id and the reason.
    """

    rows: int = 0
    repaired: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)


def chosen(
    application: Application, name: str, stage: Stage, wanted: WantedRows, columns: Sequence[pa.Field]
) -> quarantine.Held:
    """The rows that are wanted, as the quarantine held them when the commit began."""
    held = quarantine.held(application, name, stage.quarantine_version)
    known = set(held.rows.column("__id").to_pylist())
    for each in wanted.ids:
        if each not in known:
            shown = application.command("quarantine list", name)
            raise SweepAreaError(
                f"There is no row {each} in the quarantine of {name}: it may have been released already."
                f" {nearest(each, known)} `{shown}` lists what is there.".replace("  ", " ")
            )
    if wanted.ids:
        held = held.where(pc.is_in(held.rows.column("__id"), pa.array(wanted.ids, pa.string())))
    if wanted.where is not None:
        held = quarantine.matching(held, wanted.where, columns)
    elif not wanted.ids:
        raise SweepAreaError("Say which rows are to be released: give their ids, or a condition with --where.")
    if not held.rows.num_rows:
        raise SweepAreaError(f"No row in the quarantine of {name} fulfils the condition {wanted.where}.")
    return held


def corrected(held: quarantine.Held, wanted: WantedRows, columns: Sequence[pa.Field], name: str) -> pa.Table:
    """The rows with what a person has put right in them."""
    names = [f.name for f in columns]
    if wanted.row is not None:
        if held.rows.num_rows != 1:
            raise SweepAreaError(
                f"--row gives one row, but {held.rows.num_rows} are to be released. Name one by its id."
            )
        try:
            given = json.loads(wanted.row)
        except ValueError as error:
            raise SweepAreaError(f"--row is no JSON: {error}.") from None
        if not isinstance(given, dict) or sorted(given) != sorted(names):
            raise SweepAreaError(
                f"--row must be a JSON object with exactly the columns of {name}: {', '.join(names)}. A column that is"
                " NULL is written null."
            )
        text = pa.array([json.dumps(given)], pa.string())
        rows = held.rows.set_column(held.rows.column_names.index("__row"), "__row", text)
        return quarantine.typed(rows, columns, name)
    known = {n.lower(): n for n in names}
    values: dict[str, str] = {}
    for column, value in wanted.assigned.items():
        if column.lower() not in known:
            hint = nearest(column, names) or f"Its columns are {', '.join(names)}."
            raise SweepAreaError(f"--set {column}: {name} has no such column. {hint}")
        values[known[column.lower()]] = value
    kept = [f for f in columns if f.name not in values]
    rows = quarantine.typed(held.rows, kept, name)
    made = {f.name: _assigned(values[f.name], f, held.rows.num_rows) for f in columns if f.name in values}
    return pa.table([made[n] if n in made else rows.column(n) for n in names], schema=pa.schema(list(columns)))


def _assigned(text: str, column: pa.Field, count: int) -> pa.Array:
    """``--set column=text``: NULL, a text for a column of texts or instants, else JSON."""
    value: Any = text
    if text == "NULL":
        value = None
    elif not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        try:
            value = json.loads(text)
        except ValueError:
            value = text
    try:
        one = json_values.column([value], column.type, f"--set {column.name}={text}")
    except DataError as error:
        raise SweepAreaError(str(error)) from None
    return one.take(pa.array(np.zeros(count, np.int64)))
