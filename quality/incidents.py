"""Which expectations are not met, from verdicts that were committed: what somebody is alerted of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sweeparea.quality.records import verdict_rows
from sweeparea.quality.verdict_tables import judgement_of
from sweeparea.tables.publication.ledger import LedgerRow

QUALITY = "quality "
"""How the names of incidents of this kind begin."""
KEPT_OUT = "info"
"""The severity of rows that were kept out: they are in the quarantine, and results do not have them."""


@dataclass(frozen=True)
class ExpectationState:
    """Of one expectation after some commits: ``broken``, what is told of the last time that it was not met, None if it
    was met each time; ``met``: whether the last verdict was good.
    """

    broken: str | None
    met: bool


def states(rows: Iterable[LedgerRow], everything: bool = False) -> dict[str, ExpectationState]:
    """By the name of an incident what the verdicts of commits say, in the order of the commits; ``everything``: also of
    rows that a constraint has kept out.
    """
    found: dict[str, ExpectationState] = {}
    for row in rows:
        judgement = judgement_of(row)
        # of one commit the worst counts: units and tables are judged one by one
        own: dict[str, ExpectationState] = {}
        for told in verdict_rows(judgement) if judgement is not None else ():
            if told["expectation"].startswith("admission:") or (told["severity"] == KEPT_OUT and not everything):
                continue
            key = f"{QUALITY}{told['name']} {told['expectation']}"
            good = told["status"] == "pass"
            before = own.get(key)
            broken = before.broken if before is not None and before.broken is not None else None
            own[key] = ExpectationState(broken if good else _words(told), good and (before is None or before.met))
        for key, state in own.items():
            earlier = found.get(key)
            broken = state.broken if state.broken is not None or earlier is None else earlier.broken
            found[key] = ExpectationState(broken, state.met)
    return found


def _words(told: dict[str, Any]) -> str:
    where = f"commit {told['seq']}"
    if told["upto"] is not None:
        where += f", up to {_text(told['upto'])}"
    if told["unit_from"] is not None and told["upto"] is not None and told["upto_tick"]:
        # ticks of one clock: the slice's end says how long one is
        chronon = (told["upto"] - _EPOCH) / told["upto_tick"]
        begin, end = (_EPOCH + chronon * told[key] for key in ("unit_from", "unit_to"))
        where += f", of {_text(begin)} to {_text(end)}"
    if told["status"] == "error":
        why = f"could not be judged: {told['error']}"
    elif told["observed"] is not None:
        why = f"observed {told['observed']}"
    elif told["unexpected"] is not None:
        why = f"{told['unexpected']:,} of {told['rows'] or 0:,} rows break it"
    else:
        why = "it fails"
    return f"{told['expectation']} of {told['name']} is not met: {why} ({where})."


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")
