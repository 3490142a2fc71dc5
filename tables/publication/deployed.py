"""What is deployed: one row per stream, relation, query and function that a data folder has been given, with its text.

A small Delta table of one file, replaced by compare-and-swap like the ledger's head. The ledger says how far a name has
come, this table says what it is: the definition that its tables were made by. A name's ``registration`` is made here,
when it is registered, and ties the rows of its tables to that definition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Any

import pyarrow as pa

from sweeparea.tables.errors import TableError
from sweeparea.tables.layout import Layout
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.swapped_table import SwappedTable

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("definition", pa.string()),
        ("fingerprint", pa.string()),
        ("registration", pa.string()),
        ("depends_on", pa.string()),
        ("settings", pa.string()),
        ("engine", pa.string()),
        ("paused", pa.bool_()),
        ("deployed_at", pa.timestamp("us", "UTC")),
    ]
)
"""depends_on and settings are JSON text; what a query was planned with stands among the settings, as ``planned``."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class DeployedRow:
    """One name as it was registered.

    ``definition`` is the canonical text;
    ``fingerprint`` its identity; ``registration`` the id that its commits carry; ``depends_on`` the names it reads;
    ``settings`` what applied to it from outside its text (``SET``, an environment: settings by name, ``source`` for a
    source that was exchanged, ``code`` for a function's Python source, ``policy`` for that of a heartbeat's policy);
    ``planned`` what a query's plan was chosen by and has to be made by again; ``engine`` the version that registered
    it; ``deployed_at`` microseconds since the epoch, UTC.
    """

    name: str
    kind: NameKind
    definition: str
    fingerprint: str
    registration: str
    depends_on: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    engine: str = ""
    paused: bool = False
    deployed_at: int = 0
    planned: dict[str, Any] = field(default_factory=dict)

    @property
    def app(self) -> str:
        """The application id that the registration's commits carry (``LedgerRow.app``)."""
        return f"{self.name}:{self.registration}"


Rows = dict[str, DeployedRow]


def definition(row: DeployedRow) -> dict[str, Any]:
    """What a row says of its name's definition, as JSON holds it."""
    parts = {key: getattr(row, key) for key in ("definition", "fingerprint", "settings", "engine", "planned")}
    return {**parts, "depends_on": list(row.depends_on)}


class Deployed:
    """The table of one data folder. Reading it where nothing was ever deployed gives nothing and creates nothing."""

    def __init__(self, data_folder: str | PathLike[str], storage_options: dict[str, str] | None = None) -> None:
        self.layout = Layout(data_folder)
        self._table: SwappedTable[DeployedRow] = SwappedTable(
            self.layout.deployed,
            SCHEMA,
            "Every stream, relation, query and function that is deployed, with its definition",
            storage_options,
            to_table=_to_table,
            from_table=_from_table,
        )

    def rows(self) -> Rows:
        """All rows by name. A version that was read before is not read again."""
        return self._table.rows()

    def register(self, row: DeployedRow) -> DeployedRow:
        """Adds a name unless it is there; returns the row that stands, which may be that of a faster run."""

        def add(rows: Rows) -> Rows:
            return rows if row.name in rows else {**rows, row.name: row}

        return self.change(add)[row.name]

    def succeed(self, row: DeployedRow, registration: str | None) -> DeployedRow | None:
        """Puts ``row`` in place of that of a ``registration`` of its name (None: where there is none), paused as that
        one is; nothing happens where another one stands. Returns what stands then.
        """

        def succeeded(rows: Rows) -> Rows:
            old = rows.get(row.name)
            if (None if old is None else old.registration) != registration:
                return rows
            return {**rows, row.name: row if old is None else replace(row, paused=old.paused)}

        return self.change(succeeded).get(row.name)

    def exchange(self, name: str, registration: str, old: str, new: dict[str, Any], at: int) -> None:
        """Gives a registration another definition (as ``definition`` says it) in place of the one whose fingerprint is
        ``old``; ``at`` names the exchange. Twice is harmless, and nothing happens where yet another one stands.
        """

        def exchanged(rows: Rows) -> Rows:
            row = rows.get(name)
            if row is None or (row.registration, row.fingerprint) != (registration, old) or row.deployed_at == at:
                return rows
            return {**rows, name: replace(row, **{**new, "depends_on": tuple(new["depends_on"]), "deployed_at": at})}

        self.change(exchanged)

    def remove(self, name: str, registration: str) -> None:
        """Forgets a registration of a name; nothing happens where another one stands, or none."""
        self.change(lambda rows: {k: row for k, row in rows.items() if (k, row.registration) != (name, registration)})

    def pause(self, name: str, paused: bool) -> None:
        """Marks a name, which must be there, as paused or not."""

        def mark(rows: Rows) -> Rows:
            if name not in rows:
                raise TableError(f"{name} is not deployed, so it can be neither paused nor resumed.")
            return {**rows, name: replace(rows[name], paused=paused)}

        self.change(mark)

    def change(self, change: Callable[[Rows], Mapping[str, DeployedRow]]) -> Rows:
        """Replaces the rows by ``change`` of them, as one commit; returns what stands then.

        ``change`` is called again where another run was faster, so it must depend on its argument alone.
        """
        return self._table.change(change)


def _to_table(rows: Sequence[DeployedRow]) -> pa.Table:
    plain = ("name", "kind", "definition", "fingerprint", "registration", "engine", "paused")
    records = [
        {
            **{key: getattr(row, key) for key in plain},
            "depends_on": json.dumps(row.depends_on, ensure_ascii=False),
            "settings": json.dumps(_outside(row), ensure_ascii=False, sort_keys=True),
            "deployed_at": _EPOCH + timedelta(microseconds=row.deployed_at),
        }
        for row in rows
    ]
    return pa.Table.from_pylist(records, schema=SCHEMA)


def _outside(row: DeployedRow) -> dict[str, Any]:
    return {**row.settings, "planned": row.planned} if row.planned else row.settings


def _from_table(table: pa.Table) -> list[DeployedRow]:
    at = table.column("deployed_at").cast(pa.int64()).to_pylist()
    found = []
    for record, micros in zip(table.drop_columns(["deployed_at"]).to_pylist(), at, strict=True):
        record["kind"] = NameKind(record["kind"])
        record["depends_on"] = tuple(json.loads(record["depends_on"]))
        record["settings"] = json.loads(record["settings"])
        planned = record["settings"].pop("planned", {})
        found.append(DeployedRow(**record, deployed_at=micros, planned=planned))
    return found
