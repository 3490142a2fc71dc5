"""The last commits of an application's names, from the ledger's history: how lags went, and each slice on its own."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sweeparea.dags.page.moments import Json, of_clock, of_tick
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DataFile
from sweeparea.tables.publication.ledger import Ledger, LedgerRow

KEPT = 24
"""Commits of a name that its trend is drawn by."""
MOST_FILES = 600
"""Files of the history that are read at once, the newest; more lie there only until maintenance packs them."""
MOST_ROWS = 200_000


@dataclass(frozen=True)
class PastCommit:
    """``seq`` of a name, its instant ``committed`` (tick) and when it was made (microseconds since the epoch)."""

    seq: int
    committed: int | None
    at: int


class RecentCommits:
    """The last commits by name, read on: files that were read before are not read again."""

    def __init__(self, ledger: Ledger) -> None:
        self._log = ledger.log(ledger.layout.history)
        self._version: int | None = None
        self._read: set[str] = set()
        self._found: dict[str, deque[PastCommit]] = defaultdict(lambda: deque(maxlen=KEPT))

    def __call__(self) -> Mapping[str, Sequence[PastCommit]]:
        """By name its last commits, oldest first."""
        if not self._log.exists():
            return {}
        version = self._log.version()
        if version != self._version:
            files = self._log.files(version, ["at"])
            self._take([file for file in files if file.path not in self._read])
            self._read = {file.path for file in files}
            self._version = version
        return self._found

    def _take(self, files: Iterable[DataFile]) -> None:
        newest = sorted(files, key=lambda file: scan.bounds(file, "at")[1] or 0)[-MOST_FILES:]
        while len(newest) > 1 and sum(file.rows for file in newest) > MOST_ROWS:
            del newest[0]
        table = scan.plan(self._log, newest).read(["name", "seq", "committed", "at"])
        at = table.column("at").cast(pa.int64()).to_pylist()
        rows = sorted(
            (micros, row["name"], row["seq"], row["committed"])
            for micros, row in zip(at, table.drop_columns(["at"]).to_pylist(), strict=True)
        )
        for micros, name, seq, committed in rows:
            known = self._found[name]
            # a file that packs others brings what was read before
            if not known or (micros, seq) > (known[-1].at, known[-1].seq):
                known.append(PastCommit(seq, committed, micros))


def trend(commits: Sequence[PastCommit], chronon: int | None) -> Json:
    """How the lag behind the clock went: ``points``, each when it was looked at and the lag then (milliseconds), and
    ``word``: growing, shrinking, steady; empty where too little is known.
    """
    if not chronon:
        return {"points": [], "word": ""}
    points = [[c.at / 1000, (c.at - c.committed * chronon) / 1000] for c in commits if c.committed is not None]
    return {"points": points, "word": _word(points)}


def _word(points: Sequence[Sequence[float]]) -> str:
    """By how much the middle lag of the later half differs from that of the earlier one, against the time between."""
    if len(points) < 4:
        return ""
    half = len(points) // 2
    (at0, lag0), (at1, lag1) = (
        [sorted(values)[len(values) // 2] for values in zip(*part, strict=True)]
        for part in (points[:half], points[half:])
    )
    change, passed = lag1 - lag0, at1 - at0
    if abs(change) <= 0.1 * passed + 1000:
        return "steady"
    return "growing" if change > 0 else "shrinking"


def slices(rows: Iterable[LedgerRow], chronon: int | None) -> list[Json]:
    """Commits of a query, newest first: the slice, its phases in seconds, rows, verdicts, state."""
    return [_slice(row, chronon) for row in sorted(rows, key=lambda row: row.seq, reverse=True)]


def _slice(row: LedgerRow, chronon: int | None) -> Json:
    info = row.of_query
    seconds = dict(info.seconds or {})
    return {
        "seq": row.seq,
        "from": of_tick(info.h0, chronon),
        "to": of_tick(row.committed, chronon),
        "at": of_clock(row.at),
        "seconds": seconds,
        "total": round(sum(seconds.values()), 4),
        "rows_in": info.rows_in,
        "rows": dict(info.rows or {}),
        "verdicts": [dict(verdict) for verdict in info.verdicts or ()],
        "state_rows": sum(info.state.rows.values()),
        "state_bytes": sum(info.state.bytes.values()),
        "rewrite": info.rewrite.to_json() if info.rewrite else None,
    }


def admits(rows: Iterable[LedgerRow], micros: int | None) -> list[Json]:
    """Commits of a stream or relation, newest first."""
    return [
        {
            "seq": row.seq,
            "to": of_tick(row.committed, micros),
            "at": of_clock(row.at),
            "version": row.of_source.source_version,
            "rows": row.of_source.rows or 0,
            "quarantined": row.of_source.quarantined or 0,
            "totals": dict(row.of_source.totals or {}),
        }
        for row in sorted(rows, key=lambda row: row.seq, reverse=True)
    ]
