"""An application by its folder in any Airflow: three lines of a DAG file, entry points, the provider's metadata."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from sweeparea.dags import model
from sweeparea.dags.own_dags import application_dags, checked
from sweeparea.dags.provider import get_provider_info
from sweeparea.infra import environments
from sweeparea.infra.dag_names import dag_prefix, lineage_uri
from sweeparea.infra.errors import UsageError

TOML = 'default = "prod"\n[prod]\ndata = "/lake/shop"\n[test]\ndata = "/lake/test"\n'


@pytest.fixture
def shop(home: Path) -> Path:
    """An application that lies in no ``queries`` folder."""
    folder = home / "elsewhere" / "shop"
    folder.parent.mkdir()
    (home / "queries" / "shop").rename(folder)
    return folder


def test_an_application_is_loaded_by_its_path(shop: Path):
    loaded = model.load(str(shop))
    assert (loaded.name, loaded.place, loaded.data_folder) == ("shop", str(shop), str(shop / ".data"))
    assert loaded.sources["orders"].uri == str(shop / ".data" / "source" / "orders")
    (shop / environments.FILE).write_text(TOML)
    assert model.load(str(shop)).data_folder == "/lake/shop"
    tested = model.load(f"{shop}@test")
    assert (tested.name, tested.place, tested.data_folder) == ("shop@test", f"{shop}@test", "/lake/test")
    assert dag_prefix(tested.place) == "shop.test"
    assert lineage_uri(tested.place, "q") == lineage_uri(tested.name, "q") == "x-sweeparea://shop.test/table/q"


def test_a_link_to_a_folder_stays_a_link_whose_target_may_be_exchanged(shop: Path):
    link = shop.parent / "current"
    link.symlink_to(shop)
    assert model.load(str(link)).place == str(link)


def test_applications_may_be_listed_by_path(shop: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWEEPAREA_APPS", f"mill,{shop}")
    loaded, broken = model.load_all()
    assert ([one.name for one in loaded], broken) == (["shop", "mill"], {})
    assert [one.name for one in model.load_all("shop__sales")[0]] == ["shop"]
    assert model.ApplicationCache()()[0] == loaded


def test_settings_of_dags_stand_in_for_those_of_the_files(shop: Path):
    with (shop / "shop.cql").open("a") as file:
        file.write("SET retries = 7; SET owner = 'ann';\n")
    chosen = model.load(str(shop), checked({"retries": "3", "python": "/opt/s/bin/python"})).queries["sales"]
    assert (chosen.scheduling.retries, chosen.scheduling.owner) == (3, "ann")
    assert chosen.scheduling.python == "/opt/s/bin/python"
    for wrong in ({"range_bounds": "exclusive"}, {"retry": "3"}, {"python": "python3"}, {"retries": "x"}):
        with pytest.raises(UsageError, match="application_dags: "):
            checked(wrong)


def test_a_relative_path_is_refused():
    for wrong in ("./shop", "../shop", "~/shop", "apps/shop"):
        with pytest.raises(UsageError, match="absolute path"):
            application_dags(wrong)


def test_airflow_finds_plugin_and_provider_by_entry_points():
    plugins = entry_points(group="airflow.plugins", name="sweeparea")
    providers = [e.value for e in entry_points(group="apache_airflow_provider") if e.value.startswith("sweeparea.")]
    assert [e.value for e in plugins] == ["sweeparea.dags.plugins.sweeparea_plugin:SweepAreaPlugin"]
    assert providers == ["sweeparea.dags.provider:get_provider_info"]


def test_the_metadata_is_as_airflow_wants_it_and_names_what_there_is():
    import importlib

    import airflow
    import jsonschema

    info = get_provider_info()
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(info, schema)
    for part in ("operators", "sensors", "triggers", "hooks"):
        for module in info[part][0]["python-modules"]:
            importlib.import_module(module)
    for kind in info["connection-types"]:
        module, _, name = kind["hook-class-name"].rpartition(".")
        hook = getattr(importlib.import_module(module), name)
        assert (hook.conn_type, hook.hook_name) == (kind["connection-type"], kind["hook-name"])


PLAIN = """
import json
from pathlib import Path
from airflow.dag_processing.dagbag import DagBag
from airflow.plugins_manager import get_import_errors, get_timetables_plugins
from airflow.providers_manager import ProvidersManager
from airflow.serialization.serialized_objects import DagSerialization
import sys
folder = Path({folder!r})
bag = DagBag(str(folder))
heavy = [m for m in ("pyspark", "great_expectations", "numba", "deltalake", "pandas") if m in sys.modules]
stored = json.loads(json.dumps(DagSerialization.to_dict(bag.dags["shop__sales"])))
hooks = ProvidersManager().hooks
print("RESULT", json.dumps({{
    "dags": sorted(bag.dags), "errors": {{k.rsplit("/", 1)[-1]: v for k, v in bag.import_errors.items()}},
    "heavy": heavy, "summary": DagSerialization.from_dict(stored).timetable.summary, "plugins": get_import_errors(),
    "timetables": sorted(get_timetables_plugins()),
    "types": sorted(name for name in hooks if name.startswith("sweeparea")),
    "names": [hooks[name].hook_name for name in ("sweeparea_spark", "sweeparea_storage")],
}}))
"""


@pytest.mark.airflow
def test_three_lines_make_dags_in_a_plain_airflow(shop: Path, in_airflow, tmp_path: Path):
    folder = tmp_path / "dags"
    folder.mkdir()
    lines = '"""Airflow: the DAGs of {0}."""\nfrom sweeparea.dags import application_dags\n'
    (folder / "shop.py").write_text(f"{lines}globals().update(application_dags({str(shop)!r}))\n")
    (folder / "mill.py").write_text(f"{lines}globals().update(application_dags('/no/such/mill'))\n")
    told = json.loads(
        next(line for line in in_airflow(PLAIN.format(folder=str(folder))).splitlines() if line.startswith("RESULT "))[
            7:
        ]
    )
    names = ["admit_orders", "admit_products", "maintenance", "sales", "surges"]
    assert told["dags"] == [f"shop__{name}" for name in names]
    assert list(told["errors"]) == ["mill.py"]
    assert "no .cql files in /no/such/mill" in told["errors"]["mill.py"]
    assert (told["heavy"], told["summary"], told["plugins"]) == ([], "Heartbeat", {})
    assert told["timetables"] == ["sweeparea.dags.timetables.HeartbeatSchedule"]
    assert told["types"] == ["sweeparea_spark", "sweeparea_storage"]
    assert told["names"] == ["SweepArea: Spark", "SweepArea: object store"]
