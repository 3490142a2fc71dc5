"""The faults of independent parts of one text, collected to be told together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sweeparea.cql.text.errors import raise_all
from sweeparea.infra.errors import SweepAreaError

T = TypeVar("T")


@dataclass
class Faults:
    """Collects faults: of each part that is attempted the one that stopped it."""

    errors: list[SweepAreaError] = field(default_factory=list)

    def attempt(self, action: Callable[[], T]) -> T | None:
        """What a step gives, or None where it fails."""
        try:
            return action()
        except SweepAreaError as error:
            self.errors.append(error)
            return None

    def check(self) -> None:
        """Raises what was collected, if anything."""
        raise_all(self.errors)
