from __future__ import annotations

import sys
import types
from types import SimpleNamespace

import pytest

from sweeparea.heartbeats.minimum import INFINITE, NoTimeError, query_heartbeat
from sweeparea.heartbeats.readiness import Ready, judge, snapshot
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind


def test_the_minimum_waits_for_every_input():
    assert query_heartbeat("q", {"a": 5, "b": 3}) == 3
    assert query_heartbeat("q", {"a": 5, "b": None}) is None
    assert query_heartbeat("q", {"a": 5, "planes": INFINITE}) == 5


@pytest.mark.parametrize("inputs", [{"planes": INFINITE}, {}])
def test_a_query_over_static_inputs_only_is_refused(inputs):
    with pytest.raises(NoTimeError, match="query q reads only inputs that never change"):
        query_heartbeat("q", inputs)


def _row(
    committed: int | None, kind: NameKind = NameKind.STREAM, pins: dict[str, int] | None = None, correction: int = 0
):
    read = {name: {"seq": seq} for name, seq in (pins or {}).items()}
    info = {"correction_seq": correction}
    return LedgerRow("any", kind, "registration", 1, committed, "attempt", pins=read, info=info)


def test_ready_means_beyond_the_committed_instant():
    heads = {"flights": _row(10), "weather": _row(7), "q1": _row(7, NameKind.QUERY), "q2": _row(3, NameKind.QUERY)}
    queries = {"q1": ["flights", "weather"], "q2": ["q1"], "q3": ["flights"], "q4": ["q3"]}
    state = judge(heads, queries)  # type: ignore[arg-type]
    assert state == {"q1": Ready(7, 7), "q2": Ready(3, 7), "q3": Ready(None, 10), "q4": Ready(None, None)}
    assert {q for q, s in state.items() if s.is_ready} == {"q2", "q3"}


def test_a_correction_that_was_not_read_makes_a_query_ready():
    """Of an input, of another query's result, and of what a shared subplan reads; a query without a row has time."""
    heads = {
        "s": _row(10, correction=5),
        "t": _row(10, correction=9),
        "behind": _row(10, NameKind.QUERY, {"s": 4}),
        "level": _row(10, NameKind.QUERY, {"s": 5}, correction=3),
        "unpinned": _row(10, NameKind.QUERY, {}),
        "reader": _row(10, NameKind.QUERY, {"level__istream": 2}),
        "shared_1": _row(10, NameKind.QUERY, {"t": 8}),
        "over_shared": _row(10, NameKind.QUERY, {"shared_1": 1}),
    }
    queries = {
        "behind": ["s"], "level": ["s"], "unpinned": ["s"], "reader": ["level"], "over_shared": ["t"], "first": ["s"]
    }  # fmt: skip
    state = judge(heads, queries)  # type: ignore[arg-type]
    assert {name: s.corrected for name, s in state.items()} == {
        "behind": 5, "level": None, "unpinned": None, "reader": 3, "over_shared": 9, "first": None,
    }  # fmt: skip
    assert {q for q, s in state.items() if s.is_ready} == {"behind", "reader", "over_shared", "first"}


def test_relations_count_microseconds_and_queries_the_chronon_of_their_streams():
    """The last second that lies wholly at or before the relation's heartbeat; BIGINT time has no chronon."""

    def row(committed: int | None, kind: NameKind, chronon: int):
        return SimpleNamespace(committed=committed, kind=kind, pins={}, info={"chronon": chronon})

    heads = {
        "sales": row(30, NameKind.STREAM, 1_000_000),
        "prices": row(10_500_000, NameKind.RELATION, 1),
        "static": row(1 << 62, NameKind.RELATION, 0),
        "q": row(8, NameKind.QUERY, 1_000_000),
        "done": row(9, NameKind.QUERY, 1_000_000),
        "counted": row(7, NameKind.STREAM, 0),
        "ticks": row(5, NameKind.RELATION, 0),
    }
    heads["static"].info = {}
    queries = {
        "q": ["prices", "sales", "static"], "done": ["sales", "prices"], "first": ["prices", "sales"],
        "alone": ["prices"], "bigint": ["counted", "ticks"],
    }  # fmt: skip
    state = judge(heads, queries)  # type: ignore[arg-type]
    ready = {name: (s.ready, s.is_ready) for name, s in state.items()}
    assert ready == {
        "q": (9, True), "done": (9, False), "first": (9, True), "alone": (10_500_000, True), "bigint": (5, True)
    }  # fmt: skip


def test_snapshot_reads_the_ledger_once(monkeypatch):
    reads = []

    class Ledger:
        def __init__(self, folder):
            reads.append(folder)

        def head(self):
            return {"s": _row(4), "q": _row(None)}

    module = types.ModuleType("sweeparea.tables.publication.ledger")
    module.Ledger = Ledger  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sweeparea.tables.publication.ledger", module)
    assert snapshot("/data/app", {"q": ["s"]}) == {"q": Ready(None, 4)}
    assert reads == ["/data/app"]
