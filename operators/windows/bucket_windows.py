"""Windows of time whose elements lie in buckets: hopping and tumbling ones, fixed ones, those of the calendar.

A full bucket shows from its last instant on, as the tumbling windows of Patroumpas & Sellis 2006, section 3.3, do. Two
things differ: their tumbling window is ``scope_s`` with a step as long as the extent, whose buckets ``(h-w, h]`` end at
hops, which is ``Slide(w, w)``; here they begin at hops, ``[h, h+w)``, as calendars have them. And their hops count from
tau_0, the start of the query, here from the anchor (tick 0), so that the start changes no bucket.

>>> Hopping(10, 10).interval(10)
(19, 29)
>>> from sweeparea.operators.windows.time_windows import Slide
>>> Slide(10, 10).interval(10)
(10, 20)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.time import wall_clock
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF, MAX_TICK, end_of
from sweeparea.operators.windows.definitions import BucketWindow
from sweeparea.operators.windows.saturated_sql import hop_at_or_after, plus, sums, to_hop_sql, to_hops

if TYPE_CHECKING:
    import numpy as np
else:
    (np,) = later("numpy")


def anchor_text(ticks: int, time: TimeDomain) -> str:
    """An anchor that is not the origin of time."""
    return f" Anchor {time.instant(ticks)}" if ticks else ""


def _one(*bounds: str) -> tuple[str, tuple[str, str, str, str]]:
    # ``buckets_sql`` of the one bucket that an instant has
    named = ", ".join(f"'at{i}', {sql}" for i, sql in enumerate(bounds))
    return f"array(named_struct({named}))", ("__b.at0", "__b.at1", "__b.at2", "__b.at3")


@stored("Hopping", "length", "slide", "anchor")
@dataclass(frozen=True)
class Hopping(BucketWindow):
    """``[Hopping w Slide b Anchor a]``: every bucket [a+kb, a+kb+w) that contains s, visible for b ticks from its last
    instant. Neighbouring buckets' visibilities touch, so the union is one interval. ``[Tumbling w]`` is b = w.
    """

    length: int
    slide: int
    anchor: int = 0

    def interval(self, s: int) -> tuple[int, int] | None:
        oldest, newest = self._starts(s)
        if oldest > newest:
            return None  # the hop is longer than the bucket and s falls between two buckets
        ts, te = end_of(oldest, self.length - 1), end_of(newest, self.length - 1 + self.slide)
        return None if ts == INF else (ts, te)

    def _starts(self, s: int) -> tuple[int, int]:
        # of the first and the last bucket that holds s; where none does the first is the later one
        newest = s - (s - self.anchor) % self.slide
        return hop_at_or_after(s - self.length + 1, self.slide, self.anchor), newest

    def buckets(self, s: int) -> list[tuple[int, int, int, int]]:
        oldest, newest = self._starts(s)
        found = []
        for start in range(oldest, newest + 1, self.slide):
            ts, te = end_of(start, self.length - 1), end_of(start, self.length - 1 + self.slide)
            if ts < INF:
                found.append((start, end_of(start, self.length), ts, te))
        return found

    def _starts_sql(self, s: str) -> tuple[str, str]:
        newest = f"({s} - pmod(pmod({s}, {self.slide}L) - {self.anchor % self.slide}L, {self.slide}L))"
        low = f"({s} - {self.length - 1}L)"
        return f"({low} + {to_hop_sql(low, self.slide, self.anchor)})", newest

    def sql(self, s: str) -> tuple[str, str]:
        oldest, newest = self._starts_sql(s)
        te = plus(newest, self.length - 1 + self.slide)
        if self.length % self.slide == 0:  # the oldest bucket starts length - slide before the newest
            return plus(newest, self.slide - 1), te
        ts = plus(oldest, self.length - 1)
        # a hop longer than the bucket: s may fall between two buckets
        return ts, te if self.slide < self.length else f"IF({oldest} > {newest}, {ts}, {te})"

    def intervals(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        newest, low = s - (s % self.slide - self.anchor % self.slide) % self.slide, s - (self.length - 1)
        oldest = low + to_hops(low, self.slide, self.anchor)
        ts = sums(oldest, self.length - 1)
        # a hop longer than the bucket: s may fall between two buckets
        return ts, np.where(oldest > newest, ts, sums(newest, self.length - 1 + self.slide))

    def one_bucket(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        if self.length != self.slide:
            return None
        start = s - (s % self.slide - self.anchor % self.slide) % self.slide
        return start, sums(start, self.length), sums(start, self.length - 1), sums(start, self.length - 1 + self.slide)

    def buckets_sql(self, s: str) -> tuple[str, tuple[str, str, str, str]]:
        oldest, newest = self._starts_sql(s)
        if self.length == self.slide:
            starts = f"array({newest})"
        else:
            starts = f"IF({oldest} > {newest}, array(), sequence({oldest}, {newest}, {self.slide}L))"
        # of starts only: Spark does not compile the lambda that would make structs of them, four times the cost
        ts, te = plus("__b", self.length - 1), plus("__b", self.length - 1 + self.slide)
        return starts, ("__b", plus("__b", self.length), ts, te)

    def pane_sql(self, s: str) -> str | None:
        if self.length == self.slide:
            return None
        newest = self._starts_sql(s)[1]
        # within a slide the oldest bucket ends once
        late = self.length % self.slide
        return f"({newest} + IF({s} - {newest} >= {late}L, {late}L, 0L))" if late else newest

    @property
    def in_buckets(self) -> bool:
        return True

    @property
    def reach(self) -> int:
        return end_of(self.length, self.slide)

    def words(self, time: TimeDomain, partition: str = "", condition: str = "") -> str:
        length, anchor = time.length(self.length), anchor_text(self.anchor, time)
        if self.length == self.slide:
            return f"[Tumbling {length}{anchor}]"
        return f"[Hopping {length} Slide {time.length(self.slide)}{anchor}]"

    def __str__(self) -> str:
        anchor = f" Anchor {self.anchor}" if self.anchor else ""
        if self.length == self.slide:
            return f"[Tumbling {self.length}{anchor}]"
        return f"[Hopping {self.length} Slide {self.slide}{anchor}]"


@stored("Calendar", "unit", "zone", "chronon")
@dataclass(frozen=True)
class Calendar(BucketWindow):
    """``[Tumbling By unit In zone]``: the calendar bucket of s (``wall_clock.bucket``), visible from its last tick to
    the last tick of the next bucket, as in Tumbling.

    ``unit``: second, minute, hour, day, week, month, quarter or year. ``zone``: an IANA name. ``chronon``: what a tick
    lasts, in microseconds. A bucket is the ticks that begin in it; one without a tick is none. Beyond the years that
    ``wall_clock`` covers nothing is valid.
    """

    unit: str
    zone: str = "UTC"
    chronon: int = 1

    def _next(self, s: int) -> int:
        # the first tick after the bucket of s
        if abs(s) > wall_clock.RANGE // self.chronon:
            return INF
        return -(-wall_clock.bucket(s * self.chronon, self.unit, self.zone)[1] // self.chronon)

    def interval(self, s: int) -> tuple[int, int] | None:
        first = self._next(s)
        return None if first - 1 > MAX_TICK else (first - 1, end_of(self._next(first), -1))

    def _next_sql(self, s: str, prefix: str) -> list[tuple[str, str]]:
        # NULL for what lies beyond: no product may leave the BIGINT range
        at, end = f"{prefix}at", f"{prefix}end"
        limit = wall_clock.RANGE // self.chronon
        micros = f"IF({s} BETWEEN {-limit}L AND {limit}L, {s} * {self.chronon}L, NULL)" if self.chronon > 1 else s
        steps = wall_clock.end_sql(at, self.unit, self.zone, prefix)
        return [(at, micros), *steps, (f"{prefix}next", self._tick_sql(end))]

    def steps(self, s: str) -> Sequence[tuple[str, str]]:
        return [*self._next_sql(s, "__b0"), *self._next_sql("__b0next", "__b1")]

    def sql(self, s: str) -> tuple[str, str]:
        ts, te = (f"coalesce(IF({x} - 1 > {MAX_TICK}L, {INF}L, {x} - 1), {INF}L)" for x in ("__b0next", "__b1next"))
        return ts, te

    def buckets(self, s: int) -> list[tuple[int, int, int, int]]:
        visible = self.interval(s)
        if visible is None:
            return []
        start = -(-wall_clock.bucket(s * self.chronon, self.unit, self.zone)[0] // self.chronon)
        return [(start, self._next(s), *visible)]

    def _tick_sql(self, micros: str) -> str:
        # the first tick at or after an instant
        return micros if self.chronon == 1 else f"({micros} + pmod(-{micros}, {self.chronon}L)) DIV {self.chronon}L"

    def bounds_steps(self, s: str) -> Sequence[tuple[str, str]]:
        return [*self.steps(s), *wall_clock.start_sql("__b0at", self.unit, self.zone, "__b2")]

    def buckets_sql(self, s: str) -> tuple[str, tuple[str, str, str, str]]:
        ts, te = self.sql(s)
        return _one(self._tick_sql("__b2start"), "__b0next", ts, te)

    @property
    def in_buckets(self) -> bool:
        return True

    @property
    def reach(self) -> int:
        return end_of(-(-2 * wall_clock.longest(self.unit) // self.chronon), 2)

    def __str__(self) -> str:
        return f"[Tumbling By {self.unit} In '{self.zone}']"


@stored("Fixed", "length", "anchor")
@dataclass(frozen=True)
class Fixed(BucketWindow):
    """``[Fixed w Anchor a]``: valid in [s, next a+kw after s) (Kraemer's fixed window)."""

    length: int
    anchor: int = 0

    def interval(self, s: int) -> tuple[int, int] | None:
        te = hop_at_or_after(s + 1, self.length, self.anchor)
        return s, INF if te > MAX_TICK else te

    def sql(self, s: str) -> tuple[str, str]:
        return s, plus(s, f"({self.length}L - {self._into_sql(s)})")

    def intervals(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return s, sums(s, self.length - (s % self.length - self.anchor % self.length) % self.length)

    def one_bucket(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        ts, te = self.intervals(s)
        return s - (s % self.length - self.anchor % self.length) % self.length, te, ts, te

    def _into_sql(self, s: str) -> str:
        # how far s lies in its bucket
        return f"pmod(pmod({s}, {self.length}L) - {self.anchor % self.length}L, {self.length}L)"

    def buckets(self, s: int) -> list[tuple[int, int, int, int]]:
        te = end_of(hop_at_or_after(s + 1, self.length, self.anchor), 0)
        return [(s - (s - self.anchor) % self.length, te, s, te)]

    def buckets_sql(self, s: str) -> tuple[str, tuple[str, str, str, str]]:
        ts, te = self.sql(s)
        return _one(f"{s} - {self._into_sql(s)}", te, ts, te)

    @property
    def reach(self) -> int:
        return self.length

    def words(self, time: TimeDomain, partition: str = "", condition: str = "") -> str:
        return f"[Fixed {time.length(self.length)}{anchor_text(self.anchor, time)}]"

    def __str__(self) -> str:
        return f"[Fixed {self.length}{f' Anchor {self.anchor}' if self.anchor else ''}]"
