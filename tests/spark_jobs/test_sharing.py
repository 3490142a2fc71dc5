"""Subplans shared between queries: their own tables, the same answers, and what plan, apply, drop and explain say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra import environments
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.cli import main
from sweeparea.spark_jobs.commands.sql import Reader
from sweeparea.spark_jobs.commands.status import status
from sweeparea.spark_jobs.orchestration.apply import apply
from sweeparea.spark_jobs.orchestration.deployment_plan import text
from sweeparea.spark_jobs.orchestration.drop import drop
from sweeparea.spark_jobs.orchestration.explaining import explained
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.orchestration.steps import Action
from sweeparea.tables.errors import LostRace
from tests.spark_jobs import shop

START = "START AT TIMESTAMP '2020-01-01 00:00:00'"
SUMS = "SELECT shop, SUM(amount) AS amount, COUNT(*) AS n FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY shop"
PAIRS = (
    "SELECT a.shop, a.items AS one, b.items AS other FROM sales [RANGE INTERVAL 40 SECONDS] AS a,"
    " sales [ROWS 3] AS b WHERE a.shop = b.shop"
)
QUERIES = {
    "rich": f"SELECT shop, amount, n FROM ({SUMS}) WHERE amount > 0.4",
    "poor": f"SELECT n, amount, shop AS at_shop FROM ({SUMS}) WHERE amount < 0.4",
    "best": f"SELECT MAX(amount) AS amount, MAX(n) AS n, MIN(shop) AS shop FROM ({SUMS})",
    "news": f"ISTREAM (SELECT shop, amount, n FROM ({SUMS}) WHERE n > 1)",
    "pairs": f"SELECT shop, one + other AS items FROM ({PAIRS})",
    "pairs_of": f"SELECT shop, COUNT(*) AS n, MAX(one) AS one, MAX(other) AS other FROM ({PAIRS}) GROUP BY shop",
}
ON = "share_subplans = true\n"


def texts(names: dict[str, str] | list[str], start: str = START) -> str:
    return shop.STREAM + "".join(f"CREATE CONTINUOUS QUERY {n} {start} AS\n{QUERIES[n]};\n" for n in names)


def opened(folder: Path, declarations: str | None = None, share: bool | None = None) -> Application:
    if declarations is not None:
        (folder / "shop" / "shop.cql").write_text(declarations)
    if share is not None:
        (folder / "shop" / environments.FILE).write_text(ON if share else "share_subplans = false\n")
    return Application.open(folder / "shop", folder / "data", lenient=True)


def applied(app: Application, prune: bool = False) -> list[str]:
    lines: list[str] = []
    apply(app, plan(app, prune), lines.append)
    return lines


@pytest.fixture
def sold(tmp_path, monkeypatch):
    monkeypatch.delenv(environments.VARIABLE, raising=False)
    shop.application(tmp_path, texts(QUERIES))
    for day in shop.DAYS:
        shop.sell(tmp_path, day)
    return tmp_path


def hidden(app: Application) -> set[str]:
    return {name for name in app.registry.deployed.rows() if is_hidden(name)}


def results(app: Application) -> dict[str, list[tuple]]:
    return {name: shop.contents(app, name) for name in app.catalog.queries}


# -- without Spark -----------------------------------------------------------------------------------------------------


def test_sharing_is_off_by_default(sold):
    applied(opened(sold))
    assert not hidden(opened(sold))


def test_what_is_shared_is_registered_shown_and_dropped_with_its_last_reader(sold, capsys):
    app = opened(sold, texts(["rich", "poor", "pairs"]), share=True)
    shown = text(plan(app))
    (name,) = app.plans.hidden("rich")
    assert app.plans.hidden("poor") == (name,)
    assert app.plans.hidden("pairs") == ()
    assert f"{name} a subplan of rich, poor" in " ".join(shown.split())
    assert shown.endswith(f"In this order: sales, {name}, rich, poor, pairs")
    assert applied(app)[-1] == f"{name}: registered"
    app = opened(sold)
    assert "Nothing to apply." in text(plan(app))
    row = app.registry.deployed.rows()[name]
    assert (row.kind, row.depends_on) == ("shared", ("sales",))
    assert f"CREATE CONTINUOUS QUERY {name}" in row.definition
    told = explained(app, "rich")
    assert f"{name}: Project" not in told
    assert "Shared with other queries" in told
    assert "over sales; with poor." in told
    assert "read by rich, poor" in explained(app, name)
    assert name not in status(app)
    assert f"{name}: not processed yet" in status(app, hidden=True)
    assert main(["explain", str(sold / "shop"), name, "--data", str(sold / "data")]) == 0
    assert "Aggregate" in capsys.readouterr().out
    for kind in (None, "query"):
        with pytest.raises(SweepAreaError, match="a hidden subplan that queries share, and is read by poor, rich"):
            drop(app, name, kind)
    drop(app, "rich")
    assert hidden(opened(sold)) == {name}
    assert f"{name}: no longer deployed" in drop(opened(sold), "poor")
    assert not hidden(opened(sold))


def test_what_files_no_longer_declare_keeps_what_it_shares_until_it_is_pruned(sold):
    applied(opened(sold, texts(["rich", "poor"]), share=True))
    app = opened(sold, shop.STREAM)
    assert {s.action for s in plan(app).steps} == {Action.NOTHING, Action.KEEP}
    (name,) = hidden(app)
    assert "Declare its readers again" in status(app, hidden=True)
    assert f"{name}: no longer deployed" in applied(app, prune=True)
    assert [*app.registry.deployed.rows()] == ["sales"]


def test_what_was_registered_and_never_run_may_share_or_not_as_the_setting_says(sold):
    applied(opened(sold, texts(["rich", "poor"])))
    app = opened(sold, share=True)
    assert "nothing was computed yet, and it shares other subplans now" in text(plan(app))
    applied(app)
    assert len(hidden(app)) == 1
    assert not plan(opened(sold)).changes
    applied(opened(sold, share=False))
    assert not hidden(opened(sold))
    assert not plan(opened(sold)).changes


def test_only_equal_starts_share(sold):
    other = texts(["poor"], "START AT TIMESTAMP '2020-01-01 12:00:10'").removeprefix(shop.STREAM)
    app = opened(sold, texts(["rich"]) + other, share=True)
    assert app.plans.hidden("rich") == app.plans.hidden("poor") == ()
    both = "".join(
        f"CREATE CONTINUOUS QUERY {n}{i} START AT TIMESTAMP '2020-01-01 12:00:{i}0' AS {QUERIES[n]};"
        for i in (1, 2)
        for n in ("rich", "poor")
    )
    app = opened(sold, shop.STREAM + both)
    assert (
        app.plans.hidden("rich1") == app.plans.hidden("poor1") != app.plans.hidden("rich2") == app.plans.hidden("poor2")
    )
    assert app.plans.plan(app.plans.hidden("rich1")[0]).start == app.plans.plan("rich1").start


def test_a_hidden_query_is_the_same_whoever_it_is_made_from(sold):
    app = opened(sold, texts(QUERIES), share=True)
    (name,) = app.plans.hidden("rich")
    made = app.plans.plan(name)
    for other in ("poor", "best"):
        app = opened(sold, texts([other, "news"]))
        assert app.plans.hidden(other) == (name,)
        assert app.plans.plan(name).root == made.root


def test_an_unreadable_switch_is_told(sold):
    for wrong in ("share_subplans = 'yes'", "[dev]\nshare_subplans = 1", "share_subplan = true"):
        (sold / "shop" / environments.FILE).write_text(wrong)
        with pytest.raises(SweepAreaError, match="share_subplan"):
            Application.open(sold / "shop", sold / "data", env="dev" if "dev" in wrong else None)
    (sold / "shop" / environments.FILE).write_text(f"{ON}[dev]\nshare_subplans = false\n[prod]\ndata = '../p'\n")
    app = [Application.open(sold / "shop", env=e) for e in ("dev", "prod")]
    assert [a.catalog.environment.share_subplans for a in app] == [False, True]


def test_a_users_name_is_no_hidden_one(sold):
    app = opened(sold, texts([]) + "CREATE CONTINUOUS QUERY shared_0123456789ab AS SELECT shop FROM sales;")
    assert "looks like the name of a shared subplan" in str(plan(app).problems[0])


# -- with Spark --------------------------------------------------------------------------------------------------------


def ran(folder: Path, names: list[str], share: bool, mode: str, spark) -> dict[str, list[tuple]]:
    shop.application(folder, texts(names))
    for day in shop.DAYS:
        shop.sell(folder, day)
    app = opened(folder, share=share)
    admit(app, "sales", spark)
    cuts = [shop.tick(s) for s in (5, 31, 66, 100)] if mode == "cut" else None
    if mode == "apart":
        for seconds, name in zip((40, 90, 20), names, strict=False):
            process(app, name, spark, until=shop.tick(seconds))
    for name in names:
        process(app, name, spark, cuts=cuts)
    assert bool(hidden(app)) == share
    reader = Reader(app)
    assert not any(is_hidden(name) for name in reader.names())
    for name in hidden(app):
        assert app.ledger.head()[name].committed == app.ledger.head()[names[0]].committed
    found = results(app)
    assert all(found.values())
    return found


@pytest.mark.spark
def test_results_are_the_same_with_sharing_and_without(spark, tmp_path):
    apart = ran(tmp_path / "apart", ["rich", "best"], False, "whole", spark)
    assert ran(tmp_path / "shared", ["rich", "best"], True, "apart", spark) == apart


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["whole", "cut", "apart"])
def test_results_are_the_same_however_they_are_cut(spark, tmp_path, mode):
    apart = ran(tmp_path / "apart", list(QUERIES), False, "whole", spark)
    assert ran(tmp_path / "shared", list(QUERIES), True, mode, spark) == apart


@pytest.mark.spark
def test_switching_on_and_off_and_replacing(spark, sold):
    """A running query keeps what it was registered with; what is computed anew is planned anew."""
    app = opened(sold, texts(["rich", "best"]))
    admit(app, "sales", spark)
    process(app, "rich", spark)
    before = shop.contents(app, "rich")
    app = opened(sold, texts(["rich", "best", "poor"]), share=True)
    shown = plan(app)
    assert not app.plans.hidden("rich")
    assert {s.name: s.action for s in shown.steps if s.name in ("rich", "best")} == {
        "rich": Action.NOTHING,
        "best": Action.REGISTER,
    }
    assert "share_subplans is on, but rich goes on as registered" in text(shown)
    applied(app)
    app = opened(sold)
    (name,) = app.plans.hidden("best")
    assert app.plans.hidden("poor") == (name,)
    for query in app.catalog.queries:
        process(app, query, spark)
    assert shop.contents(app, "rich") == before
    drop(app, "rich")
    app = opened(sold)
    assert app.plans.hidden("rich") == (name,)  # it joins those that run
    process(app, "rich", spark)
    assert shop.contents(app, "rich") == before
    seq = app.ledger.head()[name].seq

    # one reader is replaced by another definition: the others keep theirs
    changed = texts(["rich", "best", "poor"]).replace("amount > 0.4", "amount > 0.5")
    app = opened(sold, changed.replace("CREATE CONTINUOUS QUERY rich", "CREATE OR REPLACE CONTINUOUS QUERY rich"))
    assert {s.name: s.action for s in plan(app).steps}[name] is Action.NOTHING
    applied(app)
    assert app.plans.hidden("rich") == (name,)
    assert app.ledger.head()[name].seq == seq

    # off: those that run go on sharing, and say so
    app = opened(sold, share=False)
    assert "share_subplans is off, but best, poor go on sharing as registered" in text(plan(app))
    process(app, "best", spark)
    assert app.plans.hidden("rich") == (name,)

    # a replaced stream: all are computed anew, and now apart
    app = opened(sold, changed.replace("CREATE STREAM", "CREATE OR REPLACE STREAM").replace("10 SECONDS", "20 SECONDS"))
    shown = {s.name: s.action for s in plan(app).steps}
    assert shown == {
        "sales": Action.REBUILD,
        "rich": Action.UPDATE,
        "best": Action.REBUILD,
        "poor": Action.REBUILD,
        name: Action.DROP,
    }
    applied(app)
    assert not hidden(app)
    admit(app, "sales", spark)
    for query in app.catalog.queries:
        process(app, query, spark)
    assert not plan(opened(sold)).changes


@pytest.mark.spark
def test_a_faster_reader_does_not_fail_a_slower_one(spark, sold, monkeypatch):
    app = opened(sold, texts(["rich", "poor"]), share=True)
    admit(app, "sales", spark)
    (name,) = app.plans.hidden("rich")
    from sweeparea.spark_jobs.orchestration import process as module

    real, lost = module.Slice.run, []

    def run(self):
        if self.plan.name == name and not lost:
            lost.append(name)
            other = opened(sold)
            process(other, "poor", spark)
            raise LostRace("another run was faster")
        return real(self)

    monkeypatch.setattr(module.Slice, "run", run)
    process(app, "rich", spark)
    assert lost == [name]
    assert app.ledger.head()["rich"].committed == app.ledger.head()["poor"].committed


@pytest.mark.spark
def test_a_lost_subplan_is_told_of_its_readers_and_rebuilt_before_them(spark, sold, capsys):
    app = opened(sold, texts(["rich", "best"]), share=True)
    applied(app)
    admit(app, "sales", spark)
    for query in app.catalog.queries:
        process(app, query, spark)
    [shared] = hidden(app)
    before = results(app)
    for lost in (f"results/{shared}", f"state/{shared}", "state/best"):
        shutil.rmtree(app.layout.absolute(lost))
    lines = {line.strip().split(":")[0]: line for line in status(app).splitlines()}
    for query in ("rich", "best"):
        assert f"results/{shared}: the table is missing" in lines[query]
    assert main(["check", str(app.folder), "--data", str(app.data), "--rebuild"]) == 0
    rebuilt = [line.split(":")[0] for line in capsys.readouterr().out.splitlines() if "is computed again" in line]
    assert rebuilt == [shared, "best"]
    assert results(app) == before
