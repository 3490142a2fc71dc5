"""Stretches of time that a change can touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sweeparea.operators.time.ticks import INF


@dataclass(frozen=True)
class Stretch:
    """The instants ``first`` to ``last`` (ticks, both included; ``INF``: for ever after)."""

    first: int
    last: int

    def longer(self, ticks: int) -> Stretch:
        """With so many instants more."""
        return Stretch(self.first, INF if ticks >= INF - self.last else self.last + ticks)

    def __or__(self, other: Stretch) -> Stretch:
        return Stretch(min(self.first, other.first), max(self.last, other.last))


def hull(parts: Sequence[Stretch | None]) -> Stretch | None:
    """The least stretch that covers all of them; None if there is none."""
    found = None
    for part in parts:
        if part is not None:
            found = part if found is None else found | part
    return found
