"""What a plan is chosen by beside its text: rates, types that only Spark knows, the Python code of functions."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from sweeparea import operators
from sweeparea.infra import environments
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.plan_identity import state_identity
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.status import status
from sweeparea.spark_jobs.declarations.user_code import source_fingerprint
from sweeparea.spark_jobs.deployment.changed_definition import ChangedDefinition
from sweeparea.spark_jobs.deployment.planned import Planned
from sweeparea.spark_jobs.deployment.query_plans import QueryPlans
from sweeparea.spark_jobs.orchestration.apply import apply
from sweeparea.spark_jobs.orchestration.deployment_plan import text
from sweeparea.spark_jobs.orchestration.explaining import explained
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.orchestration.steps import Action
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from tests.spark_jobs import shop

STREAMS = "".join(
    f"CREATE STREAM {name} FROM DELTA 'source/{name}' TIMESTAMP BY tick HEARTBEAT EACH BATCH;\n" for name in "abc"
)
JOIN = (
    "CREATE CONTINUOUS QUERY {name} AS SELECT a.x FROM a [RANGE 10], b [RANGE 10], c [RANGE 10]"
    " WHERE a.x = b.x AND b.x = c.x AND a.x = c.x;\n"
)
SCHEMA = pa.schema([("tick", pa.int64()), ("x", pa.int64())])
ADMITTED = pa.schema([*SCHEMA, *((c, pa.int64()) for c in ("__tick", "__seq", "__n"))])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv(environments.VARIABLE, raising=False)
    (tmp_path / "app").mkdir()
    for name in "abc":
        DeltaLog(str(tmp_path / "data" / "source" / name)).create(SCHEMA, name=name, description="a source")
    return tmp_path


def opened(folder: Path, text: str | None = None) -> Application:
    if text is not None:
        (folder / "app" / "app.cql").write_text(text)
    return Application.open(folder / "app", folder / "data", lenient=True)


def applied(app: Application) -> None:
    apply(app, plan(app))


def admitted(app: Application, name: str, rows: int, low: int, high: int) -> None:
    """So many rows with ticks in [low, high), as admit commits them."""
    row = app.ledger.head().get(name)
    publication = Publication(str(app.data), app.ledger, name, NameKind.STREAM, app.registry.registration(name, row))
    attempt, path = publication.begin(), app.layout.admitted(name)
    DeltaLog(path).create(ADMITTED, name=name, description="made by hand")
    ticks = [low + i * (high - low) // rows for i in range(rows)]
    made = [{"tick": t, "x": t, "__tick": t, "__seq": 1, "__n": 1} for t in ticks]
    publication.stage(path, adds=[write_file(pa.Table.from_pylist(made, schema=ADMITTED), path, attempt, "rows")])
    publication.commit(committed=high - 1, info={"source_version": 0, "chronon": 0})


def ran(app: Application, query: str) -> None:
    """A commit of a query that left state, as its first slice makes it."""
    app.registry.registration(query, None)
    app.registry.settle(query)
    publication = Publication(str(app.data), app.ledger, query, NameKind.QUERY, app.registry.registration(query, None))
    publication.begin()
    info = {
        "definition": app.registry.fingerprint(query),
        "plan": state_identity(app.plans.plan(query)),
        "state_rows": {"join": 1},
    }
    publication.commit(committed=100, info=info)


def test_a_chain_of_queries_is_bound_one_after_the_other(folder, monkeypatch):
    bind, under, deepest = QueryPlans.bind, [0], []

    def counted(*args):
        under[0] += 1
        deepest.append(under[0])
        try:
            return bind(*args)
        finally:
            under[0] -= 1

    monkeypatch.setattr(QueryPlans, "bind", counted)
    chain = [f"CREATE CONTINUOUS QUERY q{i} AS SELECT x + 1 AS x FROM q{i - 1}__istream;\n" for i in range(5, 1, -1)]
    chain.append("CREATE CONTINUOUS QUERY q1 AS ISTREAM(SELECT x FROM a [RANGE 10]);\n")
    app = opened(folder, STREAMS + "".join(chain))
    assert [c.type for c in app.plans.whole("q5").root.columns] == ["bigint"]
    assert max(deepest) == 2


def test_types_in_a_list_of_columns_that_a_deployed_text_has_change_nothing(folder):
    text = STREAMS + "CREATE CONTINUOUS QUERY q AS SELECT p FROM a AS v(t, p) [RANGE 10];\n"
    app = opened(folder, text)
    applied(app)
    for name in "abc":
        admitted(app, name, 10, 0, 100)
    ran(app, "q")

    def older(rows):  # the version that registered it took types, and left them out
        typed = rows["q"].definition.replace("v(t, p)", "v(t, p INT)")
        return {**rows, "q": replace(rows["q"], definition=typed, fingerprint="older")}

    app.registry.deployed.change(older)
    [step] = plan(opened(folder)).changes
    assert (step.name, step.action) == ("q", Action.UPDATE)
    refused = plan(opened(folder, text.replace("v(t, p)", "v(t, p INT)")))
    assert "Name the columns alone" in str(refused.problems[0])


def test_left_rows_that_an_earlier_version_read_again_are_not_thought_to_be_gone(folder):
    """A semi join that ran as a join kept nothing of rows that can be read again; now its SweepArea has them."""
    semi = "SELECT x FROM a [RANGE 10] WHERE EXISTS (SELECT 1 FROM b [RANGE 5] WHERE b.x = a.x)"
    app = opened(folder, f"{STREAMS}CREATE CONTINUOUS QUERY q AS {semi};\n")
    applied(app)
    for name in "abc":
        admitted(app, name, 10, 0, 100)
    ran(app, "q")  # under the identity that such a plan had
    plan_, row = app.plans.plan("q"), app.ledger.head()["q"]
    empty = {**row.info, "state_rows": {"join_right0": 0, "materialize": 3}}
    assert app.registry.stale(plan_, row)
    assert app.registry.stale(plan_, replace(row, info=empty))
    assert not app.registry.stale(plan_, replace(row, info={**row.info, "plan": state_identity(lowered(plan_))}))


# -- rates -------------------------------------------------------------------------------------------------------------


def test_rates_are_measured_when_a_query_is_registered_and_kept(folder):
    app = opened(folder, STREAMS + JOIN.format(name="q"))
    default = state_identity(app.plans.plan("q"))
    assert app.plans.rates("q") is None  # nothing has come yet
    for name, rows in (("a", 2000), ("b", 2000), ("c", 10)):
        admitted(app, name, rows, 0, 1000)
    app = opened(folder)
    applied(app)
    assert Planned.of(app.registry.deployed.rows()["q"].planned).inputs is not None
    shown = explained(app, "q")
    assert "(measured when it was registered)\n  a: 2 rows a tick\n  b: 2 rows a tick\n  c: 0.01 rows a tick" in shown
    first = state_identity(app.plans.plan("q"))
    assert first != default
    ran(app, "q")
    admitted(app, "a", 1, 1000, 200_000)
    admitted(app, "c", 50_000, 1000, 1010)
    app = opened(folder, STREAMS + JOIN.format(name="q") + JOIN.format(name="r"))
    assert state_identity(app.plans.plan("q")) == first
    assert not app.registry.stale(app.plans.plan("q"), app.ledger.head()["q"])
    assert state_identity(app.plans.plan("r")) != first
    assert "measured now" in explained(app, "r")
    assert {s.name: s.action for s in plan(app).steps}["q"] is Action.NOTHING


def test_rates_that_were_unknown_are_filled_in_once_before_the_first_slice(folder):
    app = opened(folder, STREAMS + JOIN.format(name="q"))
    applied(app)
    assert app.registry.deployed.rows()["q"].planned == {}
    for name, rows in (("a", 2000), ("b", 2000), ("c", 10)):
        admitted(app, name, rows, 0, 1000)
    app = opened(folder)
    ran(app, "q")
    planned = app.registry.deployed.rows()["q"].planned
    assert planned == {"inputs": {"a": {"rate": 2.0}, "b": {"rate": 2.0}, "c": {"rate": 0.01}}}
    admitted(app, "a", 9, 1000, 2000)
    app = opened(folder)
    app.registry.settle("q")
    assert app.registry.deployed.rows()["q"].planned == planned
    assert not app.registry.stale(app.plans.plan("q"), app.ledger.head()["q"])


def test_a_query_from_before_rates_were_kept_is_planned_as_it_was(folder):
    app = opened(folder, STREAMS + JOIN.format(name="q"))
    applied(app)
    default = state_identity(app.plans.plan("q"))
    ran(app, "q")
    for name, rows in (("a", 2000), ("b", 2000), ("c", 10)):
        admitted(app, name, rows, 0, 1000)
    app = opened(folder)
    app.registry.settle("q")
    assert state_identity(app.plans.plan("q")) == default


def sold(folder: Path, name: str, ticks: list[int]) -> None:
    rows = pa.table({"tick": ticks, "x": [tick % 5 for tick in ticks]}, schema=SCHEMA)
    write_deltalake(str(folder / "data" / "source" / name), rows, mode="append")


@pytest.mark.spark
@pytest.mark.slow
def test_another_order_of_joins_gives_the_same_answers(spark, folder):
    app = opened(folder, STREAMS + JOIN.format(name="q"))
    for name, ticks in (("a", [*range(0, 60)] * 3), ("b", [*range(0, 60)] * 3), ("c", [0, 59])):
        sold(folder, name, ticks)
        admit(app, name, spark)
    process(app, "q", spark)
    for name, ticks in (("a", [5000]), ("b", [*range(60, 70)]), ("c", [*range(60, 70)] * 40)):
        sold(folder, name, ticks)
        admit(app, name, spark)
    app = opened(folder, STREAMS + JOIN.format(name="q") + JOIN.format(name="r"))
    process(app, "q", spark)
    process(app, "r", spark)
    assert state_identity(app.plans.plan("q")) != state_identity(app.plans.plan("r"))
    found = shop.contents(app, "q")
    assert found
    assert shop.contents(app, "r") == found


# -- types -------------------------------------------------------------------------------------------------------------


def test_spark_is_asked_only_for_types_that_only_it_knows(folder):
    opened(folder, STREAMS + JOIN.format(name="q"))
    app, data = str(folder / "app"), str(folder / "data")
    code = (
        "import sys\n"
        "from sweeparea.spark_jobs.commands.cli import main\n"
        "for said in (['explain', 'q'], ['plan'], ['apply'], ['status'], ['explain', 'SELECT x + 1 AS y FROM a']):\n"
        f"    assert main([said[0], {app!r}, *said[1:], '--data', {data!r}]) == 0\n"
        "print([m for m in sys.modules if m.partition('.')[0] in ('pyspark', 'py4j')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.rstrip().endswith("[]"), done.stdout + done.stderr


@pytest.mark.spark
def test_types_that_only_spark_knows_are_asked_for(spark, folder):
    app = opened(folder, STREAMS + "CREATE CONTINUOUS QUERY q AS SELECT from_json('{}', 'u int').u AS u FROM a [NOW];")
    unknown = app.plans.plan("q").root.columns[0].type
    with app.analyzing(spark):
        assert app.plans.plan("q").root.columns[0].type == "int"
    assert unknown in (None, "int")
    assert app.analyze is None


# -- Python code -------------------------------------------------------------------------------------------------------

MODULE = """import pyarrow.compute as pc
from sweeparea.operators.user import function
from {helper} import FACTOR

@function(returns="bigint")
def scaled(x):
    return pc.multiply(x, FACTOR)
"""
QUERY = "CREATE CONTINUOUS QUERY q AS SELECT scaled(x) AS y FROM a [RANGE 10];\n"


@pytest.fixture
def coded(folder, monkeypatch):
    """An application whose function stands in modules that no other test has."""
    module, helper = f"code_{folder.name}".replace("-", "_"), f"help_{folder.name}".replace("-", "_")
    (folder / "app" / f"{module}.py").write_text(MODULE.format(helper=helper))
    (folder / "app" / f"{helper}.py").write_text("FACTOR = 2\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    return folder, folder / "app" / f"{helper}.py", f"CREATE FUNCTION scaled AS '{module}:scaled';\n"


def test_code_is_part_of_a_functions_definition(coded):
    folder, helper, declared = coded
    app = opened(folder, STREAMS + declared + QUERY)
    applied(app)
    assert app.registry.deployed.rows()["q"].depends_on == ("a", "scaled")
    helper.write_text("# the same\n\nFACTOR =   2\n")
    assert not plan(opened(folder)).changes
    helper.write_text("FACTOR = 3\n")
    app = opened(folder)
    assert "nothing was computed by the old definition yet" in text(plan(app))  # so nothing is lost
    applied(app)
    admitted(app, "a", 10, 0, 1000)
    ran(app, "q")
    assert not plan(opened(folder)).changes

    helper.write_text("FACTOR = 4\n")
    app = opened(folder)
    shown = text(plan(app))
    assert "function scaled  changed, but not declared CREATE OR REPLACE\n      Python source " in shown
    with pytest.raises(
        ChangedDefinition, match=r"definition of scaled has changed.*Python source.*q has been computed"
    ):
        app.registry.registration("scaled", None)
    assert "scaled" in app.plans.rests_on("q")
    place = app.catalog.functions["scaled"].place
    assert f"q: stands still: {place}: The definition of scaled has changed" in status(app)

    app = opened(folder, STREAMS + declared.replace("CREATE", "CREATE OR REPLACE") + QUERY)
    steps = {s.name: (s.action, s.why) for s in plan(app).steps}
    assert steps["scaled"][0] is Action.REBUILD
    assert steps["q"] == (Action.REBUILD, "reads scaled, rebuilt above")
    applied(app)
    assert "q" not in app.ledger.head()
    assert not plan(opened(folder)).changes


def test_a_module_that_is_missing_is_a_problem_of_the_plan(folder):
    app = opened(folder, STREAMS + "CREATE FUNCTION f AS 'no_such_module_at_all:f';\n")
    assert "There is no Python module no_such_module_at_all" in text(plan(app))
    assert len(plan(app).problems) == 1


def test_a_fingerprint_reaches_into_packages(tmp_path, monkeypatch):
    package = tmp_path / "pack_of_code"
    package.mkdir()
    for name, source in {
        "__init__": "",
        "f": "from . import g\nfrom .h import K\n",
        "g": "A = 1\n",
        "h": "K = 1\n",
    }.items():
        (package / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    before = source_fingerprint("pack_of_code.f:f")
    assert before
    for name in ("g", "h", "f"):
        (package / f"{name}.py").write_text((package / f"{name}.py").read_text() + "B = 2\n")
        after = source_fingerprint("pack_of_code.f:f")
        assert after != before
        before = after


def test_a_fingerprint_leaves_out_sweeparea_where_it_lies_beside_the_users_code(tmp_path, monkeypatch):
    engine = tmp_path / "sweeparea" / "operators" / "made_up.py"
    engine.parent.mkdir(parents=True)
    (tmp_path / "code_beside.py").write_text("from sweeparea.operators.made_up import A\nimport code_of_both\n")
    (tmp_path / "code_of_both.py").write_text("A = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(operators, "__path__", [*operators.__path__, str(engine.parent)])
    found = []
    for engine_text, own in (("A = 1\n", "A = 1\n"), ("A = 2\n", "A = 1\n"), ("A = 2\n", "A = 2\n")):
        engine.write_text(engine_text)
        (tmp_path / "code_of_both.py").write_text(own)
        found.append(source_fingerprint("code_beside:f"))
    assert found[0] == found[1] != found[2]
