"""A real run in Airflow, with its OpenLineage provider and StatsD switched on: what arrives at a file and at a port."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.heartbeats.test_measures import received, receiver
from tests.spark_jobs import shop

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow, pytest.mark.apart]

RUN = """
import sys
from sweeparea.dags.factory import build
from sweeparea.dags.model import load
dags = {dag.dag_id: dag for dag in build(load("market"))}
for dag_id in sys.argv[1:]:
    run = dags[dag_id].test()
    print(dag_id, run.state)
"""
TEXT = (
    shop.STREAM
    + """
CREATE CONTINUOUS QUERY turnover START AT TIMESTAMP '2020-01-01 00:00:00'
  CONSTRAINT few EXPECT (n < 2) ON VIOLATION WARN
AS
SELECT shop, SUM(amount) AS amount, COUNT(*) AS n FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY shop;
CREATE CONTINUOUS QUERY wrong AS SELECT CAST(shop AS INT) AS n FROM sales [NOW];
"""
)


def events(file: Path) -> list[dict[str, Any]]:
    """What the file transport has written."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_run_is_told_with_lineage_and_measures(in_airflow: Callable[..., str], home: Path):
    (home / "queries" / "market").mkdir()
    (home / "queries" / "market" / "market.cql").write_text(TEXT)
    data = home / ".data" / "market"
    for rows in shop.DAYS[:2]:
        shop.sell_to(data / "source" / "sales", rows)
    file = home / "lineage.jsonl"
    with receiver() as sock:
        printed = in_airflow(
            f"import sys\nsys.argv[1:] = ['market__admit_sales', 'market__turnover', 'market__wrong']\n{RUN}",
            AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps({"type": "file", "log_file_path": str(file), "append": True}),
            AIRFLOW__METRICS__STATSD_ON="true",
            AIRFLOW__METRICS__STATSD_HOST="127.0.0.1",
            AIRFLOW__METRICS__STATSD_PORT=str(sock.getsockname()[1]),
        )
        lines = received(sock)
    assert "market__turnover success" in printed
    assert "market__wrong failed" in printed
    jobs: dict[tuple[str, str], dict[str, Any]] = {}
    for event in events(file):
        jobs[event["job"]["name"], event["eventType"]] = event
    start, done = (jobs["market__turnover.process", kind] for kind in ("START", "COMPLETE"))
    assert [(d["namespace"], d["name"]) for d in start["inputs"]] == [("file", str(data / "admitted/sales"))]
    assert [d["name"] for d in start["outputs"]] == [str(data / "results/turnover")]
    (output,) = done["outputs"]
    fields = output["facets"]["columnLineage"]["fields"]
    assert [f["field"] for f in fields["amount"]["inputFields"]] == ["amount"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] > 0
    few = next(a for a in output["facets"]["dataQualityAssertions"]["assertions"] if a["assertion"] == "constraint:few")
    assert not few["success"]
    assert done["job"]["facets"]["sql"]["query"].strip().startswith("CREATE CONTINUOUS QUERY turnover")
    admitted = jobs["market__admit_sales.admit", "COMPLETE"]
    assert [d["name"] for d in admitted["inputs"]] == [str(data / "source/sales")]
    assert admitted["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 7
    failed = jobs["market__wrong.process", "FAIL"]
    assert [d["name"] for d in failed["outputs"]] == [str(data / "results/wrong")]
    mine = {line.split("|")[0] for line in lines if ".sweeparea." in line}
    assert {
        "airflow.sweeparea.market.sales.admitted_rows:7",
        "airflow.sweeparea.market.turnover.slices:1",
        "airflow.sweeparea.market.wrong.failures:1",
    } <= mine
    assert any(line.startswith("airflow.sweeparea.market.turnover.slice_time.compute:") for line in mine)
