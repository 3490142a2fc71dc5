"""Windows of time: ranges, slides and landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.time.domain import TimeDomain, TimeKind, micros_text
from sweeparea.operators.time.ticks import INF, MAX_TICK, end_of
from sweeparea.operators.windows.bucket_windows import anchor_text
from sweeparea.operators.windows.definitions import TimeWindow
from sweeparea.operators.windows.saturated_sql import hop_at_or_after, plus, sums, to_hop_sql, to_hops

if TYPE_CHECKING:
    import numpy as np
else:
    (np,) = later("numpy")


@stored("Unbounded")
@dataclass(frozen=True)
class Unbounded(TimeWindow):
    """``[Range Unbounded]``: valid in [s, infinity) (Arasu section 6.1.1)."""

    def interval(self, s: int) -> tuple[int, int] | None:
        return s, INF

    def sql(self, s: str) -> tuple[str, str]:
        return s, f"{INF}L"

    def intervals(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return s, np.full(len(s), INF)

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
        return s, plus(s, self.length)

    def intervals(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return s, sums(s, self.length)

    @property
    def reach(self) -> int:
        return self.length

    def words(self, time: TimeDomain, partition: str = "", condition: str = "") -> str:
        if time.kind == TimeKind.BIGINT:
            return str(self)
        # a closed Range T lasts one tick longer than T
        closed = micros_text(time.chronon * (self.length - 1))
        if self.length > 1 and len(closed) <= len(time.length(self.length)):
            return f"[Range {closed} Inclusive]"
        return "[Now]" if self.length == 1 else f"[Range {time.length(self.length)} Exclusive]"

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
        ts, te = (hop_at_or_after(x, self.slide, self.anchor) for x in (first, first + self.length))
        if ts > MAX_TICK or ts >= te:
            return None
        return ts, INF if te > MAX_TICK else te

    def sql(self, s: str) -> tuple[str, str]:
        first, last = plus(s, self.lag), plus(s, self.lag + self.length)
        ts, te = (plus(x, to_hop_sql(x, self.slide, self.anchor)) for x in (first, last))
        return ts, te

    def intervals(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first, last = sums(s, self.lag), sums(s, self.lag + self.length)
        ts, te = (sums(x, to_hops(x, self.slide, self.anchor)) for x in (first, last))
        return ts, te

    @property
    def in_buckets(self) -> bool:
        return self.slide > 1

    @property
    def reach(self) -> int:
        return end_of(self.lag + self.length, self.slide)

    def words(self, time: TimeDomain, partition: str = "", condition: str = "") -> str:
        lag = f" Lag {time.length(self.lag)}" if self.lag else ""
        hop = f"Slide {time.length(self.slide)}{lag}{anchor_text(self.anchor, time)}"
        return f"[Range {time.length(self.length)} Exclusive {hop}]"

    def __str__(self) -> str:
        lag = f" Lag {self.lag}" if self.lag else ""
        anchor = f" Anchor {self.anchor}" if self.anchor else ""
        return f"[Range {self.length} Exclusive Slide {self.slide}{lag}{anchor}]"


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

    def intervals(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inside = np.ones(len(s), np.bool_) if self.start is None else s >= self.start
        if self.end is not None:
            inside &= s <= self.end
        return s, np.where(inside, INF, s)

    @property
    def monotonic(self) -> bool:
        return True

    @property
    def reach(self) -> int:
        return INF

    def words(self, time: TimeDomain, partition: str = "", condition: str = "") -> str:
        bounds = ("From", self.start), ("Until", self.end)
        return f"[{' '.join(f'{word} {time.instant(t)}' for word, t in bounds if t is not None)}]"

    def __str__(self) -> str:
        start = f"From {self.start}" if self.start is not None else ""
        end = f"Until {self.end}" if self.end is not None else ""
        return f"[{' '.join(x for x in (start, end) if x)}]"
