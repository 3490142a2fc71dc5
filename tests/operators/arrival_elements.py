"""Elements of the windows that count or compare arrivals, and their sweeps run over slices."""

from __future__ import annotations

import math
import random

import pyarrow as pa
from hypothesis import strategies as st

from tests.operators import brute

LAST = 24
RECORD = [("a", pa.float64()), ("b", pa.string())]
SCHEMA = pa.schema([*RECORD, ("__p0", pa.float64()), ("__p1", pa.string()), ("__when", pa.bool_())]
                   + [(c, pa.int64()) for c in ("__at", "__ts", "__n")])  # fmt: skip
COLUMNS = ("a", "b")
KEYS = [0.0, -0.0, math.nan, None, 1.5]
TEXTS = ["x", "y", None, "é"]


def meets(record):
    return None if record[1] is None else record[1] == "y"


def table(elements) -> pa.Table:
    rows = [
        dict(zip(SCHEMA.names, (*record, *partition, bool(meets(record)), 0, tick, n), strict=True))
        for partition, tick, record, n in elements
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def run(sweep, elements, cuts, record=("a", "b")):
    """The bag of all slices, as ``(record, ts, te, n)``, and the last carry. Nothing may depend on the rows' order."""
    shuffle = random.Random(len(elements))
    bag, carry = [], table([])
    h0 = -1
    for h1 in cuts:
        rows = pa.concat_tables([carry, table([e for e in elements if h0 < e[1] <= h1])])
        rows = rows.take(pa.array(shuffle.sample(range(rows.num_rows), rows.num_rows), pa.int64()))
        delta, carry = sweep(rows, h0=h0, h1=h1)
        assert carry.schema.equals(SCHEMA)
        for row in delta.to_pylist():
            assert h0 < row["__ts"] <= h1
            assert row["__ts"] < row["__te"]
            bag.append((brute.plain(tuple(row[c] for c in record)), row["__ts"], row["__te"], row["__n"]))
        h0 = h1
    return bag, carry


def singly(elements):
    return [e[:3] for e in elements for _ in range(e[3])]


ELEMENTS = st.lists(
    st.tuples(
        st.tuples(st.sampled_from(KEYS), st.sampled_from(TEXTS[:3])) | st.just((0.0, "x")),
        st.integers(0, LAST),
        st.tuples(st.sampled_from(KEYS), st.sampled_from(TEXTS)),
        st.sampled_from([1, 1, 1, 2, 5]),
    ),
    max_size=20,
)
CUTS = st.sets(st.integers(0, LAST - 1), max_size=8).map(lambda s: [*sorted(s), LAST])
EVERY_TICK = [*range(LAST + 1)]
