"""Verdicts as data: what a commit's row in the ledger says of them, and the rows that readers get of it.

A verdict is committed with its slice: it stands in the ledger's row, one *entry* a table, small and JSON. So there is
none of a slice that was not committed, however a run ends. Entries are ``{table, rows, checks, warnings, seconds,
results: [[expectation, severity, status, unexpected, more], ..], samples}``; ``more`` has what few results have:
``type``, ``observed``, ``error``, ``unit`` (its two ends, ticks) and ``rows`` where they are its own. ``verdict_rows``
and ``sample_rows`` are the same as rows of the tables ``quality.verdicts`` and ``quality.samples``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from sweeparea.quality.verdict import Verdict

Entry = dict[str, Any]

SAMPLES = 5
"""So many rows are kept of a check that fails."""
SAMPLE_LENGTH = 500
"""Characters of such a row; a longer one ends with '..'."""
STATUSES = ("pass", "fail", "error")
"""From good to bad."""
ENTRY_SAMPLES = 20
"""So many rows are kept of a slice in the ledger, of all its checks together."""
_INSTANT = pa.timestamp("us", "UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

VERDICTS = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("registration", pa.string()),
        ("seq", pa.int64()),
        ("attempt", pa.string()),
        ("judged_at", _INSTANT),
        ("table_name", pa.string()),
        ("since", _INSTANT),
        ("upto", _INSTANT),
        ("since_tick", pa.int64()),
        ("upto_tick", pa.int64()),
        ("source_version", pa.int64()),
        ("cause", pa.string()),
        ("expectation", pa.string()),
        ("type", pa.string()),
        ("unit_from", pa.int64()),
        ("unit_to", pa.int64()),
        ("severity", pa.string()),
        ("status", pa.string()),
        ("observed", pa.string()),
        ("unexpected", pa.int64()),
        ("rows", pa.int64()),
        ("share", pa.float64()),
        ("seconds", pa.float64()),
        ("refused", pa.bool_()),
        ("error", pa.string()),
        ("note", pa.string()),
    ]
)
"""One row a check of a table of a commit, or of one that was refused. ``seq`` is the commit's number, of a refused one
the number that it would have had; the slice is ``(since, upto]``, as instants where time has a clock and as ticks;
``source_version`` is that of a stream's or relation's source; ``cause``: what changed results afterwards. ``observed``
is JSON; ``share`` is ``unexpected / rows``; ``seconds`` that of all checks of the slice.
"""
SAMPLE_ROWS = pa.schema(
    [
        ("name", pa.string()),
        ("registration", pa.string()),
        ("seq", pa.int64()),
        ("attempt", pa.string()),
        ("judged_at", _INSTANT),
        ("table_name", pa.string()),
        ("expectation", pa.string()),
        ("number", pa.int64()),
        ("row", pa.string()),
        ("refused", pa.bool_()),
    ]
)
"""Rows that break a check, as JSON, at most ``SAMPLES`` of a check and commit."""


@dataclass(frozen=True)
class CommitVerdict:
    """A commit whose verdict ``entries`` are, or one that was refused: ``at`` in microseconds since the epoch (UTC),
    ``since`` and ``upto`` in ticks of ``chronon`` microseconds (0: BIGINT ticks).
    """

    name: str
    kind: str
    registration: str
    seq: int
    attempt: str
    at: int
    entries: Sequence[Entry]
    since: int | None = None
    upto: int | None = None
    chronon: int = 0
    source_version: int | None = None
    cause: str | None = None
    refused: bool = False
    note: str | None = None


def entry(table: str, verdict: Verdict, samples: Mapping[str, Sequence[Any]] | None = None) -> Entry:
    """What the ledger keeps of a table's verdict; ``samples`` by check id in place of those that the verdict has."""
    warnings = {r["id"]: r["unexpected"] for r in verdict.warnings}
    told: Entry = {
        "table": table,
        "rows": verdict.rows,
        "checks": len(verdict.results),
        "warnings": warnings,
        "seconds": verdict.seconds,
        "results": [_short(r) for r in verdict.results],
    }
    shown: dict[str, list[str]] = {}
    for result in verdict.results:
        rows = (samples or {}).get(result["id"]) or result["sample"]
        if rows and result["status"] != "pass":
            shown[result["id"]] = [sample_text(row) for row in rows[:SAMPLES]]
    return {**told, "samples": shown} if shown else told


def _short(result: Mapping[str, Any]) -> list[Any]:
    more = {key: result[key] for key in ("observed", "error") if result[key] is not None}
    if result["observed"] is not None:
        more["type"] = result["type"]
    for key in ("unit", "rows"):
        if result["meta"].get(key) is not None:
            more[key] = result["meta"][key]
    short = [result["id"], result["severity"], result["status"], result["unexpected"]]
    return [*short, more] if more else short


def sample_text(row: Any) -> str:
    """A row as bounded JSON; a text is JSON already."""
    text = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False, default=str)
    return text if len(text) <= SAMPLE_LENGTH else text[:SAMPLE_LENGTH] + ".."


def bounded(entries: Iterable[Entry]) -> list[Entry]:
    """Entries for the ledger, which keep ``ENTRY_SAMPLES`` rows at most: the first of each check before the second."""
    found = [dict(e) for e in entries]
    places = [
        (n, i, id_) for i, e in enumerate(found) for id_, rows in e.get("samples", {}).items() for n in range(len(rows))
    ]
    kept = sorted(places, key=lambda place: place[0])[:ENTRY_SAMPLES]
    for i, e in enumerate(found):
        if "samples" in e:
            numbers = {id_: [n for n, j, other in kept if (j, other) == (i, id_)] for id_ in e["samples"]}
            e["samples"] = {id_: [e["samples"][id_][n] for n in ns] for id_, ns in numbers.items() if ns}
    return found


def merged(entries: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """The entries of several slices as one: rows and what breaks a check are added up, the worst status stands."""
    found: dict[str, Entry] = {}
    for told in entries:
        own = found.setdefault(
            told["table"],
            {
                "table": told["table"],
                "rows": 0,
                "checks": 0,
                "warnings": {},
                "seconds": 0.0,
                "results": [],
                "samples": {},
            },
        )
        own["rows"] += told["rows"]
        own["seconds"] = round(own["seconds"] + (told.get("seconds") or 0.0), 4)
        for id_, n in told["warnings"].items():  # None: what is not met is no matter of rows
            before = own["warnings"].get(id_)
            own["warnings"][id_] = n if before is None else before + (n or 0)
        # one that judges a unit stands for itself
        known = {_subject(r): i for i, r in enumerate(own["results"])}
        for result in told.get("results", ()):
            at = known.get(_subject(result))
            if at is None:
                own["results"].append(list(result))
                continue
            before = own["results"][at]
            status = max(before[2], result[2], key=STATUSES.index)
            unexpected = None if None in (before[3], result[3]) else before[3] + result[3]
            own["results"][at] = [*result[:2], status, unexpected, *(result[4:] or before[4:])]
        own["checks"] = len(own["results"])
        for id_, rows in told.get("samples", {}).items():
            own["samples"][id_] = [*own["samples"].get(id_, []), *rows][:SAMPLES]
    return bounded({k: v for k, v in own.items() if k != "samples" or v} for own in found.values())


def without_units(entry: Entry) -> Entry:
    """An entry without the results of units of time."""
    return {**entry, "results": [r for r in entry["results"] if len(r) < 5 or "unit" not in r[4]]}


def _subject(result: Sequence[Any]) -> tuple[Any, ...]:
    return (result[0], *((result[4].get("unit") or ()) if len(result) > 4 else ()))


def verdict_rows(judgement: CommitVerdict) -> list[dict[str, Any]]:
    """Rows of ``quality.verdicts``."""
    common = _common(judgement)
    slice_ = {
        "kind": judgement.kind,
        "since": _instant(judgement.since, judgement.chronon),
        "upto": _instant(judgement.upto, judgement.chronon),
        "since_tick": judgement.since,
        "upto_tick": judgement.upto,
        "source_version": judgement.source_version,
        "cause": judgement.cause,
        "note": judgement.note,
    }
    found = []
    for told in judgement.entries:
        for expectation, severity, status, unexpected, *rest in told.get("results", ()):
            more = rest[0] if rest else {}
            unit = more.get("unit") or (None, None)
            rows = more.get("rows", told["rows"])
            found.append(
                {
                    **common,
                    **slice_,
                    "table_name": told["table"],
                    "expectation": expectation,
                    "type": more.get("type"),
                    "unit_from": unit[0],
                    "unit_to": unit[1],
                    "severity": severity,
                    "status": status,
                    "observed": None if "observed" not in more else json.dumps(more["observed"], ensure_ascii=False),
                    "unexpected": unexpected,
                    "rows": rows,
                    "share": unexpected / rows if rows and unexpected is not None else None,
                    "seconds": told.get("seconds"),
                    "error": more.get("error"),
                }
            )
    return found


def sample_rows(judgement: CommitVerdict) -> list[dict[str, Any]]:
    """Rows of ``quality.samples``."""
    common = _common(judgement)
    return [
        {**common, "table_name": told["table"], "expectation": id_, "number": number, "row": row}
        for told in judgement.entries
        for id_, rows in told.get("samples", {}).items()
        for number, row in enumerate(rows[:SAMPLES], 1)
    ]


def _common(judgement: CommitVerdict) -> dict[str, Any]:
    return {
        "name": judgement.name,
        "registration": judgement.registration,
        "seq": judgement.seq,
        "attempt": judgement.attempt,
        "judged_at": _EPOCH + timedelta(microseconds=judgement.at),
        "refused": judgement.refused,
    }


def _instant(tick: int | None, chronon: int) -> datetime | None:
    if tick is None or not chronon:
        return None
    try:
        return _EPOCH + timedelta(microseconds=tick * chronon)
    except OverflowError:
        return None
