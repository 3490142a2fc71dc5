from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeparea.heartbeats.policies import (
    MAX_TICK,
    BoundedDisorder,
    EachBatch,
    FromClock,
    FromColumn,
    HeartbeatDecision,
    Manual,
    VersionFacts,
    last_tick_at,
)
from sweeparea.infra.errors import DataError

TICKS = st.one_of(st.none(), st.integers(-(1 << 62), 1 << 62))
FACTS = st.builds(VersionFacts, TICKS, TICKS, TICKS, TICKS)


def test_a_heartbeat_is_the_last_tick_wholly_at_or_before_its_instant():
    assert last_tick_at(36_000_500_000, 1_000_000) == 35_999
    assert last_tick_at(36_000_000_000, 1_000_000) == 35_999
    assert last_tick_at(36_000_999_999, 1_000_000) == 36_000
    assert last_tick_at(-1, 1_000_000) == -1
    assert last_tick_at(5, 1) == 5


def test_bounded_disorder_takes_the_maximum_over_all_versions():
    policy = BoundedDisorder()
    assert policy.evaluate(None, VersionFacts(100, 70)) == HeartbeatDecision(70)
    assert policy.evaluate(70, VersionFacts(90, 60)) == HeartbeatDecision(70, 0)
    assert policy.evaluate(70, VersionFacts()) == HeartbeatDecision(70)
    assert policy.evaluate(None, VersionFacts()) == HeartbeatDecision(None)


def test_each_batch_leaves_the_last_timestamp_open():
    assert EachBatch().evaluate(None, VersionFacts(10)) == HeartbeatDecision(9)
    assert EachBatch().evaluate(9, VersionFacts(8)) == HeartbeatDecision(9, 1)
    assert EachBatch().evaluate(9, VersionFacts(10)) == HeartbeatDecision(9, 0)


def test_from_column_and_from_clock():
    assert FromColumn().evaluate(5, VersionFacts(100, 40)) == HeartbeatDecision(40)
    assert FromColumn().evaluate(50, VersionFacts(100, 40)) == HeartbeatDecision(50, 1)
    clock = FromClock(lag=60_000_000, chronon=1_000_000)
    assert clock.evaluate(None, VersionFacts(read_time=100_500_000)) == HeartbeatDecision(39)
    assert clock.evaluate(45, VersionFacts(read_time=100_500_000)) == HeartbeatDecision(45, 1)


def test_manual_moves_only_by_hand_and_never_back():
    assert Manual().evaluate(3, VersionFacts(100, 100, 100, 100)) == HeartbeatDecision(3)
    assert Manual().set("flights", 3, 9) == HeartbeatDecision(9)
    with pytest.raises(DataError, match="stream flights stands at tick 9 and cannot go back to 3"):
        Manual().set("flights", 9, 3)


@given(st.sampled_from([BoundedDisorder(), EachBatch(), FromColumn(), FromClock(1000), Manual()]), st.lists(FACTS))
def test_no_policy_ever_moves_backwards_or_leaves_the_time_domain(policy, versions):
    heartbeat = None
    for version in versions:
        decision = policy.evaluate(heartbeat, version)
        if heartbeat is not None:
            assert decision.heartbeat is not None
            assert decision.heartbeat >= heartbeat
        assert decision.heartbeat is None or abs(decision.heartbeat) <= MAX_TICK
        heartbeat = decision.heartbeat
