"""Violations that a person has accepted: in these stretches of time a constraint that would fail a slice warns.

They stand in the query's ledger row, with who accepted what and why, and stay there: what is computed again, by a
repair, a backfill or a rebuild, is judged as it was. Slices end where a stretch begins and where it ends, so that a
slice is inside or outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sweeparea.operators.plan.plan import Plan
from sweeparea.tables.publication.info import Accepted
from sweeparea.tables.publication.ledger import LedgerRow


def accepted(row: LedgerRow | None) -> tuple[Accepted, ...]:
    """What has been accepted of a query."""
    return () if row is None else row.of_query.accepted or ()


def ends(row: LedgerRow | None) -> tuple[int, ...]:
    """The instants (ticks) at which slices of the query have to end."""
    return tuple(sorted({tick for each in accepted(row) for tick in (each.since, each.upto)}))


def relaxed(plan: Plan, stretches: Iterable[Accepted], since: int, h1: int) -> Plan:
    """The plan as a slice ``(since, h1]`` is judged: what was accepted there only warns."""
    named = {name for each in stretches if each.since <= since and h1 <= each.upto for name in each.constraints}
    if not named:
        return plan

    def warns(each: Any) -> Any:
        return replace(each, on_violation="warn") if each.on_violation == "fail" and each.name in named else each

    return replace(
        plan, constraints=tuple(map(warns, plan.constraints)), expectations=tuple(map(warns, plan.expectations))
    )
