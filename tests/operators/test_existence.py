"""Semi and anti joins by key: one sweep, against their definitions at every instant, however the timeline is cut."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.infra.errors import DataError
from sweeparea.operators.sweeps.existence import ExistenceSpec, sweep
from sweeparea.operators.sweeps.two_counts import rows_schema
from sweeparea.operators.time.ticks import INF
from tests.operators import brute
from tests.operators.matches import wanted
from tests.operators.two_bags import CUTS, LAST, arrivals, of_known

SCHEMA = rows_schema([pa.field("a", pa.float64()), pa.field("b", pa.string()), pa.field("k", pa.float64())])
KEYS = {
    "column": (("b",), (False,)),
    "null-safe": (("b",), (True,)),
    "expression": (("k",), (False,)),
    "both": (("b", "k"), (True, False)),
}
of_anti = pytest.mark.parametrize("anti", [False, True], ids=["semi", "anti"])


def spec_of(key: str, anti: bool, known=(False, False), touching: bool = False) -> ExistenceSpec:
    keys, null_safe = KEYS[key]
    return ExistenceSpec(keys, null_safe, ("a", "b"), anti, known, touching)


def table(rows) -> pa.Table:
    """Rows ``(side, ((a, b), ts, te, n))``; of the right side only the keys are there, ``k`` is that of ``a``."""
    given = []
    for side, ((a, b), ts, te, n) in rows:
        given.append((a if side == 0 else None, b, a, ts, te, n, side))
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], SCHEMA)


def matches(spec: ExistenceSpec):
    """Whether two records ``(a, b)`` are a match."""

    places = [{"b": 1, "k": 0}[key] for key in spec.keys]

    def match(x, y) -> bool:
        for i, safe in zip(places, spec.null_safe, strict=True):
            if (not safe and x[i] is None) or brute.plain(x[i]) != brute.plain(y[i]):
                return False
        return True

    return match


def run(spec: ExistenceSpec, rows, cuts, carries=None) -> list:
    """All rows that the slices ending at ``cuts`` add; ``rows`` are (due, side, row)."""
    h0, carry, bag = -1, table([]), []
    for h1 in cuts:
        new = [(side, row) for due, side, row in rows if h0 < due <= h1]
        result, carry = sweep(pa.concat_tables([carry, table(new)]), spec, h0, h1)
        for row in result.to_pylist():
            assert h0 < row["__ts"] < row["__te"]
            assert row["__n"] > 0 or spec.anti or not all(spec.known)
            bag.append((brute.plain((row["a"], row["b"])), row["__ts"], row["__te"], row["__n"]))
        if carries is not None:
            carries.append(carry)
        h0 = h1
    return bag


@of_known
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_instant_however_sliced(known, data):
    rows, cuts, anti = data.draw(arrivals(known)), data.draw(CUTS), data.draw(st.booleans())
    spec = spec_of(data.draw(st.sampled_from([*KEYS])), anti, known, data.draw(st.booleans()))
    result = run(spec, rows, cuts)
    for tick in range(LAST + 1):
        kept = wanted(rows, tick, matches(spec), (lambda found: not found) if anti else bool)
        assert brute.at(result, tick) == kept, tick


@of_known
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_what_is_expected_beyond_the_slice_is_what_is_known(known, data):
    """After one slice the result is what its rows make it, at every instant there is."""
    rows, anti = [row for row in data.draw(arrivals(known)) if row[0] <= LAST], data.draw(st.booleans())
    spec = spec_of("column", anti, known)
    result = run(spec, rows, [LAST])
    for tick in range(LAST + 14):
        kept = wanted(rows, tick, matches(spec), (lambda found: not found) if anti else bool)
        assert brute.at(result, tick) == kept, tick


@of_known
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_every_slice_leaves_the_least(known, data):
    """Left rows that are valid later and may match, of the right one interval a key, or its count and later changes."""
    rows, cuts, spec = data.draw(arrivals(known)), data.draw(CUTS), spec_of("column", data.draw(st.booleans()), known)
    carries: list[pa.Table] = []
    run(spec, rows, cuts, carries)
    for h1, carry in zip(cuts, carries, strict=True):
        told = [(side, row) for due, side, row in rows if due <= h1 and row[2] > h1 and row[0][1] is not None]
        assert all(row["b"] is not None for row in carry.to_pylist())
        net: Counter = Counter()
        for side, (r, ts, te, n) in told:
            if side == 0 and te > h1 + 1:
                net[brute.plain(r), max(ts, h1), te] += n
        held: Counter = Counter()
        kept = [row for row in carry.to_pylist() if row["__side"] == 2]
        for row in kept:
            held[brute.plain((row["a"], row["b"])), row["__ts"], row["__te"]] += row["__n"]
        assert {one: n for one, n in held.items() if n} == {one: n for one, n in net.items() if n}
        assert known[0] or len(kept) == len([n for n in net.values() if n])
        at_end = h1 + known[1]
        right = [(r[1], max(ts, h1), te, n) for side, (r, ts, te, n) in told if side == 1 and te > at_end]
        found = Counter(
            (row["b"], row["__ts"], row["__te"], row["__n"]) for row in carry.to_pylist() if row["__side"] == 3
        )
        if known[1]:
            assert found == Counter((*one, 1) for one in brute.united([row[:3] for row in right]))
            continue
        changes: Counter = Counter()
        for k, ts, te, n in right:
            changes[k, ts] += n
            changes[k, te] -= n * (te != INF)
        assert found == Counter((k, t, INF, n) for (k, t), n in changes.items() if n)


@of_anti
def test_a_key_goes_early_and_comes_where_it_was_to_go(anti):
    """What a slice takes back and what it adds are two pieces, though they touch."""
    key, spec = (1.0, "x"), spec_of("column", anti)
    rows = [(0, 0, (key, 1, 20, 1)), (0, 1, (key, 1, 10, 1)), (5, 1, (key, 5, 10, -1)), (5, 1, (key, 10, 15, 1))]
    result = run(spec, rows, [3, 9, 20])
    for tick in range(22):
        assert brute.at(result, tick) == wanted(rows, tick, matches(spec), (lambda found: not found) if anti else bool)


@of_anti
def test_values_stay_as_they_are_where_nothing_is_taken_back(anti):
    """An expression above may tell -0.0 from 0.0: a left row that waits for its match is shown as it came."""
    spec, late = spec_of("column", anti, (True, True)), 1 if anti else 6
    rows = [(1, 0, ((-0.0, "x"), 1, 20, 1)), (1, 0, ((0.0, "x"), 1, 20, 1)), (6, 1, ((1.0, "x"), late + 5, 20, 1))]
    h0, carry, shown = 0, table([]), []
    for h1 in (3, 9):
        new = [(side, row) for due, side, row in rows if h0 < due <= h1]
        result, carry = sweep(pa.concat_tables([carry, table(new)]), spec, h0, h1)
        shown += [str(row["a"]) for row in result.to_pylist() if row["__n"] > 0 or not anti]
        h0 = h1
    assert sorted(shown) == ["-0.0", "0.0"]


def test_pieces_of_a_left_record_are_joined_up():
    rows = [(0, 0, ((1.0, "x"), i, i + 1, 1)) for i in range(10, 30)]
    for touching, left in ((False, 20), (True, 1)):
        carries: list[pa.Table] = []
        run(spec_of("column", False, (True, True), touching), rows, [5], carries)
        assert carries[0].num_rows == left


@of_anti
def test_a_right_side_below_nothing_is_told(anti):
    rows = [(0, 1, ((1.0, "x"), 3, INF, 1)), (0, 1, ((1.0, "x"), 7, INF, -2))]
    run(spec_of("column", anti), rows, [6])
    with pytest.raises(DataError, match=r"'b': 'x'.* below zero at tick 7"):
        run(spec_of("column", anti), rows, [6, 7])


@of_anti
@pytest.mark.parametrize("side", [0, 1], ids=["left", "right"])
def test_negative_tuples_where_every_end_is_known_are_refused(anti, side):
    with pytest.raises(DataError, match="wrong about expiry"):
        run(spec_of("column", anti, (True, True)), [(0, side, ((1.0, "x"), 3, INF, -1))], [6])
