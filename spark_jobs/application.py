"""An application: a folder of ``.cql`` files and a data folder. What the jobs know about both, without Spark."""

from __future__ import annotations

import functools
import hashlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sweeparea.cql.binder import InputSchema, bind, bind_source_expression
from sweeparea.cql.catalog import Catalog
from sweeparea.infra import settings
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.logical import Plan, TimeDomain
from sweeparea.spark_jobs.errors import NotReadyError, ReservedNameError
from sweeparea.tables.delta_log import DeltaLog
from sweeparea.tables.layout import Layout
from sweeparea.tables.ledger import Ledger, LedgerRow
from sweeparea.tables.schema import spark_type
from sweeparea.tables.source import SourceTable

if TYPE_CHECKING:
    from sweeparea.cql.statements import CreateQuery, CreateRelation, CreateStream

ENGINE_COLUMNS = ("__tick", "__seq", "__n")
_TIME_TYPES = {"bigint": "BIGINT", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP", "date": "TIMESTAMP"}


@dataclass
class Application:
    """``catalog`` is what the ``.cql`` files say, ``layout`` where the tables are, ``ledger`` what has been
    committed.
    """

    name: str
    catalog: Catalog
    data: Path
    layout: Layout = field(init=False)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.layout = Layout(str(self.data))
        self.ledger = Ledger(str(self.data))

    @classmethod
    def open(cls, application: str | Path, data: str | Path | None = None) -> Application:
        """``application`` is a folder of ``.cql`` files, or the name of one under ``queries/``."""
        folder = Path(application)
        if not folder.is_dir():
            folder = settings.application(str(application))
        if not folder.is_dir():
            known = sorted(p.parent.name for p in settings.applications_folder().glob("*/*.cql"))
            listed = ", ".join(dict.fromkeys(known)) or "none"
            raise SweepAreaError(
                f"There is no application {application}: neither {Path(application).absolute()} nor {folder} is a"
                f" folder. Give a folder of .cql files or one of the names under {settings.applications_folder()}:"
                f" {listed}."
            )
        folder = folder.resolve()
        return cls(folder.name, Catalog.load(folder), Path(data).resolve() if data else default_data(folder))

    # -- what is declared ----------------------------------------------------------------------------------------------

    def source(self, name: str) -> CreateStream | CreateRelation:
        """The declaration of a stream or relation."""
        declared = {**self.catalog.streams, **self.catalog.relations}
        if name not in declared:
            raise _unknown("stream or relation", name, declared)
        return declared[name]

    def stream(self, name: str) -> CreateStream:
        if name not in self.catalog.streams:
            raise _unknown("stream", name, self.catalog.streams)
        return self.catalog.streams[name]

    def query(self, name: str) -> CreateQuery:
        if name not in self.catalog.queries:
            raise _unknown("continuous query", name, self.catalog.queries)
        return self.catalog.queries[name]

    def is_static(self, name: str) -> bool:
        """Whether an input is a snapshot that never changes."""
        return name in self.catalog.relations

    def source_table(self, name: str) -> SourceTable:
        """The user's own Delta table behind a stream or relation. Relative paths start at the data folder."""
        uri = self.source(name).source.uri
        return SourceTable(uri if "://" in uri or uri.startswith("/") else str(self.data / uri))

    @functools.cached_property
    def _schemas(self) -> dict[str, InputSchema]:
        return {}

    def input_schema(self, name: str) -> InputSchema:
        """Columns, types and time of an input, from what was admitted, else from its source or its query's plan."""
        if name not in self._schemas:
            if name in self.catalog.queries:
                self._schemas[name] = self._query_schema(name)
            else:
                self._schemas[name] = self._source_schema(name)
        return self._schemas[name]

    def _source_schema(self, name: str) -> InputSchema:
        admitted = DeltaLog(self.layout.admitted(name))
        if admitted.exists():
            fields = [f for f in admitted.schema() if f.name not in ENGINE_COLUMNS]
            columns = tuple((f.name, spark_type(f.type)) for f in fields)
        else:
            columns = tuple(self.source_table(name).spark_schema())
            refuse_reserved(name, [column for column, _ in columns])
        if name in self.catalog.relations:
            return InputSchema(name, "relation", columns, TimeDomain(), static=True)
        return InputSchema(name, "stream", columns, self.stream_time(name, dict(columns)))

    def stream_time(self, name: str, types: Mapping[str, str | None]) -> TimeDomain:
        """The time domain of a stream; refuses a TIMESTAMP BY column that is missing or no time."""
        declared = self.catalog.streams[name]
        column = declared.timestamp_by
        if column not in types:
            raise _unknown(f"column (TIMESTAMP BY of stream {name}, {declared.place})", column, types)
        kind = _TIME_TYPES.get(types[column] or "")
        if kind is None:
            times = [c for c, t in types.items() if t in _TIME_TYPES]
            raise SweepAreaError(
                f"Stream {name} ({declared.place}): TIMESTAMP BY {column} is of type {types[column]}, which is no time."
                " It must be TIMESTAMP, TIMESTAMP_NTZ, DATE or BIGINT; columns of such a type here:"
                f" {', '.join(times) or 'none'}. Convert the column in the source table, or name another."
            )
        chronon = declared.chronon_us
        if kind == "BIGINT" and chronon not in (None, 1):
            raise SweepAreaError(
                f"Stream {name} ({declared.place}): CHRONON is a length of time, but TIMESTAMP BY {column} is a BIGINT "
                "sequence number, whose tick is 1. Remove CHRONON, or use a TIMESTAMP column."
            )
        return TimeDomain(kind, chronon or 1)

    def source_expressions(self, name: str) -> tuple[str | None, list[str]]:
        """Spark SQL of a stream's heartbeat expression and of its constraints, over its columns; names are checked."""
        declared, schema = self.stream(name), self.input_schema(name)
        spec = declared.heartbeat
        heartbeat = None
        if spec is not None and spec.kind == "for" and spec.expression is not None:
            heartbeat = bind_source_expression(spec.expression, schema, "HEARTBEAT").sql
        elif spec is not None and spec.kind == "column" and spec.column is not None:
            known = {column.lower(): column for column, _ in schema.columns}
            if spec.column.lower() not in known:
                raise _unknown(f"column (HEARTBEAT of stream {name}, {declared.place})", spec.column, known.values())
            heartbeat = f"`{known[spec.column.lower()].replace('`', '``')}`"
        if declared.sequence_by is not None and declared.sequence_by.lower() not in (
            c.lower() for c, _ in schema.columns
        ):
            what = f"column (SEQUENCE BY of stream {name}, {declared.place})"
            raise _unknown(what, declared.sequence_by, [column for column, _ in schema.columns])
        constraints = [
            bind_source_expression(c.expression, schema, f"CONSTRAINT {c.name}").sql for c in declared.constraints
        ]
        return heartbeat, constraints

    def _query_schema(self, name: str) -> InputSchema:
        plan = self.plan(name)
        columns = [(c.label, c.type) for c in plan.root.columns]
        result = DeltaLog(self.layout.result(name))
        if result.exists():
            types = {f.name: spark_type(f.type) for f in result.schema()}
            columns = [(label, types.get(label, kind)) for label, kind in columns]
        return InputSchema(name, "stream" if plan.stream else "relation", tuple(columns), plan.time, derived=True)

    def definition(self, name: str) -> str:
        """The text that declares a name."""
        return self.query(name).text if name in self.catalog.queries else self.source(name).text

    def plan(self, name: str) -> Plan:
        """The bound plan of a query."""
        declared = self.query(name)
        inputs = {i: self.input_schema(i) for i in self.catalog.dependencies(name)}
        return bind(declared, inputs, self.catalog.settings)

    # -- what has happened ---------------------------------------------------------------------------------------------

    def heartbeats(self, plan: Plan, head: dict[str, LedgerRow]) -> dict[str, int | None]:
        """Per input the instant up to which it is known (``INF`` for static relations)."""
        from sweeparea.heartbeats.minimum import INFINITE

        found: dict[str, int | None] = {}
        for name in plan.inputs:
            row = head.get(name)
            if self.is_static(name):
                found[name] = INFINITE if row else None
            else:
                found[name] = row.committed if row else None
        return found

    def registration(self, name: str, definition: str, row: LedgerRow | None) -> str:
        """The registration id of a name: made at its first commit; a definition that changed since is refused."""
        if row is None:
            return str(uuid.uuid4())
        known = row.info.get("definition")
        if known is not None and known != fingerprint(definition):
            raise SweepAreaError(
                f"The definition of {name} has changed since it was first run: its tables were made by another text."
                " Results of two definitions are never mixed. Give the new definition a new name, or run `sweeparea"
                f" drop {self.name} {name}` to remove the old tables and start again."
            )
        return row.registration

    def required_row(self, name: str) -> LedgerRow:
        row = self.ledger.head().get(name)
        if row is None:
            raise NotReadyError(
                f"{name} has not run yet. Run `sweeparea status {self.name}` to see what waits for what."
            )
        return row


def refuse_reserved(name: str, columns: Iterable[str]) -> None:
    """Refuses a source with columns in the engine's own name space: its tables add ``__tick``, ``__seq``, ``__n``."""
    taken = [c for c in columns if c.startswith("__")]
    if taken:
        raise ReservedNameError(
            f"{name}: its source has the column(s) {', '.join(taken)}. Names that begin with two underscores are"
            " SweepArea's own. Rename them in the source table."
        )


def default_data(folder: Path) -> Path:
    """The data folder of an application: ``.data/<name>`` for those under ``queries/``, else ``.data`` in its own
    folder.

    Two folders of one name in different places must not share tables.
    """
    installed = folder.parent == settings.applications_folder().resolve()
    return settings.data(folder.name) if installed else folder / ".data"


def fingerprint(definition: str) -> str:
    """A definition's identity: its text without comments' whereabouts or white space."""
    return hashlib.sha256(" ".join(definition.split()).encode()).hexdigest()[:16]


def _unknown(what: str, name: str, known: object) -> SweepAreaError:
    import difflib

    names = sorted(str(n) for n in known)  # type: ignore[attr-defined]
    near = difflib.get_close_matches(name, names, 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return SweepAreaError(f"There is no {what} named {name}.{hint} Known: {', '.join(names) or 'none'}.")
