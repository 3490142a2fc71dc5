"""The history that enriches a stream: at each instant what the relation held from changes before it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.sweeps import enrich
from sweeparea.operators.time.ticks import INF

LAST = 12
SCHEMA = pa.schema([("r", pa.string()), *((c, pa.int64()) for c in ("__ts", "__te", "__n"))])


def table(changes) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, (r, t, INF, n), strict=True)) for t, r, n in changes], SCHEMA)


@st.composite
def changes(draw):
    """Insertions and deletions, of what there is; the first long before START."""
    found, held = [], Counter()
    for tick in sorted(draw(st.lists(st.integers(-5, LAST), max_size=14))):
        record = draw(st.sampled_from("xyz"))
        if held[record] and draw(st.booleans()):
            held[record] -= 1
            found.append((tick, record, -1))
        else:
            held[record] += 1
            found.append((tick, record, 1))
    return draw(st.permutations(found))


@settings(max_examples=300, deadline=None)
@given(changes(), st.sets(st.integers(0, LAST - 1), max_size=5).map(lambda s: [*sorted(s), LAST]))
def test_contents_before_each_instant(given_, cuts):
    carry, h0 = table([]), -1
    for h1 in cuts:
        new = [c for c in given_ if c[0] <= h1 and (c[0] > h0 or h0 == -1)]
        held, carry = enrich.intervals(pa.concat_tables([carry, table(new)]), h0, h1, ["r"])
        rows = held.to_pylist()
        assert all(row["__n"] > 0 for row in rows)
        for s in range(h0 + 1, h1 + 1):
            wanted = Counter()
            for tick, record, n in given_:
                if tick < s:
                    wanted[record] += n
            seen = Counter()
            for row in rows:
                if row["__ts"] < s <= row["__te"]:
                    seen[row["r"]] += row["__n"]
            assert seen == +wanted
        # the SweepArea holds the contents and nothing of the past
        contents = Counter()
        for tick, record, n in given_:
            if tick <= h1:
                contents[record] += n
        assert sum(carry.column("__n").to_pylist()) == contents.total()
        h0 = h1
