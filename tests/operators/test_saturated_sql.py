"""Sums and hops of ticks in Spark SQL, which saturate where BIGINT would overflow."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.time.ticks import INF, MAX_TICK, end_of
from sweeparea.operators.windows.saturated_sql import hop_at_or_after, plus, to_hop_sql
from tests.operators.window_scopes import ANY_LENGTH, ANY_TICK


def evaluate(database, sql: str, s: int) -> int:
    text = re.sub(r"(\d+)L\b", r"CAST(\1 AS BIGINT)", sql)
    return database.execute(f"SELECT {text} FROM (SELECT CAST({s} AS BIGINT) AS s)").fetchall()[0][0]


@settings(max_examples=60, deadline=None)
@given(ANY_TICK, ANY_LENGTH | st.just(0))
def test_a_sum_beyond_the_domain_is_for_ever(database, s, length):
    assert evaluate(database, plus("s", length), s) == end_of(s, length)
    assert evaluate(database, plus(plus("s", length), length), s) == end_of(end_of(s, length), length)


@settings(max_examples=60, deadline=None)
@given(ANY_TICK, st.integers(1, MAX_TICK), ANY_TICK)
def test_a_hop_is_the_next_one_at_or_after(database, s, slide, anchor):
    hop = hop_at_or_after(s, slide, anchor)
    assert hop >= s
    assert hop - s < slide
    assert (hop - anchor) % slide == 0
    assert evaluate(database, plus("s", to_hop_sql("s", slide, anchor)), s) == (INF if hop > MAX_TICK else hop)
