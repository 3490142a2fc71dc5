"""What somebody has been alerted of and is not over: one row per incident, in a small table of the data folder.

An incident is opened once, however often it is looked at, and closed by its all-clear; so none is told twice, whatever
looks and however it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from os import PathLike

import pyarrow as pa

from sweeparea.tables.layout import Layout
from sweeparea.tables.publication.swapped_table import SwappedTable

SCHEMA = pa.schema([("name", pa.string()), ("text", pa.string()), ("since", pa.timestamp("us", "UTC"))])
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Incident:
    """``name``: what it is of and its kind (``lag orders``); ``text`` what was told; ``since`` when: microseconds since
    the epoch, UTC.
    """

    name: str
    text: str
    since: int


class Incidents:
    """The open incidents of one data folder. Reading them where there never was one creates nothing."""

    def __init__(self, data_folder: str | PathLike[str], storage_options: dict[str, str] | None = None) -> None:
        self._table: SwappedTable[Incident] = SwappedTable(
            Layout(data_folder).incidents,
            SCHEMA,
            "What somebody has been alerted of and is not over",
            storage_options,
            to_table=_to_table,
            from_table=_from_table,
        )

    def open(self) -> dict[str, Incident]:
        """The incidents that are not over, by name."""
        return self._table.rows()

    def change(self, opened: Iterable[Incident] = (), closed: Iterable[str] = ()) -> None:
        """Opens incidents (one that is open stays as it is) and closes others, by name, in one commit."""
        new, over = {incident.name: incident for incident in opened}, set(closed)
        if new or over:
            self._table.change(lambda rows: {**new, **{k: row for k, row in rows.items() if k not in over}})


def _to_table(incidents: Sequence[Incident]) -> pa.Table:
    rows = [{"name": i.name, "text": i.text, "since": _EPOCH + timedelta(microseconds=i.since)} for i in incidents]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _from_table(table: pa.Table) -> list[Incident]:
    since = table.column("since").cast(pa.int64()).to_pylist()
    rows = table.select(["name", "text"]).to_pylist()
    return [Incident(row["name"], row["text"], at) for row, at in zip(rows, since, strict=True)]
