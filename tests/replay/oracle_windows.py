"""Windows by their definitions (semantics, section 3): is an element of instant s in the window's contents at tau?

Each is a predicate over the two instants, as the papers write scope functions; no interval is ever computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tests.replay.oracle_arrivals import Shown, each, rows, session, when
from tests.replay.values import micros

Window = Callable[[int, int], bool]
"""``(s, tau)`` -> whether the element is in the window at tau."""

_UNITS = {"MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6}
_UNITS["DAY"] = 24 * _UNITS["HOUR"]


def unbounded(s: int, tau: int) -> bool:
    return s <= tau


def span(length: int) -> Window:
    """Kraemer's time window: the last ``length`` instants, tau included."""
    return lambda s, tau: tau - length < s <= tau


def slide(length: int, beat: int, lag: int, anchor: int) -> Window:
    """Patroumpas' scope: at tau the last hop H at or before tau shows what lies in (H-lag-length, H-lag]."""

    def visible(s: int, tau: int) -> bool:
        hop = tau - (tau - anchor) % beat
        return hop - lag - length < s <= hop - lag

    return visible


def hopping(length: int, beat: int, anchor: int) -> Window:
    """At tau exactly one bucket shows: that whose last instant is the latest at or before tau."""

    def visible(s: int, tau: int) -> bool:
        bucket = tau - length + 1 - (tau - length + 1 - anchor) % beat
        return bucket <= s < bucket + length

    return visible


def bucket_shown(length: int, beat: int, anchor: int) -> Callable[[int, int], tuple[int, int]]:
    """The bounds of the bucket that shows at tau."""

    def bounds(s: int, tau: int) -> tuple[int, int]:
        bucket = tau - length + 1 - (tau - length + 1 - anchor) % beat
        return bucket, bucket + length

    return bounds


def fixed(length: int, anchor: int) -> Window:
    """Kraemer's fixed window: from s to the end of the bucket that holds s."""
    return lambda s, tau: s <= tau and (s - anchor) // length == (tau - anchor) // length


def landmark(first: int | None, last: int | None) -> Window:
    return lambda s, tau: s <= tau and (first is None or first <= s) and (last is None or s <= last)


class Reader:
    """Reads the tokens of a window."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = list(tokens)

    def take(self, *words: str) -> bool:
        if self.tokens and self.tokens[0].upper() in words:
            self.tokens.pop(0)
            return True
        return False

    def number(self) -> int:
        """A duration or an instant: ticks, ``5 Minutes``, ``INTERVAL '5' MINUTE``, ``TIMESTAMP '..'``."""
        if self.take("TIMESTAMP"):
            return micros(self.tokens.pop(0).strip("'"))
        self.take("INTERVAL")
        sign = -1 if self.take("-") else 1
        value = sign * int(self.tokens.pop(0).strip("'"))
        unit = re.sub("S$", "", self.tokens[0].upper()) if self.tokens else ""
        if unit in _UNITS:
            self.tokens.pop(0)
            return value * _UNITS[unit]
        return value

    def option(self, word: str, default: int) -> int:
        return self.number() if self.take(word) else default


def _named(text: Reader) -> list[str]:
    """The column names of PARTITION BY."""
    names = []
    while True:
        names.append(text.tokens.pop(0))
        if not text.take(","):
            return names


def _partition(text: Reader) -> list[str]:
    if not text.take("PARTITION"):
        return []
    text.take("BY")
    return _named(text)


def window(tokens: Sequence[str], inclusive: bool = True) -> Shown:
    """The window of the tokens between the brackets."""
    text = Reader(tokens)
    partition = _partition(text)
    if text.take("SESSION"):
        show = session(text.number())
        return Shown(show, partition=partition or _partition(text))
    if text.tokens[:1] and text.tokens[0].upper() == "ROWS" and text.tokens[1].upper() != "UNBOUNDED":
        text.take("ROWS")
        count = int(text.tokens.pop(0))
        slide = int(text.tokens.pop(0)) if text.take("SLIDE") else 1
        length = None
        if text.take("RANGE"):
            length = text.number()
            closed, opened = text.take("INCLUSIVE"), text.take("EXCLUSIVE")
            length += closed or (inclusive and not opened)
        return Shown(rows(count, slide, length), partition=partition)
    if [t.upper() for t in text.tokens[:2]] == ["TUMBLING", "WHEN"]:
        end = len(text.tokens) - 1 - text.tokens[::-1].index(")")
        condition, text.tokens = text.tokens[2 : end + 1], text.tokens[end + 1 :]
        sql = " ".join("IS NOT DISTINCT FROM" if t == "<=>" else t for t in condition)
        return Shown(when, partition=_partition(text), condition=sql)
    return _of_time(text, inclusive)


def _of_time(text: Reader, inclusive: bool) -> Shown:
    if not text.tokens:
        return Shown(each(unbounded), True)
    if text.take("NOW"):
        return Shown(each(span(1)))
    if text.take("RANGE", "ROWS"):
        if text.take("UNBOUNDED"):
            return Shown(each(unbounded), True)
        length = text.number()
        closed, opened = text.take("INCLUSIVE"), text.take("EXCLUSIVE")
        slides = bool(text.tokens)
        beat, lag, anchor = text.option("SLIDE", 1), text.option("LAG", 0), text.option("ANCHOR", 0)
        length += closed or (inclusive and not opened and not slides)
        return Shown(each(slide(length, beat, lag, anchor) if slides else span(length)))
    if text.take("TUMBLING", "HOPPING"):
        length = text.number()
        beat = text.option("SLIDE", length)
        buckets = length, beat, text.option("ANCHOR", 0)
        return Shown(each(hopping(*buckets), bucket_shown(*buckets)))
    if text.take("FIXED"):
        length = text.number()
        anchor = text.option("ANCHOR", 0)

        def bucket(s: int, tau: int) -> tuple[int, int]:
            return s - (s - anchor) % length, s - (s - anchor) % length + length

        return Shown(each(fixed(length, anchor), bucket))
    first = text.number() if text.take("FROM") else None
    last = text.number() if text.take("UNTIL") else None
    return Shown(each(landmark(first, last)), True)
