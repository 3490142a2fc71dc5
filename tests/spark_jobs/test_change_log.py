"""What a relation holds, from its log of changes, against dictionaries that are filled instant by instant."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import MIN_TICK
from sweeparea.spark_jobs.admission.relation.change_log import HASH, advance, hashed
from sweeparea.spark_jobs.admission.relation.history_events import events
from sweeparea.spark_jobs.declarations.keyed import KeyedChanges

END = 12
"""Instants of generated changes are 0..END."""
KEYED = KeyedChanges(("k",), "op", "s")
SIGNED = pa.schema([("r", pa.string()), ("__tick", pa.int64()), ("__n", pa.int64()), ("__version", pa.int64())])
OPS = pa.schema(
    [("k", pa.int64()), ("op", pa.string()), ("v", pa.float64()), ("s", pa.int64())]
    + [(name, pa.int64()) for name in ("__tick", "__n", "__version")]
)


class Memory:
    """A log of changes in memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = schema.append(pa.field(HASH, pa.int64())).empty_table()

    def between(self, h0: int, h1: int) -> pa.Table:
        tick = self.rows.column("__tick")
        return self.rows.filter(pc.and_(pc.greater(tick, h0), pc.less_equal(tick, h1)))

    def holding(self, hashes: np.ndarray) -> pa.Table:
        return self.rows.filter(pc.is_in(self.rows.column(HASH), pa.array(hashes)))

    def add(self, rows: pa.Table) -> None:
        self.rows = pa.concat_tables([self.rows, rows])


def run(
    schema: pa.Schema, record: list[str], keyed: KeyedChanges | None, batches: list[tuple[list[tuple], int]]
) -> Any:
    """Admits batches of (rows, heartbeat behind them): (net changes per record and tick, refused changes)."""
    log, h0 = Memory(schema), MIN_TICK - 1
    net: collections.Counter = collections.Counter()
    refused: collections.Counter = collections.Counter()
    for version, (rows, heartbeat) in enumerate(batches):
        columns = list(zip(*rows, strict=True)) or [[] for _ in schema.names[:-1]]
        arrays = [pa.array(c, f.type) for c, f in zip([*columns, [version] * len(rows)], schema, strict=True)]
        new = hashed(pa.Table.from_arrays(arrays, schema=schema), record, keyed)
        h1 = max(h0, heartbeat)
        done = advance(log, new, record, h0, h1, keyed)
        log.add(new)
        for row in done.changes.to_pylist():
            assert row["__n"] != 0
            assert row["__tick"] <= h1
            net[(tuple(row[c] for c in record), row["__tick"])] += row["__n"]
        names = [c for c in schema.names if not c.startswith("__")]
        for sign, table in ((1, done.refused), (-1, done.revived)):
            for row in table.to_pylist():
                refused[(tuple(row[c] for c in names), row["__tick"])] += sign * abs(row["__n"])
        h0 = h1
    return {k: n for k, n in net.items() if n}, {k: n for k, n in refused.items() if n}


def at(net: dict, instant: int) -> dict:
    """A relation's contents."""
    total: collections.Counter = collections.Counter()
    for (record, tick), n in net.items():
        if tick <= instant:
            total[record] += n
    assert min(total.values(), default=0) >= 0
    return {record: n for record, n in total.items() if n}


# -- copies of records -----------------------------------------------------------------------------------------------

signed = st.tuples(st.sampled_from("abc"), st.integers(0, END), st.sampled_from([-2, -1, 1, 1, 2]))


def batches_of(row: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(st.tuples(st.lists(row, max_size=8), st.integers(-1, END)), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(batches_of(signed))
def test_copies_against_a_walk_over_all_instants(batches):
    """Late changes, changes ahead, and more taken away than there is."""
    net, refused = run(SIGNED, ["r"], None, batches)
    last = max(h for _, h in batches)
    rows = [row for part, _ in batches for row in part]
    counts: collections.Counter = collections.Counter()
    out: collections.Counter = collections.Counter()
    for instant in range(last + 1):
        for record in "abc":
            counts[record] += sum(n for r, t, n in rows if (r, t) == (record, instant))
            if counts[record] < 0:
                out[((record,), instant)] -= counts[record]
                counts[record] = 0
        assert at(net, instant) == {(r,): n for r, n in counts.items() if n}
    assert refused == {k: n for k, n in out.items() if n}


# -- rows of keys ----------------------------------------------------------------------------------------------------

operation = st.tuples(
    st.sampled_from([1, 2, None]),
    st.sampled_from(["I", "U", "D", "D"]),
    st.sampled_from([None, 0.0, -0.0, 1.5]),
    st.sampled_from([None, 1, 2]),
    st.integers(0, END),
    st.just(1),
)


def order(row: tuple) -> tuple:
    """The total order of (sequence, op, columns): NULL first."""
    k, op, v, s, _, _ = row
    first = (s is not None, s or 0)
    return (first, op, *((x is not None, 0 if x is None else x) for x in (k, v)))


@settings(max_examples=40, deadline=None)
@given(batches_of(operation))
def test_keys_against_a_dictionary(batches):
    net, refused = run(OPS, ["k", "v", "s"], KEYED, batches)
    rows = [row for part, _ in batches for row in part]
    contents: dict = {}
    out: collections.Counter = collections.Counter()
    for instant in range(max(h for _, h in batches) + 1):
        for key in (1, 2, None):
            here = sorted((row for row in rows if row[4] == instant and row[0] == key), key=order)
            if not here:
                continue
            k, op, v, s, _, _ = here[-1]
            if op != "D":
                contents[key] = (k, v, s)
            else:
                if key not in contents and all(row[1] == "D" for row in here):
                    out[((k, op, v, s), instant)] += 1
                contents.pop(key, None)
        assert at(net, instant) == dict(collections.Counter(contents.values()))
    assert refused == dict(out)


def test_a_late_change_of_a_key_lasts_until_its_next_one():
    """Though that one, when it came, set what was there already."""
    same = [(1, "I", 1.0, 1, 2, 1), (1, "U", 1.0, 1, 8, 1)]
    net, _ = run(OPS, ["k", "v", "s"], KEYED, [(same, 10), ([(1, "U", 5.0, 1, 4, 1)], 10)])
    assert at(net, 3) == {(1, 1.0, 1): 1}
    assert at(net, 7) == {(1, 5.0, 1): 1}
    assert at(net, 8) == {(1, 1.0, 1): 1}


def test_a_late_row_lets_a_refused_change_stand():
    """As if it had been on time (law L1)."""
    _, refused = run(OPS, ["k", "v", "s"], KEYED, [([(1, "D", None, 1, 8, 1)], 10)])
    assert refused
    net, refused = run(OPS, ["k", "v", "s"], KEYED, [([(1, "D", None, 1, 8, 1)], 10), ([(1, "I", 2.0, 1, 4, 1)], 10)])
    assert not refused
    assert at(net, 7) == {(1, 2.0, 1): 1}
    assert at(net, 8) == {}


# -- histories -------------------------------------------------------------------------------------------------------

valid = st.tuples(st.sampled_from("ab"), st.integers(0, END), st.none() | st.integers(0, END)).filter(
    lambda row: row[2] is None or row[1] <= row[2]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(valid, st.sampled_from([-1, 1])), max_size=12))
def test_events_count_intervals(rows):
    """A version's removed and added rows, at every instant."""
    columns = [[r for (r, _, _), _ in rows], [f for (_, f, _), _ in rows], [t for (_, _, t), _ in rows]]
    table = pa.table(
        [*columns, [n for _, n in rows]],
        pa.schema([("r", pa.string()), ("__from", pa.int64()), ("__to", pa.int64()), ("__n", pa.int64())]),
    )
    found = events(table, ["r"]).to_pylist()
    assert len({(row["r"], row["__tick"]) for row in found}) == len(found)
    assert all(row["__n"] for row in found)
    for instant in range(END + 1):
        for record in "ab":
            held = sum(n for (r, f, t), n in rows if r == record and f <= instant and (t is None or instant < t))
            assert sum(row["__n"] for row in found if row["r"] == record and row["__tick"] <= instant) == held


@pytest.mark.parametrize("keyed", [None, KEYED])
def test_versions_without_rows_change_nothing(keyed):
    schema, record = (OPS, ["k", "v", "s"]) if keyed else (SIGNED, ["r"])
    assert run(schema, record, keyed, [([], 3), ([], 5)]) == ({}, {})
