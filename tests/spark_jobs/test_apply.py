"""Plan and apply, what is deployed, the acting statements: over real Delta tables, without Spark.

Where a name must have run, its commit is made by hand, as a slice would make it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from sweeparea.infra import environments
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan_identity import state_identity
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.cli import main
from sweeparea.spark_jobs.commands.commands import StatementSession
from sweeparea.spark_jobs.commands.status import status
from sweeparea.spark_jobs.deployment.changed_definition import ChangedDefinition
from sweeparea.spark_jobs.orchestration.apply import NotApplied, apply
from sweeparea.spark_jobs.orchestration.deployment_plan import text
from sweeparea.spark_jobs.orchestration.drop import NotDropped, drop
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.steps import Action
from sweeparea.tables.errors import LostRace
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.deployed import Deployed
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from tests.spark_jobs import shop

READER = "CREATE CONTINUOUS QUERY busiest AS SELECT MAX(n) AS n FROM turnover;\n"
ALL = shop.STREAM + shop.QUERY + READER
CHANGED = ALL.replace("60 SECONDS", "30 SECONDS")
REPLACING = CHANGED.replace("CREATE CONTINUOUS QUERY turnover", "CREATE OR REPLACE CONTINUOUS QUERY turnover")


@pytest.fixture
def sold(tmp_path, monkeypatch):
    monkeypatch.delenv(environments.VARIABLE, raising=False)
    shop.application(tmp_path, ALL)
    shop.sell(tmp_path, shop.DAYS[0])
    return tmp_path


def opened(folder: Path, declarations: str | None = None) -> Application:
    if declarations is not None:
        (folder / "shop" / "shop.cql").write_text(declarations)
    return Application.open(folder / "shop", folder / "data", lenient=True)


def ran(app: Application, *names: str, rows: int = 3) -> None:
    """One commit of each name, as a job makes it."""
    for name in names:
        kind = NameKind.QUERY if name in app.catalog.queries else NameKind.STREAM
        row = app.ledger.head().get(name)
        publication = Publication(str(app.data), app.ledger, name, kind, app.registry.registration(name, row))
        attempt = publication.begin()
        info = {"definition": app.registry.fingerprint(name), "source_version": 0, "chronon": 1_000_000}
        path = app.layout.result(name) if kind is NameKind.QUERY else app.layout.admitted(name)
        if kind == "query":
            info |= {"plan": state_identity(app.plans.plan(name)), "state_rows": {"aggregate2": 1, "materialize": 1}}
            record = [(c.label, pa.int64()) for c in app.plans.plan(name).root.columns]
            instants = [(c, pa.timestamp("us", "UTC")) for c in ("valid_from", "valid_to")]
            schema = pa.schema([*record, *instants])
        else:
            schema = pa.schema([*shop.SCHEMA, *((c, pa.int64()) for c in ("__tick", "__seq", "__n"))])
        DeltaLog(path).create(schema, name=name, description="made by hand")
        table = pa.Table.from_pylist([{}] * rows, schema=schema)
        publication.stage(path, adds=[write_file(table, path, attempt, "rows")])
        publication.commit(committed=shop.tick(60), info=info)


def actions(app: Application, prune: bool = False) -> dict[str, Action]:
    return {step.name: step.action for step in plan(app, prune).steps}


def applied(app: Application, prune: bool = False) -> list[str]:
    lines: list[str] = []
    apply(app, plan(app, prune), lines.append)
    return lines


# -- registering -------------------------------------------------------------------------------------------------------


def test_the_first_plan_registers_everything_in_order(sold):
    app = opened(sold)
    assert text(plan(app)) == (
        f"Plan for shop, data in {sold}/data\n"
        "\n"
        "Added\n"
        "  stream sales    up to 4 rows to read\n"
        "  query turnover  up to 4 rows to read\n"
        "  query busiest\n"
        "\n"
        "In this order: sales, turnover, busiest"
    )
    assert not app.registry.deployed.rows()  # a plan changes nothing
    assert applied(app) == ["sales: registered", "turnover: registered", "busiest: registered"]
    rows = app.registry.deployed.rows()
    assert {name: (row.kind, row.depends_on) for name, row in rows.items()} == {
        "sales": ("stream", ()),
        "turnover": ("query", ("sales",)),
        "busiest": ("query", ("turnover",)),
    }
    assert rows["busiest"].definition == "CREATE CONTINUOUS QUERY busiest\nAS\nSELECT MAX(n) AS n\nFROM turnover"
    assert not rows["busiest"].paused


def test_registering_again_changes_nothing(sold):
    applied(opened(sold))
    before = Deployed(str(sold / "data")).rows()
    spelt = ALL.replace("SELECT shop,", "select /* each */ shop,").replace("GROUP BY", "group   by")
    app = opened(sold, spelt)
    assert text(plan(app)) == (
        f"Plan for shop, data in {sold}/data\n\nUnchanged: sales, turnover, busiest\n\nNothing to apply."
    )
    assert applied(app) == []
    assert app.registry.registration("turnover", None) == before["turnover"].registration
    assert Deployed(str(sold / "data")).rows() == before


def test_a_job_registers_what_it_needs(sold):
    app = opened(sold)
    first = app.registry.registration("turnover", None)
    assert [*app.registry.deployed.rows()] == ["turnover"]
    assert opened(sold).registry.registration("turnover", None) == first
    assert actions(opened(sold)) == {
        "sales": Action.REGISTER, "turnover": Action.NOTHING, "busiest": Action.REGISTER
    }  # fmt: skip


def test_tables_from_before_are_adopted_if_their_text_is_the_same(sold):
    app = opened(sold)
    ran(app, "sales", "turnover")
    shutil.rmtree(app.layout.deployed)
    row = app.ledger.head()["turnover"]
    assert opened(sold).registry.registration("turnover", row) == row.registration
    shutil.rmtree(app.layout.deployed)
    changed = opened(sold, CHANGED)
    with pytest.raises(ChangedDefinition, match="definition of turnover has changed since it was first run"):
        changed.registry.registration("turnover", row)
    assert actions(changed)["turnover"] is Action.REFUSE


def test_names_that_differ_in_case_are_one_name(sold):
    applied(opened(sold))
    app = opened(sold, ALL.replace("QUERY busiest", "QUERY Busiest"))
    with pytest.raises(ChangedDefinition, match="Busiest is deployed as busiest"):
        app.registry.registration("Busiest", None)
    assert "Busiest is deployed as busiest" in str(plan(app).problems[0])


# -- changed definitions -----------------------------------------------------------------------------------------------


def test_a_changed_definition_is_refused_with_the_difference(sold):
    app = opened(sold)
    ran(app, "sales", "turnover", "busiest")
    app = opened(sold, CHANGED)
    row = app.ledger.head()["turnover"]
    with pytest.raises(ChangedDefinition) as refused:
        app.registry.registration("turnover", row)
    assert str(refused.value) == (
        f"{sold}/shop/shop.cql:6:1: The definition of turnover has changed since it was deployed: window of sales"
        " [RANGE INTERVAL 60 SECONDS]"
        " became [RANGE INTERVAL 30 SECONDS]. Results of two definitions are never mixed. Either give the new"
        " definition a name of its own, or write CREATE OR REPLACE CONTINUOUS QUERY turnover and run"
        f" `{app.command('apply')}`, which computes the results of turnover and of busiest, which rests on it, anew"
        f" from START (`{app.command('plan')}` shows it beforehand); `{app.command('drop', 'turnover')}` removes its"
        " tables only.\n"
        "--- deployed\n"
        "+++ files\n"
        "@@ -3,5 +3,5 @@\n"
        "   MATERIALIZE RELATION, ISTREAM\n"
        " AS\n"
        " SELECT shop, SUM(amount) AS amount, MAX(items) AS most, COUNT(*) AS n\n"
        "-FROM sales [RANGE INTERVAL 60 SECONDS]\n"
        "+FROM sales [RANGE INTERVAL 30 SECONDS]\n"
        " GROUP BY shop"
    )
    assert refused.value.exit_code == 2
    assert f"turnover: stands still: {sold}/shop/shop.cql:6:1: The definition of turnover has changed" in status(app)
    planned = plan(app)
    assert [s.action for s in planned.steps] == [Action.NOTHING, Action.REFUSE, Action.NOTHING]
    with pytest.raises(NotApplied, match="the plan has 1 problem"):
        apply(app, planned)
    assert app.ledger.head()["turnover"] == row


def test_or_replace_rebuilds_it_and_what_rests_on_it(sold):
    app = opened(sold)
    ran(app, "sales", "turnover", "busiest")
    before = app.registry.deployed.rows()
    app = opened(sold, REPLACING)
    planned = plan(app)
    assert text(planned) == (
        f"Plan for shop, data in {sold}/data\n"
        "\n"
        "Rebuilt from START\n"
        "  query turnover  CREATE OR REPLACE; 3 rows that were computed are dropped; up to 3 rows to read\n"
        "      window of sales [RANGE INTERVAL 60 SECONDS] became [RANGE INTERVAL 30 SECONDS]\n"
        "      | --- deployed\n"
        "      | +++ files\n"
        "      | @@ -3,5 +3,5 @@\n"
        "      |    MATERIALIZE RELATION, ISTREAM\n"
        "      |  AS\n"
        "      |  SELECT shop, SUM(amount) AS amount, MAX(items) AS most, COUNT(*) AS n\n"
        "      | -FROM sales [RANGE INTERVAL 60 SECONDS]\n"
        "      | +FROM sales [RANGE INTERVAL 30 SECONDS]\n"
        "      |  GROUP BY shop\n"
        "  query busiest   reads turnover, rebuilt above; 3 rows that were computed are dropped\n"
        "\n"
        "Unchanged: sales\n"
        "\n"
        "In this order: turnover, busiest"
    )
    assert applied(app) == [
        "busiest: 3 rows dropped",
        "turnover: 3 rows dropped",
        f"turnover: registered anew; `{app.command('process', 'turnover')}`: computed anew from START",
        f"busiest: registered anew; `{app.command('process', 'busiest')}`: computed anew from START",
    ]
    assert [*app.ledger.head()] == ["sales"]
    assert not Path(app.layout.result("turnover")).exists()
    after = app.registry.deployed.rows()
    for name in ("turnover", "busiest"):
        assert after[name].registration != before[name].registration
    assert after["sales"] == before["sales"]
    app = opened(sold)  # OR REPLACE may stay in the file
    assert not plan(app).changes
    ran(app, "turnover", "busiest", rows=2)
    assert app.ledger.head()["turnover"].seq == 1
    assert DeltaLog(app.layout.result("turnover")).read().num_rows == 2
    assert not plan(opened(sold)).changes


def test_a_replaced_stream_is_admitted_anew_with_all_that_reads_it(sold):
    app = opened(sold)
    ran(app, "sales", "turnover", "busiest")
    app = opened(sold, ALL.replace("10 SECONDS", "20 SECONDS").replace("CREATE STREAM", "CREATE OR REPLACE STREAM"))
    assert actions(app) == dict.fromkeys(("sales", "turnover", "busiest"), Action.REBUILD)
    assert applied(app)[3] == f"sales: registered anew; `{app.command('admit', 'sales')}`: admitted anew"
    assert not app.ledger.head()
    assert not Path(app.layout.admitted("sales")).exists()
    assert Path(app.data, "source", "sales").exists()


def test_the_code_of_a_policy_is_part_of_its_stream(sold):
    """Of the module and of what it imports from beside it; comments do not count."""
    heartbeat = f"HEARTBEAT POLICY 'policy_{sold.name}:slow'"
    changed = ALL.replace("HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS", heartbeat)
    module, beside = sold / "shop" / f"policy_{sold.name}.py", sold / "shop" / f"lag_{sold.name}.py"
    module.write_text(f"from lag_{sold.name} import LAG\n\ndef slow(version):\n    return version.read_time - LAG\n")
    beside.write_text("LAG = 10\n")
    ran(opened(sold, changed), "sales", "turnover")
    beside.write_text("LAG = 10  # seconds\n")
    assert actions(opened(sold))["sales"] is Action.NOTHING
    beside.write_text("LAG = 20\n")
    app = opened(sold)
    shown = text(plan(app))
    assert "stream sales    changed, but not declared CREATE OR REPLACE\n      Python source of HEARTBEAT P" in shown
    with pytest.raises(ChangedDefinition, match=r"definition of sales has changed.*Python source of HEARTBEAT POLICY"):
        app.registry.registration("sales", app.ledger.head()["sales"])
    app = opened(sold, changed.replace("CREATE STREAM", "CREATE OR REPLACE STREAM"))
    assert actions(app) == {"sales": Action.REBUILD, "turnover": Action.REBUILD, "busiest": Action.REGISTER}
    applied(app)
    assert actions(opened(sold))["sales"] is Action.NOTHING


def test_dropped_duplicates_that_were_not_remembered_are_looked_for_again(sold):
    """FAIL may become CORRECT, but not where rows were dropped of which nothing is known any more."""
    changed = ALL.replace("SECONDS\n  CONSTRAINT", "SECONDS DEDUPLICATE BY shop WITHIN INTERVAL 1 SECOND\n  CONSTRAINT")
    for declared, expected in ((ALL, Action.UPDATE), (changed, Action.REFUSE)):
        folder = sold / expected.value
        shop.application(folder, declared)
        shop.sell(folder, shop.DAYS[0])
        ran(opened(folder), "sales")
        app = opened(
            folder,
            declared.replace("SECONDS\n  CON", "SECONDS ON SOURCE CHANGE CORRECT\n  CON").replace(
                "SECOND\n  CON", "SECOND ON SOURCE CHANGE CORRECT\n  CON"
            ),
        )
        assert actions(app)["sales"] is expected


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("60 SECONDS", "1 MINUTE", "window of sales [RANGE INTERVAL 60 SECONDS] became [RANGE INTERVAL 1 MINUTE]"),
        ("FROM sales [RANGE INTERVAL 60 SECONDS]", "FROM sales [RANGE INTERVAL 60 SECONDS] AS s", "FROM sales"),
        ("ISTREAM AS", "ISTREAM WITH (dag = 'one') AS", "setting dag default became 'one'"),
        ("ISTREAM AS", "ISTREAM CONSTRAINT many EXPECT (n < 9) ON VIOLATION WARN AS", "CONSTRAINT many is new: EXPECT"),
        ("MATERIALIZE RELATION, ISTREAM", "MATERIALIZE ISTREAM, RELATION", "MATERIALIZE RELATION, ISTREAM became"),
        ("SECONDS\n  CONSTRAINT", "SECONDS RETAIN INTERVAL 9 DAYS\n  CONSTRAINT", "RETAIN default became INTERVAL 9"),
        ("SECONDS\n  CONSTRAINT", "SECONDS ON SOURCE CHANGE IGNORE\n  CONSTRAINT", "ON SOURCE CHANGE default became"),
    ],
)  # fmt: skip
def test_changes_of_no_result_are_taken_over(sold, old, new, said):
    """Law S4: whatever is planned alike has the same results."""
    app = opened(sold)
    ran(app, "sales", "turnover")
    before = app.registry.deployed.rows()
    assert old in ALL
    app = opened(sold, ALL.replace(old, new))
    shown = text(plan(app), diffs=False)
    assert "Changed, without a change of results" in shown
    assert f"\n      {said}" in shown
    for name in ("sales", "turnover"):  # a job takes it over by itself
        assert app.registry.registration(name, app.ledger.head()[name]) == before[name].registration
    assert Action.UPDATE not in actions(opened(sold)).values()
    assert len(app.ledger.head()) == 2


def test_a_setting_of_the_application_counts_where_it_changes_a_plan(sold):
    ran(opened(sold), "sales", "turnover")
    app = opened(sold, "SET range_bounds = 'exclusive';" + ALL)
    with pytest.raises(ChangedDefinition, match=r"deployed: SET range_bounds = default became exclusive. Results"):
        app.registry.registration("turnover", app.ledger.head()["turnover"])
    app = opened(sold, "SET slice.max_rows = 1000;" + ALL)
    assert app.registry.registration("turnover", app.ledger.head()["turnover"])
    app = opened(sold, "SET range_bounds = 'inclusive';" + ALL)  # the default, said aloud
    assert app.registry.registration("turnover", app.ledger.head()["turnover"])


def test_what_has_computed_nothing_may_change_freely(sold):
    applied(opened(sold))
    app = opened(sold, CHANGED)
    assert "nothing was computed by the old definition yet" in text(plan(app))
    app.registry.registration("turnover", None)
    assert "30 SECONDS" in app.registry.deployed.rows()["turnover"].definition


def test_sweepareas_of_another_plan_are_not_continued(sold):
    app = opened(sold)
    ran(app, "sales", "turnover")
    bound, row = app.plans.plan("turnover"), app.ledger.head()["turnover"]
    app.registry.check_state(bound, row)
    other = replace(row, info={**row.info, "plan": "of another version"})
    with pytest.raises(ChangedDefinition, match="planned otherwise than when its SweepAreas were written"):
        app.registry.check_state(bound, other)
    app.registry.check_state(bound, replace(other, info={**other.info, "state_rows": {"materialize": 5}}))


@pytest.mark.parametrize("state", [{"aggregate2": 1, "materialize": 1}, {"materialize": 1}])
def test_another_strategy_computes_anew(sold, state):
    app = opened(sold)
    ran(app, "sales", "turnover")
    row = app.ledger.head()["turnover"]
    bound = replace(app.plans.plan("turnover"), settings=(("strategy", "negative"),))
    with pytest.raises(ChangedDefinition, match="planned otherwise"):
        app.registry.check_state(bound, replace(row, info={**row.info, "state_rows": state}))


# -- interrupted -------------------------------------------------------------------------------------------------------


def test_an_interrupted_apply_is_finished_by_the_next(sold):
    app = opened(sold)
    ran(app, "sales", "turnover", "busiest")
    app = opened(sold, REPLACING)
    # as versions before left it, killed behind this: the old ledger row and the old results are still there
    app.registry.renew("turnover", app.registry.deployed.rows()["turnover"])
    app = opened(sold)
    with pytest.raises(ChangedDefinition, match="an `apply` or `drop` was interrupted"):
        app.registry.registration("turnover", app.ledger.head()["turnover"])
    assert "was interrupted" in status(app)
    assert actions(app) == {"sales": Action.NOTHING, "turnover": Action.REBUILD, "busiest": Action.REBUILD}
    applied(app)
    assert [*app.ledger.head()] == ["sales"]


def test_an_interrupted_drop_leaves_nothing_that_could_be_continued(sold):
    app = opened(sold)
    ran(app, "sales", "turnover")
    old = app.registry.deployed.rows()["turnover"].registration
    app.ledger.forget("turnover", 1)  # killed behind this: its files and its deployed row are still there
    app = opened(sold)
    fresh = app.registry.registration("turnover", None)
    assert fresh != old
    assert not Path(app.layout.result("turnover")).exists()
    assert Path(app.layout.dropped("turnover", old), "results", "turnover").exists()
    ran(app, "turnover")
    assert app.ledger.head()["turnover"].registration == fresh


class _Struck(BaseException):
    """What a kill is to the process: nothing that it still does."""


def _points(monkeypatch: pytest.MonkeyPatch, strike: Callable[[int], None]) -> list[str]:
    """Calls ``strike`` with its number at each point at which tables are taken away; the points are collected."""
    passed: list[str] = []

    def point(name: str, place: str = "") -> None:
        passed.append(f"{name}:{place}")
        strike(len(passed))

    monkeypatch.setattr("sweeparea.spark_jobs.deployment.discard.crash_point", point)
    return passed


def _anew(folder: Path) -> str:
    """Other runs make the query anew, with five rows; returns its registration."""
    app = opened(folder)
    applied(app)
    ran(opened(folder), "turnover", rows=5)
    return app.registry.deployed.rows()["turnover"].registration


@pytest.mark.parametrize("drops", [False, True])
def test_who_is_killed_while_tables_are_taken_away_leaves_nothing_to_others(sold, monkeypatch, drops):
    app = opened(sold, ALL.replace(READER, ""))
    ran(app, "sales", "turnover")
    app = opened(sold, (ALL if drops else REPLACING).replace(READER, ""))

    def kill(number: int) -> None:
        raise _Struck

    passed = _points(monkeypatch, kill)
    with pytest.raises(_Struck):
        drop(app, "turnover") if drops else applied(app)
    assert passed
    monkeypatch.undo()
    registration = _anew(sold)
    app = opened(sold)
    assert app.ledger.head()["turnover"].registration == registration
    assert DeltaLog(app.layout.result("turnover")).read().num_rows == 5


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_who_was_suspended_while_tables_are_taken_away_takes_nothing_that_is_new(sold, monkeypatch, drops, last):
    app = opened(sold, ALL.replace(READER, ""))
    ran(app, "sales", "turnover")
    Path(app.layout.state("turnover", "aggregate2")).mkdir(parents=True)
    zombie, made = opened(sold, (ALL if drops else REPLACING).replace(READER, "")), []

    def suspend(number: int) -> None:
        if number == 1 + last:
            monkeypatch.undo()
            made.append(_anew(sold))

    _points(monkeypatch, suspend)
    with pytest.raises(LostRace, match="registered anew by another run"):
        drop(zombie, "turnover") if drops else applied(zombie)
    app = opened(sold)
    assert [app.registry.deployed.rows()["turnover"].registration] == made
    assert app.ledger.head()["turnover"].registration == made[0]
    assert DeltaLog(app.layout.result("turnover")).read().num_rows == 5


def test_a_first_run_that_is_at_work_does_not_commit_what_is_dropped(sold):
    app = opened(sold, ALL.replace(READER, ""))
    registration = app.registry.registration("turnover", None)
    publication = Publication(str(app.data), app.ledger, "turnover", NameKind.QUERY, registration)
    publication.begin()
    drop(opened(sold), "turnover")
    with pytest.raises(LostRace):
        publication.commit(committed=shop.tick(60), info={})
    app = opened(sold)
    assert "turnover" not in app.ledger.head()
    ran(app, "turnover")
    assert app.ledger.head()["turnover"].registration != registration


# -- problems ----------------------------------------------------------------------------------------------------------


def test_all_problems_are_told_at_once(sold, capsys):
    wrong = (
        ALL
        + "CREATE STREAM lost FROM DELTA 'source/lost' TIMESTAMP BY at HEARTBEAT EACH BATCH;\n"
        + "CREATE CONTINUOUS QUERY b1 AS SELECT shp FROM sales;\n"
        + "CREATE CONTINUOUS QUERY b2 AS SELECT x FROM nowhere;\n"
        + "CREATE CONTINUOUS QUERY b3 AS SELECT shop FROM salse WHERE EXISTS (SELECT 1 FROM turnovr);\n"
        + "CREATE CONTINUOUS QUERY c1 AS SELECT x FROM c2;\nCREATE CONTINUOUS QUERY c2 AS SELECT x FROM c1;\n"
    )
    app = opened(sold, wrong)
    told = "\n".join(str(p).splitlines()[0] for p in plan(app).problems)
    for what in (
        "c1 -> c2 -> c1",
        "column shp is unknown",
        "nowhere is no stream, relation or query",
        "salse is no stream, relation or query. Did you mean sales?",
        "turnovr is no stream, relation or query. Did you mean turnover?",
        "lost: The source table",
    ):
        assert what in told
    arguments = [str(sold / "shop"), "--data", str(sold / "data")]
    assert main(["plan", *arguments]) == 2
    assert main(["apply", *arguments]) == 2
    shown = capsys.readouterr()
    assert "Nothing was applied" in shown.err
    assert "nothing is applied until they are solved" in shown.out
    assert not app.registry.deployed.rows()


def test_faults_of_a_file_do_not_bring_others_by_themselves(sold):
    (sold / "shop" / "wrong.cql").write_text("CREATE STREAM t FROM DELTA 't';")
    app = opened(sold, ALL + "CREATE CONTINUOUS QUERY late AS SELECT x FROM t;")
    (problem,) = plan(app).problems
    assert "stream t has no TIMESTAMP BY" in str(problem)
    (sold / "shop" / "wrong.cql").unlink()
    (problem,) = plan(opened(sold)).problems
    assert "t is no stream, relation or query" in str(problem)


# -- removed and dropped -----------------------------------------------------------------------------------------------


def test_what_files_no_longer_declare_stays_until_pruned(sold, capsys):
    ran(opened(sold), "sales", "turnover", "busiest")
    (sold / "shop" / "shop.cql").write_text(shop.STREAM)
    arguments = [str(sold / "shop"), "--data", str(sold / "data")]
    assert main(["plan", *arguments, "--check"]) == 0
    assert (
        "Not in the files any more\n  query busiest   stays, but is not run: `apply --prune`" in capsys.readouterr().out
    )
    assert main(["plan", *arguments, "--prune", "--check"]) == 1
    assert main(["apply", *arguments, "--prune"]) == 0
    told = capsys.readouterr().out
    assert told.index("busiest: removed from the ledger") < told.index("turnover: removed from the ledger")
    app = opened(sold)
    assert [*app.ledger.head()] == [*app.registry.deployed.rows()] == ["sales"]


def test_drop_is_refused_while_others_read_it(sold):
    app = opened(sold)
    ran(app, "sales", "turnover")
    app.registry.registration("busiest", None)
    with pytest.raises(NotDropped) as refused:
        list(drop(app, "turnover"))
    assert str(refused.value).startswith(f"turnover is read by busiest ({sold}/shop/shop.cql:9:1), whose results rest")
    assert str(refused.value).endswith(f"Drop it first: {app.command('drop', 'busiest')}.")
    app = opened(sold, shop.STREAM + shop.QUERY)
    with pytest.raises(NotDropped, match=r"read by busiest \(not in the files\)"):
        list(drop(app, "turnover"))


def run(app: Application, statement: str) -> str:
    return "\n".join(StatementSession(app).run(statement))


def test_drop_lays_aside_and_purge_deletes(sold):
    app = opened(sold)
    ran(app, "sales", "turnover")
    registration = app.registry.deployed.rows()["turnover"].registration
    told = run(app, "DROP CONTINUOUS QUERY Turnover;")
    aside = Path(app.layout.dropped("turnover", registration), "results", "turnover")
    assert f"moved {app.layout.result('turnover')} to {aside}" in told
    assert "still declared at" in told
    assert DeltaLog(str(aside)).read().num_rows == 3
    ran(app, "turnover", rows=1)
    assert "removed " in run(app, "DROP CONTINUOUS QUERY turnover PURGE")
    assert not Path(app.layout.result("turnover")).exists()
    with pytest.raises(NotDropped, match=r"sales is a stream, not a continuous query. Write DROP STREAM sales"):
        run(app, "DROP CONTINUOUS QUERY sales")
    with pytest.raises(SweepAreaError, match=r"nothing named turnver.*Did you mean turnover"):
        run(app, "DROP CONTINUOUS QUERY turnver")


# -- acting statements -------------------------------------------------------------------------------------------------


def test_pause_and_resume(sold):
    app = opened(sold)
    ran(app, "sales", "turnover")
    assert run(app, "PAUSE CONTINUOUS QUERY turnover") == (
        "turnover: paused; a slice at work is still finished; busiest, reading it, waits with it"
    )
    assert run(app, "PAUSE CONTINUOUS QUERY turnover") == "turnover: is paused already"
    assert opened(sold).registry.paused("turnover")
    assert "paused" in status(opened(sold))
    app = opened(sold, ALL.replace("ISTREAM AS", "ISTREAM WITH (dag = 'one') AS"))
    applied(app)
    assert app.registry.paused("turnover")  # a change does not resume it
    assert run(app, "RESUME CONTINUOUS QUERY turnover").startswith("turnover: resumed")
    assert not opened(sold).registry.paused("turnover")
    with pytest.raises(SweepAreaError, match="sales is no continuous query"):
        run(app, "PAUSE CONTINUOUS QUERY sales")


def test_show_and_describe(sold):
    app = opened(sold)
    ran(app, "sales", "turnover")
    run(app, "PAUSE CONTINUOUS QUERY turnover")
    assert run(app, "SHOW CONTINUOUS QUERIES") == (
        "query     result      reads     committed up to      state\n"
        "--------  ----------  --------  -------------------  ----------------\n"
        "turnover  a relation  sales     2020-01-01 12:01:00  paused\n"
        "busiest   a relation  turnover  not yet              not deployed yet\n"
        "(2 rows)"
    )
    shown = run(app, "SHOW STREAMS; SHOW RELATIONS").splitlines()
    assert shown[2].split() == ["sales", f"{sold}/data/source/sales", "2020-01-01", "12:01:00", "turnover"]
    assert shown[-1] == "(0 rows)"
    described = run(app, "DESCRIBE sales")
    assert described.startswith("column  type\n------  ---------\nat      timestamp\nshop    string\n")
    assert "time         TIMESTAMP, chronon 1 second, by at\nheartbeat    2020-01-01 12:01:00\n" in described
    assert "read by      turnover" in described
    described = run(app, "DESCRIBE busiest")
    assert "valid_to    timestamp" in described
    assert "reads            turnover\nstart            1970-01-01 00:00:00\ntables           busiest\n" in described
    with pytest.raises(SweepAreaError, match=r"nothing named sale.*Did you mean sales"):
        run(app, "DESCRIBE sale")


def test_explain_and_set_for_a_session(sold):
    session = StatementSession(opened(sold))
    assert "Range 1 minute Inclusive" in "\n".join(session.run("EXPLAIN CONTINUOUS QUERY turnover"))
    told = "\n".join(session.run("SET range_bounds = 'exclusive'; EXPLAIN SELECT shop FROM sales [RANGE 60 seconds]"))
    assert "in this session" in told
    assert "Range 1 minute Exclusive" in told
    with pytest.raises(SweepAreaError, match="range_bounds is inclusive or exclusive"):
        list(session.run("SET range_bounds = 'exclusiv'"))


def test_what_run_refuses(sold, capsys):
    (sold / "shop" / "planes.cql").write_text("CREATE RELATION planes FROM DELTA 'source/sales' CHANGE DATA FEED;")
    app = opened(sold)
    with pytest.raises(SweepAreaError, match=r"planes is not static: it follows its source by itself"):
        run(app, "REFRESH RELATION planes")
    with pytest.raises(SweepAreaError, match=r"CREATE of x belongs into a .cql file"):
        run(app, "CREATE CONTINUOUS QUERY x AS SELECT shop FROM sales")
    arguments = [str(sold / "shop"), "--data", str(sold / "data")]
    assert main(["run", *arguments, "-c", "SHW STREAMS"]) == 2
    assert "Did you mean SHOW" in capsys.readouterr().err
    assert main(["run", *arguments, "-c", "SHOW STREAMS"]) == 0


# -- environments ------------------------------------------------------------------------------------------------------

TOML = """
[dev]
data = "../dev"
[dev.sources]
sales = "{sold}/data/source/sales"
[dev.settings]
range_bounds = "exclusive"
[prod]
data = "../data"
"""


def test_dev_and_prod_are_two_applications_over_the_same_files(sold, monkeypatch):
    folder = sold / "shop"
    (folder / environments.FILE).write_text(TOML.format(sold=sold))
    dev, prod = Application.open(folder, env="dev"), Application.open(folder, env="prod")
    assert (dev.name, dev.data, prod.data) == ("shop@dev", sold / "dev", sold / "data")
    applied(dev)
    applied(prod)
    assert dev.registry.deployed.rows()["sales"].settings == {"source": f"{sold}/data/source/sales"}
    assert prod.registry.deployed.rows()["sales"].settings == {}
    assert "Range 1 minute Exclusive" in run(dev, "EXPLAIN CONTINUOUS QUERY turnover")
    assert "Range 1 minute Inclusive" in run(prod, "EXPLAIN CONTINUOUS QUERY turnover")
    monkeypatch.setenv(environments.VARIABLE, "prod")
    assert Application.open(folder).data == sold / "data"
    assert Application.open(folder, sold / "else").data == sold / "else"
    ran(Application.open(folder, env="dev"), "sales")
    (folder / environments.FILE).write_text(TOML.format(sold=f"{sold}/."))
    moved = Application.open(folder, env="dev")
    with pytest.raises(ChangedDefinition, match=r"FROM \(environment\) .* became"):
        moved.registry.registration("sales", moved.ledger.head()["sales"])


def test_an_environment_on_the_command_line(sold, capsys):
    (sold / "shop" / environments.FILE).write_text(TOML.format(sold=sold))
    folder = str(sold / "shop")
    assert main(["plan", folder, "--env", "dev"]) == 0
    assert f"Plan for shop@dev, data in {sold}/dev" in capsys.readouterr().out
    assert main(["apply", f"{folder}@prod"]) == 0
    assert sorted(os.listdir(sold / "data")) == ["_sweeparea", "source"]
    capsys.readouterr()
    assert main(["plan", folder]) == 2
    assert "has the environments dev, prod, but none is chosen" in capsys.readouterr().err
    assert main(["plan", folder, "--env", "stage"]) == 2
    assert "There is no environment stage" in capsys.readouterr().err


# -- materializations as inputs ----------------------------------------------------------------------------------------


def test_a_materialization_is_an_input(sold):
    news = "CREATE CONTINUOUS QUERY news AS SELECT shop, n FROM turnover__ISTREAM [RANGE INTERVAL 1 HOUR] WHERE n > 2;"
    app = opened(sold, ALL + news)
    bound = app.plans.plan("news")
    assert bound.inputs == ("turnover__istream",)
    assert app.catalog.dependencies("news") == ("turnover",)
    assert app.plans.input_schema("turnover__istream").kind == "stream"
    assert app.plans.result_table("turnover__istream") == app.layout.result("turnover__istream")
    assert app.plans.result_table("turnover__relation") == app.layout.result("turnover")
    ran(app, "sales", "turnover")
    assert app.plans.heartbeats(bound, app.ledger.head()) == {"turnover__istream": shop.tick(60)}
    app = opened(sold, ALL + news.replace("turnover__ISTREAM", "turnover__dstream"))
    (problem,) = plan(app).problems
    assert "turnover__dstream is not kept: turnover materializes RELATION, ISTREAM" in str(problem)
    assert "Write MATERIALIZE RELATION, ISTREAM, DSTREAM in turnover" in str(problem)
