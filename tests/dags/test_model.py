from __future__ import annotations

from datetime import timedelta

import pytest

from sweeparea.dags import model
from sweeparea.infra import environments
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.plan_notes import PlanNotes


def test_an_application_knows_who_reads_whom(home):
    shop = model.load("shop")
    uris = {"orders": str(home / ".data/shop/source/orders"), "products": "/elsewhere/products"}
    assert {name: source.uri for name, source in shop.sources.items()} == uris
    sales, surges = shop.queries["sales"], shop.queries["surges"]
    assert (sales.inputs, sales.slice) == (("orders", "products"), timedelta(hours=6))
    assert (surges.inputs, surges.slice) == (("sales",), timedelta(days=1))
    assert sales.place.endswith("shop.cql:9")
    assert shop.watched() == {
        "data_folder": str(home / ".data/shop"),
        "sources": uris,
        "pinned": ["products"],
        "clocks": [],
        "queries": {"sales": ["orders", "products"], "surges": ["sales"]},
        "formats": {},
        "limits": {},
        "application": "shop",
    }


def test_settings_say_how_airflow_runs_a_dag(home):
    path = home / "queries" / "shop" / "shop.cql"
    own = "WITH (owner = 'ann', tags = 'hourly, money', retries = 5, retry_delay = '1 hour', timeout = '2 hours',"
    query = f"CREATE CONTINUOUS QUERY more {own} pool = 'spark', priority = 7) AS SELECT kind FROM sales;"
    path.write_text(f"{path.read_text()}\nSET owner = 'shop team';\nSET retries = 0;\n{query}")
    shop = model.load("shop")
    assert (shop.scheduling.owner, shop.sources["orders"].scheduling.arguments["retries"]) == ("shop team", 0)
    assert shop.queries["sales"].scheduling.owner == "shop team"
    more = shop.queries["more"].scheduling
    assert more.tags == ("hourly", "money")
    hour = timedelta(hours=1)
    assert more.arguments == {
        "owner": "ann",
        "retries": 5,
        "retry_delay": hour,
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": hour,
        "execution_timeout": 2 * hour,
        "priority_weight": 7,
        "pool": "spark",
    }


@pytest.mark.parametrize("setting", ["tags = 'a,,b'", "retries = -1", "timeout = 'soon'", "owner = ''", "priority = 0"])
def test_a_setting_of_airflow_s_that_cannot_be_is_told_with_its_place(home, setting):
    (home / "queries" / "mill" / "more.cql").write_text(f"SET {setting};\n")
    with pytest.raises(SweepAreaError, match=r"more\.cql:1:\d+: .*setting"):
        model.load("mill")


def test_a_source_from_files_is_watched_by_its_folder(home):
    path = home / "queries" / "shop" / "shop.cql"
    path.write_text(
        "CREATE STREAM f FROM FORMAT 'json' PATH 'in' SCHEMA (t BIGINT) TIMESTAMP BY t HEARTBEAT FOR t AS t;"
        "CREATE STREAM r FROM FORMAT 'rate' TIMESTAMP BY timestamp HEARTBEAT EACH BATCH;"
    )
    watched = model.load("shop").watched()
    data = home / ".data" / "shop"
    assert watched["formats"] == {"f": str(data / "in"), "r": ""}
    assert watched["sources"] == {name: str(data / "state" / name / "landing") for name in "fr"}


def test_an_application_in_an_environment(home, monkeypatch):
    """dev and prod are two applications over the same files."""
    folder = home / "queries" / "shop"
    text = '[dev]\ndata = "/lake/dev"\n[dev.sources]\norders = "/samples/orders"\n[prod]\n'
    (folder / "sweeparea.toml").write_text(text)
    dev = model.load("shop@dev")
    assert (dev.name, dev.data_folder, dev.sources["orders"].uri) == ("shop@dev", "/lake/dev", "/samples/orders")
    assert model.load("shop@prod").data_folder == str(home / ".data/shop")
    assert "but none is chosen" in str(model.load_all()[1]["shop"])
    monkeypatch.setenv("SWEEPAREA_ENV", "prod")
    assert model.load("shop").sources["orders"].uri == str(home / ".data/shop/source/orders")
    assert "mill has no sweeparea.toml" in str(model.load_all()[1]["mill"])
    monkeypatch.delenv("SWEEPAREA_ENV")
    monkeypatch.setenv("SWEEPAREA_APPS", "shop@dev, shop@prod, mill")
    loaded, broken = model.load_all()
    assert ([one.name for one in loaded], broken) == (["mill", "shop@dev", "shop@prod"], {})
    assert [one.name for one in model.load_all("shop.dev__sales")[0]] == ["shop@dev"]
    cache = model.ApplicationCache()
    assert cache()[0][1].data_folder == "/lake/dev"
    (folder / "sweeparea.toml").write_text(text.replace("/lake/dev", "/lake/test"))
    assert cache()[0][1].data_folder == "/lake/test"


def test_applications_are_folders_with_cql_files_unless_listed(home, monkeypatch):
    (home / "queries" / "empty").mkdir()
    assert model.application_names() == ["mill", "shop"]
    (home / "queries/mill/sweeparea.toml").write_text("scheduled = false\n")
    assert model.application_names() == ["shop"]
    assert model.load("mill").name == "mill"  # by name it is there as ever
    (home / "queries/mill/sweeparea.toml").write_text("scheduled = 'no'\n")
    with pytest.raises(SweepAreaError, match="scheduled is true or false"):
        environments.scheduled(home / "queries/mill")
    assert "scheduled is true or false" in str(model.load_all()[1]["mill"])
    monkeypatch.setenv("SWEEPAREA_APPS", "shop, ghost")
    loaded, broken = model.load_all()
    assert [one.name for one in loaded] == ["shop"]
    assert "application ghost has no .cql files" in str(broken["ghost"])


def test_a_broken_application_names_file_and_line_and_leaves_the_others_alone(home):
    with (home / "queries" / "mill" / "mill.cql").open("a") as file:
        file.write("CREATE CONTINUOUS QUERY wrong AS SELECT FROM;\n")
    loaded, broken = model.load_all()
    assert [one.name for one in loaded] == ["shop"]
    assert "mill.cql:3" in str(broken["mill"])


def test_a_task_loads_only_its_own_application(home):
    assert [one.name for one in model.load_all("mill__recent")[0]] == ["mill"]
    assert model.load_all("milling__recent") == ([], {})


def test_a_backfill_slice_must_be_a_length_of_time(home):
    path = home / "queries" / "shop" / "shop.cql"
    text = path.read_text()
    path.write_text(text.replace("6 hours", "a while"))
    with pytest.raises(SweepAreaError, match="setting backfill_slice cannot be 'a while'"):
        model.load("shop")
    path.write_text("SET backfill_slice = '2 Weeks';\n" + text.replace("  WITH (backfill_slice = '6 hours')\n", ""))
    assert {query.slice for query in model.load("shop").queries.values()} == {timedelta(weeks=2)}


def test_a_query_over_static_relations_only_is_refused(home):
    path = home / "queries" / "shop" / "more.cql"
    path.write_text("CREATE CONTINUOUS QUERY still AS SELECT id FROM products;")
    with pytest.raises(SweepAreaError, match=r"still .* reads only inputs that never change"):
        model.load("shop")


def test_the_cache_parses_again_only_after_a_change(home, monkeypatch):
    cache, loads = model.ApplicationCache(), []
    monkeypatch.setattr(model, "load", lambda name: loads.append(name))
    cache()
    cache()
    assert loads == ["mill", "shop"]
    (home / "queries" / "mill" / "mill.cql").write_text("-- changed")
    cache()
    assert loads == ["mill", "shop"] * 2


def test_how_often_an_application_is_maintained(home):
    assert model.load("shop").maintenance == timedelta(hours=1)
    with (home / "queries" / "shop" / "settings.cql").open("w") as file:
        file.write("SET maintenance.every = '30 minutes';\n")
    assert model.load("shop").maintenance == timedelta(minutes=30)
    with (home / "queries" / "shop" / "settings.cql").open("w") as file:
        file.write("SET maintenance.every = 'often';\n")
    with pytest.raises(SweepAreaError, match=r"settings.cql:1.*maintenance.every cannot be 'often'"):
        model.load("shop")


def test_queries_of_one_dag_are_a_group_with_one_schedule(home):
    path = home / "queries" / "shop" / "shop.cql"
    text = path.read_text().replace("backfill_slice =", "dag = 'hourly', alert_after = '15 minutes', backfill_slice =")
    path.write_text(
        "SET alert_after = '1 hour'; SET parallelism = 3;\n"
        + text.replace("surges AS", "surges WITH (dag = 'hourly') AS")
    )
    shop = model.load("shop")
    assert {name: [query.name for query in members] for name, members in shop.groups.items()} == {
        "hourly": ["sales", "surges"]
    }
    minute = 60_000_000
    assert shop.limits == {"orders": 60 * minute, "sales": 15 * minute, "surges": 60 * minute}  # products are static
    assert (shop.parallelism, shop.watched()["limits"]) == (3, shop.limits)
    path.write_text(path.read_text().replace("backfill_slice =", "schedule = '0 * * * *', backfill_slice ="))
    with pytest.raises(SweepAreaError, match=r"dag = 'hourly' \(sales, surges\) have several schedules"):
        model.load("shop")
    for taken in ("sales", "maintenance", "admit_orders", "alerts"):
        path.write_text(text.replace("'hourly'", f"'{taken}'"))
        with pytest.raises(SweepAreaError, match=rf"dag = '{taken}' of its queries would get the same DAG as"):
            model.load("shop")


def test_plan_tells_who_cannot_be_alerted(home):
    path = home / "queries" / "shop" / "shop.cql"
    text = path.read_text()

    def notes(settings: str) -> list[str]:
        path.write_text(settings + text)
        return [*PlanNotes(Application.open(path.parent), {}, {}, set(), None)._unscheduled()]

    assert notes("") == []
    (note,) = notes("SET alert_after = '1 hour';\n")
    assert "alert_after is set, and notify is not" in note
    (note,) = notes("SET alert_after = '1 hour'; SET notify = 'alerts:on_call';\n")
    assert note.startswith("notify = 'alerts:on_call': nobody can be alerted. There is no Python module alerts.")
    (path.parent / "alerts.py").write_text("on_call = print\n")
    assert notes("SET alert_after = '1 hour'; SET notify = 'alerts:on_call';\n") == []
