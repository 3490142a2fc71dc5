"""What one run of admit did, for reports and for the task that ran it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Admitted:
    """``versions`` of the source were taken; ``rows`` are elements that were admitted.

    ``quarantined`` counts rows kept out by reason, ``warned`` rows that violate a constraint and were kept, ``ignored``
    rows that the source removed and that stay elements, ``taken_back`` elements that it removed, ``cancelled``
    quarantined rows that it removed, ``deduplicated`` rows dropped as duplicates, ``reinstated`` those of them that
    became elements when a kept row was taken back, ``displaced`` elements that these made duplicates, ``late`` elements
    admitted at or below the heartbeat, ``clamped`` heartbeats that would have gone back.
    """

    name: str
    versions: int = 0
    rows: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    warned: Counter[str] = field(default_factory=Counter)
    ignored: int = 0
    taken_back: int = 0
    cancelled: int = 0
    deduplicated: int = 0
    reinstated: int = 0
    displaced: int = 0
    late: int = 0
    clamped: int = 0
    heartbeat: int | None = None
    source_version: int | None = None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "quarantined": dict(self.quarantined), "warned": dict(self.warned)}
