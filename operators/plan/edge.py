"""What can be said of an edge before anything runs: its update pattern, and whether expiry is known.

Patterns follow rules 1-5 of Golab & Oezsu 2005, section 5.2, those of windows Patroumpas & Sellis 2006, section 3.4;
each operator says its own (``Node.edge``). *Known* expiry (Golab & Oezsu, section 3.1) means that a row's te is final
when the row is emitted: no negative tuple will follow. It decides which SweepAreas may forget dominated rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ORDER = ("monotonic", "WKS", "WK", "STR")
"""From simplest to most complex: nothing expires, first in first out, out of order, by negative tuple. Golab & Oezsu
know the end of what is not STR; here ``Edge.expiry_known`` says so apart, since windows that count elements and groups
end rows by what comes later.
"""


@dataclass(frozen=True)
class Edge:
    """What is known of a node's output: its update pattern, and whether a row's end is known when the row appears."""

    pattern: str
    expiry_known: bool

    def __str__(self) -> str:
        return f"{self.pattern}, expiry {'known' if self.expiry_known else 'unknown'}"


MONOTONIC = Edge("monotonic", True)
"""Nothing ends."""
STRICT = Edge("STR", False)
"""Rule 5: what arrives takes rows back."""


def worst(below: Sequence[Edge]) -> str:
    """The most complex of the inputs' patterns (rule 2)."""
    return max((edge.pattern for edge in below), key=ORDER.index, default="monotonic")


def weak(below: Sequence[Edge]) -> Edge:
    """Rule 3: what is made of several inputs ends with the first of its parts, so out of order; known if theirs is.

    >>> weak([Edge("WKS", True), Edge("monotonic", True)])
    Edge(pattern='WK', expiry_known=True)
    """
    pattern = worst(below)
    return Edge("WK" if pattern == "WKS" else pattern, all(edge.expiry_known for edge in below))
