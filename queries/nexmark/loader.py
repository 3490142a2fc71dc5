"""The events of ``events.json`` as source Delta tables: ``<data>/source/person``, ``auction`` and ``bid``."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

FOLDER = Path(__file__).parent
STREAMS = ("person", "auction", "bid")
END = datetime(2015, 7, 15, 0, 1, tzinfo=UTC)
"""All events lie before, and all windows over them have closed."""
TICK = int(END.timestamp() * 1000)
"""END as a tick: the streams' chronon is one millisecond."""

_INSTANTS = ("date_time", "expires")


def load(data: Path | str) -> dict[str, int]:
    """Writes each table in one commit, unless it is there; the number of its rows by name."""
    events = json.loads((FOLDER / "events.json").read_text(encoding="utf-8"))
    rows = {}
    for name in STREAMS:
        uri = str(Path(data).absolute() / "source" / name)
        table = _table(events[name])
        if not DeltaTable.is_deltatable(uri):
            write_deltalake(uri, table, mode="error", name=name)
        rows[name] = table.num_rows
    return rows


def _table(events: list[dict]) -> pa.Table:
    columns = {name: [event[name] for event in events] for name in events[0]}
    for name in _INSTANTS:
        if name in columns:
            moments = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in columns[name]]
            columns[name] = pa.array(moments, pa.timestamp("us", tz="UTC"))
    return pa.table(columns)
