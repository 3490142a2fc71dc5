"""What programs are told of an application: status as JSON, metrics for Prometheus, lineage with rows and verdicts."""

from __future__ import annotations

import json
import math
import os
import stat
from datetime import datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sweeparea.operators.plan.influence import Influence
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.cli import main
from sweeparea.spark_jobs.commands.lineage import Lineage, lineage
from sweeparea.spark_jobs.commands.prometheus_text import Metric, exposition, write_whole
from sweeparea.spark_jobs.commands.status_json import InputState, QueryState
from sweeparea.spark_jobs.orchestration.process import process
from tests.spark_jobs import shop

TEXT = (
    shop.STREAM
    + """
CREATE CONTINUOUS QUERY turnover START AT TIMESTAMP '2020-01-01 00:00:00' MATERIALIZE RELATION, ISTREAM
  CONSTRAINT few EXPECT (n < 2) ON VIOLATION WARN
AS
SELECT shop, SUM(amount) AS amount, MAX(items) AS most, COUNT(*) AS n FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY
shop;
CREATE CONTINUOUS QUERY large AS SELECT shop, amount FROM turnover WHERE amount > 1;
CREATE CONTINUOUS QUERY never AS SELECT shop FROM returns [NOW];
CREATE STREAM returns FROM DELTA 'source/returns' TIMESTAMP BY at HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS;
"""
)
FOLDER = 'la "Großstadt" \\ n'
"""An application's name that has to be escaped."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def measured(spark, tmp_path_factory) -> Application:
    """An application with a query that has run, one that reads it, and one whose stream has no source."""
    folder = tmp_path_factory.mktemp("measured")
    made = shop.application(folder, TEXT)
    named = folder / FOLDER
    (folder / "shop").rename(named)
    app = Application.open(named, made.data)
    for rows in shop.DAYS[:2]:
        shop.sell(folder, rows)
        admit(app, "sales", spark)
    process(app, "turnover", spark)
    shop.sell(folder, shop.DAYS[2])
    return app


def arguments(app: Application) -> list[str]:
    return [str(app.folder), "--data", str(app.data)]


def samples(text: str) -> Samples:
    """By name and labels the values of a text that Prometheus' own parser reads; no series is there twice."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("gauge", "counter")
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def value(found: Samples, metric: str, **labels: str) -> float:
    """The one sample of a metric that has these labels."""
    (only,) = (
        v for (name, has), v in found.items() if name == f"sweeparea_{metric}" and labels.items() <= dict(has).items()
    )
    return only


@pytest.mark.spark
class TestProgramsAreTold:
    def test_status_as_json(self, measured, capsys):
        assert main(["status", *arguments(measured), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["format"], told["application"], told["alerts"]) == (1, FOLDER, [])
        sales, returns = told["inputs"]
        assert (sales["state"], sales["heartbeat"], sales["rows"], sales["quarantined"]) == (
            "behind",
            "2020-01-01T12:01:19Z",
            7,
            2,
        )
        assert (sales["source_version"], sales["source_newest_version"], sales["commits"]) == (1, 2, 2)
        assert (returns["state"], returns["heartbeat"], returns["commits"]) == ("not_admitted", None, 0)
        by_name = {each["name"]: each for each in told["queries"]}
        turnover, large, never = (by_name[name] for name in ("turnover", "large", "never"))
        assert (turnover["state"], turnover["committed"], turnover["behind_seconds"]) == (
            "current",
            "2020-01-01T12:01:19Z",
            0,
        )
        assert turnover["waits_for"] == ["sales"]
        assert turnover["lag_seconds"] == pytest.approx(sales["heartbeat_age_seconds"])
        assert set(turnover["last_slice"]["phases"]) == {"plan", "compute", "stage", "quality"}
        assert turnover["verdict"]["warnings"] == {"constraint:few": turnover["verdict"]["warnings"]["constraint:few"]}
        assert turnover["verdict"]["warnings"]["constraint:few"] > 0
        assert all(area["rows"] >= 0 and area["bytes"] >= 0 for area in turnover["state_areas"].values())
        assert (large["state"], large["committed"], large["last_slice"]) == ("ready", None, None)
        assert never["state"] == "cannot_run"
        assert "returns" in never["problem"]
        assert datetime.fromisoformat(told["at"]).tzinfo is not None

    def test_metrics_are_what_prometheus_reads(self, measured, capsys):
        assert main(["metrics", *arguments(measured)]) == 0
        found = samples(capsys.readouterr().out)
        assert all(dict(labels)["application"] == FOLDER for _, labels in found)
        assert value(found, "up") == 1
        heartbeat = datetime.fromisoformat("2020-01-01T12:01:19+00:00").timestamp()
        assert value(found, "heartbeat_timestamp_seconds", name="sales") == heartbeat
        assert value(found, "committed_timestamp_seconds", query="turnover") == heartbeat
        assert value(found, "heartbeat_age_seconds", name="sales") > 1e8
        assert value(found, "source_newest_version", name="sales") - value(found, "source_version", name="sales") == 1
        assert value(found, "admitted_rows", name="sales") == 7
        assert value(found, "quarantined_rows", name="sales") == 2
        assert value(found, "behind_seconds", query="turnover") == 0
        assert value(found, "commits_total", name="sales", kind="stream") == 2
        assert value(found, "verdict_warnings", query="turnover", check="constraint:few") > 0
        assert value(found, "slice_seconds", query="turnover", phase="compute") > 0
        for metric, states, names in (
            ("input_state", InputState, {"name": "sales"}),
            ("query_state", QueryState, {"query": "never"}),
        ):
            assert sum(value(found, metric, **names, state=state.value) for state in states) == 1
        assert value(found, "query_state", query="never", state="cannot_run") == 1
        # what never ran has no instant, rather than a wrong one
        assert not any(name == "sweeparea_lag_seconds" and ("query", "large") in labels for name, labels in found)

    def test_one_that_is_broken_hides_no_other(self, measured, tmp_path, capsys):
        broken = tmp_path / "broken"
        broken.mkdir()
        (broken / "x.cql").write_text("CREATE CONTINUOUS QUERY q AS SELECT FROM;")
        good = tmp_path / "good"
        good.symlink_to(measured.folder)
        (measured.folder / ".data").symlink_to(measured.data)
        target = tmp_path / "out" / "metrics.prom"
        target.parent.mkdir()
        try:
            code = main(["metrics", str(broken), str(good), str(tmp_path / "gone"), str(good), "--output", str(target)])
        finally:
            (measured.folder / ".data").unlink()
        told = capsys.readouterr()
        assert code == 2
        assert told.out == ""
        assert "x.cql:1" in told.err
        assert "There is no application" in told.err
        found = samples(target.read_text())
        assert (value(found, "up", application="broken"), value(found, "up", application="gone")) == (0, 0)
        assert value(found, "up", application=FOLDER) == 1
        assert stat.S_IMODE(target.stat().st_mode) == 0o644
        assert list(target.parent.iterdir()) == [target]

    def test_lineage_of_a_run(self, measured):
        found = lineage(measured, "turnover", 0)
        admitted, results = (str(measured.data / where) for where in ("admitted/sales", "results/turnover"))
        relation, istream = found.outputs
        assert [table.address for table in found.inputs] == [admitted]
        assert (relation.table.address, istream.table.address) == (results, f"{results}__istream")
        assert relation.made["amount"] == {(admitted, "amount"): frozenset({Influence.AGGREGATION})}
        assert relation.made["n"] == {}
        assert relation.made["valid_from"] == {(admitted, "__tick"): frozenset({Influence.TRANSFORMATION})}
        assert relation.decided == {(admitted, "shop"): frozenset({Influence.GROUP_BY})}
        assert set(relation.made) == {column for column, _ in relation.table.columns}
        info = measured.ledger.head()["turnover"].of_query
        assert relation.rows == info.rows["closed"] + info.rows["open"]
        assert istream.rows == info.rows["istream"]
        few = {check.name: check for check in relation.checks}["constraint:few"]
        assert few.warns
        assert few.broken > 0
        assert [check.broken for check in relation.checks if not check.warns] == [0, 0, 0, 0]

    def test_lineage_of_what_was_not_run_and_of_a_stream(self, measured):
        large = lineage(measured, "large")
        results = str(measured.data / "results/turnover")
        (written,) = [w for w in large.outputs if w.table.address.endswith("/large")]
        assert (written.rows, written.checks) == (None, ())
        assert written.made["amount"] == {(results, "amount"): frozenset({Influence.IDENTITY})}
        assert (results, "amount") in written.decided
        assert set(written.made["valid_from" if "valid_from" in written.made else "ts"]) == {
            (results, "valid_from"),
            (results, "valid_to"),
        }
        sales: Lineage = lineage(measured, "sales", 0)
        source = str(measured.data / "source/sales")
        admitted, quarantine = sales.outputs
        assert [table.address for table in sales.inputs] == [source]
        assert admitted.made["amount"] == {(source, "amount"): frozenset({Influence.IDENTITY})}
        assert admitted.made["__tick"] == {(source, "at"): frozenset({Influence.TRANSFORMATION})}
        assert (admitted.rows, quarantine.rows) == (7, 2)
        assert lineage(measured, "sales", 1).outputs[0].rows == 3


class TestBadInputOfMeasures:
    def test_a_data_folder_that_is_not_there(self, tmp_path, capsys):
        shop.application(tmp_path)
        folder = str(tmp_path / "shop")
        for command in (["status", folder, "--json"], ["status", folder], ["metrics", folder]):
            assert main([*command, "--data", str(tmp_path / "away")]) == 2
            told = capsys.readouterr()
            assert "has no data folder" in told.err
            assert str(tmp_path / "away") in told.err

    def test_what_never_ran_is_told_as_such(self, tmp_path, capsys):
        app = shop.application(tmp_path)
        assert main(["status", str(app.folder), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert [each["state"] for each in told["inputs"]] == ["not_admitted"]

    def test_one_folder_for_two_applications(self, tmp_path, capsys):
        assert main(["metrics", "a", "b", "--data", str(tmp_path)]) == 2
        assert "--data" in capsys.readouterr().err

    def test_two_of_one_name_cannot_be_told_apart(self, tmp_path, capsys):
        for parent in ("one", "two"):
            (tmp_path / parent / "shop" / ".data").mkdir(parents=True)
            (tmp_path / parent / "shop" / "shop.cql").write_text(shop.STREAM)
        assert main(["metrics", *(str(tmp_path / parent / "shop") for parent in ("one", "two"))]) == 2
        told = capsys.readouterr()
        assert "Two of these applications are called shop" in told.err
        assert value(samples(told.out), "up") == 1

    @pytest.mark.parametrize("target", [".", "missing/x.prom"])
    def test_a_file_that_cannot_be(self, tmp_path, target, capsys):
        (tmp_path / "shop" / ".data").mkdir(parents=True)
        (tmp_path / "shop" / "shop.cql").write_text(shop.STREAM)
        assert main(["metrics", str(tmp_path / "shop"), "--output", str(tmp_path / target)]) == 2
        assert str(tmp_path / target) in capsys.readouterr().err


class TestPrometheusText:
    def test_what_is_written_is_read_again(self):
        odd = ['a "b"', "back\\slash", "two\nlines", "Größe 漢字 🙂", "", "{}=,#", "\udcff"]
        values = [0, -1, 0.1, 1e300, 123456789012345678, math.inf, -math.inf]
        metric = Metric("m", 'Help with \\ and "quotes"\nin two lines.')
        for text, number in zip(odd, values, strict=True):
            metric.add(number, label=text)
        metric.add(None, label="not known")
        (family,) = text_string_to_metric_families(exposition([metric, Metric("empty", "Nothing.")]))
        assert [sample.labels["label"] for sample in family.samples] == [*odd[:-1], "\ufffd"]
        assert [sample.value for sample in family.samples] == values
        assert family.documentation == metric.help

    def test_a_file_is_replaced_whole_or_stays(self, tmp_path, monkeypatch):
        target = tmp_path / "x.prom"
        target.write_text("before")
        link = tmp_path / "link.prom"
        link.symlink_to(target)
        write_whole(link, "after")
        assert (target.read_text(), link.is_symlink()) == ("after", True)

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(Exception, match="No space left on device"):
            write_whole(target, "never")
        assert target.read_text() == "after"
        assert sorted(p.name for p in Path(tmp_path).iterdir()) == ["link.prom", "x.prom"]
