"""What joins answer by their definitions, for two bags as ``two_bags.py`` draws them: the inner join pair by pair, and
the left records of which some, or no, right record is a match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import strategies as st

from sweeparea.operators.sweeps.two_counts import Operation, TwoCountsSpec
from tests.operators import brute
from tests.operators.two_bags import CUTS, LAST, arrivals, at, run


def equal(x, y):
    """``=`` of SQL: None where it is unknown."""
    return None if x is None or y is None else brute.plain(x) == brute.plain(y)


CONDITIONS = {
    "equal": lambda x, y: equal(x[1], y[1]),
    "null-safe": lambda x, y: brute.plain(x[0]) == brute.plain(y[0]),
    "not in": lambda x, y: equal(x[1], y[1]) is not False,
    "less": lambda x, y: None if x[1] is None or y[1] is None else x[1] <= y[1],
    "any": lambda x, y: True,
}


def joined(rows, condition):
    """The inner join of a case's sides: (due, left record, right record, ts, te, n)."""
    sides = [[(due, row) for due, s, row in rows if s == side] for side in (0, 1)]
    for due, (x, ts, te, n) in sides[0]:
        for due_, (y, ts_, te_, n_) in sides[1]:
            start, end = max(ts, ts_), min(te, te_)
            if start < end and condition(x, y):
                yield max(due, due_), x, y, start, end, n * n_


def bare(record) -> tuple:
    """A record of ``brute.plain`` with its numbers as they are."""
    return float("nan") if record[0] == "NaN" else record[0], record[1]


def wanted(rows, tick, condition, keep) -> Counter:
    left, right = at(rows, 0, tick), at(rows, 1, tick)
    kept = {x: n for x, n in left.items() if keep(any(condition(bare(x), bare(y)) for y in right))}
    return Counter(kept)


def hold_by_counting(operation: Operation, keep: Callable, condition: str, known, data: st.DataObject) -> None:
    """Left rows beside their matches, each counted as often as pairs are, are what ``keep`` keeps of the left ones."""
    rows, cuts, match = data.draw(arrivals(known)), data.draw(CUTS), CONDITIONS[condition]
    left = [row for row in rows if row[1] == 0]
    matches = [(due, 1, (x, ts, te, n)) for due, x, _, ts, te, n in joined(rows, match)]
    result = run(TwoCountsSpec(("a", "b"), operation, (known[0], all(known))), left + matches, cuts)
    for tick in range(LAST + 1):
        assert brute.at(result, tick) == wanted(rows, tick, match, keep), tick


def ids(text: str) -> frozenset[str]:
    """The columns in the text of a condition, which have one letter each."""
    return frozenset(c for c in "abcdxy" if c in text.replace("AND", "").replace("CASE", ""))
