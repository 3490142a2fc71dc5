"""Statements above SELECT, and the catalog that a folder of them makes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.binding.source_expressions import bind_source_expression
from sweeparea.cql.declarations.catalog import Catalog
from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.text.errors import BindError, CqlErrors, ParseError, RefusedError
from sweeparea.infra.errors import SetupError
from sweeparea.operators.time.domain import TimeDomain

APPLICATION = """
CREATE OR REPLACE STREAM flights
  FROM DELTA 'data/flights'                         -- a path
  TIMESTAMP BY departed
  CHRONON INTERVAL 1 SECOND
  SEQUENCE BY id
  HEARTBEAT FOR departed AS departed - INTERVAL 30 MINUTES   /* bounded disorder */
  MAX AHEAD INTERVAL 1 DAY
  LATE REJECT
  ON SOURCE CHANGE FAIL
  RETAIN INTERVAL 400 DAYS
  CONSTRAINT known_origin EXPECT (origin IS NOT NULL) ON VIOLATION QUARANTINE ROW
  CONSTRAINT delay EXPECT (abs(dep_delay) < 3000) ON VIOLATION WARN;

CREATE RELATION planes FROM DELTA main.air.planes STATIC;

CREATE OR REPLACE CONTINUOUS QUERY delayed_routes
  START AT TIMESTAMP '2013-01-01 00:00:00'
  MATERIALIZE RELATION, ISTREAM, DSTREAM
  CONSTRAINT delay_sane EXPECT (avg_delay BETWEEN -120 AND 3000) ON VIOLATION FAIL UPDATE
  WITH (strict = true, range_bounds = 'exclusive', slice.max_rows = 1000)
AS
SELECT origin, dest, AVG(dep_delay) AS avg_delay, COUNT(*) AS n
FROM flights [RANGE INTERVAL 6 HOURS SLIDE INTERVAL 1 HOUR]
GROUP BY origin, dest HAVING COUNT(*) >= 5;
"""


def test_the_example_of_the_language() -> None:
    stream, relation, query = parse_text(APPLICATION, "app.cql")
    assert isinstance(stream, st.CreateStream)
    assert (stream.name, stream.source.uri, stream.timestamp_by, stream.sequence_by) == (
        "flights",
        "data/flights",
        "departed",
        "id",
    )
    assert (stream.chronon_us, stream.max_ahead, stream.retain) == (10**6, 86_400 * 10**6, 400 * 86_400 * 10**6)
    assert (stream.late, stream.on_source_change, stream.replace) == ("reject", "fail", True)
    assert stream.heartbeat is not None
    assert stream.heartbeat.expression is not None
    assert (stream.heartbeat.kind, stream.heartbeat.column) == ("for", "departed")
    assert stream.heartbeat.expression.text == "departed - INTERVAL 30 MINUTES"
    assert [(c.name, c.on_violation, c.expression.text) for c in stream.constraints] == [
        ("known_origin", "quarantine", "origin IS NOT NULL"),
        ("delay", "warn", "abs(dep_delay) < 3000"),
    ]
    assert str(stream.place) == "app.cql:2:1"
    assert isinstance(relation, st.CreateRelation)
    assert (relation.source.uri, relation.contents) == ("main.air.planes", "static")
    assert isinstance(query, st.CreateQuery)
    assert [k for k, _ in query.materialize] == ["relation", "istream", "dstream"]
    assert query.settings == (("strict", "true"), ("range_bounds", "exclusive"), ("slice.max_rows", "1000"))
    assert "-- a path" not in stream.text


@pytest.mark.parametrize(
    ("clause", "kind", "lag"),
    [
        ("EACH BATCH", "each_batch", 0),
        ("FROM COLUMN hb", "column", 0),
        ("FROM CLOCK LAG INTERVAL 1 MINUTE", "clock", 60 * 10**6),
        ("FROM CLOCK", "clock", 0),
        ("MANUAL", "manual", 0),
    ],
)
def test_heartbeats(clause: str, kind: str, lag: int) -> None:
    [stream] = parse_text(f"CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t HEARTBEAT {clause}")
    assert isinstance(stream, st.CreateStream)
    assert stream.heartbeat is not None
    assert (stream.heartbeat.kind, stream.heartbeat.lag) == (kind, lag)


def one(text: str) -> st.Statement:
    [statement] = parse_text(text)
    return statement


STREAM = "CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t "
RELATION = "CREATE RELATION r FROM DELTA 'p' "


def test_heartbeats_of_many_sources_and_of_python() -> None:
    per = one(STREAM + "HEARTBEAT PER k AS t - INTERVAL 5 MINUTES IDLE AFTER INTERVAL 10 MINUTES")
    assert isinstance(per, st.CreateStream)
    assert per.heartbeat is not None
    assert per.heartbeat.expression is not None
    assert (per.heartbeat.kind, per.heartbeat.column, per.heartbeat.idle) == ("per", "k", 600 * 10**6)
    assert per.heartbeat.expression.text == "t - INTERVAL 5 MINUTES"
    policy = one(STREAM + "HEARTBEAT POLICY 'mine'")
    assert isinstance(policy, st.CreateStream)
    assert policy.heartbeat is not None
    assert (policy.heartbeat.kind, policy.heartbeat.policy) == ("policy", "mine")


def test_faults_of_data() -> None:
    stream = one(
        STREAM + "DEDUPLICATE BY a, b WITHIN INTERVAL 1 DAY LATE REPAIR WITHIN INTERVAL 2 DAYS ON SOURCE CHANGE CORRECT"
    )
    assert isinstance(stream, st.CreateStream)
    assert stream.deduplicate is not None
    assert stream.deduplicate.columns == ("a", "b")
    assert stream.deduplicate.within.in_micros("WITHIN") == 86_400 * 10**6
    assert stream.late_within is not None
    assert (stream.late, stream.late_within.in_micros("WITHIN")) == ("repair", 2 * 86_400 * 10**6)
    assert stream.on_source_change == "correct"
    assert stream.places["late"].column == len(STREAM) + len("DEDUPLICATE BY a, b WITHIN INTERVAL 1 DAY ") + 1
    ticks = one(STREAM + "LATE REPAIR WITHIN 100")
    assert isinstance(ticks, st.CreateStream)
    assert ticks.late_within is not None
    assert ticks.late_within.in_ticks(TimeDomain(), "WITHIN") == 100


def test_sources_of_any_format() -> None:
    stream = one(
        "CREATE STREAM s FROM FORMAT 'json' OPTIONS (multiLine = true, max.files 10) PATH 'dir' "
        "SCHEMA (id BIGINT, d STRUCT<a: INT, b: DECIMAL(10, 2)>) TIMESTAMP BY id"
    )
    assert isinstance(stream, st.CreateStream)
    assert (stream.source.kind, stream.source.format, stream.source.uri) == ("format", "json", "dir")
    assert stream.source.options == (("multiLine", "true"), ("max.files", "10"))
    assert stream.source.schema == (("id", "bigint"), ("d", "struct<a: int, b: decimal(10, 2)>"))


@pytest.mark.parametrize(
    ("clauses", "contents"),
    [
        ("", "static"),
        ("STATIC HEARTBEAT MANUAL", "static"),
        ("HISTORY BY (f, u) HEARTBEAT FOR f AS f", "history"),
        ("CHANGES BY (op, at) HEARTBEAT FOR at AS at", "changes"),
        ("HEARTBEAT EACH BATCH CHANGES BY (op, at) KEY (a, b) SEQUENCE BY n NON RETROACTIVE", "changes"),
        ("CHANGE DATA FEED NON RETROACTIVE LATE REPAIR", "feed"),
    ],
)
def test_where_the_history_of_a_relation_comes_from(clauses: str, contents: str) -> None:
    relation = one(RELATION + clauses)
    assert isinstance(relation, st.CreateRelation)
    assert relation.contents == contents
    assert relation.retroactive == ("NON" not in clauses)
    assert relation.key == (("a", "b") if "KEY" in clauses else ())
    assert relation.history == (("f", "u") if contents == "history" else None)
    assert relation.changes == (("op", "at") if contents == "changes" else None)


def test_expectations() -> None:
    stream = one(
        STREAM + "CONSTRAINT n EXPECT gx.expect_column_values_to_be_in_set(column => 'a', value_set => [1, -2.5, 'x'], "
        "mostly => 0.9, flag => TRUE, none => NULL, since => TIMESTAMP '2013-01-01') "
        "CONSTRAINT some EXPECT gx.expect_table_row_count_to_be_between(min_value => 1)"
    )
    assert isinstance(stream, st.CreateStream)
    rows, table = stream.expectations
    assert dict(rows.arguments) == {
        "column": "a",
        "value_set": (1, -2.5, "x"),
        "mostly": 0.9,
        "flag": True,
        "none": None,
        "since": "2013-01-01",
    }
    assert (rows.on_violation, rows.per, table.name, table.on_violation) == ("fail", None, "some", "fail")
    with pytest.raises(RefusedError, match="no row to quarantine"):
        one(STREAM + "CONSTRAINT c EXPECT gx.expect_table_row_count_to_equal(value => 1) ON VIOLATION QUARANTINE ROW")


def test_freshness_volume_references_and_suites() -> None:
    stream = one(
        STREAM + "CONSTRAINT a EXPECT FRESH WITHIN INTERVAL 2 HOURS ON VIOLATION WARN"
        " CONSTRAINT b EXPECT VOLUME BETWEEN 1 AND NULL PER INTERVAL '1' DAY"
        " CONSTRAINT c EXPECT VOLUME WITHIN 2.5 DEVIATIONS OF LAST 28 PER INTERVAL 1 HOUR ON VIOLATION FAIL"
        " CONSTRAINT d EXPECT REFERENCES shops(id) CONSTRAINT e EXPECT shop REFERENCES shops(id)"
        " CONSTRAINT f EXPECT (shop, area) REFERENCES shops(id, area) CONSTRAINT g EXPECT (shop IN ('a', 'b'))"
        " SUITE 'one.json' SUITE 'two.json' PER INTERVAL 1 DAY"
    )
    assert isinstance(stream, st.CreateStream)
    assert [(e.kind.value, dict(e.arguments), e.on_violation, e.per is None) for e in stream.expectations] == [
        ("fresh", {"within": 7_200_000_000}, "warn", True),
        ("volume", {"min": 1, "max": None}, "fail", False),
        ("volume", {"deviations": 2.5, "last": 28}, "fail", False),
        ("references", {"columns": ("id",), "other": "shops", "other_columns": ("id",)}, "fail", True),
        ("references", {"columns": ("shop",), "other": "shops", "other_columns": ("id",)}, "fail", True),
        ("references", {"columns": ("shop", "area"), "other": "shops", "other_columns": ("id", "area")}, "fail", True),
    ]
    assert [c.name for c in stream.constraints] == ["g"]
    assert [(s.path, s.per is None) for s in stream.suites] == [("one.json", True), ("two.json", False)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("FRESH INTERVAL 1 DAY", "WITHIN is expected"),
        ("FRSEH WITHIN INTERVAL 1 DAY", "Did you mean FRESH"),
        ("VOLUME > 5", "BETWEEN or WITHIN is expected"),
        ("VOLUME BETWEEN 5 AND 1", "no number lies between 5 and 1"),
        ("VOLUME BETWEEN NULL AND NULL", "whole numbers of rows"),
        ("VOLUME WITHIN 3 DEVIATIONS OF LAST 1 PER INTERVAL 1 DAY", "from 2 to"),
        ("(a, b) REFERENCES c(d)", "2 columns cannot reference 1"),
        ("VOLUME BETWEEN 1 AND 2 ON VIOLATION QUARANTINE ROW", "no row to quarantine"),
        ("VOLUME BETWEEN 1 AND 2 PER INTERVAL 0 DAYS", "longer than zero"),
    ],
)
def test_what_is_wrong_with_an_expectation(text: str, told: str) -> None:
    with pytest.raises((ParseError, RefusedError), match=told):
        one(STREAM + f"CONSTRAINT c EXPECT {text}")


def test_functions_and_pauses() -> None:
    for kind in ("function", "aggregate", "window"):
        made = one(f"CREATE OR REPLACE {kind} f AS 'package.module:object.part'")
        assert isinstance(made, st.CreateFunction)
        assert (made.kind, made.name, made.target) == (kind, "f", "package.module:object.part")
    pause, resume = one("PAUSE CONTINUOUS QUERY q"), one("RESUME CONTINUOUS QUERY q")
    assert isinstance(pause, st.Pause)
    assert isinstance(resume, st.Pause)
    assert (pause.resume, resume.resume) == (False, True)


def test_materialize_rstream() -> None:
    query = one(
        "CREATE CONTINUOUS QUERY q MATERIALIZE ISTREAM, RSTREAM EVERY INTERVAL 1 HOUR ANCHOR 5 AS SELECT a FROM s"
    )
    assert isinstance(query, st.CreateQuery)
    assert [(k, e is not None) for k, e in query.materialize] == [("istream", False), ("rstream", True)]
    assert query.materialize_anchor is not None


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (STREAM + "HEARTBEAT PER k AS t IDLE AFTER INTERVAL 0 SECONDS", ParseError, "longer than zero"),
        (STREAM + "HEARTBEAT FOR t AS t IDLE AFTER INTERVAL 1 HOUR", ParseError, "'IDLE' begins no clause"),
        (STREAM + "HEARTBEAT POLICY mine", ParseError, "a policy in quotes is expected"),
        (STREAM + "DEDUPLICATE BY a", ParseError, "WITHIN is expected"),
        (STREAM + "LATE REPARE", ParseError, "Did you mean REPAIR?"),
        (STREAM + "LATE REPAIR WITHIN INTERVAL 1 MONTH", RefusedError, "no fixed length"),
        (STREAM + "LATE REPAIR WITHIN 0", ParseError, "longer than zero"),
        (STREAM + "CONSTRAINT c EXPECT gx.f(a => b)", ParseError, "a literal is expected"),
        (STREAM + "CONSTRAINT c EXPECT gx.f(a => 1, A => 2)", ParseError, "argument a is given twice"),
        (STREAM + "CONSTRAINT c EXPECT gx.f(1)", ParseError, "the name of an argument"),
        (STREAM + "HISTORY BY (a, b)", ParseError, "begins no clause of CREATE STREAM"),
        (RELATION + "HISTORY BY (f, u)", ParseError, "Write HEARTBEAT FOR f AS f"),
        (RELATION + "CHANGES BY (op, at) KEY (a)", ParseError, "Write HEARTBEAT FOR at AS at"),
        (RELATION + "HISTORY BY (f)", ParseError, "',' is expected"),
        (RELATION + "KEY (a)", ParseError, "KEY belongs to CHANGES BY"),
        (RELATION + "STATIC CHANGE DATA FEED", ParseError, "has STATIC and CHANGE DATA FEED"),
        (RELATION + "DEDUPLICATE BY a WITHIN 5", ParseError, "begins no clause of CREATE RELATION"),
        ("CREATE STREAM s FROM FORMAT json PATH 'p' TIMESTAMP BY t", ParseError, "in quotes is expected"),
        ("CREATE STREAM s FROM FORMAT 'json' PATH 'p' PATH 'q' TIMESTAMP BY t", ParseError, "PATH is given twice"),
        ("CREATE STREAM s FROM FORMAT 'json' SCHEMA (a, b INT) TIMESTAMP BY t", ParseError, "the type of column a"),
        ("CREATE STREAM s FROM PARQUET 'p' TIMESTAMP BY t", ParseError, "DELTA or FORMAT is expected"),
        ("CREATE FUNCTION f AS 'nowhere'", ParseError, "does not name an object of a Python module"),
        ("CREATE FUNCTION f", ParseError, "AS is expected"),
        ("CREATE TABLE f", ParseError, "FUNCTION, AGGREGATE or WINDOW is expected"),
        ("PAUSE STREAM s", ParseError, "CONTINUOUS is expected"),
        ("CREATE CONTINUOUS QUERY q MATERIALIZE ISTREAM EVERY 5 AS SELECT a FROM s", ParseError, "EVERY belongs to"),
        ("CREATE CONTINUOUS QUERY q MATERIALIZE RSTREAM, RSTREAM AS SELECT a FROM s", ParseError, "given twice"),
        ("CREATE CONTINUOUS QUERY q WITH (stratgy = 'upa') AS SELECT a FROM s", BindError, "Did you mean strategy?"),
        ("CREATE CONTINUOUS QUERY q WITH (colour = 'red') AS SELECT a FROM s", BindError, "Settings are range_bounds"),
        ("CREATE CONTINUOUS QUERY q WITH (strict = 'maybe') AS SELECT a FROM s", ParseError, "true or false"),
        ("CREATE CONTINUOUS QUERY q WITH (slice.max_rows = many) AS SELECT a FROM s", ParseError, "cannot be 'many'"),
        ("CREATE CONTINUOUS QUERY q WITH (slice.max_rows = -5) AS SELECT a FROM s", ParseError, "cannot be '-5'"),
        ("CREATE CONTINUOUS QUERY q WITH (rstream.max_rows_per_slice = 0) AS SELECT a FROM s", ParseError, "be '0'"),
        ("CREATE CONTINUOUS QUERY q WITH (backfill_slice = 'banana') AS SELECT a FROM s", ParseError, "= '6 hours'"),
        ("SET backfill_slice = '0 days'", ParseError, "backfill_slice cannot be '0 days'"),
        ("SET backfill_slice = '1 month'", ParseError, "backfill_slice cannot be '1 month'"),
        ("CREATE CONTINUOUS QUERY q WITH (rewrites = 'banana') AS SELECT a FROM s", ParseError, "no rule banana"),
        ("SET rewrites = 'merge_selections, sharing_subplans'", ParseError, "no rule sharing_subplans"),
        ("SET rewrites = 'all, merge_selections'", ParseError, "rewrites is all alone"),
        (
            "CREATE CONTINUOUS QUERY q WITH (maintenance.every = '1 hour') AS SELECT a FROM s",
            BindError,
            "Write SET main",
        ),
        ("SET maintenance.every = '0 hours'", ParseError, "cannot be '0 hours'"),
        ("SET dag = 'two words'", ParseError, "dag cannot be 'two words'"),
        ("SET range_bond = 'exclusive'", BindError, "Did you mean range_bounds?"),
        ("SET strategy = 'fast'", ParseError, "upa or negative or direct"),
    ],
)
def test_wrong_clauses(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        parse_text(text)
    assert message in str(caught.value)


def test_small_statements() -> None:
    found = parse_text(
        "DROP STREAM s PURGE; DROP CONTINUOUS QUERY q; REFRESH RELATION r; SET range_bounds = 'exclusive';"
        "SET slice.max_rows = 5_000; EXPLAIN CONTINUOUS QUERY q; EXPLAIN SELECT a FROM S [Now];"
        "SHOW STREAMS; SHOW RELATIONS; show continuous queries;"
        "DESCRIBE s; ;"
    )
    kinds = [type(s).__name__ for s in found]
    assert kinds == [
        "Drop",
        "Drop",
        "RefreshRelation",
        "SetSetting",
        "SetSetting",
        "Explain",
        "Explain",
        "Show",
        "Show",
        "Show",
        "Describe",
    ]
    drop, _, _, setting, other, _, explain, *_ = found
    assert isinstance(drop, st.Drop)
    assert (drop.kind, drop.name, drop.purge) == ("stream", "s", True)
    assert isinstance(setting, st.SetSetting)
    assert (setting.name, setting.value) == ("range_bounds", "exclusive")
    assert isinstance(other, st.SetSetting)
    assert (other.name, other.value) == ("slice.max_rows", "5_000")
    assert isinstance(explain, st.Explain)
    assert explain.query is not None


def test_expressions_over_a_source_keep_its_names() -> None:
    [stream] = parse_text(
        "CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CONSTRAINT c EXPECT (`My Col` > 1 AND s.T < 'c1') "
        "HEARTBEAT FOR t AS t - INTERVAL 1 HOUR"
    )
    assert isinstance(stream, st.CreateStream)
    schema = InputSchema("s", SchemaKind.STREAM, (("t", "timestamp"), ("my col", "int")))
    [constraint] = stream.constraints
    bound = bind_source_expression(constraint.expression, schema, "constraint c")
    assert bound.sql == "`my col` > 1 AND `t` < 'c1'"
    assert bound.columns == {"my col", "t"}
    [other] = parse_text("CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CONSTRAINT c EXPECT (origin > 1)")
    assert isinstance(other, st.CreateStream)
    with pytest.raises(BindError, match="column origin is unknown"):
        bind_source_expression(other.constraints[0].expression, schema, "constraint c")


def test_all_faults_of_a_text_are_told_at_once() -> None:
    with pytest.raises(CqlErrors) as caught:
        parse_text("CREATE STREM s;\nCREATE STREAM t FROM DELTA 'p';\n\nSELECT 1;\nSHOW TABLES", "x.cql")
    places = [str(e.place) for e in caught.value.errors]  # type: ignore[attr-defined]
    assert places == ["x.cql:1:8", "x.cql:2:1", "x.cql:4:1", "x.cql:5:6"]
    assert caught.value.type == "ParseError"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t TIMESTAMP BY u", "TIMESTAMP BY is given twice"),
        ("CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t HARTBEAT MANUAL", "Did you mean HEARTBEAT?"),
        ("CREATE STREAM s FROM DELTA '' TIMESTAMP BY t", "the path of the Delta table is empty"),
        ("CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CHRONON INTERVAL 0 SECONDS", "longer than zero"),
        ("CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CHRONON 5", "has no unit"),
        (
            "CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CONSTRAINT c EXPECT a > 1",
            "'(', gx., FRESH, VOLUME or REFERENCES is expected",
        ),
        (
            "CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CONSTRAINT c EXPECT (a) CONSTRAINT C EXPECT (a)",
            "given twice",
        ),
        ("CREATE CONTINUOUS QUERY q AS", "a query is expected"),
        ("CREATE CONTINUOUS QUERY q SELECT a FROM s", "AS is expected"),
        (
            "CREATE CONTINUOUS QUERY q WITH (strict = true, strict = false) AS SELECT a FROM s",
            "setting strict is given twice",
        ),
        ("CREATE CONTINUOUS QUERY q AS SELECT a FROM s; ; extra", "a statement is expected"),
        ("SELECT 1", "a bare query is no statement"),
        ("DROP TABLE x", "STREAM, RELATION or CONTINUOUS QUERY is expected"),
        ("CREATE STREAM 'x", "is not closed"),
        ("/* never closed", "is not closed"),
    ],
)
def test_wrong_statements(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_text(text)
    assert message in str(caught.value)


# -- the catalog -------------------------------------------------------------------------------------------------------


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.cql").write_text(text)
    return folder


def test_catalog_orders_queries_by_what_they_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        a="CREATE CONTINUOUS QUERY top AS SELECT n FROM Middle__istream [Now], base WHERE n IN (1, 2);",
        b="CREATE CONTINUOUS QUERY middle AS WITH base AS (SELECT a FROM s) SELECT count(*) AS n FROM base;",
        c="CREATE CONTINUOUS QUERY base AS SELECT a FROM S; CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t",
        d="SET dag = 'x'",
    )
    catalog = Catalog.load(tmp_path)
    assert list(catalog.queries) == ["middle", "base", "top"]
    assert catalog.dependencies("TOP") == ("middle", "base")
    assert catalog.dependencies("middle") == ("s",)
    assert catalog.settings == {"dag": "x"}
    with pytest.raises(BindError, match="Did you mean middle"):
        catalog.query("midle")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE RELATION s FROM DELTA 'p'; CREATE RELATION S FROM DELTA 'p'", "S is declared twice"),
        (
            "CREATE CONTINUOUS QUERY a AS SELECT x FROM b; CREATE CONTINUOUS QUERY b AS SELECT x FROM a",
            "a -> b -> a",
        ),
        ("CREATE CONTINUOUS QUERY a AS SELECT x FROM a", "a reads itself"),
        ("CREATE RELATION `a/b` FROM DELTA 'p'", "cannot be the name of a table's folder"),
        ("CREATE RELATION r__istream FROM DELTA 'p'", "ends like a materialization"),
    ],
)
def test_catalog_faults(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Exception, match=re.escape(message)):
        Catalog.load(write(tmp_path, x=text))


def test_catalog_tells_the_faults_of_all_files(tmp_path: Path) -> None:
    with pytest.raises(CqlErrors) as caught:
        Catalog.load(write(tmp_path, a="CREATE X", b="CREATE RELATION r FROM DELTA 'p'", c="SHOW Y; DROP Z"))
    files = [Path(e.place.file).name for e in caught.value.errors]  # type: ignore[attr-defined]
    assert files == ["a.cql", "c.cql", "c.cql"]
    with pytest.raises(SetupError, match="is no folder"):
        Catalog.load(tmp_path / "missing")


def test_loading_a_catalog_imports_no_engine(tmp_path: Path) -> None:
    write(tmp_path, a=APPLICATION)
    code = (
        "import sys; from sweeparea.cql.declarations.catalog import Catalog;"
        "import sweeparea.cql.binding.binder, sweeparea.cql.explain;"
        f"c = Catalog.load({str(tmp_path)!r}); assert list(c.queries) == ['delayed_routes'];"
        "engines = {'pyspark', 'deltalake', 'pyarrow', 'numba', 'numpy', 'airflow'};"
        "heavy = {m.split('.')[0] for m in sys.modules} & engines;"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
