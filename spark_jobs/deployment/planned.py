"""What a query's plan is chosen by, beside its text: rates of its inputs, and the hidden queries that it reads.

Both change while a query runs, its plan may not: its SweepAreas belong to one plan. So they are taken when a query is
registered, stored with its definition, and used again by every later planning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeparea.cql.rewrites import MeasuredInput
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.name_kinds import NameKind


@dataclass(frozen=True)
class Planned:
    """``inputs`` are rates and sizes by input, None where nothing was measured yet; ``shared`` names of hidden
    queries; ``columns`` those of an input that a query knows, where the input has gained others since.
    """

    inputs: Mapping[str, MeasuredInput] | None = None
    shared: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Planned:
        """From what ``as_dict`` gave."""
        inputs = stored.get("inputs")
        found = None if inputs is None else {name: MeasuredInput(**given) for name, given in inputs.items()}
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


def shared_by_others(deployed: Mapping[str, DeployedRow], free: Iterable[str] = ()) -> Iterator[str]:
    """The hidden queries that deployed queries read, those of ``free`` left out."""
    left_out = set(free)
    for row in deployed.values():
        if row.kind == NameKind.QUERY and row.name not in left_out:
            yield from Planned.of(row.planned).shared


def readers_of(deployed: Mapping[str, DeployedRow], hidden: str) -> tuple[str, ...]:
    """The deployed queries that read a hidden query."""
    rows = deployed.values()
    return tuple(row.name for row in rows if row.kind == NameKind.QUERY and hidden in Planned.of(row.planned).shared)
