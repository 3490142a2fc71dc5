"""Two bags whose copies are counted record by record: random ones, the sweep run over slices of them, and what holds of
every operation on two counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from sweeparea.operators.sweeps import two_counts
from sweeparea.operators.sweeps.two_counts import Operation, TwoCountsSpec, rows_schema, sweep
from sweeparea.operators.time.ticks import INF
from tests.operators import brute

LAST = 24
RECORD = [pa.field("a", pa.float64()), pa.field("b", pa.string())]
SCHEMA = rows_schema(RECORD)
DEFINITIONS = {
    "difference": (two_counts.DIFFERENCE, lambda n1, n2: max(0, n1 - n2)),
    "except": (two_counts.EXCEPT, lambda n1, n2: int(n1 > 0 and n2 == 0)),
    "strict": (two_counts.STRICT_DIFFERENCE, lambda n1, n2: n1 if n2 == 0 else 0),
    "intersect all": (two_counts.INTERSECT_ALL, min),
    "intersect": (two_counts.INTERSECT, lambda n1, n2: int(n1 > 0 and n2 > 0)),
    "semi": (two_counts.SEMI, lambda n1, n2: n1 if n2 > 0 else 0),
    "max-union": (two_counts.MAX_UNION, max),
    "distinct": (two_counts.DISTINCT, lambda n1, _: int(n1 > 0)),
}


def table(rows) -> pa.Table:
    """Rows ``(side, (record, ts, te, n))`` as the sweep takes them."""
    given = [dict(zip(SCHEMA.names, (*r, ts, te, n, side), strict=True)) for side, (r, ts, te, n) in rows]
    return pa.Table.from_pylist(given, SCHEMA)


def bag_of(result: pa.Table) -> list:
    return [(brute.plain((row["a"], row["b"])), row["__ts"], row["__te"], row["__n"]) for row in result.to_pylist()]


def run(spec: TwoCountsSpec, arrivals, cuts, carries=None) -> list:
    """All rows that the slices ending at ``cuts`` add; ``arrivals`` are (due, side, row)."""
    h0, carry, bag = -1, table([]), []
    for h1 in cuts:
        new = [(side, row) for due, side, row in arrivals if h0 < due <= h1]
        result, carry = sweep(pa.concat_tables([carry, table(new)]), spec, h0, h1)
        for record, ts, te, n in bag_of(result):
            assert h0 < ts < te
            assert n > 0 or not spec.ahead
            assert spec.ahead or (ts <= h1 and (te == INF or (n > 0 and te <= h1)))
            bag.append((record, ts, te, n))
        if carries is not None:
            carries.append(carry)
        h0 = h1
    return bag


def at(rows, side: int, tick: int) -> Counter:
    """What a side of the rows ``(due, side, row)`` holds at an instant."""
    return brute.at([(brute.plain(r), ts, te, n) for _, s, (r, ts, te, n) in rows if s == side], tick)


def sides_of(rows) -> list[pa.Table]:
    """The bags of both sides, whole."""
    return [table([(side, row) for _, side, row in rows if side == one]).drop_columns(["__side"]) for one in (0, 1)]


def expected(arrivals, tick: int, definition) -> Counter:
    sides = [at(arrivals, side, tick) for side in (0, 1)]
    counts = {r: definition(sides[0][r], sides[1][r]) for r in sides[0] | sides[1]}
    return Counter({r: n for r, n in counts.items() if n})


@st.composite
def arrivals(draw, known=(False, False)):
    rows = []
    for _ in range(draw(st.integers(0, 14))):
        r = draw(st.sampled_from([0.0, -0.0, math.nan, None])), draw(st.sampled_from(["x", "y", None]))
        side = draw(st.sampled_from([0, 0, 1]))
        s, n = draw(st.integers(0, LAST)), draw(st.sampled_from([1, 1, 3]))
        e = s + draw(st.integers(1, 10))
        kinds = ["te", "pending", "never"] + ["negative", "negative later", "cut short"] * (not known[side])
        match draw(st.sampled_from(kinds)):
            case "te":
                rows.append((s, side, (r, s, e, n)))
            case "pending":
                rows.append((draw(st.integers(0, s)), side, (r, s, e, n)))
            case "never":
                rows.append((s, side, (r, s, INF, n)))
            case "negative":
                rows += [(s, side, (r, s, INF, n)), (e, side, (r, e, INF, -n))]
            case "cut short":  # its end was thought to be known
                rows += [(s, side, (r, s, e + 3, n)), (e, side, (r, e, e + 3, -n))]
            case _:
                rows += [(s, side, (r, s, INF, n)), (s, side, (r, e, INF, -n))]
    return draw(st.permutations(rows))


CUTS = st.sets(st.integers(0, LAST - 1), max_size=6).map(lambda s: [*sorted(s), LAST])
KNOWN = [(False, False), (True, False), (False, True), (True, True)]
of_known = pytest.mark.parametrize("known", KNOWN, ids=["unknown", "left known", "right known", "known"])
"""Of which side all ends are known."""


def left(n, ts, te=INF):
    return 0, ((1.0, "x"), ts, te, n)


def right(n, ts, te=INF):
    return 1, ((1.0, "x"), ts, te, n)


def carry_of(operation: Operation, rows, known) -> pa.Table:
    return sweep(table(rows), TwoCountsSpec(("a", "b"), operation, known), 0, 100)[1]


def drawn(data: st.DataObject, name: str, known=(False, False)) -> list:
    """Arrivals for an operation; of DISTINCT the second count is nought."""
    return [row for row in data.draw(arrivals(known)) if name != "distinct" or row[1] == 0]


def holds_at_every_instant(name: str, known, data: st.DataObject) -> None:
    """However sliced, the result is the definition's."""
    operation, definition = DEFINITIONS[name]
    rows = drawn(data, name, known)
    result = run(TwoCountsSpec(("a", "b"), operation, known), rows, data.draw(CUTS))
    for tick in range(LAST + 1):
        assert brute.at(result, tick) == expected(rows, tick, definition), tick


def tells_each_change_once(name: str, data: st.DataObject) -> None:
    """Nothing is said where nothing changes, and no row is taken back within its own slice."""
    operation, definition = DEFINITIONS[name]
    rows = drawn(data, name)
    told = Counter()
    for _, ts, te, n in run(TwoCountsSpec(("a", "b"), operation), rows, data.draw(CUTS)):
        told[ts] += abs(n)
        told[te] += abs(n) * (te != INF)
    changes, before = Counter(), Counter()
    for tick in range(LAST + 1):
        now = expected(rows, tick, definition)
        changes[tick] = sum(((now - before) + (before - now)).values())
        before = now
    assert +told == +changes


def leaves_the_least(name: str, known, data: st.DataObject) -> None:
    """At each compaction, of what has been told: where presence is known to its end the intervals that do not touch,
    else a record's count at h1 and each later change of it.
    """
    operation, cut = DEFINITIONS[name][0], data.draw(CUTS)
    rows = drawn(data, name, known)
    carries: list[pa.Table] = []
    run(TwoCountsSpec(("a", "b"), operation, known), rows, cut, carries)
    for h1, carry in zip(cut, carries, strict=True):
        kept = Counter(
            (row["__side"] - 2, r, ts, te) for row, (r, ts, te, _) in zip(carry.to_pylist(), bag_of(carry), strict=True)
        )
        wanted: Counter = Counter()
        for side in (0, 1):
            told = [
                (brute.plain(r), max(ts, h1), te, n) for due, s, (r, ts, te, n) in rows if s == side and due <= h1 < te
            ]
            if known[side] and operation.presence[side]:
                wanted += Counter((side, *one) for one in brute.united([row[:3] for row in told]))
                continue
            changes: Counter = Counter()
            for r, ts, te, n in told:
                changes[r, ts] += n
                changes[r, te] -= n * (te != INF)
            wanted += Counter({(side, r, t, INF): 1 for (r, t), n in changes.items() if n})
        assert kept == wanted


def negative_tuples_leave_nothing(name: str) -> None:
    rows = [row for i in range(500) for row in (left(1, i % 50), left(-1, 50 + i % 50), right(2, 3), right(-2, 9))]
    assert carry_of(DEFINITIONS[name][0], rows, (False, False)).num_rows == 0


def keeps_one_interval_a_side(operation: Operation) -> None:
    """Presence of known expiry."""
    rows = [side(1, i % 100, 200 + (i * 7919) % 1000) for i in range(1000) for side in (left, right)]
    carry = carry_of(operation, rows, (True, True))
    assert carry.select(["__te", "__side"]).to_pylist() == [{"__te": 1199, "__side": s} for s in (2, 3)]


def holds_of_whole_bags(whole: Callable[..., pa.Table], name: str, data: st.DataObject) -> None:
    """The operator on two bags that are known to the end of time; ``whole`` of DISTINCT takes one."""
    rows = drawn(data, name)
    result = bag_of(whole(*sides_of(rows)[: 1 if name == "distinct" else 2], ["a", "b"]))
    for tick in range(LAST + 12):
        assert brute.at(result, tick) == expected(rows, tick, DEFINITIONS[name][1]), tick
