"""Statements above SELECT, and the catalog that a folder of them makes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sweeparea.cql import statements as st
from sweeparea.cql.binder import InputSchema, bind_source_expression
from sweeparea.cql.catalog import Catalog
from sweeparea.cql.errors import BindError, CqlErrors, ParseError
from sweeparea.infra.errors import SetupError

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
    stream, relation, query = st.parse_text(APPLICATION, "app.cql")
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
    [stream] = st.parse_text(f"CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t HEARTBEAT {clause}")
    assert isinstance(stream, st.CreateStream)
    assert stream.heartbeat is not None
    assert (stream.heartbeat.kind, stream.heartbeat.lag) == (kind, lag)


def test_small_statements() -> None:
    found = st.parse_text(
        "DROP STREAM s PURGE; DROP CONTINUOUS QUERY q; REFRESH RELATION r; SET range_bounds = 'exclusive';"
        "SET slice.max_rows = -5; EXPLAIN CONTINUOUS QUERY q; EXPLAIN SELECT a FROM S [Now];"
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
    assert (other.name, other.value) == ("slice.max_rows", "-5")
    assert isinstance(explain, st.Explain)
    assert explain.query is not None


def test_expressions_over_a_source_keep_its_names() -> None:
    [stream] = st.parse_text(
        "CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CONSTRAINT c EXPECT (`My Col` > 1 AND s.T < 'c1') "
        "HEARTBEAT FOR t AS t - INTERVAL 1 HOUR"
    )
    assert isinstance(stream, st.CreateStream)
    schema = InputSchema("s", "stream", (("t", "timestamp"), ("my col", "int")))
    [constraint] = stream.constraints
    bound = bind_source_expression(constraint.expression, schema, "constraint c")
    assert bound.sql == "`my col` > 1 AND `t` < 'c1'"
    assert bound.columns == {"my col", "t"}
    [other] = st.parse_text("CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CONSTRAINT c EXPECT (origin > 1)")
    assert isinstance(other, st.CreateStream)
    with pytest.raises(BindError, match="column origin is unknown"):
        bind_source_expression(other.constraints[0].expression, schema, "constraint c")


def test_all_faults_of_a_text_are_told_at_once() -> None:
    with pytest.raises(CqlErrors) as caught:
        st.parse_text("CREATE STREM s;\nCREATE STREAM t FROM DELTA 'p';\n\nSELECT 1;\nSHOW TABLES", "x.cql")
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
        ("CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t CONSTRAINT c EXPECT a > 1", "'(' is expected"),
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
        st.parse_text(text)
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
            "a reads b reads a",
        ),
        ("CREATE CONTINUOUS QUERY a AS SELECT x FROM a", "a reads a"),
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
        "import sys; from sweeparea.cql.catalog import Catalog; import sweeparea.cql.binder, sweeparea.cql.explain;"
        f"c = Catalog.load({str(tmp_path)!r}); assert list(c.queries) == ['delayed_routes'];"
        "engines = {'pyspark', 'deltalake', 'pyarrow', 'numba', 'numpy', 'airflow'};"
        "heavy = {m.split('.')[0] for m in sys.modules} & engines;"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
