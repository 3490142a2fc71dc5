"""What is told of a name in FROM, or of a window, that nothing has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sweeparea.cql.text import foreign_words
from sweeparea.cql.text.errors import BindError, Place, listing, nearest

MATERIALIZATIONS = ("istream", "dstream", "rstream", "relation")
"""Endings of the result tables that a query keeps beside its own."""


def unknown_input(name: str, place: Place, kinds: Mapping[str, str]) -> BindError:
    """The fault of a name that no input has. ``kinds`` has for each name there is what it is: stream, relation or
    query."""
    base, _, ending = name.rpartition("__")
    source = next((s for s in kinds if s.lower() == base.lower()), None)
    if source is not None and kinds[source] != "query" and ending.lower() in MATERIALIZATIONS:
        return BindError(
            f"{source} is a {kinds[source]}, and only queries keep {ending.lower()} tables: there is no {name}",
            place,
            f"Read {source} itself",
        )
    known = list(kinds)
    others = f"There are {listing(known)}" if known else "None is declared yet"
    hint = foreign_words.INPUTS.get(name.upper()) or nearest(name, known) or others
    return BindError(f"{name} is no stream, relation or query", place, hint)


def unknown_window(name: str, place: Place, windows: Iterable[str]) -> BindError:
    """The fault of a user's window of which no name is registered. ``windows`` are those that are."""
    known = list(windows)
    others = f"There are {listing(known)}" if known else "Register it: CREATE WINDOW name AS 'module:object'"
    return BindError(f"there is no window {name}", place, nearest(name, known) or others)
