"""Units of time as they are spelled, and as other systems shorten them."""

from __future__ import annotations

from fractions import Fraction

from sweeparea.operators.time.domain import MICROS

FINER = {"NANOSECOND": Fraction(1, 1_000)}
"""Units that are finer than any tick: multiples of 1,000 of them are exact."""
CALENDAR = ("MONTH", "QUARTER", "YEAR", "DECADE", "CENTURY")
SHORT = {
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanos"), "nanoseconds"),
    **dict.fromkeys(("us", "usec", "usecs", "micros"), "microseconds"),
    **dict.fromkeys(("ms", "msec", "msecs", "millis"), "milliseconds"),
    **dict.fromkeys(("s", "sec", "secs"), "seconds"),
    **dict.fromkeys(("m", "min", "mins"), "minutes"),
    **dict.fromkeys(("h", "hr", "hrs"), "hours"),
    **dict.fromkeys(("d",), "days"),
    **dict.fromkeys(("w", "wk", "wks"), "weeks"),
}
"""Units as other systems shorten them, and how they are spelled."""


def unit_of(text: str) -> str | None:
    """``HOUR`` of ``hours``; None for what is no unit of time."""
    upper = text.upper()
    singular = "CENTURY" if upper == "CENTURIES" else upper[:-1] if upper.endswith("S") else upper
    return singular if singular in MICROS or singular in FINER or singular in CALENDAR else None
