"""Which columns of a log of changes tell the key, the operation and the order of its changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KeyedChanges:
    """CHANGES BY .. KEY: ``key`` and ``operation`` are columns, ``sequence`` (or None) the one of SEQUENCE BY."""

    key: tuple[str, ...]
    operation: str
    sequence: str | None = None
