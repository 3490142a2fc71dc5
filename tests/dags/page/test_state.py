"""What the overview says of streams and queries, from ledger rows and looks alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sweeparea.dags.model import ApplicationDags, Query, Source
from sweeparea.dags.page.commits import PastCommit, slices, trend
from sweeparea.dags.page.holding import words_of_length
from sweeparea.dags.page.looks import Look, Looks
from sweeparea.dags.page.state import Facts, Overview, overview
from sweeparea.heartbeats.policies import MAX_TICK
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.incidents import Incident
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind

MINUTE = 60_000_000
NOW = 1_000 * MINUTE
DAY = __import__("datetime").timedelta(days=1)
DAGS = ApplicationDags(
    "shop",
    "/nowhere",
    {
        "orders": Source("orders", NameKind.STREAM, False, "source/orders", "..", "shop.cql:1"),
        "clicks": Source("clicks", NameKind.STREAM, False, "source/clicks", "..", "shop.cql:2"),
        "products": Source("products", NameKind.RELATION, True, "source/products", "..", "shop.cql:3"),
    },
    {
        "sales": Query("sales", ("orders", "products"), DAY, "..", "shop.cql:5"),
        "both": Query("both", ("sales", "clicks"), DAY, "..", "shop.cql:6"),
    },
)


def row(name: str, kind: NameKind, committed: int | None, pins: Any = None, **info: Any) -> LedgerRow:
    return LedgerRow(name, kind, "r", 3, committed, "a", pins or {}, {}, {"chronon": MINUTE, **info}, NOW)


HEAD = {
    "orders": row("orders", NameKind.STREAM, 990, source_version=4, totals={"late": 2}),
    "clicks": row("clicks", NameKind.STREAM, 900, source_version=1),
    "products": LedgerRow("products", NameKind.RELATION, "r", 1, MAX_TICK, "a", info={"source_version": 0}, at=NOW),
    "sales": row("sales", NameKind.QUERY, 990, {"orders": {"seq": 3}}),
    "both": row("both", NameKind.QUERY, 900, {"sales": {"seq": 3}, "clicks": {"seq": 3}}),
}
DEPLOYED = {name: DeployedRow(name, r.kind, "..", "f", "r", deployed_at=NOW - 9 * MINUTE) for name, r in HEAD.items()}
LOOKS = {"orders": Look(newest=4, admitted=70, kept_out=5), "clicks": Look(newest=1)}
FACTS = Facts(DAGS, HEAD, DEPLOYED, {}, LOOKS, {}, NOW)


def changed(name: str, **how: Any) -> Facts:
    return replace(FACTS, head={**HEAD, name: replace(HEAD[name], **how)})


def kinds(facts: Facts, name: str) -> list[str]:
    found = Overview(facts)
    shown = found.query(name) if name in DAGS.queries else found.stream(name)
    return [state["kind"] for state in shown["states"]]


def test_who_is_well_says_what_it_waits_for():
    found = Overview(FACTS)
    assert [state["kind"] for state in found.query("both")["states"]] == ["current"]
    said = found.held_back("both")
    assert said[0].startswith("both is up to date and waits for clicks, known up to 1970-01-01 15:00:00 UTC; its other")
    assert "are 1.5 h further" in said[0]
    assert said[1].startswith("Stream clicks has admitted all of its source (version 1")
    assert found.query("both")["lag"]["ms"] == 100 * 60_000
    assert found.query("both")["behind"]["ms"] == 0
    assert found.stream("products")["lag"] is None
    assert kinds(FACTS, "products") == ["static"]
    orders = found.stream("orders")
    assert (orders["late"], orders["quarantined"], orders["admitted"], orders["newest"]) == (2, 5, 70, 4)


@pytest.mark.parametrize(
    ("facts", "name", "wanted"),
    [
        (replace(FACTS, head={k: v for k, v in HEAD.items() if k != "sales"}), "sales", ["never", "behind"]),
        (replace(FACTS, head={}), "sales", ["never", "waiting"]),
        (replace(FACTS, head={}), "orders", ["never"]),
        (changed("orders", committed=995), "sales", ["behind"]),
        (changed("orders", info={**HEAD["orders"].info, "correction_seq": 9}), "sales", ["repairing"]),
        (
            changed("sales", info={"verdicts": [{"warnings": {"n": 2}}], "chronon": MINUTE}),
            "sales",
            ["warned", "current"],
        ),
        (replace(FACTS, deployed={"sales": replace(DEPLOYED["sales"], paused=True)}), "sales", ["paused", "current"]),
        (replace(FACTS, looks={"sales": Look(refused="changed")}), "sales", ["stands_still", "current"]),
        (replace(FACTS, looks={"sales": Look(wrong=("it is missing",))}), "sales", ["wrong", "current"]),
        (replace(FACTS, looks={"orders": Look(newest=6)}), "orders", ["behind"]),
        (replace(FACTS, looks={"orders": Look(lost="goes no further: gone")}), "orders", ["lost"]),
        (replace(FACTS, incidents={"lag sales": Incident("lag sales", "late", NOW)}), "sales", ["incident", "current"]),
        (
            replace(FACTS, incidents={"failed shop__sales": Incident("failed shop__sales", "no", NOW)}),
            "sales",
            ["incident", "current"],
        ),
        (changed("clicks", committed=None), "both", ["waiting"]),
        (changed("clicks", committed=None), "clicks", ["waiting"]),
    ],
)
def test_true_states(facts: Facts, name: str, wanted: list[str]):
    assert kinds(facts, name) == wanted


def test_only_what_is_allowed_is_told():
    found = overview(FACTS, {"shop__sales", "shop__admit_clicks"})
    assert [one["name"] for one in (*found["streams"], *found["queries"])] == ["clicks", "sales"]


def test_bigint_time_has_no_clock():
    head = {name: replace(r, info={**r.info, "chronon": 0}) for name, r in HEAD.items()}
    sales = Overview(replace(FACTS, head=head)).query("sales")
    assert sales["committed"] == {"tick": "990"}
    assert sales["lag"]["since_commit"]
    assert sales["behind"] == {"ticks": "0"}


@pytest.mark.parametrize(
    ("lags", "word"),
    [([1, 2, 3], ""), ([5] * 8, "steady"), ([1, 5, 9, 13, 17, 21], "growing"), ([60, 50, 40, 30, 20, 10], "shrinking")],
)
def test_a_trend_is_told_against_the_time_that_passed(lags: list[int], word: str):
    commits = [PastCommit(i, 100 + 10 * i - lag, (100 + 10 * i) * MINUTE) for i, lag in enumerate(lags)]
    assert trend(commits, MINUTE)["word"] == word
    assert [lag for _, lag in trend(commits, MINUTE)["points"]] == [lag * 60_000 for lag in lags]
    assert trend(commits, 0)["points"] == []


def test_a_slice_is_told_with_its_phases():
    info = {"h0": 1, "seconds": {"plan": 0.5, "compute": 1.0}, "rows": {"open": 2}, "state_rows": {"a": 3, "b": 4}}
    (found,) = slices([row("sales", NameKind.QUERY, 5, **info)], MINUTE)
    assert (found["total"], found["state_rows"], found["from"]["ms"], found["to"]["tick"]) == (1.5, 7, 60_000, "5")


def test_names_take_turns_within_a_budget(monkeypatch: pytest.MonkeyPatch):
    clock = iter(range(10_000))
    seen: list[str] = []
    monkeypatch.setattr(
        "sweeparea.dags.page.looks.look", lambda application, name, row, is_input: seen.append(name) or Look()
    )
    looks = Looks(clock=lambda: next(clock) / 10)
    names = [f"q{i}" for i in range(30)]
    application: Any = SimpleNamespace()
    for _ in range(20):
        found = looks(application, [], names, {}, budget=0.5)
    assert set(found) == set(names)
    assert sorted(seen[:30]) == sorted(names)  # everybody once before anybody twice
    assert set(looks(application, [], ["q1"], {})) == {"q1"}


def test_lengths_are_said_as_people_do():
    said = [words_of_length(n, MINUTE) for n in (0, 1, 2, 90, 60 * 30, 60 * 50)]
    assert said == ["0 s", "1 min", "2 min", "1.5 h", "30 h", "2.08 days"]
    assert words_of_length(1, 0) == "1 tick"
