"""What a relation's declaration says of the table behind it: which columns are its record, which tell operation and
time. Checked before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.syntax.statements import CreateRelation
from sweeparea.cql.text.errors import BindError, Place, TypeError_, raise_all
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.spark_jobs.declarations.keyed import KeyedChanges
from sweeparea.spark_jobs.declarations.source_columns import TIME_TYPES, no_column

SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
"""The operations of a log without KEY: those of Delta's change data feed."""


@dataclass(frozen=True)
class RelationSource:
    """How a relation's source is read. Names are spelt as the source spells them.

    ``columns``: (name, Spark type) of the source; ``record``: the columns that are the relation's; ``instants``: those
    of validity (from, to), or of a change's instant; ``operation`` and ``keyed`` those of a log of changes; ``chars``:
    the columns that hold CHAR values with their declared types.
    """

    name: str
    contents: str
    columns: tuple[tuple[str, str], ...]
    record: tuple[str, ...]
    time: TimeDomain
    instants: tuple[str, ...] = ()
    operation: str | None = None
    keyed: KeyedChanges | None = None
    chars: tuple[tuple[str, str], ...] = ()

    @property
    def schema(self) -> InputSchema:
        """The source as expressions over its rows see it."""
        return InputSchema(self.name, SchemaKind.RELATION, self.columns, self.time, chars=self.chars)

    @property
    def record_columns(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, kind) for name, kind in self.columns if name in self.record)


def source_of(declared: CreateRelation, columns: Iterable[tuple[str, str]]) -> RelationSource:
    """What a declaration says over a source's columns. Raises BindError for names that are none, TypeError_ for columns
    that cannot be what they are named for; all of them at once.
    """
    return _DeclaredRelation(declared, tuple(columns)).read()


class _DeclaredRelation:
    def __init__(self, declared: CreateRelation, columns: tuple[tuple[str, str], ...]) -> None:
        self.declared, self.columns = declared, columns
        self.types = {name.lower(): (name, kind) for name, kind in columns}
        self.faults: list[SweepAreaError] = []

    def read(self) -> RelationSource:
        declared = self.declared
        instants, operation, keyed = (), None, None
        kind = TimeKind.TIMESTAMP if declared.contents == "feed" else TimeKind.BIGINT
        if declared.history is not None:
            instants = tuple(self._column("HISTORY BY", c, "history") for c in declared.history)
            kind = self._time("HISTORY BY", instants, "history")
            self._apart("HISTORY BY", instants, "history")
        elif declared.changes is not None:
            operation, at = (self._column("CHANGES BY", c, "changes") for c in declared.changes)
            self._apart("CHANGES BY", (operation, at), "changes")
            self._operation(operation)
            kind, instants = self._time("CHANGES BY", (at,), "changes"), (at,)
            keyed = self._keyed(operation, at)
        record = tuple(name for name, _ in self.columns if name not in (*instants, operation))
        if not record:
            self._fault(
                TypeError_,
                f"nothing is left of the rows of relation {declared.name}: its source has no columns but those of"
                " operation and time",
                declared.contents,
                "Name a source with columns of its own",
            )
        raise_all(self.faults)
        return RelationSource(
            declared.name, declared.contents, self.columns, record, TimeDomain(kind), instants, operation, keyed
        )

    def _keyed(self, operation: str, at: str) -> KeyedChanges | None:
        declared = self.declared
        if not declared.key:
            return None
        key = tuple(self._column("KEY", c, "key") for c in declared.key)
        self._apart("KEY", key, "key")
        for column in key:
            if column in (operation, at):
                self._fault(
                    BindError,
                    f"KEY of relation {declared.name} names {column}, which is no part of its rows: it tells their"
                    " operation or instant",
                    "key",
                    "Name the columns by which a row is known",
                )
        sequence = declared.sequence_by
        return KeyedChanges(
            key, operation, None if sequence is None else self._column("SEQUENCE BY", sequence, "sequence_by")
        )

    def _column(self, clause: str, column: str, field: str) -> str:
        """The column as the source spells it; a fault if there is none."""
        found = self.types.get(column.lower())
        if found is not None:
            return found[0]
        place = self.declared.places.get(field, self.declared.place)
        self.faults.append(no_column(clause, column, [name for name, _ in self.columns], place))
        return column

    def _apart(self, clause: str, columns: tuple[str, ...], field: str) -> None:
        for i, column in enumerate(columns):
            if column in columns[:i]:
                self._fault(BindError, f"{clause} names {column} twice", field, "Name two different columns")

    def _operation(self, column: str) -> None:
        kind = self.types.get(column.lower(), ("", "string"))[1]
        if kind != "string":
            codes = "I, U or D" if self.declared.key else ", ".join(SIGNS)
            self._fault(
                TypeError_,
                f"CHANGES BY {column} of relation {self.declared.name} is of type {kind.upper()}, but operations are"
                f" told in a STRING ({codes})",
                "changes",
                "Name another column, or convert it in the source table",
            )

    def _time(self, clause: str, columns: tuple[str, ...], field: str) -> TimeKind:
        """The kind of time that all ``columns`` have."""
        kinds = []
        for column in columns:
            if column.lower() not in self.types:
                continue
            kind = self.types[column.lower()][1]
            kinds.append(TIME_TYPES.get(kind))
            if kinds[-1] is None:
                times = [c for c, t in self.columns if t in TIME_TYPES]
                self._fault(
                    TypeError_,
                    f"{clause} {column} of relation {self.declared.name} is of type {kind.upper()}, which is no time."
                    " It must be TIMESTAMP, TIMESTAMP_NTZ, DATE or BIGINT; columns of such a type here:"
                    f" {', '.join(times) or 'none'}",
                    field,
                    "Convert the column in the source table, or name another",
                )
        known = {kind for kind in kinds if kind is not None}
        if len(known) > 1:
            self._fault(
                TypeError_,
                f"{clause} of relation {self.declared.name} mixes BIGINT ticks"
                f" ({columns[kinds.index(TimeKind.BIGINT)]}) and times of the clock"
                f" ({columns[kinds.index(TimeKind.TIMESTAMP)]})",
                field,
                "Name two columns of one kind of time",
            )
        return known.pop() if len(known) == 1 else TimeKind.TIMESTAMP

    def _fault(self, kind: type[BindError] | type[TypeError_], message: str, field: str, hint: str) -> None:
        place: Place = self.declared.places.get(field, self.declared.place)
        self.faults.append(kind(message, place, hint))


@dataclass(frozen=True)
class RelationExpressions:
    """Spark SQL over a source's columns: of the heartbeat (None: it comes from elsewhere) and of each constraint."""

    heartbeat: str | None
    constraints: tuple[Expr, ...]
