"""The relation that SELECT without FROM reads: one record without columns, at every instant from START on."""

from __future__ import annotations

import pytest

from sweeparea.operators.linear import one_row
from sweeparea.operators.nodes import OneRow
from sweeparea.operators.plan.edge import MONOTONIC
from tests.operators import brute
from tests.operators.frames import Frame, rows_of


@pytest.mark.parametrize("since", [0, 7, -3])
def test_one_record_from_start_on(database, since):
    class Session:
        def range(self, count: int) -> Frame:
            return Frame(database.sql(f"SELECT range AS id FROM range({count})"))

    rows = rows_of(one_row.apply(Session(), since))  # type: ignore[arg-type]
    assert [brute.at(rows, tick) for tick in (since - 1, since, since + 10**9)] == [{}, {(): 1}, {(): 1}]


def test_nothing_leaves_it():
    assert OneRow().edge([], ()) == MONOTONIC
    assert OneRow().columns == ()
