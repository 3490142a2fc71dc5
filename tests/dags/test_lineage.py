"""OpenLineage: names of datasets, facets of a lineage, and that a task without the provider knows nothing of it."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from openlineage.client.serde import Serde

from sweeparea.dags import lineage, tasks
from sweeparea.dags.operator import SweepAreaOperator
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.influence import Influence
from sweeparea.spark_jobs.commands.lineage import Judged, Lineage, Table, WrittenTable

ORDERS, SALES = "s3a://lake/shop/admitted/orders", "/data/shop/results/sales"
FOUND = Lineage(
    (Table(ORDERS, (("kind", "string"), ("price", "double"))),),
    (
        WrittenTable(
            Table(SALES, (("kind", "string"), ("total", None))),
            {
                "kind": {(ORDERS, "kind"): frozenset({Influence.IDENTITY})},
                "total": {(ORDERS, "price"): frozenset({Influence.AGGREGATION, Influence.FILTER})},
            },
            {(ORDERS, "kind"): frozenset({Influence.GROUP_BY})},
            7,
            (Judged("law:columns", None, False, 0), Judged("constraint:few", "total", True, 3)),
        ),
    ),
    "CREATE CONTINUOUS QUERY sales AS ..",
)


@pytest.mark.parametrize(
    ("address", "namespace", "name"),
    [
        ("/data/shop/results/sales", "file", "/data/shop/results/sales"),
        ("/data/ä b/sales/", "file", "/data/ä b/sales"),
        ("/", "file", "/"),
        ("file:///data/sales", "file", "/data/sales"),
        ("s3://lake/shop/sales", "s3://lake", "shop/sales"),
        ("s3a://lake/shop/a#b?c", "s3://lake", "shop/a#b?c"),
        ("s3n://lake", "s3://lake", "/"),
        ("gs://lake/shop", "gs://lake", "shop"),
        ("abfss://box@me.dfs.core.windows.net/shop", "abfss://box@me.dfs.core.windows.net", "shop"),
        ("hdfs://node:8020/shop/sales", "hdfs://node:8020", "/shop/sales"),
    ],
)
def test_datasets_are_named_by_the_rules(address, namespace, name):
    assert lineage.dataset_name(address) == (namespace, name)


def test_facets_of_a_run():
    told = lineage.facets([FOUND])
    orders, sales = (json.loads(Serde.to_json(each)) for each in (*told.inputs, *told.outputs))
    assert (orders["namespace"], orders["name"]) == ("s3://lake", "shop/admitted/orders")
    assert [(f["name"], f["type"]) for f in orders["facets"]["schema"]["fields"]] == [
        ("kind", "string"),
        ("price", "double"),
    ]
    assert (sales["namespace"], sales["name"]) == ("file", SALES)
    facet = sales["facets"]["columnLineage"]

    def fields(given):
        return [
            (f["namespace"], f["name"], f["field"], [(t["type"], t["subtype"]) for t in f["transformations"]])
            for f in given
        ]

    where = ("s3://lake", "shop/admitted/orders")
    assert {column: fields(each["inputFields"]) for column, each in facet["fields"].items()} == {
        "kind": [(*where, "kind", [("DIRECT", "IDENTITY")])],
        "total": [(*where, "price", [("DIRECT", "AGGREGATION"), ("INDIRECT", "FILTER")])],
    }
    assert fields(facet["dataset"]) == [(*where, "kind", [("INDIRECT", "GROUP_BY")])]
    assert sales["outputFacets"]["outputStatistics"]["rowCount"] == 7
    law, few = sales["facets"]["dataQualityAssertions"]["assertions"]
    assert (law["assertion"], law["success"], law["severity"]) == ("law:columns", True, "error")
    assert (few["assertion"], few["success"], few["column"], few["severity"], few["actual"]) == (
        "constraint:few",
        False,
        "total",
        "warn",
        "3",
    )
    assert told.job_facets["sql"].query == FOUND.text


def test_a_group_is_one_job_of_several_queries():
    other = Lineage((FOUND.outputs[0].table,), (WrittenTable(Table("/data/shop/results/top")),), "CREATE ..")
    told = lineage.facets([FOUND, other])
    assert [each.name for each in told.inputs] == ["shop/admitted/orders", SALES]
    assert [each.name for each in told.outputs] == [SALES, "/data/shop/results/top"]
    assert told.job_facets["sql"].query.count("CREATE") == 2
    assert not lineage.facets([]).job_facets


class TestTasksAndLineage:
    @pytest.fixture
    def listening(self, monkeypatch):
        """As if the provider were there and switched on; ``gathered`` says what it is asked for."""
        asked = []
        monkeypatch.setattr(lineage, "wanted", lambda: True)
        monkeypatch.setattr(lineage, "commits", lambda app, names: dict.fromkeys(names, 4))
        monkeypatch.setattr(lineage, "gathered", lambda app, since: asked.append((app, dict(since))) or [FOUND])
        return asked

    def run(self, monkeypatch, job, action="process"):
        monkeypatch.setattr(tasks, action, job)
        operator = SweepAreaOperator(task_id="t", app="shop", subject="sales", action=action)
        run = SimpleNamespace(data_interval_start=None, data_interval_end=None, conf=None)
        return operator, {"dag_run": run, "ti": None}

    def test_a_task_gathers_what_it_has_committed(self, monkeypatch, listening):
        operator, context = self.run(monkeypatch, lambda *_: {})
        operator.execute(context)
        assert listening == [("shop", {"sales": 4})]
        assert operator.get_openlineage_facets_on_complete(None).outputs[0].name == SALES

    def test_a_task_that_fails_tells_what_stands(self, monkeypatch, listening):
        def fail(*_):
            raise SweepAreaError("no")

        operator, context = self.run(monkeypatch, fail)
        with pytest.raises(SweepAreaError):
            operator.execute(context)
        assert listening == [("shop", {"sales": 4})]
        assert operator.get_openlineage_facets_on_failure(None).outputs[0].name == SALES

    def test_before_a_run_no_table_is_opened(self, monkeypatch, home):
        def opened(*_: object, **__: object) -> None:
            raise AssertionError("a table was opened")

        monkeypatch.setattr("deltalake.DeltaTable.__init__", opened)
        for action, subject, inputs, outputs in (
            ("admit", "orders", ["source/orders"], ["admitted/orders"]),
            ("admit", "products", ["/elsewhere/products"], ["admitted/products"]),
            ("process", "sales", ["admitted/orders", "admitted/products"], ["results/sales"]),
            ("process", "surges", ["results/sales"], ["results/surges"]),
        ):
            operator = SweepAreaOperator(task_id="t", app="shop", subject=subject, action=action)
            told, data = operator.get_openlineage_facets_on_start(), home / ".data" / "shop"
            assert [each.name for each in told.inputs] == [str(data / table) for table in inputs]
            assert [each.name for each in told.outputs] == [str(data / table) for table in outputs]

    def test_maintenance_has_none(self, monkeypatch, listening):
        operator, context = self.run(monkeypatch, lambda *_: {}, "maintain")
        operator.execute(context)
        assert listening == [("shop", {})]

    def test_lineage_that_cannot_be_had_fails_no_task(self, monkeypatch, home, caplog):
        monkeypatch.setattr(lineage, "wanted", lambda: True)
        operator, context = self.run(monkeypatch, lambda *_: {"slices": 1})
        operator.subject = "nobody"
        assert operator.execute(context) == {"slices": 1}
        assert operator.read_and_written == []
        assert "The lineage of shop.nobody is not told" in caplog.text

    def test_nobody_listens_unless_airflow_has_loaded_the_listener(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "airflow.providers.openlineage.plugins.listener", raising=False)
        assert not lineage.wanted()


@pytest.mark.airflow
def test_without_the_provider_nothing_of_it_is_imported(in_airflow):
    text = """
import sys

class Gone:
    def find_spec(self, name, path=None, target=None):
        # Airflow itself asks every package that is installed what it provides
        if name.split(".")[0] == "openlineage" or name.startswith("airflow.providers.openlineage."):
            if not name.endswith("get_provider_info"):
                raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Gone())
from types import SimpleNamespace
from sweeparea.dags import tasks
from sweeparea.dags.operator import SweepAreaOperator
tasks.process = lambda *_: {"slices": 1}
operator = SweepAreaOperator(task_id="t", app="shop", subject="sales", action="process")
run = SimpleNamespace(data_interval_start=None, data_interval_end=None, conf=None)
print(operator.execute({"dag_run": run, "ti": None}))
print([name for name in sys.modules if name.startswith(("openlineage", "airflow.providers.openlineage.plugins"))])
"""
    assert in_airflow(text).split("\n")[-3:-1] == ["{'slices': 1}", "[]"]
