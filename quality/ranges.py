"""Two ranges of time compared: how often each expectation was not met in one and in the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Row = Mapping[str, Any]


@dataclass
class RangeSummary:
    """Of one expectation in one range: ``checks`` verdicts, ``failed`` of them not met, over ``rows``."""

    checks: int = 0
    failed: int = 0
    refused: int = 0
    rows: int = 0
    unexpected: int = 0

    @property
    def share(self) -> float | None:
        """The share of rows that broke it; None where no rows were judged."""
        return self.unexpected / self.rows if self.rows else None


@dataclass(frozen=True)
class InstantRange:
    """``[since, upto)`` of instants: of a slice's end, or of the commit where time has no clock."""

    since: datetime
    upto: datetime

    def has(self, row: Row) -> bool:
        return self.since <= (row["upto"] or row["judged_at"]) < self.upto


def summed(rows: Iterable[Row], within: InstantRange) -> dict[tuple[str, str, str], RangeSummary]:
    """By name, table and expectation."""
    found: dict[tuple[str, str, str], RangeSummary] = {}
    for row in rows:
        if not within.has(row):
            continue
        own = found.setdefault((row["name"], row["table_name"], row["expectation"]), RangeSummary())
        own.checks += 1
        own.failed += row["status"] != "pass"
        own.refused += bool(row["refused"])
        own.rows += row["rows"] or 0
        own.unexpected += row["unexpected"] or 0
    return found


def difference(
    rows: Iterable[Row], before: InstantRange, after: InstantRange, changed: bool = True
) -> list[dict[str, Any]]:
    """A line an expectation, of those alone that differ where ``changed``: what became worse comes first."""
    several = list(rows)
    old, new = summed(several, before), summed(several, after)
    lines: list[dict[str, Any]] = []
    for key in sorted(old.keys() | new.keys()):
        a, b = old.get(key, RangeSummary()), new.get(key, RangeSummary())
        grew = (b.share or 0.0) - (a.share or 0.0)
        same = (a.failed > 0, a.share, a.checks > 0) == (b.failed > 0, b.share, b.checks > 0)
        if changed and same:
            continue
        name, table, expectation = key
        lines.append(
            {
                "name": name,
                "table": table,
                "expectation": expectation,
                "checks": f"{a.checks} -> {b.checks}",
                "not met": f"{a.failed} -> {b.failed}",
                "refused": f"{a.refused} -> {b.refused}",
                "rows": f"{a.rows} -> {b.rows}",
                "unexpected": f"{a.unexpected} -> {b.unexpected}",
                "share": f"{_share(a.share)} -> {_share(b.share)}",
                "change": grew,
            }
        )
    lines.sort(key=lambda line: (-line["change"], line["name"], line["table"], line["expectation"]))
    return [{**line, "change": f"{100 * line['change']:+.4g} %"} for line in lines]


def _share(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.4g} %"
