"""What a tick means, and lengths and instants in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from sweeparea.operators.base.stored_names import stored

MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
"""Units of one length, in microseconds."""


class TimeKind(StrEnum):
    """Of which type instants are: sequence numbers, or times of the clock."""

    BIGINT = "BIGINT"
    TIMESTAMP = "TIMESTAMP"


@stored("TimeDomain", "kind", "chronon")
@dataclass(frozen=True)
class TimeDomain:
    """What a tick of a query means. ``chronon`` is in microseconds (1 for BIGINT)."""

    kind: TimeKind = TimeKind.BIGINT
    chronon: int = 1

    def __str__(self) -> str:
        return "BIGINT ticks" if self.kind == TimeKind.BIGINT else f"TIMESTAMP with chronon {micros_text(self.chronon)}"

    @property
    def type(self) -> str:
        """The type of an instant, as Spark writes it."""
        return "bigint" if self.kind == TimeKind.BIGINT else "timestamp"

    @property
    def stored_scale(self) -> int:
        """How many of the units in which result tables hold instants make a tick: microseconds, or ticks."""
        return self.chronon if self.kind == TimeKind.TIMESTAMP else 1

    @property
    def clock(self) -> int:
        """The chronon in microseconds; 0 where a tick is none of the clock."""
        return self.chronon if self.kind == TimeKind.TIMESTAMP else 0

    def length(self, ticks: int) -> str:
        """A length of time in ticks, or in the units that they have.

        >>> TimeDomain().length(90), TimeDomain(TimeKind.TIMESTAMP, 1_000_000).length(90)
        ('90', '90 seconds')
        """
        return str(ticks) if self.kind == TimeKind.BIGINT else micros_text(ticks * self.chronon)

    def instant(self, tick: int) -> str:
        """An instant as a tick, or as ISO 8601.

        >>> TimeDomain(TimeKind.TIMESTAMP, 1_000_000).instant(90)
        '1970-01-01T00:01:30Z'
        """
        if self.kind == TimeKind.BIGINT:
            return str(tick)
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick * self.chronon)
        except OverflowError:
            return f"tick {tick}"
        return moment.isoformat().replace("+00:00", "Z")


def micros_text(micros: int) -> str:
    """``1 second``, ``90 minutes``: a length in its largest unit that divides it."""
    if micros == 0:
        return "0 seconds"
    for unit in reversed(MICROS):
        if unit != "WEEK" and micros % MICROS[unit] == 0:
            n = micros // MICROS[unit]
            return f"{n:,} {unit.lower()}{'' if abs(n) == 1 else 's'}"
    return f"{micros} microseconds"
