"""The shape of a case's JSON: errors that say which part of it is not as docs/running.md shows."""

from __future__ import annotations

from typing import Any

from sweeparea.cql.text.errors import listing
from sweeparea.infra.errors import DataError

SHOWN = "docs/running.md shows what a case holds."


def member(given: dict[str, Any], name: str, what: str) -> Any:
    """A member that a case, or a part of it, must have."""
    if isinstance(given, dict) and name in given:
        return given[name]
    has = f"it has {listing(given) or 'none at all'}" if isinstance(given, dict) else f"it is {given!r}"
    raise DataError(f'{what} needs a member "{name}", but {has}. {SHOWN}')


def shaped(value: Any, kind: type[dict[str, Any]] | type[list[Any]], what: str) -> Any:
    """A part of a case that is an object or a list; empty where it is left out."""
    if value is None or isinstance(value, kind):
        return value or kind()
    raise DataError(f"{what} is {'an object' if kind is dict else 'a list'}, not {value!r}. {SHOWN}")


def text(value: Any, what: str) -> str:
    """A part of a case that is a string, and not an empty one."""
    if isinstance(value, str) and value:
        return value
    raise DataError(f"{what} is a string, not {value!r}. {SHOWN}")


def whole(value: Any, what: str) -> int:
    """A part of a case that is a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise DataError(f"{what} is a whole number, not {value!r}. {SHOWN}")
