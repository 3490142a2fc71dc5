"""What a query's plan is chosen by, beside its text: rates of its inputs, and the hidden queries that it reads.

Both change while a query runs, its plan may not: its SweepAreas belong to one plan. So they are taken when a query is
registered, stored with its definition, and used again by every later planning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sweeparea.cql.rewrites import Input, choose
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog

if TYPE_CHECKING:
    from sweeparea.spark_jobs.declarations.application import Application

DIGITS = 3
"""Significant digits of a rate: more would only be noise."""


@dataclass(frozen=True)
class Planned:
    """``inputs`` are rates and sizes by input, None where nothing was measured yet; ``shared`` names of hidden
    queries; ``columns`` those of an input that a query knows, where the input has gained others since.
    """

    inputs: Mapping[str, Input] | None = None
    shared: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Planned:
        """From what ``as_dict`` gave."""
        inputs = stored.get("inputs")
        found = None if inputs is None else {name: Input(**given) for name, given in inputs.items()}
        columns = {name: tuple(known) for name, known in stored.get("columns", {}).items()}
        return cls(found, tuple(stored.get("shared", ())), columns)

    def as_dict(self) -> dict[str, Any]:
        """As the deployed table stores it; nothing for what is not there."""
        stored: dict[str, Any] = {}
        if self.inputs is not None:
            stored["inputs"] = {
                name: {key: value for key in ("rate", "rows") if (value := getattr(known, key)) is not None}
                for name, known in self.inputs.items()
            }
        if self.shared:
            stored["shared"] = list(self.shared)
        if self.columns:
            stored["columns"] = {name: list(known) for name, known in self.columns.items()}
        return stored


def measured(application: Application, names: Iterable[str]) -> dict[str, Input] | None:
    """Rates (rows a tick) and sizes (rows) of inputs, from the ledger and the statistics of what was admitted or
    computed; None while one of them has no heartbeat.
    """
    head, found, names = application.ledger.head(), {}, [*names]
    rows = [head.get(application.owner(name)) for name in names if name not in application.catalog.relations]
    chronon = max((row.info.get("chronon") or 1 for row in rows if row is not None), default=1)
    for name in names:
        row = head.get(application.owner(name))
        if row is None or row.committed is None:
            return None
        if application.is_static(name):
            found[name] = Input(rows=float(_rows(DeltaLog(application.layout.admitted(name)))))
            continue
        rate = _rate(application, name, row.committed, row.info.get("chronon") or 1)
        if rate is not None and name in application.catalog.relations:
            rate *= chronon  # a relation counts microseconds, its query takes the streams' chronon
        if rate is not None:
            found[name] = Input(rate=rate)
    return found


def _rate(application: Application, name: str, committed: int, scale: int) -> float | None:
    """Rows a tick between the first row and the heartbeat; None without rows."""
    derived = application.is_query(application.owner(name))
    log = DeltaLog(application.result_table(name) if derived else application.layout.admitted(name))
    if not log.exists():
        return None
    column = "__tick" if not derived else "ts" if "ts" in log.schema().names else "valid_from"
    least = [low for file in log.files() if (low := scan.bounds(file, column)[0]) is not None]
    if not least:
        return None
    first = min(least) // (scale if derived else 1)
    # each row of a relation's history begins and mostly ends
    changes = _rows(log) * (2 if column == "valid_from" else 1)
    return float(f"{changes / max(1, committed - first + 1):.{DIGITS}g}")


def _rows(log: DeltaLog) -> int:
    return sum(file.rows for file in log.files()) if log.exists() else 0


def proposed(application: Application, free: Iterable[str]) -> dict[str, Planned]:
    """What queries would be planned by if they were registered now: current rates, and the hidden queries that they
    would share among themselves and with those that stay as they are.

    A query that cannot be bound shares nothing.
    """
    free = set(free)
    inputs = {name: application.registry.rates(name) for name in application.catalog.queries if name in free}
    if not application.catalog.environment.share_subplans:
        return {name: Planned(known) for name, known in inputs.items()}
    plans: dict[str, Plan] = {}
    for name, known in inputs.items():
        try:
            plans[name] = application.whole(name, known or {})
        except SweepAreaError:
            continue  # told of by whoever needs its plan
    chosen = choose(list(plans.values()), set(shared_by_others(application, free)))
    shared = dict(zip(plans, chosen, strict=True))
    return {name: Planned(known, shared.get(name, ())) for name, known in inputs.items()}


def shared_by_others(application: Application, free: Iterable[str] = ()) -> Iterator[str]:
    """The hidden queries that deployed queries read, those of ``free`` left out."""
    left_out = set(free)
    for row in application.registry.deployed.rows().values():
        if row.kind == "query" and row.name not in left_out:
            yield from Planned.of(row.planned).shared


def readers_of(application: Application, hidden: str) -> tuple[str, ...]:
    """The deployed queries that read a hidden query."""
    rows = application.registry.deployed.rows().values()
    return tuple(row.name for row in rows if row.kind == "query" and hidden in Planned.of(row.planned).shared)
