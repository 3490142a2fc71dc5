"""Lags against the wall clock: of time that is the clock's, of ticks, of what never ran."""

from __future__ import annotations

from sweeparea.heartbeats.lag import lags
from sweeparea.heartbeats.minimum import INFINITE
from sweeparea.heartbeats.trigger import Watched, news
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.incidents import Incident
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind

SECOND = 1_000_000
NOW = 1_000_000 * SECOND
QUERIES = {"sales": ["orders", "rates"], "surges": ["sales"]}
KINDS = {"orders": NameKind.STREAM, "rates": NameKind.RELATION}


def row(name: str, committed: int | None, at: int = NOW, chronon: int | None = None) -> LedgerRow:
    info = {} if chronon is None else {"chronon": chronon}
    return LedgerRow(name, KINDS.get(name, NameKind.QUERY), "r", 1, committed, "a", info=info, at=at)


def deployed(*names: str, at: int = NOW, paused: bool = False) -> dict[str, DeployedRow]:
    return {n: DeployedRow(n, KINDS.get(n, NameKind.QUERY), "", "", "r", paused=paused, deployed_at=at) for n in names}


def late(head: dict[str, LedgerRow], there: dict[str, DeployedRow], limit: int = 60 * SECOND) -> dict[str, str]:
    """What is told of all that is more than a minute behind."""
    found = lags(dict.fromkeys(("orders", "rates", *QUERIES), limit), head, there, QUERIES, NOW)
    return {name: lag.words for name, lag in found.items() if lag.too_long}


ALL = deployed("orders", "rates", "sales", "surges")


def test_a_query_is_as_far_behind_as_the_input_that_holds_it_and_names_it():
    seconds = NOW // SECOND  # orders has ticks of a second, rates microseconds of the clock
    head = {
        "orders": row("orders", seconds - 61, chronon=SECOND),
        "rates": row("rates", NOW, chronon=SECOND),
        "sales": row("sales", seconds - 61),
        "surges": row("surges", seconds - 60),
    }
    assert late(head, ALL) == {
        "orders": "The stream orders is more than 0:01:00 behind the clock.",
        "sales": "The continuous query sales is more than 0:01:00 behind the clock; it waits for orders.",
    }
    head["orders"] = row("orders", seconds, chronon=SECOND)
    assert late(head, ALL) == {"sales": "The continuous query sales is more than 0:01:00 behind the clock."}


def test_ticks_are_no_clock_so_the_last_commit_counts():
    head = {"orders": row("orders", 7, at=NOW - 61 * SECOND, chronon=0), "sales": row("sales", 7, at=NOW - SECOND)}
    assert late(head, ALL) == {"orders": "The stream orders has not advanced for more than 0:01:00."}


def test_what_never_ran_counts_from_its_deployment_and_what_is_not_deployed_or_paused_not_at_all():
    assert late({}, ALL) == {}
    old = deployed("orders", "sales", at=NOW - 61 * SECOND)
    told = late({}, old)
    assert told["orders"] == "The stream orders has not begun 0:01:00 after it was deployed."
    assert told["sales"].endswith("after it was deployed; it waits for orders, rates.")
    assert late({}, deployed("orders", "sales", at=NOW - 61 * SECOND, paused=True)) == {}


def test_a_static_relation_is_never_behind():
    assert late({"rates": row("rates", INFINITE, at=0, chronon=1)}, ALL) == {}


def test_there_is_news_until_it_was_told():
    watched = Watched("/data", queries=QUERIES, limits={"orders": 60 * SECOND})
    head = {"orders": row("orders", NOW - 61 * SECOND, chronon=1)}
    told = {"lag orders": Incident("lag orders", "..", NOW), "failed shop__orders": Incident("failed", "..", NOW)}
    assert news(watched, head, ALL, {}, NOW) == {"opened": {"orders": NOW - 61 * SECOND}, "closed": {}}
    assert news(watched, head, ALL, told, NOW) == {}
    head = {"orders": row("orders", NOW, chronon=1)}
    assert news(watched, head, ALL, told, NOW) == {"opened": {}, "closed": {"orders": NOW}}
    # the limit was taken out of the files
    assert news(Watched("/data"), head, ALL, told, NOW) == {"opened": {}, "closed": {"orders": NOW}}


def test_a_clock_that_jumps_alerts_by_its_own_time_and_ends_no_incident():
    watched = Watched("/data", queries=QUERIES, limits={"orders": 60 * SECOND})
    head, day = {"orders": row("orders", NOW - 61 * SECOND, chronon=1)}, 86_400 * SECOND
    told = {"lag orders": Incident("lag orders", "..", NOW)}
    assert news(watched, head, ALL, told, NOW - 3600 * SECOND) == {}  # back: nobody knows how far behind it is
    assert news(watched, head, ALL, {}, NOW - 3600 * SECOND) == {}
    assert news(watched, head, ALL, told, NOW + SECOND) == {}
    fresh = {"orders": row("orders", NOW, chronon=1)}
    assert news(watched, fresh, ALL, {}, NOW + day) == {"opened": {"orders": NOW}, "closed": {}}
    ahead = {"lag orders": Incident("lag orders", "..", NOW + day)}
    assert news(watched, fresh, ALL, ahead, NOW + SECOND) == {"opened": {}, "closed": {"orders": NOW + day}}
