"""The signed temporal bag: the one shape that travels between operators.

A row ``(record, ts, te, n)`` means "n more copies of record at every instant of [ts, te)"; n may be negative and te may
be ``INF``. Kraemer's elements are rows with n > 0 and a known te (Kraemer & Seeger 2005, Definition 2.2); Hammad's
negative tuples are rows ``[t, INF)`` with n < 0 (Hammad et al., section 3.2). A relation is the sum of its rows; the
rows that an operator emits for a slice ``(h0, h1]`` are what that slice adds to the sum, so a bag needs no order and
any split of it into slices sums to the same relation.

Rows never start at or before h0 in a live slice. They may start after h1 (a window that hops later): such rows are
pending and wait in the SweepArea of the next stateful operator. A stream is the bag of its elements as ``[s, s+1)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeparea.infra.errors import DataError

TS = "__ts"
"""BIGINT, first tick at which the row counts."""
TE = "__te"
"""BIGINT, first tick at which it no longer counts; ``ticks.INF`` if never."""
N = "__n"
"""BIGINT, signed number of copies."""
BAG = (TS, TE, N)


def below_zero(record: Mapping[str, Any], tick: int) -> DataError:
    """The error of more copies taken away than had been put in."""
    return DataError(
        f"The number of copies of the record {dict(record)} falls below zero at tick {tick}: more was taken away than"
        " had been put in. Either the changes that an input holds up to that instant do not fit together (look for a"
        " deletion without its insertion), or rows of a table that is read were lost or changed by somebody else:"
        " `sweeparea check` tells which table, and with --rebuild computes a query's again from its inputs."
    )
