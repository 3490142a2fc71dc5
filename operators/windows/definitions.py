"""Windows: stream to relation. A time window maps an element's instant s to its interval of validity, alone; of the
others (rows, sessions, conditions, user-defined) later elements decide when an element leaves.

All bounds are ticks, all intervals half-open. The definitions follow Arasu et al. 2003 (section 6.1), Kraemer & Seeger
2005 (sections 2.6 and 3.2.9, Algorithm 4) and Patroumpas & Sellis 2006 (section 3.3, scope functions: an element is
valid at the instants whose scope holds its own; START stands for their tau_0). ``interval`` is the definition, one
element at a time; ``sql`` is the same function as Spark SQL over a BIGINT column, tested against it. ``reach`` bounds
how long an element can matter: an element with ``s <= h - reach`` contributes nothing after h (``INF``: it may matter
for ever).

A new time window is a new class here: ``interval``, ``sql``, ``reach``, ``__str__``, and the names under which it is
stored (``stored_names.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sweeparea.operators.plan.stored_names import stored
from sweeparea.operators.time import wall_clock
from sweeparea.operators.time.ticks import INF, MAX_TICK, end_of


class Window(ABC):
    """Any window."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """Ticks after which an element no longer matters, or ``INF``."""

    @property
    def monotonic(self) -> bool:
        """Whether nothing ever leaves the window by its definition (update pattern *monotonic*, Golab & Oezsu 2005
        section 3.1; of windows Patroumpas & Sellis 2006, section 3.4). A bounded window whose reach saturates is not.
        """
        return False


class TimeWindow(Window):
    """A window whose expiry is known when an element arrives."""

    @abstractmethod
    def interval(self, s: int) -> tuple[int, int] | None:
        """``(ts, te)`` in which an element of instant s is valid; None if it never is."""

    @abstractmethod
    def sql(self, s: str) -> tuple[str, str]:
        """Spark SQL for ts and te over the BIGINT expression ``s``; never-valid elements get ts >= te. It may use the
        columns of ``steps``.
        """

    def steps(self, s: str) -> Sequence[tuple[str, str]]:
        """Columns ``(name, Spark SQL)`` to be computed first, one after the other, each over those before it."""
        return ()


class BucketWindow(TimeWindow):
    """A time window whose elements lie in buckets with bounds: WINDOW_START, WINDOW_END.

    Where they are asked for, an element is one row for each bucket that holds it; without them the visibilities of
    neighbouring buckets join to ``interval``.
    """

    @abstractmethod
    def buckets(self, s: int) -> list[tuple[int, int, int, int]]:
        """``(start, end, ts, te)``: the bounds ``[start, end)`` of each bucket of s, and when it is visible."""

    @abstractmethod
    def buckets_sql(self, s: str) -> str:
        """Spark SQL for an array of such structs over the BIGINT expression ``s`` and the columns of ``bounds_steps``;
        what is never visible gets ts >= te.
        """

    def bounds_steps(self, s: str) -> Sequence[tuple[str, str]]:
        """As ``steps``, for ``buckets_sql``."""
        return self.steps(s)


def _plus(a: str, b: str | int) -> str:
    """SQL for a + b saturated to ``INF``; ``a`` may be ``INF``, b is at least 0. Compares first, so that no BIGINT
    overflows.
    """
    if b == 0:
        return a
    if isinstance(b, int):
        return f"IF({a} > {MAX_TICK - b}L, {INF}L, {a} + {b}L)"
    return f"IF({a} > {MAX_TICK}L - {b}, {INF}L, {a} + {b})"


def _hop_at_or_after(x: int, slide: int, anchor: int) -> int:
    return x + (anchor - x) % slide


def _to_hop_sql(x: str, slide: int, anchor: int) -> str | int:
    # how far the next hop is; reduced first so that neither term can leave the BIGINT range
    return f"pmod({anchor % slide}L - pmod({x}, {slide}L), {slide}L)" if slide > 1 else 0


@stored("Unbounded")
@dataclass(frozen=True)
class Unbounded(TimeWindow):
    """``[Range Unbounded]``: valid in [s, infinity) (Arasu section 6.1.1)."""

    def interval(self, s: int) -> tuple[int, int] | None:
        return s, INF

    def sql(self, s: str) -> tuple[str, str]:
        return s, f"{INF}L"

    @property
    def monotonic(self) -> bool:
        return True

    @property
    def reach(self) -> int:
        return INF

    def __str__(self) -> str:
        return "[Range Unbounded]"


@stored("Range", "length")
@dataclass(frozen=True)
class Range(TimeWindow):
    """Valid in [s, s+length): ``[Now]`` is length 1, ``[Range T]`` closed is T+1 (Arasu), half-open is T (Kraemer)."""

    length: int

    def interval(self, s: int) -> tuple[int, int] | None:
        return s, end_of(s, self.length)

    def sql(self, s: str) -> tuple[str, str]:
        return s, _plus(s, self.length)

    @property
    def reach(self) -> int:
        return self.length

    def __str__(self) -> str:
        return "[Now]" if self.length == 1 else f"[Range {self.length} Exclusive]"


@stored("Slide", "length", "slide", "lag", "anchor")
@dataclass(frozen=True)
class Slide(TimeWindow):
    """``[Range T Slide b Lag d Anchor a]``: with s' = s+d, from the first hop >= s' to the first hop > s'+length-1.

    Hops are a+kb (Patroumpas' scope_s). An element that no hop sees is never valid: then both hops coincide.
    """

    length: int
    slide: int
    lag: int = 0
    anchor: int = 0

    def interval(self, s: int) -> tuple[int, int] | None:
        first = s + self.lag
        ts, te = (_hop_at_or_after(x, self.slide, self.anchor) for x in (first, first + self.length))
        if ts > MAX_TICK or ts >= te:
            return None
        return ts, INF if te > MAX_TICK else te

    def sql(self, s: str) -> tuple[str, str]:
        first, last = _plus(s, self.lag), _plus(s, self.lag + self.length)
        ts, te = (_plus(x, _to_hop_sql(x, self.slide, self.anchor)) for x in (first, last))
        return ts, te

    @property
    def reach(self) -> int:
        return end_of(self.lag + self.length, self.slide)

    def __str__(self) -> str:
        lag = f" Lag {self.lag}" if self.lag else ""
        anchor = f" Anchor {self.anchor}" if self.anchor else ""
        return f"[Range {self.length} Exclusive Slide {self.slide}{lag}{anchor}]"


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
        return _hop_at_or_after(s - self.length + 1, self.slide, self.anchor), newest

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
        return f"({low} + {_to_hop_sql(low, self.slide, self.anchor)})", newest

    def sql(self, s: str) -> tuple[str, str]:
        oldest, newest = self._starts_sql(s)
        te = _plus(newest, self.length - 1 + self.slide)
        if self.length % self.slide == 0:  # the oldest bucket starts length - slide before the newest
            return _plus(newest, self.slide - 1), te
        ts = _plus(oldest, self.length - 1)
        # a hop longer than the bucket: s may fall between two buckets
        return ts, te if self.slide < self.length else f"IF({oldest} > {newest}, {ts}, {te})"

    def buckets_sql(self, s: str) -> str:
        oldest, newest = self._starts_sql(s)
        if self.length == self.slide:
            return f"array({self._bucket_sql(newest)})"
        starts = f"IF({oldest} > {newest}, array(), sequence({oldest}, {newest}, {self.slide}L))"
        return f"transform({starts}, __b -> {self._bucket_sql('__b')})"

    def _bucket_sql(self, start: str) -> str:
        ts, te = _plus(start, self.length - 1), _plus(start, self.length - 1 + self.slide)
        return f"struct({start}, {_plus(start, self.length)}, {ts}, {te})"

    @property
    def reach(self) -> int:
        return end_of(self.length, self.slide)

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

    def buckets_sql(self, s: str) -> str:
        ts, te = self.sql(s)
        return f"array(struct({self._tick_sql('__b2start')}, __b0next, {ts}, {te}))"

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
        te = _hop_at_or_after(s + 1, self.length, self.anchor)
        return s, INF if te > MAX_TICK else te

    def sql(self, s: str) -> tuple[str, str]:
        return s, _plus(s, f"({self.length}L - {self._into_sql(s)})")

    def _into_sql(self, s: str) -> str:
        # how far s lies in its bucket
        return f"pmod(pmod({s}, {self.length}L) - {self.anchor % self.length}L, {self.length}L)"

    def buckets(self, s: int) -> list[tuple[int, int, int, int]]:
        te = end_of(_hop_at_or_after(s + 1, self.length, self.anchor), 0)
        return [(s - (s - self.anchor) % self.length, te, s, te)]

    def buckets_sql(self, s: str) -> str:
        ts, te = self.sql(s)
        return f"array(struct({s} - {self._into_sql(s)}, {te}, {ts}, {te}))"

    @property
    def reach(self) -> int:
        return self.length

    def __str__(self) -> str:
        return f"[Fixed {self.length}{f' Anchor {self.anchor}' if self.anchor else ''}]"


@stored("Landmark", "start", "end")
@dataclass(frozen=True)
class Landmark(TimeWindow):
    """``[From a]``, ``[Until b]``, ``[From a Until b]``: [s, infinity) for a <= s <= b (Patroumpas: landmark, band)."""

    start: int | None = None
    end: int | None = None

    def interval(self, s: int) -> tuple[int, int] | None:
        if (self.start is not None and s < self.start) or (self.end is not None and s > self.end):
            return None
        return s, INF

    def sql(self, s: str) -> tuple[str, str]:
        tests = [f"{s} >= {self.start}L"] * (self.start is not None) + [f"{s} <= {self.end}L"] * (self.end is not None)
        return s, f"IF({' AND '.join(tests) or 'TRUE'}, {INF}L, {s})"

    @property
    def monotonic(self) -> bool:
        return True

    @property
    def reach(self) -> int:
        return INF

    def __str__(self) -> str:
        start = f"From {self.start}" if self.start is not None else ""
        end = f"Until {self.end}" if self.end is not None else ""
        return f"[{' '.join(x for x in (start, end) if x)}]"


@stored("Rows", "count", "slide", "length")
@dataclass(frozen=True)
class Rows(Window):
    """``[Rows N]``: an element is valid until the N-th later element; with PARTITION BY, of its partition (Arasu
    sections 6.1.2, 6.1.3).

    ``slide`` k: the last N as of the greatest multiple of k arrivals since START. ``length``: at most so many ticks
    (``Range T``).
    """

    count: int
    slide: int = 1
    length: int | None = None

    @property
    def reach(self) -> int:
        return INF if self.length is None else self.length

    def __str__(self) -> str:
        slide = f" Slide {self.slide}" if self.slide != 1 else ""
        length = f" Range {self.length} Exclusive" if self.length is not None else ""
        return f"[Rows {self.count}{slide}{length}]"


@stored("Session", "gap")
@dataclass(frozen=True)
class Session(Window):
    """``[Session G]``: elements closer than G to their predecessor share a session, valid in [last+G-1, last+G)."""

    gap: int

    @property
    def reach(self) -> int:
        return INF

    def __str__(self) -> str:
        return f"[Session {self.gap}]"


@stored("When")
@dataclass(frozen=True)
class When(Window):
    """``[Tumbling When (condition)]``: the bucket (previous meeter, this meeter], visible from this meeter's instant to
    the next meeter's (Patroumpas & Sellis: value-based windows).
    """

    @property
    def reach(self) -> int:
        return INF

    def __str__(self) -> str:
        return "[Tumbling When]"


@stored("UserWindow", "name", "pattern")
@dataclass(frozen=True)
class UserWindow(Window):
    """A registered Python function from instants and columns to intervals; ``pattern`` is what its author declared:
    monotonic, WKS, WK or STR.
    """

    name: str
    pattern: str

    @property
    def reach(self) -> int:
        return INF

    @property
    def monotonic(self) -> bool:
        return self.pattern == "monotonic"

    def __str__(self) -> str:
        return f"[{self.name}]"
