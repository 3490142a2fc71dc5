"""The names of hidden queries: subplans that queries share are computed by queries which nobody has written."""

from __future__ import annotations

PREFIX = "shared_"
DIGITS = 12
"""Hexadecimal digits behind it: the digest of what is computed."""


def is_hidden(name: str) -> bool:
    """Whether a name is a hidden query's. Users' names may not look so.

    >>> is_hidden("shared_0123456789ab"), is_hidden("shared_rides")
    (True, False)
    """
    digits = name.removeprefix(PREFIX)
    return digits != name and len(digits) == DIGITS and not set(digits) - set("0123456789abcdef")
