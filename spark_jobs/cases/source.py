"""One input of a case: its rows, when they arrive, and how far they have been admitted."""

from __future__ import annotations

import collections
from typing import Any

import pyarrow as pa

from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.spark_jobs.cases.shape import SHOWN, member, shaped, text, whole
from sweeparea.spark_jobs.declarations.source_columns import refuse_reserved
from sweeparea.spark_jobs.spark import json_values
from sweeparea.tables.log.schema import arrow_type
from sweeparea.tables.publication.name_kinds import NameKind


class CaseSource:
    """One input of a case: its rows as Arrow columns, in order of tick, and how far they have been admitted."""

    def __init__(
        self, name: str, kind: NameKind, spec: dict[str, Any], rows: list[list[Any]], time: TimeDomain
    ) -> None:
        self.name, self.kind, self.time = name, kind, time
        columns = shaped(member(spec, "columns", f"{kind.capitalize()} {name}"), dict, f"The columns of {name}")
        self.types = {column: _type(name, column, ddl) for column, ddl in columns.items()}
        refuse_reserved(name, self.types)
        self.late = spec.get("late") or "reject"
        if self.late not in ("reject", "repair"):
            raise DataError(f"{name}: late is 'reject' or 'repair', not {self.late!r}.")
        self.retroactive = spec.get("retroactive", True)
        if not isinstance(self.retroactive, bool):
            raise DataError(f"{self.name}: retroactive is true or false, not {self.retroactive!r}.")
        self.sequence_by = self._sequence_by(spec.get("sequence_by"))
        self.schema = pa.schema(
            [*self.types.items(), ("__tick", pa.int64()), ("__seq", pa.int64()), ("__n", pa.int64())]
        )
        self.heartbeat: int | None = None
        self.totals: collections.Counter[str] = collections.Counter()  # copies of each record of a relation
        self.quarantine: list[list[Any]] = []
        self.pending: list[tuple[int, int, list[Any]]] = []  # (tick, sign, values)
        self.arrivals: list[tuple[int, Any, list[Any]]] = []
        for row in shaped(rows, list, f"What {kind} {name} holds"):
            self._receive(row)
        for arrival in shaped(spec.get("arrivals"), list, f"arrivals of {name}"):
            if not isinstance(arrival, list) or len(arrival) != 3:
                raise DataError(f"{name}: one of arrivals is [heartbeat, tick, [values]], not {arrival!r}. {SHOWN}")
            after, tick, values = arrival
            self.arrivals.append((whole(after, f"{name}: the heartbeat after which a row arrives"), tick, values))

    def _sequence_by(self, given: Any) -> str | None:
        """The column that orders elements of one instant."""
        if given is None or str(given).lower() in (column.lower() for column in self.types):
            return given
        raise DataError(f"{self.name}: sequence_by names {given}, which is no column of it.")

    def tick(self, given: Any) -> int | None:
        """A tick of the case: a number, or an ISO string where time is TIMESTAMP."""
        if given is None or (isinstance(given, int) and not isinstance(given, bool)):
            return given
        if isinstance(given, str) and self.time.kind == "TIMESTAMP":
            return json_values.micros_of(given)
        if isinstance(given, str) and given.lstrip("-").isdigit():
            return int(given)
        raise DataError(f"{self.name}: {given!r} is no tick.")

    def _receive(self, row: list[Any]) -> None:
        if not isinstance(row, list) or len(row) < 2 or not isinstance(row[-1], list):
            shape = "[tick, [values]]" if self.kind == NameKind.STREAM else '[tick, "+" or "-", [values]]'
            raise DataError(f"{self.name}: a row is {shape}, not {row!r}.")
        tick, values = self.tick(row[0]), row[-1]
        if len(values) != len(self.types):
            raise DataError(f"{self.name}: a row has {len(values)} values for {len(self.types)} columns: {values!r}.")
        if tick is None:
            self.quarantine.append([self.name, None, values, "timestamp is NULL"])
        elif abs(tick) > 1 << 62:
            self.quarantine.append(
                [self.name, tick, values, "timestamp is outside the time domain of [-2^62, 2^62] ticks"]
            )
        elif self.late == "reject" and self.kind == NameKind.STREAM and self.is_late(tick):
            self.quarantine.append(
                [self.name, self._shown(tick), values, f"late: at or below the heartbeat (tick {self.heartbeat})"]
            )
        else:
            self.pending.append((tick, self._sign(row), values))

    def _sign(self, row: list[Any]) -> int:
        if self.kind == NameKind.STREAM:
            return 1
        if row[1] not in ("+", "-"):
            raise DataError(f"relation {self.name}: a change is '+' or '-', not {row[1]!r}.")
        return 1 if row[1] == "+" else -1

    def _shown(self, tick: int) -> Any:
        return json_values.iso(tick) if self.time.kind == "TIMESTAMP" else tick

    def is_late(self, tick: int) -> bool:
        """Whether an element of this instant comes at or below the heartbeat."""
        return self.heartbeat is not None and tick <= self.heartbeat

    @property
    def has_late(self) -> bool:
        """Whether late elements are waiting to be admitted."""
        return any(self.is_late(tick) for tick, _, _ in self.pending)

    def check_arrivals(self, heartbeats: int) -> None:
        """DataError for a row that would never arrive."""
        for after, *_ in self.arrivals:
            if not 0 <= after <= heartbeats:
                raise DataError(
                    f"{self.name}: a row of arrivals comes after heartbeat {after}, but the case has {heartbeats}."
                    " Count from 1; 0 is before the first one."
                )

    def deliver(self, after: int) -> None:
        """The arrivals that come after the ``after``-th heartbeat."""
        for when, tick, values in self.arrivals:
            if when == after:
                self._receive([tick, values])

    def advance(self, heartbeat: int) -> pa.Table:
        """Moves the heartbeat; the rows whose tick the slice covers."""
        if self.heartbeat is not None and heartbeat < self.heartbeat:
            raise DataError(f"{self.name}: the heartbeat stands at {self.heartbeat} and cannot go back to {heartbeat}.")
        self.heartbeat = heartbeat
        ripe = [p for p in self.pending if p[0] <= heartbeat]
        self.pending = [p for p in self.pending if p[0] > heartbeat]
        columns = [
            json_values.column([values[i] for _, _, values in ripe], kind, f"{self.name}.{column}")
            for i, (column, kind) in enumerate(self.types.items())
        ]
        ticks = pa.array([tick for tick, _, _ in ripe], pa.int64())
        signs = pa.array([sign for _, sign, _ in ripe], pa.int64())
        return pa.table([*columns, ticks, pa.nulls(len(ripe), pa.int64()), signs], schema=self.schema)

    def check_net(self, rows: pa.Table) -> None:
        """A relation never holds fewer than no copies of a record (semantics: judged when the heartbeat passes)."""
        counts = self.totals
        records = rows.select(list(self.types)).to_pylist()
        changes = sorted(
            zip(rows.column("__tick").to_pylist(), rows.column("__n").to_pylist(), map(_key, records), strict=True)
        )
        for i, (tick, n, record) in enumerate(changes):
            counts[record] += n
            if i + 1 == len(changes) or changes[i + 1][0] != tick:
                below = [r for r, count in counts.items() if count < 0]
                if below:
                    raise DataError(
                        f"relation {self.name}: at tick {tick} more copies of {below[0]} have been removed than were"
                        " ever added."
                    )


def _type(source: str, column: str, ddl: Any) -> pa.DataType:
    try:
        return arrow_type(text(ddl, "a column's type"))
    except SweepAreaError as error:
        raise DataError(f"{source}.{column}: {error}") from None


def _key(value: Any) -> str:
    """One text for all values that are equal in the total order of records: -0.0 is 0.0, maps have no order."""
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, dict):
        return ",".join(f"{name!r}:{_key(v)}" for name, v in value.items())
    if isinstance(value, list):
        entries = [f"({','.join(map(_key, v))})" if isinstance(v, tuple) else _key(v) for v in value]
        return f"[{','.join(sorted(entries) if value and isinstance(value[0], tuple) else entries)}]"
    return repr(value)
