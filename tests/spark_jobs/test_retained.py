"""RETAIN: what may go of a stream, by the queries that read it; no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeparea.operators.time.ticks import INF
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.status import status
from sweeparea.spark_jobs.deployment.history_gone import HistoryGone, gone_up_to, require_history
from sweeparea.spark_jobs.orchestration.planner import plan as plan_of
from sweeparea.spark_jobs.upkeep import retained
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from tests.spark_jobs import shop

START = "START AT TIMESTAMP '2020-01-01 12:00:00' AS"
MINUTE = (
    f"CREATE CONTINUOUS QUERY q {START} SELECT shop, COUNT(*) AS n FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY shop"
)
EVER = f"CREATE CONTINUOUS QUERY q {START} SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop"
JOIN = (
    f"CREATE CONTINUOUS QUERY q {START} SELECT a.shop FROM sales [RANGE INTERVAL 5 MINUTES] AS a, sales [NOW] AS b"
    " WHERE a.shop = b.shop AND a.items < b.items"
)
HEARTBEAT, RETAIN = shop.tick(3600), 600


def application(folder: Path, clauses: str, query: str, committed: int | None) -> Application:
    stream = shop.STREAM.replace("  CONSTRAINT", f"  {clauses}\n  CONSTRAINT")
    shop.sell(folder, [(0, "a", 1.0, 1)])
    app = shop.application(folder, f"{stream}{query};")
    commit(app, "sales", NameKind.STREAM, HEARTBEAT, {})
    if committed is not None:
        commit(app, "q", NameKind.QUERY, committed, {})
    return app


def commit(app: Application, name: str, kind: NameKind, committed: int, info: dict[str, object]) -> None:
    publication = Publication(str(app.data), app.ledger, name, kind, "r1")
    publication.begin()
    publication.commit(committed, info=info)


@pytest.mark.parametrize(
    ("clauses", "query", "committed", "cut", "reason"),
    [
        # a late element at HEARTBEAT - RETAIN is repaired from a window before it
        ("RETAIN INTERVAL 10 MINUTES", MINUTE, HEARTBEAT, HEARTBEAT - RETAIN - 61 - 2, ""),
        ("RETAIN INTERVAL 10 MINUTES", MINUTE, shop.tick(100), shop.tick(101) - 61 - 2, ""),
        ("RETAIN INTERVAL 10 MINUTES", MINUTE, None, None, "q has not begun"),
        ("RETAIN INTERVAL 10 MINUTES", EVER, HEARTBEAT, HEARTBEAT - RETAIN - 1, ""),
        ("LATE REPAIR RETAIN INTERVAL 10 MINUTES", EVER, HEARTBEAT, None, "q repairs late elements from START on"),
        ("RETAIN INTERVAL 10 MINUTES ON SOURCE CHANGE CORRECT", EVER, HEARTBEAT, None, "q repairs late elements"),
        ("RETAIN INTERVAL 30 SECONDS", JOIN, HEARTBEAT, HEARTBEAT - 30 - 301 - 2, ""),
        (
            "DEDUPLICATE BY shop WITHIN INTERVAL 15 MINUTES RETAIN INTERVAL 10 MINUTES",
            EVER,
            HEARTBEAT,
            HEARTBEAT - RETAIN - 900 - 1,
            "",
        ),
    ],
)
def test_rows_that_retain_lets_go(
    tmp_path: Path, clauses: str, query: str, committed: int | None, cut: int | None, reason: str
):
    found = retained.outlook(application(tmp_path, clauses, query, committed), "sales")
    assert found is not None
    assert (found.cut, bool(found.reasons)) == (cut, bool(reason))
    assert reason in " ".join(found.reasons)
    if cut is not None:
        assert found.repairs_from == (INF if query == EVER else HEARTBEAT - (30 if query == JOIN else RETAIN))


def test_nothing_is_said_of_a_stream_without_the_clause(tmp_path: Path):
    assert retained.outlook(application(tmp_path, "LATE REJECT", MINUTE, HEARTBEAT), "sales") is None


def test_what_reads_from_before_is_refused(tmp_path: Path):
    app = application(tmp_path, "RETAIN INTERVAL 10 MINUTES", JOIN, HEARTBEAT)
    commit(app, "sales", NameKind.STREAM, HEARTBEAT, {"retained": shop.tick(100)})
    plan = app.plans.plan("q")
    require_history(app, plan, shop.tick(100 + 301 + 1))
    with pytest.raises(HistoryGone, match=r"from 2020-01-01 12:01:40 on, but .* up to 2020-01-01 12:01:40"):
        require_history(app, plan, shop.tick(100 + 301))
    assert gone_up_to(app, plan) == shop.tick(100)


def test_a_plan_tells_what_cannot_be_computed_any_more(tmp_path: Path):
    app = application(tmp_path, "RETAIN INTERVAL 10 MINUTES", MINUTE, None)
    commit(app, "sales", NameKind.STREAM, HEARTBEAT, {"retained": shop.tick(-1)})
    assert plan_of(app).problems == ()
    commit(app, "sales", NameKind.STREAM, HEARTBEAT, {"retained": shop.tick(0), "source_version": 0})
    (problem,) = plan_of(app).problems
    assert "shop.cql:" in str(problem)
    told = "q would have to be computed from 2020-01-01 12:00:00 on, but elements of sales up to"
    assert told in str(problem)
    # status says so as well, of a query that never ran; one that goes on from where it is needs nothing of it
    assert f"q: not processed yet; cannot run: {told}" in status(app)
    commit(app, "q", NameKind.QUERY, shop.tick(100), {})
    assert "q: committed up to 2020-01-01 12:01:40; ready up to 2020-01-01 13:00:00" in status(app)
