from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from sweeparea.heartbeats import trigger as module
from sweeparea.heartbeats.trigger import BehindTrigger, Gate, GroupTrigger, Store, Watched
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind

WATCHED = {
    "data_folder": "/data/shop",
    "sources": {"orders": "/data/shop/source/orders", "returns": "/data/shop/source/returns"},
    "queries": {"sales": ["orders"], "surges": ["sales"]},
}


class Ledger:
    """A ledger in memory: name to row."""

    rows: dict[str, LedgerRow] = {}  # noqa: RUF012

    def __init__(self, folder, storage_options=None):
        assert folder == "/data/shop"

    def head(self):
        return dict(self.rows)


class SourceTable:
    """A source in memory: URI to version, or to an error."""

    versions: dict[str, object] = {}  # noqa: RUF012

    def __init__(self, uri, storage_options=None):
        self.uri = uri

    def version(self):
        version = self.versions[self.uri]
        if isinstance(version, Exception):
            raise version
        return version


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setattr("sweeparea.tables.publication.ledger.Ledger", Ledger)
    monkeypatch.setattr("sweeparea.tables.sources.source.SourceTable", SourceTable)
    monkeypatch.setattr(Ledger, "rows", {})
    monkeypatch.setattr(SourceTable, "versions", dict.fromkeys(WATCHED["sources"].values(), OSError("no such table")))
    return SimpleNamespace(rows=Ledger.rows, versions=SourceTable.versions)


def row(committed, pins=None, **info):
    return LedgerRow("-", NameKind.STREAM, "r", 1, committed, "a", pins=pins or {}, info=info)


def test_who_is_behind(world, caplog):
    store = Store(Watched(**WATCHED))
    assert store.behind() == {}
    assert store.behind() == {}
    assert len([r for r in caplog.records if "cannot be read" in r.message]) == 2  # each source once
    world.versions["/data/shop/source/orders"] = 0
    assert store.behind() == {"orders": {"admitted": None, "version": 0}}
    world.rows["orders"] = row(10, source_version=0)
    assert store.behind() == {"sales": {"done": None, "ready": 10}}
    world.versions["/data/shop/source/orders"] = 3
    world.rows["sales"] = row(10)
    assert store.behind() == {"orders": {"admitted": 0, "version": 3}, "surges": {"done": None, "ready": 10}}
    world.rows |= {"orders": row(12, source_version=3), "surges": row(10)}
    assert store.behind() == {"sales": {"done": 10, "ready": 12}}
    # a late element was repaired: sales is behind though no heartbeat has moved
    world.rows |= {"orders": row(12, source_version=3, correction_seq=8), "sales": row(12, {"orders": {"seq": 7}})}
    world.rows["surges"] = row(12, {"sales": {"seq": 4}})
    assert store.behind() == {"sales": {"done": 12, "ready": 12, "corrected": 8}}
    world.rows["sales"] = row(12, {"orders": {"seq": 8}}, correction_seq=5)
    assert store.behind() == {"surges": {"done": 12, "ready": 12, "corrected": 5}}


def test_a_static_relation_is_behind_until_it_has_been_copied(world):
    store = Store(
        Watched("/data/shop", {"products": "/p"}, pinned=["products"], queries={"sales": ["orders", "products"]})
    )
    world.rows["orders"] = row(10, source_version=0)
    world.versions["/p"] = 4
    assert store.behind() == {"products": {"admitted": None, "version": 4}}
    world.rows["products"] = row(1 << 62, source_version=4)
    world.versions["/p"] = 5
    assert store.behind() == {"sales": {"done": None, "ready": 10}}


def test_a_clock_that_holds_a_query_is_read(world):
    """Nothing new has to lie in its source: its heartbeat is the time at which that is read."""
    watched = Watched(
        "/data/shop", {"orders": "/o", "names": "/n"}, clocks=["names"], queries={"sales": ["orders", "names"]}
    )
    store = Store(watched)
    world.versions.update({"/o": 0, "/n": 0})
    world.rows |= {"orders": row(10, source_version=0), "names": row(6, source_version=0), "sales": row(6)}
    assert store.behind() == {"names": {"wanted": 10, "at": 6}}
    world.rows["names"] = row(12, source_version=0)
    assert store.behind() == {"sales": {"done": 6, "ready": 10}}
    alone = Store(Watched("/data/shop", {"names": "/n"}, clocks=["names"], queries={"sales": ["names"]}))
    world.rows["sales"] = row(12)
    assert alone.behind() == {"names": {"wanted": None, "at": 12}}


def test_a_paused_query_is_not_behind(world, monkeypatch):
    paused = {
        "sales": SimpleNamespace(name="sales", paused=True),
        "surges": SimpleNamespace(name="surges", paused=False),
    }
    monkeypatch.setattr("sweeparea.tables.publication.deployed.Deployed.rows", lambda self: paused)
    world.rows.update(orders=row(9, source_version=0), sales=row(5), surges=row(3))
    assert [*Store(Watched(**WATCHED)).behind()] == ["surges"]
    paused["sales"].paused = False
    assert [*Store(Watched(**WATCHED)).behind()] == ["sales", "surges"]


def test_a_gate_opens_for_news_and_ever_less_often_for_the_same():
    gate = Gate(10)
    assert [t for t in range(0, 200) if gate.passes({"ready": 1}, t)] == [0, 10, 30, 70, 150]
    assert gate.passes({"ready": 2}, 200)
    assert not gate.passes({"ready": 2}, 205)
    assert gate.passes({"ready": 2}, 210)
    late = Gate(10)
    passed = [t for t in range(0, 3000) if late.passes({"ready": 1}, t)]
    assert max(b - a for a, b in pairwise(passed)) == module.MAX_REFIRE


def test_a_gate_opens_steadily_for_a_clock_that_goes_on_and_at_once_for_what_is_wanted():
    gate = Gate(10)
    read = 0
    passed = []
    for t in range(100):  # each event has it read two seconds later
        if gate.passes({"wanted": None, "at": read}, t):
            passed.append(t)
        if passed and t == passed[-1] + 2:
            read = t
    assert passed == [*range(0, 100, 10)]
    stuck = Gate(10)
    assert [t for t in range(200) if stuck.passes({"wanted": None, "at": 5}, t)] == [0, 10, 30, 70, 150]
    assert stuck.passes({"wanted": None, "at": 6}, 200)
    assert stuck.passes({"wanted": 7, "at": 6}, 201)


def test_a_data_folder_that_cannot_be_read_ends_no_loop(world, monkeypatch, caplog):
    store = Store(Watched(**WATCHED))
    world.rows.update(orders=row(9, source_version=0), sales=row(5), surges=row(9))
    heads = iter([OSError("gone"), OSError("gone"), world.rows])

    def head(self):
        found = next(heads)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr("sweeparea.tables.publication.ledger.Ledger.head", head)
    assert [store.behind_if_there(), store.behind_if_there()] == [{}, {}]
    assert [*store.behind_if_there()] == ["sales"]
    assert caplog.text.count("cannot be looked at: gone") == 1


def test_no_event_while_a_run_of_the_dag_is_queued_or_running(world, monkeypatch):
    asked = []
    runs = iter([True, True, False, False])
    monkeypatch.setattr(module, "has_runs", lambda dag_id: asked.append(dag_id) or next(runs))
    monkeypatch.setattr(module, "HELD", 0.02)
    world.rows |= {"orders": row(10, source_version=0), "sales": row(7), "surges": row(7)}
    trigger = BehindTrigger("sales", WATCHED, poll=0.01, dag_id="shop__sales")
    assert trigger.serialize()[1]["dag_id"] == "shop__sales"

    async def first():
        async for event in trigger.filter_shared_stream(BehindTrigger.open_shared_stream(trigger.serialize()[1])):
            return event.payload

    assert asyncio.run(asyncio.wait_for(first(), 5)) == {"name": "sales", "done": 7, "ready": 10}
    assert asked == ["shop__sales"] * 3


def test_where_airflow_cannot_be_asked_there_are_events():
    assert not module.has_runs("shop__sales")


def test_triggers_of_an_application_share_a_loop_and_hear_only_of_their_own(world):
    sales, surges = BehindTrigger("sales", WATCHED, poll=0.01), BehindTrigger("surges", WATCHED, poll=0.01)
    assert sales.shared_stream_key() == surges.shared_stream_key()
    assert sales.shared_stream_key() != BehindTrigger("sales", {**WATCHED, "data_folder": "/x"}).shared_stream_key()
    world.rows |= {"orders": row(10, source_version=0), "sales": row(7), "surges": row(7)}

    async def first(trigger):
        _, kwargs = trigger.serialize()
        async for event in trigger.filter_shared_stream(BehindTrigger.open_shared_stream(kwargs)):
            return event.payload

    assert asyncio.run(asyncio.wait_for(first(sales), 5)) == {"name": "sales", "done": 7, "ready": 10}
    world.rows["sales"] = row(10)
    assert asyncio.run(asyncio.wait_for(first(surges), 5)) == {"name": "surges", "done": 7, "ready": 10}


def test_an_event_is_repeated_while_the_name_stays_behind(world):
    world.rows |= {"orders": row(10, source_version=0)}
    events = []

    async def listen():
        async for event in BehindTrigger("sales", WATCHED, poll=0.01, refire=0.03).run():
            events.append(event.payload["ready"])
            if len(events) == 2:
                world.rows["orders"] = row(11, source_version=0)
            if len(events) == 3:
                return

    asyncio.run(asyncio.wait_for(listen(), 5))
    assert events == [10, 10, 11]


def test_it_can_be_rebuilt_from_what_it_serializes():
    path, kwargs = BehindTrigger("sales", WATCHED, poll=1, refire=2).serialize()
    assert path == f"{BehindTrigger.__module__}.{BehindTrigger.__qualname__}"
    assert BehindTrigger(**kwargs).serialize() == (path, kwargs)


def test_a_group_has_one_event_for_all_that_is_due_and_leaves_out_who_is_at_work(world, monkeypatch):
    asked = []
    busy = {"shop__sales"}
    monkeypatch.setattr(module, "has_runs", lambda dag_id: asked.append(dag_id) or dag_id in busy)
    monkeypatch.setattr(module, "HELD", 0.2)
    world.rows |= {"orders": row(10, source_version=0), "sales": row(7), "surges": row(5)}
    members = {"sales": "shop__sales", "surges": "shop__surges"}
    trigger = GroupTrigger(members, WATCHED, poll=0.01, refire=60.0, dag_id="shop__hourly")
    assert trigger.shared_stream_key() == BehindTrigger("sales", WATCHED, poll=0.01).shared_stream_key()
    events = []

    async def listen():
        async for event in trigger.run():
            events.append((event.payload["name"], time.monotonic()))
            busy.clear()
            if len(events) == 2:
                return

    asyncio.run(asyncio.wait_for(listen(), 10))
    # sales has a backfill; when that has ended, its event waits for the run that the first one asks for
    assert [name for name, _ in events] == ["surges", "sales"]
    assert events[1][1] - events[0][1] >= 0.2
    assert {"shop__hourly", "shop__sales", "shop__surges"} == set(asked)
    path, kwargs = trigger.serialize()
    assert path == f"{GroupTrigger.__module__}.{GroupTrigger.__qualname__}"
    assert GroupTrigger(**kwargs).serialize() == (path, kwargs)


@pytest.mark.parametrize("application", ["shop", ""])
def test_how_far_behind_everything_is_goes_to_metrics_that_are_on(world, monkeypatch, application):
    sent = []
    monkeypatch.setattr(module.measures, "on", lambda: True)
    monkeypatch.setattr(module.measures, "begin", lambda: sent.append("begun"))
    monkeypatch.setattr(
        module.measures, "send_distances", lambda app, head, queries, now: sent.append((app, sorted(head)))
    )
    world.rows |= {"orders": row(10), "sales": row(7)}
    trigger = BehindTrigger("surges", {**WATCHED, "application": application}, poll=0.01)

    async def listen():
        async for name, _ in BehindTrigger.open_shared_stream(trigger.serialize()[1]):
            if name == "surges" and (len(sent) > 1 or not application):
                return

    asyncio.run(asyncio.wait_for(listen(), 5))
    assert sent == (["begun", ("shop", ["orders", "sales"])] if application else [])
