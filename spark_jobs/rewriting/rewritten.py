"""What a rewrite has done, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Rewritten:
    """What a rewrite has done: per kind of table how many rows went and came."""

    removed: dict[str, int] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)
    words: str = ""
    renewed: bool = False
    """Whether a table got other columns, or is there for the first time."""

    def __bool__(self) -> bool:
        return any(self.removed.values()) or any(self.added.values())

    @property
    def counts(self) -> str:
        """The rows in words."""
        return f"{sum(self.removed.values()):,} rows out, {sum(self.added.values()):,} rows in"
