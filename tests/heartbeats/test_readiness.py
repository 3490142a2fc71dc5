from __future__ import annotations

import sys
import types
from types import SimpleNamespace

import pytest

from sweeparea.heartbeats.minimum import INFINITE, NoTimeError, query_heartbeat
from sweeparea.heartbeats.readiness import Ready, judge, snapshot


def test_the_minimum_waits_for_every_input():
    assert query_heartbeat("q", {"a": 5, "b": 3}) == 3
    assert query_heartbeat("q", {"a": 5, "b": None}) is None
    assert query_heartbeat("q", {"a": 5, "planes": INFINITE}) == 5


@pytest.mark.parametrize("inputs", [{"planes": INFINITE}, {}])
def test_a_query_over_static_inputs_only_is_refused(inputs):
    with pytest.raises(NoTimeError, match="query q reads only inputs that never change"):
        query_heartbeat("q", inputs)


def test_ready_means_beyond_the_committed_instant():
    heads = {"flights": 10, "weather": 7, "q1": 7, "q2": 3}
    queries = {"q1": ["flights", "weather"], "q2": ["q1"], "q3": ["flights"], "q4": ["q3"]}
    state = judge(heads, queries)
    assert state == {"q1": Ready(7, 7), "q2": Ready(3, 7), "q3": Ready(None, 10), "q4": Ready(None, None)}
    assert {q for q, s in state.items() if s.is_ready} == {"q2", "q3"}


def test_snapshot_reads_the_ledger_once(monkeypatch):
    reads = []

    class Ledger:
        def __init__(self, folder):
            reads.append(folder)

        def head(self):
            return {"s": SimpleNamespace(committed=4), "q": SimpleNamespace(committed=None)}

    module = types.ModuleType("sweeparea.tables.ledger")
    module.Ledger = Ledger  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sweeparea.tables.ledger", module)
    assert snapshot("/data/app", {"q": ["s"]}) == {"q": Ready(None, 4)}
    assert reads == ["/data/app"]
