from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeparea.heartbeats.per_source import MAX_SOURCES, PerSource
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
from sweeparea.heartbeats.user_policy import UserPolicy
from sweeparea.infra.errors import DataError, SweepAreaError

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
    with pytest.raises(DataError, match="stream flights stands at tick 9 and cannot go back to tick 3"):
        Manual().set("flights", 9, 3)
    assert Manual().set("flights", 9, 1 << 62) == HeartbeatDecision(1 << 62)
    for beyond in ((1 << 62) + 1, -(1 << 62) - 1, 10**20):
        with pytest.raises(DataError, match=rf"Stream flights cannot have the heartbeat tick {beyond}: .*2\^62"):
            Manual().set("flights", None, beyond)


def test_a_clock_does_not_make_versions_late_for_having_waited():
    """A run that takes two versions judges the second by the first's own instant; the read time is published last."""
    clock = FromClock(lag=60_000_000, chronon=1_000_000)
    assert clock.evaluate(None, VersionFacts(commit_time=100_500_000, read_time=900_000_000)).heartbeat == 39
    assert clock.published(39, 900_000_000) == HeartbeatDecision(839)
    assert clock.published(839, 800_000_000) == HeartbeatDecision(839, 1)
    ahead = VersionFacts(commit_time=9_000_000_000_000, read_time=100_500_000)  # the source's clock is wrong
    assert clock.evaluate(None, ahead).heartbeat == 39


def _per(versions: list[tuple[dict[str, int], int]], idle: int | None) -> list[int | None]:
    policy, h, state, found = PerSource(idle, "s"), None, {}, []
    for sources, instant in versions:
        decision = policy.evaluate(h, VersionFacts(commit_time=instant, sources=sources, state=state))
        h, state = decision.heartbeat, json.loads(json.dumps(decision.state))
        found.append(h)
    return found


def test_per_source_is_the_minimum_and_leaves_idle_ones_out():
    versions = [({"a": 10, "b": 4}, 100), ({"a": 20}, 105), ({"a": 30}, 110), ({"b": 6}, 111), ({"b": 40}, 112)]
    assert _per(versions, None) == [4, 4, 4, 6, 30]
    # b is silent for 10 at 110; when it comes back it is behind, and the heartbeat stays
    assert _per(versions, 10) == [4, 4, 30, 30, 30]
    assert _per([({}, 1)], 10) == [None]
    assert _per([({"a": 3}, 1), ({}, 100), ({}, 200)], 10) == [3, 3, 3]


@given(
    st.lists(st.tuples(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 50)), st.integers(0, 9)), max_size=12),
    st.one_of(st.none(), st.integers(1, 20)),
)
def test_per_source_forgets_only_what_cannot_matter(versions, idle):
    """The kept state is small, and gives what all of history gives."""
    at = 0
    told: list[tuple[dict[str, int], int]] = []
    for sources, step in versions:
        at += step
        told.append((sources, at))
    most: dict[str, int] = {}
    last: dict[str, int] = {}
    h: int | None = None
    expected = []
    for sources, now in told:
        for source, tick in sources.items():
            most[source], last[source] = max(tick, most.get(source, tick)), now
        alive = [tick for source, tick in most.items() if idle is None or now - last[source] < idle]
        if alive:
            h = min(alive) if h is None else max(h, min(alive))
        expected.append(h)
    assert _per(told, idle) == expected


def test_too_many_sources_are_told_with_a_way_out():
    many = {str(i): i for i in range(MAX_SOURCES + 1)}
    with pytest.raises(SweepAreaError, match=r"10,001 sources.*IDLE AFTER"):
        PerSource(None, "s").evaluate(None, VersionFacts(sources=many))
    kept = PerSource(10).evaluate(None, VersionFacts(sources={"a": 1}, commit_time=0)).state
    later = VersionFacts(commit_time=20, sources={"b": 5}, state=kept)
    assert PerSource(10).evaluate(1, later).state == {"sources": {"b": [5, 20]}}


def _policy(call) -> UserPolicy:
    return UserPolicy("m:f", call, "s", 3, pa.table({"__tick": [5, 9]}))


def test_a_python_policy_sees_the_version_and_carries_a_state():
    def second_greatest(version):
        seen = sorted([*version.state.get("seen", []), *version.elements["__tick"].to_pylist()])
        version.state["seen"] = seen
        return seen[-2] if len(seen) > 1 else None

    decision = _policy(second_greatest).evaluate(None, VersionFacts(state={"seen": [7]}))
    assert (decision.heartbeat, decision.state) == (7, {"seen": [5, 7, 9]})
    assert _policy(lambda version: version.previous - 3).evaluate(8, VersionFacts()) == HeartbeatDecision(8, 1)


def test_the_policy_of_the_documentation():
    """docs/streams.md, word for word."""
    text = (Path(__file__).parents[2] / "docs/streams.md").read_text("utf-8")
    code: dict[str, Any] = {}
    exec(text.split("```python")[1].split("```")[0], code)
    elements = pa.table({"shift": ["day", "day"], "__tick": [2, 9]})
    first = UserPolicy("m:f", code["two_shifts"], "s", 1, elements).evaluate(None, VersionFacts())
    assert first == HeartbeatDecision(None, 0, {"seen": {"day": 9}})
    hour = 3_600_000_000
    elements = pa.table({"shift": ["night"], "__tick": [hour]})
    assert UserPolicy("m:f", code["two_shifts"], "s", 2, elements).evaluate(
        None, VersionFacts(state=first.state)
    ).heartbeat == (9 - hour)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda version: 1 / 0, "ZeroDivisionError"),
        (lambda version: "soon", "gave 'soon', which is no tick"),
        (lambda version: True, "gave True"),
        (lambda version: version.state.update(x=object()), "TypeError"),
    ],
)
def test_a_python_policy_that_fails_says_so(call, said):
    with pytest.raises(DataError, match=rf"Stream s, version 3 .*'m:f' .*{said}"):
        _policy(call).evaluate(None, VersionFacts())


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
