"""Which rows of a quarantine are to be released: asked for where neither NumPy nor Arrow need be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class WantedRows:
    """Which rows are released, by their ids or by a condition, and what is corrected in them: values of columns as
    they are typed, or the whole ``row`` as a JSON object.
    """

    ids: tuple[str, ...] = ()
    where: str | None = None
    assigned: Mapping[str, str] = field(default_factory=dict)
    row: str | None = None
