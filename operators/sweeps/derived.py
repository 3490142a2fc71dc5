"""Kraemer's derived operators (Kraemer & Seeger 2005, sections 3.4 to 3.8) as functions on bags.

A bag is an Arrow table: a record's columns, ``__ts``, ``__te``, ``__n``, known to the end of time. No SweepArea: these
are definitions to compute with, side by side with SQL's operators, from which two of them differ. His semi-join has n1
copies for each *distinct* right record that matches, where SQL's has n1 if there is any; his strict difference has n1
copies of what the right does not hold at all, where EXCEPT has one.

>>> def bag(*rows):
...     return pa.table(dict(zip(["v", "__ts", "__te", "__n"], zip(*rows))))
>>> left, right = bag(("A", 1, 9, 2), ("B", 1, 9, 1)), bag(("A", 4, 6, 1))
>>> [tuple(r.values()) for r in strict_difference(left, right, ["v"]).to_pylist()]
[('A', 1, 4, 2), ('A', 6, 9, 2), ('B', 1, 9, 1)]
>>> [tuple(r.values()) for r in max_union(right, bag(("A", 5, 8, 1)), ["v"]).to_pylist()]
[('A', 4, 8, 1)]
>>> [tuple(r.values()) for r in semi_join(left, right, lambda l, r: r["v"] <= l["v"]).to_pylist()]
[('A', 4, 6, 2), ('B', 4, 6, 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.values.bag import BAG, TE, TS, N
from sweeparea.operators.values.columns import BAG_FIELDS

Row = Mapping[str, Any]
Predicate = Callable[[Row, Row], bool | None]


def theta_join(left: pa.Table, right: pa.Table, predicate: Predicate) -> pa.Table:
    """Equation 11 without its map: both records for as long as both are valid, where the predicate is TRUE."""
    record = [f for f in [*left.schema, *right.schema] if f.name not in BAG]
    schema = pa.schema([*record, *BAG_FIELDS])
    found = []
    others = right.to_pylist()
    for one in left.to_pylist():
        for other in others:
            ts, te = max(one[TS], other[TS]), min(one[TE], other[TE])
            if ts < te and predicate(one, other):
                values = [*(one[f.name] for f in left.schema if f.name not in BAG)]
                values += [other[f.name] for f in right.schema if f.name not in BAG]
                found.append((*values, ts, te, one[N] * other[N]))
    columns = list(zip(*found, strict=True)) if found else [()] * len(schema)
    arrays = [pa.array(list(column), f.type) for column, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def semi_join(left: pa.Table, right: pa.Table, predicate: Predicate) -> pa.Table:
    """Equation 12: left records that join with a distinct right record, once for each of these."""
    columns = [c for c in right.column_names if c not in BAG]
    joined = theta_join(left, distinct(right, columns), predicate)
    arrays = [joined.column(i) for i in range(left.num_columns - len(BAG))] + joined.columns[-len(BAG) :]
    return pa.Table.from_arrays(arrays, names=[*(c for c in left.column_names if c not in BAG), *BAG])


def distinct(bag: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Duplicate elimination (section 3.2.4): one copy of each record for as long as there is any."""
    return two_counts.whole(bag, bag.slice(0, 0), columns, two_counts.DISTINCT)


def intersection(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Equation 13: the lesser of the two numbers of copies."""
    return two_counts.whole(left, right, columns, two_counts.INTERSECT_ALL)


def max_union(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Equation 14: the greater of the two numbers of copies."""
    return two_counts.whole(left, right, columns, two_counts.MAX_UNION)


def strict_difference(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Equation 15: all copies of a record while the right holds none of it."""
    return two_counts.whole(left, right, columns, two_counts.STRICT_DIFFERENCE)
