"""The kinds of joins."""

from __future__ import annotations

from enum import StrEnum


class JoinKind(StrEnum):
    """Which rows a join answers. RIGHT JOIN is a left join with its sides exchanged."""

    INNER = "inner"
    LEFT = "left"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
