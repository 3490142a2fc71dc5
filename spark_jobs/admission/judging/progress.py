"""What ``admit`` says while it works: how many versions of a source are taken, how many are left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

QUIET_SECONDS = 2.0
"""Messages come no closer than this; the last one comes in any case."""


def counted(number: int, what: str) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@dataclass
class Progress:
    """The versions of one source from the first that is not taken yet to the newest, counted from 1."""

    name: str
    tell: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    first: int | None = None
    in_parts: int | None = None
    told: float = field(init=False)

    def __post_init__(self) -> None:
        self.told = self.clock()

    def begins(self, version: int) -> None:
        """``version`` is read next; the first one that is said to be counts as number 1."""
        if self.first is None:
            self.first = version

    def taken(self, version: int, newest: int, what: str) -> None:
        """All up to ``version`` is committed; ``what`` says what came of it."""
        complete, total = self._of(version + 1, newest)
        left = f"{total - complete:,} left" if total > complete else "none left"
        noun = "version" if total == 1 else "versions"
        self.say(f"{self.name}: {complete:,} of {total:,} {noun} taken, {left}; {what}", last=version >= newest)

    def reading(self, version: int, newest: int, rows: int) -> None:
        """``rows`` rows of ``version`` were judged, and it has more, perhaps: most versions are one piece, of which
        nothing is said before it is taken."""
        first, self.in_parts = self.in_parts != version, version
        if first:
            return
        complete, total = self._of(version, newest)
        noun = "version" if total == 1 else "versions"
        self.say(
            f"{self.name}: {complete:,} of {total:,} {noun} taken; of source version {version}"
            f" {counted(rows, 'row')} judged so far"
        )

    def say(self, text: str, last: bool = False) -> None:
        now = self.clock()
        if last or now - self.told >= QUIET_SECONDS:
            self.told = now
            self.tell(text)

    def _of(self, next_version: int, newest: int) -> tuple[int, int]:
        first = next_version if self.first is None else self.first
        return next_version - first, max(newest + 1, next_version) - first
