"""Whether a query's results, or its inputs, have come to an instant, and the trigger that waits for it."""

from __future__ import annotations

import asyncio

import pytest

from sweeparea.heartbeats.result import Reached, progress
from sweeparea.heartbeats.result_trigger import ResultTrigger
from sweeparea.infra.errors import UsageError
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind

MINUTE = 60_000_000
NOON = 1_704_110_400_000_000 // MINUTE
"""2024-01-01 12:00:00 as a tick of a minute."""


def row(kind: NameKind, committed: int | None, pins: dict | None = None, **info: object) -> LedgerRow:
    return LedgerRow("-", kind, "r", 1, committed, "a", pins=pins or {}, info=info)


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> dict[str, LedgerRow]:
    """The rows of a ledger in memory; sales reads orders."""
    rows: dict[str, LedgerRow] = {}

    class Table:
        def __init__(self, folder: str):
            assert folder == "/data/shop"

        def head(self) -> dict[str, LedgerRow]:
            return dict(rows)

        def rows(self) -> dict[str, DeployedRow]:
            return {"sales": DeployedRow("sales", NameKind.QUERY, "", "", "r", depends_on=("orders",))}

    monkeypatch.setattr("sweeparea.tables.publication.ledger.Ledger", Table)
    monkeypatch.setattr("sweeparea.tables.publication.deployed.Deployed", Table)
    return rows


def look(up_to: str) -> Reached:
    return progress("/data/shop", "sales", up_to, ["orders"])


def test_nothing_is_reached_before_the_first_commit(head):
    found = look("2024-01-01 12:00:00")
    assert (found.has_result, found.has_inputs) == (False, False)
    assert found.words == "committed up to nothing yet, its inputs up to nothing yet"


def test_results_are_there_when_they_are_committed_and_inputs_when_they_are_known(head):
    head["orders"] = row(NameKind.STREAM, NOON + 5, chronon=MINUTE)
    assert [look("2024-01-01 12:05:59").has_inputs, look("2024-01-01 12:06").has_inputs] == [True, False]
    assert not look("2024-01-01").has_result
    head["sales"] = row(NameKind.QUERY, NOON)
    for text, there in (
        ("2024-01-01 12:00:00", True),
        ("2024-01-01T13:00:59+01:00", True),
        ("2024-01-01 12:01", False),
    ):
        assert look(text).has_result == there, text
    assert look("2024-01-01").words == "committed up to 2024-01-01 12:00:00, its inputs up to 2024-01-01 12:05:00"


def test_results_that_are_to_be_repaired_are_not_there(head):
    head["orders"] = row(NameKind.STREAM, NOON, chronon=MINUTE, correction_seq=4)
    head["sales"] = row(NameKind.QUERY, NOON, pins={"orders": {"seq": 3}})
    assert (look("2024-01-01").has_result, look("2024-01-01").corrected) == (False, True)
    head["sales"] = row(NameKind.QUERY, NOON, pins={"orders": {"seq": 4}})
    assert look("2024-01-01").has_result


def test_bigint_time_has_ticks_and_texts_that_are_none_are_refused(head):
    head["orders"] = row(NameKind.STREAM, 7, chronon=0)
    assert (look("7").has_inputs, look("8").has_inputs) == (True, False)
    with pytest.raises(UsageError, match="no tick"):
        look("2024-01-01")
    head["orders"] = row(NameKind.STREAM, 7, chronon=1)
    with pytest.raises(UsageError, match="no instant"):
        look("yesterday")


def fired(trigger: ResultTrigger, seconds: float = 5) -> dict:
    async def first() -> dict:
        async for event in trigger.run():
            return event.payload
        raise AssertionError("it ended without an event")

    return asyncio.run(asyncio.wait_for(first(), seconds))


def test_the_trigger_fires_when_it_is_so(head, monkeypatch: pytest.MonkeyPatch):
    head["orders"] = row(NameKind.STREAM, NOON, chronon=MINUTE)
    made = ResultTrigger("/data/shop", "sales", "2024-01-01 12:00:00", ("orders",), poll=0.01)
    path, kwargs = made.serialize()
    assert path == "sweeparea.heartbeats.result_trigger.ResultTrigger"
    again = ResultTrigger(**kwargs)
    assert again.serialize() == (path, kwargs)
    with pytest.raises(TimeoutError):
        fired(again, 0.2)
    assert fired(ResultTrigger(**{**kwargs, "of_inputs": True})) == {"reached": True}
    head["sales"] = row(NameKind.QUERY, NOON)
    assert fired(again) == {"reached": True}
    assert fired(ResultTrigger(**{**kwargs, "up_to": "soon"}))["final"]


def test_a_ledger_that_is_away_is_waited_for_but_not_for_ever(head, monkeypatch: pytest.MonkeyPatch):
    head["orders"] = row(NameKind.STREAM, NOON, chronon=MINUTE)
    head["sales"] = row(NameKind.QUERY, NOON)
    made = ResultTrigger("/data/shop", "sales", "2024-01-01", ["orders"], poll=0.001)
    real, calls = made.look, []

    def away(times: int) -> object:
        calls.append(1)
        if len(calls) <= times:
            raise OSError("unmounted")
        return real()

    monkeypatch.setattr(made, "look", lambda: away(3))
    assert fired(made) == {"reached": True}
    calls.clear()
    monkeypatch.setattr(made, "look", lambda: away(1000))
    assert "unmounted" in fired(made)["error"]
