"""Instants as Spark writes them: ``2013-01-31 12:00:00.5 Europe/Berlin`` and its shorter forms."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from fractions import Fraction

from sweeparea.infra import zones

_TIMESTAMP = re.compile(r"^\s*(\d{1,6}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d+)?)?))?\s*(.*?)\s*$")


def micros_of_timestamp(text: str) -> int:
    """Microseconds since 1970 UTC of a timestamp as Spark writes it; without a zone it is UTC. ValueError if it is
    none."""
    match = _TIMESTAMP.match(text)
    if match is None:
        raise ValueError("a date such as 2013-01-31 is expected")
    date, clock, zone = match[1], match[2] or "00:00:00", match[3]
    year, month, day = (int(p) for p in date.split("-"))
    hour, minute, *second = clock.split(":")
    seconds = Fraction(second[0]) if second else Fraction(0)
    whole = int(seconds)
    value = datetime(year, month, day, int(hour), int(minute), whole, tzinfo=_zone(zone))
    fraction = (seconds - whole) * 1_000_000
    since = value - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds + int(fraction)


def _zone(text: str):
    if text in ("", "Z", "UTC", "GMT"):
        return UTC
    if re.fullmatch(r"[+-]\d{1,2}(:\d{2})?", text):
        sign, hours, *minutes = text[0], *text[1:].split(":")
        return datetime.strptime(f"{sign}{int(hours):02d}{minutes[0] if minutes else '00'}", "%z").tzinfo
    try:
        return zones.zone(text)
    except Exception:
        raise ValueError(f"{text!r} is no time zone") from None
