"""CREATE OR REPLACE: new results come to be beside the old ones, which stay until these have caught up."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.changed_definition import ChangedDefinition
from sweeparea.spark_jobs.orchestration.apply import apply
from sweeparea.spark_jobs.orchestration.deployment_plan import text
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.rewriting import replace
from sweeparea.spark_jobs.rewriting.replace import replace_query
from sweeparea.spark_jobs.spark.session import spark_session
from sweeparea.tables.log.delta_log import DeltaLog
from tests.spark_jobs import shop

pytestmark = pytest.mark.spark
READER = "CREATE OR REPLACE CONTINUOUS QUERY busy AS SELECT shop, most FROM turnover WHERE n > 1;\n"
ALL = shop.STREAM + shop.QUERY.replace("CREATE C", "CREATE OR REPLACE C") + READER
SHORTER = ALL.replace("60 SECONDS", "30 SECONDS")
WIDER = SHORTER.replace("COUNT(*) AS n", "COUNT(*) AS n, MIN(items) AS least")
TABLES = ("turnover", "turnover__istream", "busy")


def _run(folder: Path, spark, declarations: str) -> Application:
    app = shop.application(folder, declarations)
    for day in shop.DAYS:
        shop.sell(folder, day)
        admit(app, "sales", spark)
        for query in ("turnover", "busy"):
            process(app, query, spark)
    return app


def _applied(folder: Path, declarations: str) -> tuple[Application, list[str], str]:
    (folder / "shop" / "shop.cql").write_text(declarations)
    app = Application.open(folder / "shop", folder / "data", lenient=True)
    planned = plan(app, beside=True)
    told: list[str] = []
    apply(app, planned, told.append, spark_session)
    return Application.open(folder / "shop", folder / "data"), told, text(planned)


@pytest.fixture(scope="module")
def shorter(spark, tmp_path_factory) -> Application:
    return _run(tmp_path_factory.mktemp("shorter"), spark, SHORTER)


@pytest.fixture(scope="module")
def live(spark, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("live")
    _run(folder, spark, ALL)
    return folder


def test_rows_that_differ_are_exchanged_and_readers_follow(spark, live, shorter):
    app, told, shown = _applied(live, SHORTER)
    assert "stay readable while the new ones are computed beside them" in shown
    assert "stay readable while it takes over what differs" in shown
    for table in TABLES:
        assert shop.contents(app, table) == shop.contents(shorter, table), table
    assert any(line.startswith("turnover: replaced up to") for line in told)
    assert any(line.startswith("busy: repaired") for line in told)
    assert not plan(app, beside=True).changes
    assert process(app, "turnover", spark).slices == 0  # it goes on from where the old one was


def test_a_failed_build_leaves_the_old_results_in_place(spark, live, shorter):
    """Also with a function that fails on some row: what was there before is there afterwards, and readable."""
    failing = SHORTER.replace("MAX(items) AS most", "MAX(items) DIV (COUNT(*) - 2) AS most")
    with pytest.raises(SweepAreaError, match="zero"):
        _applied(live, failing)
    app = Application.open(live / "shop", live / "data")
    for table in TABLES:
        assert shop.contents(app, table) == shop.contents(shorter, table), table
    app, _, shown = _applied(live, SHORTER)
    assert "Nothing to apply" in shown
    assert process(app, "turnover", spark).slices == 0


def test_other_columns_come_in_one_commit_and_an_interrupted_apply_goes_on(spark, live, shorter, monkeypatch):
    log = DeltaLog(Application.open(live / "shop", live / "data").layout.result("turnover"))
    before = log.version()

    def interrupted(application, query, *given):
        if query == "busy":
            raise KeyboardInterrupt
        return replace_query(application, query, *given)

    with monkeypatch.context() as patched:
        patched.setattr(replace, "replace_query", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _applied(live, WIDER)
    assert log.version() == before + 1
    with pytest.raises(SweepAreaError, match=r"apply"):  # its reader is not run over columns that it has not seen
        process(Application.open(live / "shop", live / "data"), "busy", spark)
    app, told, shown = _applied(live, WIDER)
    assert "reads turnover, which got other columns in an apply that was interrupted" in shown
    assert log.version() == before + 1
    rows = DeltaLog(app.layout.result("turnover")).read()
    assert "least" in rows.column_names
    assert sorted(map(str, rows.drop_columns(["least"]).to_pylist())) == sorted(
        map(str, DeltaLog(shorter.layout.result("turnover")).read().to_pylist())
    )
    assert any(line.startswith("busy: replaced up to") for line in told)
    assert shop.contents(app, "busy") == shop.contents(shorter, "busy")


@pytest.mark.parametrize("suspended", [False, True])
def test_a_table_that_is_not_kept_any_more_goes_and_no_later_one(spark, tmp_path, shorter, monkeypatch, suspended):
    """Of whoever is killed, or suspended, behind the exchange: a later definition keeps the table again."""
    _run(tmp_path, spark, ALL)
    clear, calls = replace.left_behind, []

    def struck(application, query):
        calls.append(query)
        if calls.count("turnover") == 2:  # behind the exchange
            monkeypatch.undo()
            if not suspended:
                raise KeyboardInterrupt
            _applied(tmp_path, SHORTER)
        clear(application, query)

    monkeypatch.setattr(replace, "left_behind", struck)
    fewer = ALL.replace("MATERIALIZE RELATION, ISTREAM", "MATERIALIZE RELATION")
    # one that was suspended goes on to the readers of what is not its own any more
    with pytest.raises(ChangedDefinition if suspended else KeyboardInterrupt):
        _applied(tmp_path, fewer)
    app, _, _ = _applied(tmp_path, SHORTER)
    for table in TABLES:
        assert shop.contents(app, table) == shop.contents(shorter, table), table
    assert process(app, "turnover", spark).slices == 0
