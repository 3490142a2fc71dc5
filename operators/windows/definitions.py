"""Windows: stream to relation. A time window maps an element's instant s to its interval of validity, alone; of the
others (rows, sessions, conditions, user-defined) later elements decide when an element leaves.

All bounds are ticks, all intervals half-open. The definitions follow Arasu et al. 2003 (section 6.1), Kraemer & Seeger
2005 (sections 2.6 and 3.2.9, Algorithm 4) and Patroumpas & Sellis 2006 (section 3.3, scope functions: an element is
valid at the instants whose scope holds its own; START stands for their tau_0, but for hops, which are counted from the
anchor). ``interval`` is the definition, one element at a time; ``sql`` is the same function as Spark SQL over a BIGINT
column, ``intervals`` over an array, both tested against it. ``reach`` bounds how long an element can matter: an element
with ``s <= h - reach`` contributes nothing after h (``INF``: it may matter for ever).

A new time window is a new class in ``time_windows.py`` or ``bucket_windows.py``: ``interval``, ``sql``, ``reach``,
``__str__``, ``words``, and the names under which it is stored (``stored_names.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sweeparea.operators.time.domain import TimeDomain

if TYPE_CHECKING:
    import numpy as np


class WindowDefinition(ABC):
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

    @property
    def expiry_known(self) -> bool:
        """Whether an element's end is known when it arrives."""
        return False

    def pattern(self, partitioned: bool) -> str:
        """The update pattern: later elements decide when an element leaves, in any order."""
        return "WK"

    @property
    def in_buckets(self) -> bool:
        """Whether elements of different instants have one interval, since starts and ends lie at hops."""
        return False

    @property
    def counts(self) -> bool:
        """Whether its contents depend on how many elements have arrived since START."""
        return False

    def words(self, time: TimeDomain, partition: str = "", condition: str = "") -> str:
        """The window in the language's own words, with units where time has them. ``partition`` is a PARTITION BY with
        its words, ``condition`` that of Tumbling When.
        """
        return str(self)

    def kept(self, partitioned: bool) -> str | None:
        """What its operator keeps from slice to slice; None: nothing."""
        return None


def all_in_buckets(ends: Iterable[object]) -> bool:
    """Whether all that ends rows (``Node.ends``) are windows in buckets, so that many rows have one interval."""
    return all(isinstance(end, WindowDefinition) and end.in_buckets for end in ends)


class TimeWindow(WindowDefinition):
    """A window whose expiry is known when an element arrives."""

    @property
    def expiry_known(self) -> bool:
        return True

    def pattern(self, partitioned: bool) -> str:
        """First in first out (Patroumpas & Sellis 2006, section 3.4)."""
        return "monotonic" if self.monotonic else "WKS"

    @abstractmethod
    def interval(self, s: int) -> tuple[int, int] | None:
        """``(ts, te)`` in which an element of instant s is valid; None if it never is."""

    @abstractmethod
    def sql(self, s: str) -> tuple[str, str]:
        """Spark SQL for ts and te over the BIGINT expression ``s``; never-valid elements get ts >= te. It may use the
        columns of ``steps``.
        """

    def intervals(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """``sql`` over an array of ticks (int64); None: Spark SQL alone knows it."""
        return None

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
    def buckets_sql(self, s: str) -> tuple[str, tuple[str, str, str, str]]:
        """Spark SQL for an array with a member for each bucket of the BIGINT expression ``s``, and for such a bucket's
        (start, end, ts, te) over its member ``__b``; both may use the columns of ``bounds_steps``. What is never
        visible gets ts >= te.
        """

    def one_bucket(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """The (start, end, ts, te) of ``buckets`` over an array of ticks (int64) where each lies in one bucket; None:
        in several, or Spark SQL alone knows it.
        """
        return None

    def bounds_steps(self, s: str) -> Sequence[tuple[str, str]]:
        """As ``steps``, for ``buckets_sql``."""
        return self.steps(s)

    def pane_sql(self, s: str) -> str | None:
        """Spark SQL for an instant that lies in the buckets of the BIGINT expression ``s`` and is one for all that lie
        in these (panes: Li et al. 2005, "No pane, no gain"); None where an element has one bucket alone.
        """
        return None
