"""CHAR(n) of a source: padded on reading, and comparisons with it are those of Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.apply import apply
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import CONF
from sweeparea.tables.log.delta_log import DeltaLog
from tests.cql import char_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STREAM = "CREATE {replace} STREAM s FROM DELTA 'source' TIMESTAMP BY t HEARTBEAT FOR t AS t;\n"
CONDITIONS = [
    "c = 'ab'", "'ab' = c", "(c) = 'ab'", "c IN ('ab', 'zz')", "c NOT IN ('ab')", "c IN (d)", "c IN ('ab', s)", "c = s",
    "c BETWEEN 'ab' AND 'ab'", "c = 'ab         '", "c = 'a' || 'b'", "c <=> 'ab'", "c > 'ab'", "c != 'ab'", "c = d",
    "CASE c WHEN 'ab' THEN true END", "NULLIF(c, 'ab') IS NULL", "c LIKE 'ab'", "upper(c) = 'AB'", "v = 'ab   '",
    "c = CAST('ab' AS STRING)", "coalesce(c, 'x') = 'ab'", "(c || '') = 'ab'", "c IS DISTINCT FROM 'ab'",
    "c = 'ab\\u0020'", "c IN ('a' || 'b', 'ab       ')", "d >= 'ab'", "x.c = 'ab'", "length(c) = 5",
    "if(c = 'ab', c, 'y') = 'ab   '", "c = r'ab'", "c <= CAST(NULL AS STRING)",
]  # fmt: skip


TEXTS = [("ab", "ab", "ab", "ab"), ("ab   ", "ab   ", "ab   ", "ab"), ("abcdefg", "b", "b", "zz"), (None,) * 4]


def source(folder: Path) -> str:
    """A table that Spark would declare (.. c CHAR(5), v VARCHAR(5), s STRING, d CHAR(8)), written unpadded."""
    path = str(folder / "source")
    kinds = {"c": "char(5)", "v": "varchar(5)", "d": "char(8)"}
    text = PrimitiveType("string")
    told = [Field(n, text, metadata={"__CHAR_VARCHAR_TYPE_STRING": kinds[n]} if n in kinds else {}) for n in "cvsd"]
    DeltaTable.create(path, Schema([Field("t", PrimitiveType("long")), *told]))
    rows = [dict(zip("cvsd", each, strict=True)) | {"t": i} for i, each in enumerate(TEXTS)]
    write_deltalake(path, pa.Table.from_pylist(rows, schema=pa.schema(DeltaTable(path).schema())), mode="append")
    return path


def opened(folder: Path, text: str) -> Application:
    (folder / "app").mkdir(exist_ok=True)
    (folder / "app" / "app.cql").write_text(text)
    return Application.open(folder / "app", folder, lenient=True)


def result(app: Application, query: str) -> list[dict[str, object]]:
    rows = DeltaLog(app.layout.result(query)).read().to_pylist()
    return [{k: v for k, v in row.items() if k not in ("valid_from", "valid_to", "__n", "ts")} for row in rows]


def test_comparisons_with_char_are_those_of_spark(spark, tmp_path: Path) -> None:
    source(tmp_path)
    counts = ", ".join(f"COUNT(*) FILTER (WHERE {cond}) AS n{i}" for i, cond in enumerate(CONDITIONS))
    sql = f"SELECT {counts}, MIN(LENGTH(c)) AS l, COUNT(DISTINCT c) AS k FROM s {{}} AS x"
    groups = "SELECT e, COUNT(*) AS n FROM (SELECT c AS e FROM s [RANGE UNBOUNDED]) AS x GROUP BY e HAVING e = 'ab'"
    side = "(SELECT t AS {}, {} AS c FROM s [RANGE UNBOUNDED])"
    joined = f"SELECT * FROM {side.format('a', 'c')} AS x JOIN {side.format('b', 'd')} AS y USING (c)"
    queries = {"q": sql.format("[RANGE UNBOUNDED]"), "g": groups, "j": joined}
    text = "".join(f"CREATE CONTINUOUS QUERY {name} START AT 0 AS {sql};\n" for name, sql in queries.items())
    app = opened(tmp_path, STREAM.format(replace="") + text)
    assert "'ab   '" in repr(app.plans.plan("g").root)
    assert ", 8)" in repr(app.plans.plan("j").root)
    admit(app, "s", spark)
    process(app, "q", spark)
    declared = {"s": {"t": "bigint", "c": "char(5)", "v": "varchar(5)", "s": "string", "d": "char(8)"}}
    with catalogued(spark, tmp_path, declared, {"s": [(t, *each) for t, each in enumerate(TEXTS)]}) as alone:
        wanted = alone.sql(sql.format("")).collect()[0].asDict()
    found = max(DeltaLog(app.layout.result("q")).read().to_pylist(), key=lambda row: row["valid_from"])
    both = {c: (found[f"n{i}"], wanted[f"n{i}"]) for i, c in enumerate(CONDITIONS)}
    assert {c: pair for c, pair in both.items() if pair[0] != pair[1]} == {}
    assert (found["l"], found["k"], wanted["l"], wanted["k"]) == (5, 2, 5, 2)


@contextmanager
def catalogued(spark, folder: Path, declared, rows) -> Iterator[SparkSession]:
    """A session in which these tables, and nothing else, can be named; their values are written unpadded."""
    alone = spark.newSession()
    for key, value in CONF.items():
        alone.conf.set(key, value)
    alone.sql(f"CREATE DATABASE char_columns LOCATION '{folder / 'database'}'")
    try:
        alone.sql("USE char_columns")
        alone.conf.set("spark.sql.legacy.charVarcharAsString", "true")
        for name, columns in declared.items():
            schema = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            alone.sql(f"CREATE TABLE {name} ({schema}) USING parquet")
            alone.createDataFrame(rows[name], alone.table(name).schema).write.insertInto(name)
        alone.conf.set("spark.sql.legacy.charVarcharAsString", "false")
        yield alone
    finally:
        alone.sql("DROP DATABASE char_columns CASCADE")


@pytest.mark.slow
def test_answers_kept_for_comparisons_with_char_are_those_of_spark(spark, tmp_path: Path) -> None:
    kept = char_tables.answers()
    texts = {
        f"SELECT t, ({condition}) AS b FROM {table}": [[t, value] for t, value in enumerate(values)]
        for table in ("s", "n")
        for condition, values in kept[f"conditions of {table}"].items()
    } | kept["queries"]
    found = {}
    with catalogued(spark, tmp_path, char_tables.DECLARED, char_tables.stored()) as alone:
        for text in texts:
            rows = (char_tables.plain(row.asDict(recursive=True)) for row in alone.sql(text).collect())
            found[text] = sorted(rows, key=repr)
    assert {text: rows for text, rows in found.items() if json.dumps(rows) != json.dumps(texts[text])} == {}


def test_what_was_admitted_unpadded_goes_on_and_is_named_until_it_is_replaced(spark, tmp_path: Path) -> None:
    source(tmp_path)
    text = "SELECT COUNT(*) FILTER (WHERE c = 'ab') AS n, MIN(LENGTH(c)) AS l FROM s [RANGE UNBOUNDED]"
    query = f"CREATE CONTINUOUS QUERY q START AT 0 AS {text};\n"
    app = opened(tmp_path, STREAM.format(replace="") + query)
    apply(app, plan(app))
    forget(app)  # as an earlier version has admitted it
    admit(app, "s", spark)
    process(app, "q", spark)
    assert any(row == {"n": 1, "l": 2} for row in result(app, "q"))
    app = opened(tmp_path, STREAM.format(replace="") + query)
    (note,) = plan(app).notes
    assert "s: c is CHAR(5), d is CHAR(8), and was admitted without its padding" in note
    assert "(q); CREATE OR REPLACE STREAM s admits it anew" in note
    app = opened(tmp_path, STREAM.format(replace="OR REPLACE") + query)
    apply(app, plan(app))
    app = opened(tmp_path, STREAM.format(replace="OR REPLACE") + query)
    admit(app, "s", spark)
    process(app, "q", spark)
    rows = result(app, "q")
    assert {"n": 2, "l": 5} in rows
    assert {"n": 1, "l": 2} not in rows
    assert not plan(opened(tmp_path, STREAM.format(replace="OR REPLACE") + query)).notes
    # ALTER TABLE .. ALTER COLUMN d TYPE STRING: all values of d are others for Spark
    log = tmp_path / "source" / "_delta_log"
    first = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    changed = next(action for action in first if "metaData" in action)
    changed["metaData"]["schemaString"] = changed["metaData"]["schemaString"].replace("char(8)", "varchar(8)")
    (log / f"{2:020d}.json").write_text(json.dumps(changed) + "\n")
    with pytest.raises(SweepAreaError, match=r"column d was CHAR\(8\) when it was first admitted"):
        admit(opened(tmp_path, STREAM.format(replace="OR REPLACE") + query), "s", spark)
    # the advice of that message helps
    (note,) = plan(opened(tmp_path, STREAM.format(replace="") + query)).notes
    assert (
        "s: d was CHAR(8) and is NO CHAR now, so admit stops until it is so again; CREATE OR REPLACE STREAM s" in note
    )
    app = opened(tmp_path, STREAM.format(replace="OR REPLACE") + query)
    apply(app, plan(app))
    app = opened(tmp_path, STREAM.format(replace="OR REPLACE") + query)
    admit(app, "s", spark)
    assert app.sources.char_columns("s") == {"c": "char(5)"}


def test_a_char_column_that_is_taken_over_is_padded_and_so_is_what_reads_a_result(spark, tmp_path: Path) -> None:
    source(tmp_path)
    text = STREAM.format(replace="") + (
        "CREATE CONTINUOUS QUERY q START AT 0 AS SELECT t, c AS e FROM s [RANGE UNBOUNDED]"
        " UNION ALL SELECT t, s FROM s [RANGE UNBOUNDED];\n"
        "CREATE CONTINUOUS QUERY p START AT 0 AS SELECT t, e FROM q [RANGE UNBOUNDED] WHERE e = 'zz';\n"
    )
    app = opened(tmp_path, text)
    apply(app, plan(app))
    admit(app, "s", spark)
    added = [Field("n", PrimitiveType("string"), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})]
    DeltaTable(str(tmp_path / "source")).alter.add_columns(added)
    row = {"t": 4, "c": "zz", "v": "v", "s": "zz", "d": "d", "n": "a"}
    table = DeltaTable(str(tmp_path / "source"))
    write_deltalake(table, pa.Table.from_pylist([row], schema=pa.schema(table.schema())), mode="append")
    assert not plan(opened(tmp_path, text)).notes
    admit(opened(tmp_path, text), "s", spark, take_columns=True)
    more = "CREATE CONTINUOUS QUERY w START AT 0 AS SELECT n FROM s [RANGE UNBOUNDED] WHERE n = 'a';\n"
    app = opened(tmp_path, text + more)
    apply(app, plan(app))
    for name in "qpw":
        process(app, name, spark)
    assert result(app, "w") == [{"n": "a  "}]
    # of q's column e, which is CHAR(5): the text zz of s, which is not padded, is another value
    assert result(app, "p") == [{"t": 4, "e": "zz   "}]


def forget(app: Application) -> None:
    """Admits as an earlier version did, which knew nothing of CHAR."""
    found = app.sources.table("s")
    found.padded, found.char_columns = {}, dict
    app.sources.table = lambda name: found
