"""``status --json``: the facts as one JSON object for programs. Its fields are described in ``docs/metrics.md`` and
stay; new ones may come.

Instants are ISO 8601 in UTC, or ticks where a stream's time is BIGINT; lengths are seconds. What is not known is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sweeparea.operators.time.domain import TimeDomain
from sweeparea.spark_jobs.commands.facts import ApplicationFacts
from sweeparea.spark_jobs.commands.input_status import InputFacts
from sweeparea.spark_jobs.commands.query_status import QueryFacts
from sweeparea.tables.publication.ledger import LedgerRow

FORMAT = 1
"""Another number would say that a field means something else than before."""


class InputState(StrEnum):
    """What a stream or relation is, the worst first: of several the first is told."""

    UNREADABLE = "unreadable"
    STANDS_STILL = "stands_still"
    WRONG = "wrong"
    GOES_NO_FURTHER = "goes_no_further"
    NOT_ADMITTED = "not_admitted"
    BEHIND = "behind"
    CURRENT = "current"


class QueryState(StrEnum):
    """What a continuous query is, the worst first: of several the first is told."""

    CANNOT_RUN = "cannot_run"
    STANDS_STILL = "stands_still"
    WRONG = "wrong"
    PAUSED = "paused"
    TO_BE_REPAIRED = "to_be_repaired"
    WAITS = "waits"
    READY = "ready"
    CURRENT = "current"


def status_json(facts: ApplicationFacts) -> dict[str, Any]:
    """An application's facts as JSON."""
    return {
        "format": FORMAT,
        "application": facts.name,
        "data": facts.data,
        "at": clock_text(facts.at),
        "inputs": [input_json(each, facts.at) for each in facts.inputs],
        "queries": [query_json(each, facts.at) for each in facts.queries],
        "shared": [{**query_json(each, facts.at), "readers": list(facts.readers[each.name])} for each in facts.shared],
        "alerts": [{"name": a.name, "text": a.text, "since": clock_text(a.since)} for a in facts.alerts],
        "refused": [
            {
                "name": r.name,
                "at": clock_text(round(r.at.timestamp() * 1e6)),
                "broken": dict(r.broken),
                "version": r.version,
            }
            for r in facts.refused
        ],
    }


def input_state(facts: InputFacts) -> InputState:
    """The state of a stream or relation."""
    if facts.unreadable:
        return InputState.UNREADABLE
    if facts.stopped:
        return InputState.STANDS_STILL
    if facts.row is None:
        return InputState.NOT_ADMITTED
    if facts.wrong:
        return InputState.WRONG
    if facts.lost:
        return InputState.GOES_NO_FURTHER
    newer = facts.newest is not None and facts.newest > facts.version and not facts.static
    return InputState.BEHIND if newer else InputState.CURRENT


def query_state(facts: QueryFacts) -> QueryState:
    """The state of a continuous query."""
    if facts.unfit:
        return QueryState.CANNOT_RUN
    if facts.stopped:
        return QueryState.STANDS_STILL
    if facts.wrong:
        return QueryState.WRONG
    if facts.paused:
        return QueryState.PAUSED
    if facts.corrected:
        return QueryState.TO_BE_REPAIRED
    if facts.ready is None or facts.awaits_start:
        return QueryState.WAITS
    return QueryState.READY if facts.done is None or facts.ready > facts.done else QueryState.CURRENT


def input_json(facts: InputFacts, at: int) -> dict[str, Any]:
    """A stream or relation."""
    row, time = facts.row, facts.time
    return {
        "name": facts.name,
        "kind": facts.kind.value,
        "static": facts.static,
        "state": input_state(facts).value,
        "problem": facts.unreadable or facts.stopped or "; ".join(facts.wrong) or facts.lost or None,
        "time": None if time is None else time.kind.value,
        "heartbeat": _instant(time, None if row is None or facts.static else row.committed),
        "heartbeat_age_seconds": None if row is None else age(time, row.committed, at),
        "source_version": None if row is None else row.of_source.source_version,
        "source_newest_version": facts.newest,
        "rows": facts.rows,
        "quarantined": facts.kept_out,
        "duplicates_remembered": facts.remembered,
        "totals": {} if row is None else dict(row.of_source.totals or {}),
        **_commit(row),
    }


def query_json(facts: QueryFacts, at: int) -> dict[str, Any]:
    """A continuous query."""
    row, time = facts.row, facts.time
    behind = facts.behind * time.chronon / 1e6 if time.clock else None
    return {
        "name": facts.name,
        "state": query_state(facts).value,
        "problem": facts.unfit or facts.stopped or "; ".join(facts.wrong) or None,
        "paused": facts.paused,
        "time": time.kind.value,
        "committed": _instant(time, facts.done),
        "ready": _instant(time, facts.ready),
        "behind_seconds": None if facts.done is None or facts.ready is None else behind,
        "behind_ticks": None if facts.done is None or facts.ready is None else facts.behind,
        "lag_seconds": age(time, facts.done, at),
        "waits_for": list(facts.waits_for),
        "to_be_repaired_after": list(facts.corrected),
        "last_slice": None if row is None else _slice(row),
        "state_areas": {} if row is None else _areas(row),
        "verdict": None if row is None else _verdict(row),
        "rewritten": None if row is None else _rewritten(row),
        **_commit(row),
    }


def age(time: TimeDomain | None, tick: int | None, at: int) -> float | None:
    """Seconds of the clock since a tick; None where its time is none of the clock's, or it is the end of time."""
    if time is None or tick is None or not time.clock or clock_text(tick * time.chronon) is None:
        return None
    return round((at - tick * time.chronon) / 1e6, 6)


def clock_text(micros: int) -> str | None:
    """An instant of the clock; None where there is no such date."""
    try:
        return datetime.fromtimestamp(micros / 1e6, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def _instant(time: TimeDomain | None, tick: int | None) -> str | int | None:
    if time is None or tick is None:
        return None
    return clock_text(tick * time.chronon) if time.clock else tick


def _commit(row: LedgerRow | None) -> dict[str, Any]:
    return {
        "commits": 0 if row is None else row.seq,
        "last_commit": None if row is None else clock_text(row.at),
    }


def _slice(row: LedgerRow) -> dict[str, Any]:
    info = row.of_query
    phases = dict(info.seconds or {})
    return {
        "seconds": round(sum(phases.values()), 4),
        "phases": phases,
        "rows_in": info.rows_in,
        "rows_out": dict(info.rows or {}),
    }


def _areas(row: LedgerRow) -> dict[str, dict[str, int]]:
    areas = row.of_query.state
    return {op: {"rows": rows, "bytes": areas.bytes.get(op, 0)} for op, rows in areas.rows.items()}


def _verdict(row: LedgerRow) -> dict[str, Any]:
    verdicts = row.of_query.verdicts or []
    return {
        "checks": sum(each.get("checks", 0) for each in verdicts),
        "warnings": warnings_of(verdicts),
    }


def warnings_of(verdicts: Any) -> dict[str, int]:
    """By check how many rows break it, over the tables of a slice."""
    found: dict[str, int] = {}
    for each in verdicts or []:
        for check, rows in each.get("warnings", {}).items():
            found[check] = found.get(check, 0) + (rows or 0)
    return found


def _rewritten(row: LedgerRow) -> Mapping[str, Any] | None:
    rewrite = row.of_query.rewrite
    return None if rewrite is None else {"cause": rewrite.cause, "rows": rewrite.rows}
