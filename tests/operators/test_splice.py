"""What a stretch computed anew changes, against a brute force over all instants."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.state.splice import NotMet, bag_difference, levels
from sweeparea.operators.time.ticks import INF

END = 12
Row = tuple[int, int, int]


def canonical(contents: list[Counter[int]], since: int = -1) -> list[Row]:
    """Rows (record, from, to) of a relation given by its contents at the instants 0 .. END: maximal levels."""
    rows = []
    for record in {r for c in contents for r in c}:
        for level in range(1, max(c[record] for c in contents) + 1):
            start = None
            for t, c in enumerate(contents):
                if c[record] >= level and start is None:
                    start = t
                if c[record] < level and start is not None:
                    rows.append((record, start, t))
                    start = None
            if start is not None:
                rows.append((record, start, INF))
    return rows


def arrays(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns = np.array(rows, np.int64).reshape(len(rows), 3).T
    return columns[0], columns[1], columns[2]


def at(rows: list[Row], instant: int) -> Counter[int]:
    return Counter(r for r, start, end in rows if start <= instant < end)


bags = st.lists(st.integers(0, 2), max_size=4).map(Counter)
histories = st.lists(bags, min_size=END + 1, max_size=END + 1)


@settings(deadline=None)
@given(histories, histories, st.integers(-1, END - 1), st.integers(0, END), st.booleans())
def test_a_stretch_is_replaced_and_the_rest_stands(before, other, since, upto, closed):
    if upto <= since:
        since, upto = upto - 1, since + 1
    last = upto if closed else END
    after = [other[t] if since < t <= last else before[t] for t in range(END + 1)]
    if closed:
        after[last] = before[last]  # the contents are equal again where the stretch ends
    old, wanted = canonical(before), canonical(after)
    # what was computed: the history up to the stretch's last instant, of which rows that are over by its beginning
    # are not known
    computed = [row for row in canonical(after[: last + 1]) if row[2] > since]
    concerned = [row for row in old if row[1] <= last and row[2] > since]
    changed, ends = levels(arrays(concerned), arrays(computed), last if closed else None)
    result = Counter(old)
    result.subtract(concerned[i] for i in changed.removed)
    result.update((computed[i][0], computed[i][1], int(ends[i])) for i in changed.added)
    assert min(result.values(), default=0) >= 0
    assert sorted(result.elements()) == sorted(wanted)
    kept = set(range(len(concerned))) - set(changed.removed.tolist())
    gone = Counter(concerned[i] for i in changed.removed)
    came = Counter((computed[i][0], computed[i][1], int(ends[i])) for i in changed.added)
    assert not gone & came  # no row goes that comes again
    assert all(at([concerned[i]], t) for i in kept for t in range(concerned[i][1], min(concerned[i][2], END)))


def test_contents_that_do_not_meet_are_told():
    old, new = arrays([(1, 0, INF)]), arrays([(1, 0, INF), (1, 3, INF)])
    with pytest.raises(NotMet):
        levels(old, new, 5)
    assert levels(old, new, None)[0].added.tolist() == [1]


numbers = st.lists(st.integers(0, 4), max_size=12)


@settings(deadline=None)
@given(numbers, numbers)
def test_bags_differ_by_what_one_has_more(left, right):
    changed = bag_difference([np.array(left, np.int64)], [np.array(right, np.int64)])
    assert Counter(left[i] for i in changed.removed) == Counter(left) - Counter(right)
    assert Counter(right[i] for i in changed.added) == Counter(right) - Counter(left)
