"""What was kept out of a stream or relation: reasons with their numbers, how late rows were, the newest rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeparea.dags.page.bounds import LETTERS, ROWS, bounded
from sweeparea.dags.page.moments import Json, length, of_tick
from sweeparea.dags.page.tables import PinnedTable, other
from sweeparea.spark_jobs.admission.judging.quarantine import row_id
from sweeparea.spark_jobs.commands.sql import Reader
from sweeparea.tables.publication.ledger import Ledger

LONGEST = 20_000
"""Letters of a row that can be named by its id here; longer ones are not fetched."""
REASONS = 50
_LATE = "late"


def kept_out(ledger: Ledger, name: str, micros: int | None, reason: str | None = None, most: int = ROWS) -> Json:
    """``reasons`` with their numbers, ``late`` by how much, and the newest ``rows``, of one ``reason`` if given.
    ``micros``: how long a tick lasts.
    """
    table = other(ledger, ledger.layout.quarantine(name), name)
    if table is None or not table.files:
        return {"reasons": [], "rows": [], "late": None, "more": False}
    copies = "abs(__n)" if "__n" in table.schema.names else "1"
    with bounded() as connection:
        Reader.view(connection, "main", "shown", table.log, list(table.files), None)
        reasons = connection.execute(
            f"SELECT left(__reason, {LETTERS}) AS why, sum({copies}) AS number, max(__seq) FROM shown"
            f" GROUP BY why ORDER BY number DESC, why LIMIT {REASONS}"
        ).fetchall()
        late = connection.execute(
            f"SELECT __seq, min(__tick), sum({copies}) FROM shown WHERE starts_with(__reason, '{_LATE}')"
            " AND __tick IS NOT NULL GROUP BY __seq ORDER BY __seq DESC LIMIT 200"
        ).fetchall()
        where, values = ("TRUE", []) if reason is None else (f"left(__reason, {LETTERS}) = ?", [reason])
        found = connection.execute(
            f"SELECT __version, __seq, __reason, __tick, {copies},"
            f" CASE WHEN length(__row) <= {LONGEST} THEN __row END, left(__row, {LETTERS * 4})"
            f" FROM shown WHERE {where} ORDER BY __seq DESC LIMIT {most + 1}",
            values,
        ).fetchall()
    return {
        "reasons": [{"reason": why, "rows": int(number), "seq": seq} for why, number, seq in reasons],
        "late": _lateness(ledger, name, late, micros),
        "rows": [_row(row, micros) for row in found[:most]],
        "more": len(found) > most,
    }


def _row(found: tuple[Any, ...], micros: int | None) -> Json:
    version, seq, reason, tick, copies, whole, shown = found
    return {
        "id": None if whole is None else row_id(seq, whole, reason),
        "version": version,
        "instant": of_tick(tick, micros),
        "copies": int(copies),
        "reason": str(reason)[: LETTERS * 2],
        "row": shown,
    }


def _lateness(ledger: Ledger, name: str, late: list[tuple[Any, ...]], micros: int | None) -> Json | None:
    """By how much rows came late at most: the heartbeat before their commit minus their tick."""
    if not late:
        return None
    before: Mapping[int, int | None] = {row.seq + 1: row.committed for row in ledger.history(name)}
    by = [beat - tick for seq, tick, _ in late if (beat := before.get(seq)) is not None]
    return {
        "rows": int(sum(count for *_, count in late)),
        "most": length(max(by), micros) if by else None,
        "commits": len(late),
    }


def corrections(table: PinnedTable, most: int = ROWS) -> Json:
    """The table ``<query>__corrections``: ``commits`` with causes and numbers of rows, and the newest ``rows``."""
    ticks = str(table.schema.field("ts").type) == "int64"
    ts = "ts" if ticks else "epoch_us(ts)"
    with bounded() as connection:
        Reader.view(connection, "main", "shown", table.log, list(table.files), None)
        commits = connection.execute(
            f"SELECT seq, any_value(cause), sum(CASE WHEN sign > 0 THEN sign ELSE 0 END),"
            f" sum(CASE WHEN sign < 0 THEN -sign ELSE 0 END), min({ts}), max({ts})"
            " FROM shown GROUP BY seq ORDER BY seq DESC LIMIT 50"
        ).fetchall()
        rows = connection.execute(
            f"SELECT seq, kind, {ts}, sign, left(CAST(to_json(row) AS VARCHAR), {LETTERS * 4}) FROM shown"
            f" ORDER BY seq DESC, ts LIMIT {most + 1}"
        ).fetchall()

    def at(value: int | None) -> Json | None:
        return None if value is None else {"tick": str(value)} if ticks else {"ms": value / 1000}

    return {
        "commits": [
            {"seq": seq, "cause": cause, "come": int(come), "gone": int(gone), "from": at(first), "to": at(last)}
            for seq, cause, come, gone, first, last in commits
        ],
        "rows": [
            {"seq": seq, "kind": kind, "at": at(ts), "sign": sign, "row": row}
            for seq, kind, ts, sign, row in rows[:most]
        ],
        "more": len(rows) > most,
    }
