"""Time zones by the rules of the package ``tzdata``, whatever the machine's own database says.

Python's ``zoneinfo`` takes the system's rules first, and those of a machine that is not kept up to date are old: a
bucket would begin elsewhere there. The lock file pins the package, so rules change with the installation alone.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


@cache
def names() -> frozenset[str]:
    """All zones that there are."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text("utf-8").split())


@cache
def zone(name: str) -> ZoneInfo:
    """The zone of that IANA name. ZoneInfoNotFoundError if there is none."""
    if name not in names():
        raise ZoneInfoNotFoundError(f"No time zone found with key {name}")
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


def release() -> str:
    """The release of the IANA database that the rules are of, as ``2026b``."""
    from tzdata import IANA_VERSION

    return IANA_VERSION
