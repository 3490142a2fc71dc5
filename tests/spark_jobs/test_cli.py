"""The command line: help, exit codes, errors as one paragraph. Hardly any Spark is started here."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sweeparea.infra import settings
from sweeparea.spark_jobs.commands.cli import main
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication
from tests.spark_jobs import shop

COMMANDS = (
    "plan",
    "apply",
    "admit",
    "process",
    "backfill",
    "heartbeat",
    "quarantine",
    "status",
    "metrics",
    "maintain",
    "check",
    "explain",
    "replay",
    "sql",
    "run",
    "drop",
    "doctor",
)


@pytest.fixture
def sales(tmp_path):
    app = shop.application(tmp_path)
    shop.sell(tmp_path, shop.DAYS[0])
    return [str(tmp_path / "shop"), "--data", str(app.data)]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert len(capsys.readouterr().out) > 200


def test_as_a_module_and_with_wrong_use():
    done = subprocess.run(
        [sys.executable, "-m", "sweeparea", "prcess", "x"], capture_output=True, text=True, cwd=settings.source_root()
    )
    assert done.returncode == 2
    assert "invalid choice: 'prcess'" in done.stderr


def test_an_instant_that_was_forgotten_is_told(capsys, sales):
    with pytest.raises(SystemExit) as ended:
        main(["heartbeat", "advance", sales[0], "sales"])
    assert ended.value.code == 2
    assert "advance APPLICATION NAME INSTANT" in capsys.readouterr().err


def test_status_and_explain_before_anything_ran(capsys, sales):
    assert main(["status", *sales]) == 0
    told = capsys.readouterr().out
    assert f"sales: not admitted yet; run `sweeparea admit {sales[0]} sales --data {sales[2]}`" in told
    assert "turnover: not processed yet; waits for the first heartbeat of sales" in told
    assert main(["explain", *sales, "turnover"]) == 0
    assert "[Range 1 minute Inclusive]" in capsys.readouterr().out
    assert main(["explain", *sales, "SELECT shop FROM sales [NOW] WHERE amount > 3"]) == 0
    assert "amount > 3" in capsys.readouterr().out
    assert main(["explain", "--form", "mermaid", *sales, "turnover"]) == 0
    assert capsys.readouterr().out.startswith("flowchart BT")
    select = "SELECT shop FROM sales [NOW] WHERE amount > 3"
    for text in (f"EXPLAIN {select};", f"CREATE CONTINUOUS QUERY dear AS {select}"):
        assert main(["explain", *sales, text]) == 0
        assert "amount > 3" in capsys.readouterr().out
    assert main(["explain", *sales, "explain continuous query turnover"]) == 0
    assert "[Range 1 minute Inclusive]" in capsys.readouterr().out


def test_inputs_that_have_not_come_to_the_start_of_a_query(capsys, tmp_path):
    started = "CREATE CONTINUOUS QUERY q START AT TIMESTAMP '2020-01-01 12:00:00' AS SELECT shop FROM sales [NOW];"
    app = shop.application(tmp_path, shop.STREAM + started)
    shop.sell(tmp_path, shop.DAYS[0])
    publication = Publication(str(app.data), app.ledger, "sales", NameKind.STREAM, "r1")
    publication.begin()
    publication.commit(shop.tick(-60), info={"source_version": 0})
    assert main(["status", str(tmp_path / "shop"), "--data", str(app.data)]) == 0
    told = "q: not processed yet; waits for its START, 2020-01-01 12:00:00: sales is at 2020-01-01 11:59:00"
    assert told in capsys.readouterr().out


@pytest.mark.spark
def test_a_query_that_waits_has_not_been_processed(capsys, sales, spark):
    assert main(["process", *sales, "turnover"]) == 0
    assert "turnover: nothing to do, not processed yet; sales has not run yet" in capsys.readouterr().out


def test_commands_in_hints_name_the_application_as_it_was_given(capsys, sales, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["status", "./shop"]) == 0
    assert "run `sweeparea admit ./shop sales`" in capsys.readouterr().out
    (tmp_path / "my shop").symlink_to(tmp_path / "shop")
    (tmp_path / "shop" / "sweeparea.toml").write_text('[dev]\ndata = "../data"\n')
    assert main(["explain", "my shop@dev", "sales"]) == 2
    assert "sweeparea run 'my shop@dev' -c 'DESCRIBE sales'" in capsys.readouterr().err
    assert main(["status", "my shop", "--env", "dev"]) == 0
    assert "run `sweeparea admit 'my shop' sales --env dev`" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["explain", "SELECT shp FROM sales"], 2, "column shp is unknown"),
        (["explain", "sales"], 2, "sales is a stream, not a continuous query"),
        (["explain", "SELECT shop FROM sale"], 2, "sale is no stream, relation or query. Did you mean sales?"),
        (
            ["explain", "CREATE CONTINUOUS QUERY q CONSTRAINT c EXPECT (m > 1) AS SELECT items AS n FROM sales"],
            2,
            "1:48: ",
        ),
        (["explain", "CREATE STREAM t FROM DELTA 't' TIMESTAMP BY at"], 2, "no query to explain"),
        (["explain", "EXPLAIN SELECT 1 AS a; EXPLAIN SELECT 2 AS a"], 2, "no query to explain"),
        (["explain", ""], 2, "the query is empty"),
        (["explain", "turnovr"], 2, "Did you mean turnover?"),
        (["admit", "sale"], 2, "Did you mean sales?"),
        (["process", "nothing"], 2, "no continuous query named nothing"),
        (["heartbeat", "sales", "2020-01-01"], 1, "HEARTBEAT MANUAL"),
        (["sql", "-c", "SELECT * FROM turnover"], 1, "Tables of shop: none yet"),
        (["process", "turnover", "--until", "noon"], 2, "noon is no instant"),
        (["drop", "nothing"], 2, "nothing named nothing"),
    ],
)
def test_errors_are_one_readable_paragraph(capsys, sales, arguments, code, said):
    command, *rest = arguments
    assert main([command, *sales, *rest]) == code
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.startswith("sweeparea: ")
    assert "Traceback" not in told.err + told.out


def test_a_missing_application_and_unreadable_cases(capsys, tmp_path):
    assert main(["status", str(tmp_path / "nowhere")]) == 2
    assert "There is no application" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "nothing.jsonl")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_all_mistakes_of_a_file_are_told_at_once(capsys, tmp_path):
    text = shop.STREAM.replace("TIMESTAMP BY", "TIMESTAMPP BY") + shop.QUERY.replace("FROM sales", "FRM sales")
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.cql").write_text(text)
    assert main(["status", str(folder)]) == 2
    told = capsys.readouterr().err
    assert "shop.cql:2:" in told
    assert "shop.cql:7:" in told or "shop.cql:8:" in told


def test_the_stack_trace_only_when_asked(sales):
    with pytest.raises(Exception, match="Did you mean sales"):
        main(["admit", *sales, "sale", "--debug"])


def test_a_backfill_of_what_has_not_run_is_told_so(sales, capsys):
    assert main(["backfill", *sales[:1], "turnover", "--dry-run", *sales[1:]]) == 2
    assert "has not computed anything yet" in capsys.readouterr().err
    assert main(["backfill", *sales[:1], "turnovr", "--dry-run", *sales[1:]]) != 0
    assert "turnover" in capsys.readouterr().err
