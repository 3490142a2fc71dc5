"""What a stream carries from commit to commit, in its ledger row: how far its source is read, its own time, its counts.

Every commit starts from the row before it, so the state depends on the source's versions and on what people did, never
on how many versions one run takes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.tables.publication.info import SourceInfo, laid_over, without
from sweeparea.tables.publication.ledger import LedgerRow

COUNTS = (
    "rows", "quarantined", "late", "repaired", "deduplicated", "reinstated", "displaced", "ignored", "taken_back",
    "cancelled", "released", "clamped", "distant",
)  # fmt: skip
"""Counted over a stream's life: copies of rows; ``late`` those at or below the heartbeat, ``repaired`` those of them
that were admitted; ``reinstated`` duplicates that became elements when a kept row was taken back, ``displaced``
elements that these made duplicates; ``distant`` heartbeats of elements that lie too far in the future to be taken."""


@dataclass
class StreamState:
    """A stream after a commit (before its first: as here).

    ``source_version`` is the last version that was taken, ``instant`` its own instant c(v) and ``commit_time`` the
    greatest commit time so far (microseconds); ``heartbeat`` a tick; ``policy`` what the heartbeat's policy keeps;
    ``correction_seq`` the last commit that brought a row at or below the heartbeat before it; ``taken_back``: an
    element was taken back. ``info`` is the row's whole info, of which what others keep is carried on.
    """

    source_version: int = -1
    heartbeat: int | None = None
    instant: int = 0
    commit_time: int = 0
    policy: dict[str, Any] = field(default_factory=dict)
    correction_seq: int = 0
    taken_back: bool = False
    totals: Counter[str] = field(default_factory=Counter)
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def repairs_from(self) -> int | None:
        """The tick below which elements that come now cannot be repaired; None where nothing has gone."""
        return SourceInfo.of(self.info).repairs_from

    @classmethod
    def of(cls, row: LedgerRow | None) -> StreamState:
        """The state that a ledger row holds."""
        if row is None:
            return cls()
        info = row.of_source
        instant = info.instant or 0
        return cls(
            -1 if info.source_version is None else info.source_version,
            row.committed,
            instant,
            instant if info.commit_time is None else info.commit_time,
            dict(info.policy or {}),
            row.correction_seq,
            bool(info.taken_back),
            Counter(info.totals or {}),
            dict(row.info),
        )

    def copy(self) -> StreamState:
        """A state of its own, which goes on from this one."""
        return replace(self, totals=Counter(self.totals))

    def follow(self, commit_time: int, domain: TimeDomain) -> None:
        """A version follows that was committed at ``commit_time``, by its writer's clock: its own instants."""
        self.commit_time = max(commit_time, self.commit_time)
        self.instant = self.next_instant(commit_time, domain)

    def next_instant(self, commit_time: int, domain: TimeDomain) -> int:
        """c(v) = max(commit time, c(v-1), published heartbeat + 1 tick), in microseconds: a clock may go back, the
        order of versions and heartbeats does not.
        """
        candidates = [commit_time, self.instant]
        if domain.kind == TimeKind.TIMESTAMP and self.heartbeat is not None:
            candidates.append((self.heartbeat + 1) * domain.chronon)
        return max(candidates)

    def corrected(self, seq: int, ticks_min: int | None, taken_back: bool = False) -> None:
        """Notes what commit ``seq`` changed: the least tick of its rows, and whether it takes any back."""
        if ticks_min is not None and self.heartbeat is not None and ticks_min <= self.heartbeat:
            self.correction_seq = seq
        self.taken_back = self.taken_back or taken_back

    def as_info(self, counts: Counter[str], more: SourceInfo | None = None) -> dict[str, Any]:
        """The info of the commit: ``counts`` are its own, as ``COUNTS`` names them, added to the totals; ``more`` is
        what else the commit says. What it released from quarantine is not carried on by the next.
        """
        self.totals.update({name: counts[name] for name in COUNTS if counts[name]})
        own = SourceInfo(
            source_version=self.source_version,
            instant=self.instant,
            commit_time=self.commit_time,
            policy=self.policy,
            correction_seq=self.correction_seq,
            taken_back=self.taken_back,
            totals=dict(self.totals),
            rows=counts["rows"],
            quarantined=counts["quarantined"],
            clamped=counts["clamped"],
        )
        return laid_over(without(self.info, ["released"]), own, more or SourceInfo())
