"""Windows in which later elements decide, and user-defined ones. Their sweeps: ``rows_window.py`` and its
neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.edge import ORDER
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.windows.definitions import WindowDefinition


@stored("Rows", "count", "slide", "length")
@dataclass(frozen=True)
class Rows(WindowDefinition):
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

    def pattern(self, partitioned: bool) -> str:
        """First in first out, by partition."""
        return "WK" if partitioned else "WKS"

    @property
    def counts(self) -> bool:
        return self.slide != 1

    def kept(self, partitioned: bool) -> str:
        each = " of each partition" if partitioned else ""
        return f"first in, first out: the last {self.count + self.slide - 1:,} elements{each}"

    def words(self, time: TimeDomain, partition: str = "", condition: str = "") -> str:
        within = f" Range {time.length(self.length)} Exclusive" if self.length is not None else ""
        slide = f" Slide {self.slide}" if self.slide != 1 else ""
        return f"[{partition + ' ' if partition else ''}Rows {self.count}{within}{slide}]"

    def __str__(self) -> str:
        slide = f" Slide {self.slide}" if self.slide != 1 else ""
        length = f" Range {self.length} Exclusive" if self.length is not None else ""
        return f"[Rows {self.count}{slide}{length}]"


@stored("Session", "gap")
@dataclass(frozen=True)
class Session(WindowDefinition):
    """``[Session G]``: elements closer than G to their predecessor share a session, valid in [last+G-1, last+G)."""

    gap: int

    @property
    def reach(self) -> int:
        return INF

    def kept(self, partitioned: bool) -> str:
        return "the elements of the sessions that are open"

    def words(self, time: TimeDomain, partition: str = "", condition: str = "") -> str:
        return f"[Session {time.length(self.gap)}{' ' + partition if partition else ''}]"

    def __str__(self) -> str:
        return f"[Session {self.gap}]"


@stored("When")
@dataclass(frozen=True)
class When(WindowDefinition):
    """``[Tumbling When (condition)]``: the bucket (previous meeter, this meeter], visible from this meeter's instant to
    the next meeter's (Patroumpas & Sellis: value-based windows).
    """

    @property
    def reach(self) -> int:
        return INF

    def kept(self, partitioned: bool) -> str:
        return f"the visible bucket{' of each partition' if partitioned else ''} and the elements after it"

    def words(self, time: TimeDomain, partition: str = "", condition: str = "") -> str:
        return f"[Tumbling When ({condition}){' ' + partition if partition else ''}]"

    def __str__(self) -> str:
        return "[Tumbling When]"


@stored("UserWindow", "name", "pattern", now={"pattern": "declared"})
@dataclass(frozen=True)
class UserWindow(WindowDefinition):
    """A registered Python function from instants and columns to intervals; ``declared`` is the update pattern that its
    author has given: monotonic, WKS, WK or STR.
    """

    name: str
    declared: str

    @property
    def reach(self) -> int:
        return INF

    @property
    def monotonic(self) -> bool:
        return self.declared == "monotonic"

    @property
    def expiry_known(self) -> bool:
        """Its function gives each element's interval when the element is seen."""
        return True

    def pattern(self, partitioned: bool) -> str:
        return self.declared if self.declared in ORDER else "STR"

    def __str__(self) -> str:
        return f"[{self.name}]"
