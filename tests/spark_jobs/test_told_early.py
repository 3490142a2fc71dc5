"""What can be known to fail is refused by plan, with its place, before anything is admitted or run."""

from __future__ import annotations

import pytest

from sweeparea.infra.errors import SetupError, SweepAreaError, UnfitSetupError
from sweeparea.infra.services import processes
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands import jobs
from sweeparea.spark_jobs.declarations.analysis import AskedOnce, Checking, analyzer
from sweeparea.spark_jobs.deployment.query_plans import QueryPlans
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark import session, zone_guards
from tests.spark_jobs import shop

HEAD = "CREATE STREAM s FROM DELTA 'source/sales' "
BY = "TIMESTAMP BY at CHRONON INTERVAL 1 SECOND\n "


def problems(folder, text: str, analyze: object = None, checking: Checking | None = None) -> list[str]:
    shop.sell(folder, shop.DAYS[0])
    (folder / "shop").mkdir(exist_ok=True)
    (folder / "shop" / "shop.cql").write_text(text)
    app = Application.open(folder / "shop", folder / "data", lenient=True)
    app.analyze = analyze  # type: ignore[assignment]
    return [str(problem).splitlines()[0].rpartition("/")[2] for problem in plan(app, checking=checking).problems]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BY + "HEARTBEAT FOR at AS shop", "2:22: TypeError: HEARTBEAT needs an instant (TIMESTAMP, TIMESTAMP_NTZ or"),
        (BY + "HEARTBEAT FOR at AS items + 1", "2:22: TypeError: HEARTBEAT needs an instant"),
        (BY + "HEARTBEAT FROM COLUMN shop", "2:2: TypeError: HEARTBEAT FROM COLUMN shop needs an instant"),
        (BY + "HEARTBEAT FROM COLUMN amount", "2:2: TypeError: HEARTBEAT FROM COLUMN amount needs an instant"),
        (BY + "HEARTBEAT FROM COLUMN shp", "2:2: BindError: column shp of HEARTBEAT is unknown. Did you mean shop?"),
        (BY + "HEARTBEAT FOR att AS at", "2:2: BindError: column att of HEARTBEAT is unknown. Did you mean at?"),
        ("TIMESTAMP BY items HEARTBEAT FOR items AS at", "TypeError: HEARTBEAT needs a tick (BIGINT"),
        ("TIMESTAMP BY items HEARTBEAT FOR items AS items - 0.5", "HEARTBEAT needs a tick (BIGINT"),
        ("TIMESTAMP BY items HEARTBEAT FROM COLUMN at", "TypeError: HEARTBEAT FROM COLUMN at needs a tick"),
        ("TIMESTAMP BY shop HEARTBEAT EACH BATCH", "1:56: TypeError: TIMESTAMP BY shop of stream s is of type string"),
        ("TIMESTAMP BY items CHRONON INTERVAL 1 DAY HEARTBEAT MANUAL", "TypeError: CHRONON of stream s is a length"),
        (BY + "HEARTBEAT MANUAL SEQUENCE BY n", "BindError: column n of SEQUENCE BY is unknown"),
        (
            BY + "HEARTBEAT MANUAL CONSTRAINT c EXPECT (items + 1)",
            "2:40: TypeError: constraint c needs a condition, but",
        ),
        (
            BY + "HEARTBEAT MANUAL CONSTRAINT c EXPECT (shop)",
            "constraint c needs a condition, but shop is of type STRING",
        ),
    ],
)
def test_wrong_clauses_of_a_stream_are_told_by_plan(tmp_path, text, told):
    (found,) = problems(tmp_path, HEAD + text + ";")
    assert told in found
    assert found.startswith("shop.cql:")


@pytest.mark.parametrize(
    "text",
    [
        BY + "HEARTBEAT FOR at AS CAST(at AS DATE)",
        BY + "HEARTBEAT FOR at AS date_sub(CAST(at AS DATE), 1) CONSTRAINT c EXPECT (NULL)",
        BY + "HEARTBEAT FROM COLUMN AT CONSTRAINT c EXPECT (items > 1 OR shop LIKE 'a%')",
        "TIMESTAMP BY items HEARTBEAT FOR items AS CAST(amount AS INT)",
    ],
)
def test_right_clauses_of_a_stream_are_no_problem(tmp_path, text):
    assert problems(tmp_path, HEAD + text + ";") == []


def test_all_faults_of_a_stream_at_once(tmp_path):
    text = BY + "HEARTBEAT FOR at AS shop CONSTRAINT c EXPECT (items)\n CONSTRAINT d EXPECT (nix > 1);"
    assert [p.split(": ")[0] for p in problems(tmp_path, HEAD + text)] == [
        "shop.cql:2:22",
        "shop.cql:2:48",
        "shop.cql:3:23",
    ]


@pytest.mark.parametrize("clause", ["", " ON VIOLATION QUARANTINE ROW"])
def test_a_constraint_of_a_query_keeps_rows_out_unless_it_says_otherwise(tmp_path, clause):
    text = HEAD + BY + f"HEARTBEAT MANUAL;\nCREATE CONTINUOUS QUERY q\n CONSTRAINT c EXPECT (shop > 'a'){clause} AS\n"
    assert problems(tmp_path, text + "SELECT shop FROM s;") == []
    app = Application.open(tmp_path / "shop", tmp_path / "data")
    assert "quarantine" in app.plans.plan("q").materialize
    (found,) = problems(tmp_path, text + "SELECT shop AS __reason FROM s;")
    assert "output column __reason clashes with a column that constraints need" in found


@pytest.mark.spark
def test_types_that_only_spark_knows(tmp_path, spark):
    text = (
        HEAD
        + BY
        + "HEARTBEAT FOR at AS from_json(shop, 'a INT').a CONSTRAINT c EXPECT (from_json(shop, 'a INT').a)\n"
        + "CONSTRAINT d EXPECT (from_json(shop, 'a BOOLEAN').a);\nCREATE CONTINUOUS QUERY q\n"
        + "CONSTRAINT c EXPECT (from_json(shop, 'a INT').a) ON VIOLATION WARN AS SELECT shop FROM s;"
    )
    assert [p.split(": ")[0] for p in problems(tmp_path, text, analyzer(spark))] == [
        "shop.cql:2:22",
        "shop.cql:2:70",
        "shop.cql:5:22",
    ]


@pytest.mark.spark
def test_what_spark_refuses_is_told_where_spark_is_at_hand(tmp_path, spark):
    text = (
        HEAD + BY + "HEARTBEAT MANUAL CONSTRAINT c EXPECT (array_contains(array(items), NULL));\n"
        "CREATE CONTINUOUS QUERY q AS SELECT shop, SUM(items) FILTER (WHERE\n  array_contains(array(items), NULL)) AS n"
        "\n"
        "FROM s [Range INTERVAL 1 DAY] WHERE\n  array_contains(array(shop), NULL) GROUP BY shop;\n"
        "CREATE CONTINUOUS QUERY r AS SELECT shop FROM s WHERE NULL OR items > 1;"
    )
    none = Checking(analyzer(spark), lambda: None)
    assert problems(tmp_path, text, checking=none) == []
    assert none.unchecked
    app = Application.open(tmp_path / "shop", tmp_path / "data", lenient=True)
    assert any("did not check the types" in note and "--check-types" in note for note in plan(app, checking=none).notes)
    there = Checking(analyzer(spark), lambda: spark)
    planned = plan(app, checking=there)
    assert not there.unchecked
    assert not planned.notes
    told = [str(p).splitlines()[0].rpartition("/")[2] for p in planned.problems]
    assert all("NULL_TYPE" in p for p in told)
    assert [p.split(": ")[0] for p in told] == ["shop.cql:2:40", "shop.cql:4:3", "shop.cql:6:3"]


@pytest.mark.spark
def test_the_first_run_tells_the_place_of_what_nobody_checked(tmp_path, spark):
    text = HEAD + BY + "HEARTBEAT FOR at AS at;\nCREATE CONTINUOUS QUERY q AS SELECT shop FROM s WHERE\n"
    assert problems(tmp_path, text + " array_contains(array(items), NULL);") == []
    app = Application.open(tmp_path / "shop", tmp_path / "data")
    admit(app, "s", spark)
    with pytest.raises(SweepAreaError, match=r"shop\.cql:4:2: TypeError: .*NULL_TYPE"):
        process(app, "q", spark)


@pytest.mark.spark
def test_a_run_binds_a_query_for_its_names_and_for_its_slices(tmp_path, spark, monkeypatch):
    text = HEAD + BY + "HEARTBEAT FOR at AS at;\nCREATE CONTINUOUS QUERY q AS SELECT shop FROM s [NOW];"
    assert problems(tmp_path, text) == []
    app = Application.open(tmp_path / "shop", tmp_path / "data")
    admit(app, "s", spark)
    app.registry.registration("q", None)
    bind, uses, called = QueryPlans.bind, zone_guards._uses, []
    monkeypatch.setattr(QueryPlans, "bind", lambda *args: called.append("bind") or bind(*args))
    monkeypatch.setattr(zone_guards, "_uses", lambda root: called.append("zones") or uses(root))
    done = process(app, "q", spark, cuts=[shop.tick(0)])
    assert done.slices == 2
    # the zones: once when types are checked, once for all slices
    assert (called.count("bind"), called.count("zones")) == (2, 2)


QUERY = "HEARTBEAT FOR at AS at;\nCREATE CONTINUOUS QUERY q AS SELECT transform(array(items), x -> x) AS z FROM s;"


def planned(folder, asked: AskedOnce, start: bool = False):
    problems(folder, HEAD + BY + QUERY)
    app = Application.open(folder / "shop", folder / "data", lenient=True)
    app.analyze = asked
    return plan(app, checking=Checking(asked, asked.session if start else asked.at_hand))


@pytest.mark.parametrize("start", [False, True])
def test_a_server_that_does_not_answer_is_no_spark(tmp_path, monkeypatch, start):
    port = processes.free_port()
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{port}/;token=x")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    found = planned(tmp_path, AskedOnce(), start)
    assert not found.problems
    [note] = found.notes
    assert "did not check the types" in note
    assert f"Nothing answers at 127.0.0.1:{port}, which SPARK_REMOTE names" in note
    monkeypatch.setattr(session, "PATIENCE", 0.1)
    with pytest.raises(SetupError, match=f"Nothing answers at 127.0.0.1:{port}, .* Start that server"):
        jobs.process(Application.open(tmp_path / "shop", tmp_path / "data", lenient=True), "q")


@pytest.mark.parametrize("fault", [SetupError("JAVA_HOME is /none."), UnfitSetupError("Its language changes answers.")])
def test_a_spark_that_would_change_answers_is_not_taken_for_none(tmp_path, monkeypatch, fault):
    begun = []

    def no_session():
        begun.append(1)
        raise fault

    monkeypatch.setattr(session, "spark_session", no_session)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    found = planned(tmp_path, AskedOnce(), start=True)
    told = [str(problem) for problem in found.problems] + list(found.notes)
    assert len(told) == len(begun) == 1
    assert str(fault).rstrip(".") in told[0]
    assert bool(found.problems) == isinstance(fault, UnfitSetupError)


@pytest.mark.spark
def test_a_session_that_is_made_on_the_way_checks_what_came_before_it(tmp_path, spark):
    text = (
        HEAD + BY + "HEARTBEAT FOR at AS at;\n"
        "CREATE CONTINUOUS QUERY q AS SELECT array_contains(array(items), NULL) AS z FROM s;\n"
        "CREATE CONTINUOUS QUERY r AS SELECT transform(array(items), x -> x) AS z FROM s;"
    )
    made = []
    analyze = analyzer(spark)
    checking = Checking(lambda root: made.append(spark) or analyze(root), lambda: made[0] if made else None)
    told = problems(tmp_path, text, checking, checking)
    assert [p.split(": ")[0] for p in told] == ["shop.cql:3:37"]
    assert not checking.unchecked


@pytest.mark.spark
def test_what_stands_beside_a_function_of_the_users_own_is_checked(tmp_path, spark):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "measures_told_early.py").write_text(
        "from sweeparea.operators.user import function\n@function(returns='double')\ndef twice_told(x):\n    return x\n"
    )
    text = (
        HEAD + BY + "HEARTBEAT FOR at AS at;\nCREATE FUNCTION twice_told AS 'measures_told_early:twice_told';\n"
        "CREATE CONTINUOUS QUERY q AS SELECT twice_told(items) AS z,\n array_contains(array(items), NULL) AS y,\n"
        " array_contains(array(twice_told(items)), NULL) AS x FROM s;\n"
        "CREATE CONTINUOUS QUERY r AS SELECT twice_told(items) AS z FROM s;"
    )
    there = Checking(analyzer(spark), lambda: spark)
    told = problems(tmp_path, text, there, there)
    assert [p.split(": ")[0] for p in told] == ["shop.cql:5:2", "shop.cql:6:2"]
