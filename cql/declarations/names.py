"""Names of declarations: what may be one, and which query a materialization belongs to."""

from __future__ import annotations

from collections.abc import Mapping

from sweeparea.cql.syntax.statements import Statement
from sweeparea.cql.text.errors import BindError, ParseError, Place
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.cql.text.unknown_names import MATERIALIZATIONS
from sweeparea.infra.errors import SweepAreaError


def base_name(name: str) -> str:
    """``q`` of ``q__istream``; any other name as it is."""
    base, separator, suffix = name.rpartition("__")
    return base if separator and suffix.lower() in MATERIALIZATIONS else name


def clash(name: str, place: Place, taken: Mapping[str, Statement]) -> SweepAreaError | None:
    """Why a declaration cannot have its name, beside those that are taken (by their names in lower case)."""
    before = taken.get(name.lower())
    if before is not None:
        return BindError(
            f"{name} is declared twice: before at {before.place}",
            place,
            "Names of streams, relations and queries are shared: rename one",
        )
    if not name or not all(c.isalnum() or c == "_" for c in name):
        return ParseError(
            f"the name {name!r} cannot be the name of a table's folder",
            place,
            "Use letters, digits and _ for streams, relations and queries",
        )
    if is_hidden(name.lower()):
        return BindError(f"{name} looks like the name of a shared subplan", place, "Choose a name of another form")
    if base_name(name) != name or name.lower().endswith("__quarantine"):
        return BindError(f"{name} ends like a materialization of a query", place, "Choose a name without that ending")
    return None
