"""Writes the Delta tables of ``spark_sources/``: small ones, by Spark, with each feature that a source may have.

Run by hand when delta-spark changes: ``.venv/bin/python -m tests.tables.write_spark_sources``. The tests
compare what :class:`~sweeparea.tables.sources.source.SourceTable` says of each commit with the snapshots before and
after it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("spark_sources")
DV = "'delta.enableDeletionVectors' = 'true'"
PLAIN = "'delta.enableDeletionVectors' = 'false'"
FEED = "'delta.enableChangeDataFeed' = 'true'"


def _mapping(mode: str) -> str:
    return f"'delta.columnMapping.mode' = '{mode}'"


TABLES: dict[str, list[str]] = {
    "deletion_vectors": [
        f"CREATE TABLE t (a BIGINT, s STRING) USING delta TBLPROPERTIES ({DV})",
        "INSERT INTO t SELECT id, concat('r', id) FROM range(0, 40, 1, 1)",
        "DELETE FROM t WHERE a % 7 = 0",
        "UPDATE t SET s = 'new' WHERE a IN (5, 6)",
        "DELETE FROM t WHERE a = 8",
        "MERGE INTO t USING (SELECT 9L AS a, 'm' AS s UNION ALL SELECT 99L, 'm') u ON t.a = u.a"
        " WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT *",
        "OPTIMIZE t",
        "DELETE FROM t WHERE a = 10",
        "REORG TABLE t APPLY (PURGE)",
        "RESTORE TABLE t TO VERSION AS OF 3",
        "DELETE FROM t",
    ],
    "renamed_columns": [
        f"CREATE TABLE t (a BIGINT, old STRING, st STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<z: INT>>,"
        f" m MAP<STRING, STRUCT<w: DATE>>) USING delta TBLPROPERTIES ({_mapping('name')}, {PLAIN})",
        "INSERT INTO t VALUES (1, 'x', struct(1, 'a'), array(struct(1), null), map('k', struct(date'2024-02-29')))",
        "INSERT INTO t VALUES (2, NULL, NULL, NULL, NULL), (3, 'z', struct(NULL, 'c'), array(), map())",
        "ALTER TABLE t RENAME COLUMN old TO `new name, (odd)`",
        "INSERT INTO t VALUES (4, 'w', struct(4, 'd'), array(struct(4)), map('k', NULL))",
        "ALTER TABLE t ADD COLUMN extra DOUBLE",
        "INSERT INTO t VALUES (5, 'v', NULL, NULL, NULL, 2.5)",
        "UPDATE t SET extra = 1.5 WHERE a = 1",
        "DELETE FROM t WHERE a = 3",
    ],
    "columns_by_id": [
        f"CREATE TABLE t (a BIGINT, b STRING, st STRUCT<x: INT>) USING delta TBLPROPERTIES ({_mapping('id')}, {PLAIN})",
        "INSERT INTO t VALUES (1, 'x', struct(1)), (2, 'y', NULL)",
        "ALTER TABLE t RENAME COLUMN b TO c",
        "INSERT INTO t VALUES (3, 'z', struct(3))",
        "ALTER TABLE t ADD COLUMN b STRING AFTER a",
        "INSERT INTO t VALUES (4, 'new b', 'w', struct(4))",
        "DELETE FROM t WHERE a = 1",
    ],
    "mapped_partitioned_vectors_feed": [
        f"CREATE TABLE t (a BIGINT, p STRING, d DATE) USING delta PARTITIONED BY (p, d)"
        f" TBLPROPERTIES ({_mapping('name')}, {DV}, {FEED})",
        "INSERT INTO t VALUES (1, 'é x', date'2024-01-01'), (2, 'é x', date'2024-01-01'), (3, NULL, NULL)",
        "ALTER TABLE t RENAME COLUMN p TO part",
        "DELETE FROM t WHERE a = 2",
        "UPDATE t SET part = 'moved/%20' WHERE a = 3",
        "INSERT INTO t VALUES (4, 'a=b&c', date'0001-01-01')",
    ],
    "mapped_with_vectors": [
        f"CREATE TABLE t (a BIGINT, s STRING) USING delta TBLPROPERTIES ({_mapping('name')}, {DV})",
        "INSERT INTO t SELECT id, concat('r', id) FROM range(0, 20, 1, 1)",
        "ALTER TABLE t RENAME COLUMN s TO text",
        "DELETE FROM t WHERE a IN (3, 4)",
        "UPDATE t SET text = 'u' WHERE a = 5",
        "INSERT INTO t VALUES (100, 'n')",
    ],
    "change_feed": [
        f"CREATE TABLE t (a BIGINT, s STRING) USING delta TBLPROPERTIES ({FEED}, {PLAIN})",
        "INSERT INTO t SELECT id, 'x' FROM range(0, 20, 1, 1)",
        "UPDATE t SET s = 'y' WHERE a = 3",
        "DELETE FROM t WHERE a = 4",
        "MERGE INTO t USING (SELECT 5L AS a UNION ALL SELECT 50L) u ON t.a = u.a"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (a, s) VALUES (u.a, 'm')",
        "OPTIMIZE t",
        "INSERT OVERWRITE t SELECT id, 'x' FROM range(0, 4, 1, 1)",
    ],
    "feed_switched_on_late": [
        f"CREATE TABLE t (a BIGINT, s STRING) USING delta TBLPROPERTIES ({PLAIN})",
        "INSERT INTO t SELECT id, 'x' FROM range(0, 6, 1, 1)",
        "UPDATE t SET s = 'y' WHERE a = 3",
        f"ALTER TABLE t SET TBLPROPERTIES ({FEED})",
        "UPDATE t SET s = 'z' WHERE a = 3",
    ],
    "row_tracking": [
        f"CREATE TABLE t (a BIGINT, s STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true', {DV})",
        "INSERT INTO t SELECT id, 'x' FROM range(0, 10, 1, 1)",
        "UPDATE t SET s = 'y' WHERE a = 3",
        "DELETE FROM t WHERE a = 4",
        "OPTIMIZE t",
    ],
    "v2_checkpoints": [
        f"CREATE TABLE t (a BIGINT) USING delta TBLPROPERTIES ('delta.checkpointPolicy' = 'v2',"
        f" 'delta.checkpointInterval' = '2', {DV})",
        *(f"INSERT INTO t VALUES ({i}), ({i})" for i in range(5)),
        "DELETE FROM t WHERE a = 2",
    ],
    "odd_partitions": [
        f"CREATE TABLE t (a INT, s STRING, ts TIMESTAMP, n TIMESTAMP_NTZ, d DATE, x DOUBLE, f FLOAT,"
        f" dec DECIMAL(10, 2), b BOOLEAN, sm SMALLINT, bin BINARY)"
        f" USING delta PARTITIONED BY (s, ts, n, d, x, f, dec, b, sm, bin) TBLPROPERTIES ({PLAIN})",
        "INSERT INTO t VALUES (1, 'é y/%20=+?#:\"', timestamp'2024-03-31 01:30:00.123456', timestamp_ntz'1969-12-31"
        " 23:59:59.5', date'0001-01-01', double('NaN'), float('-Infinity'), -0.05, true, -32768, X'4142'),"
        " (2, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),"
        " (3, ' ', timestamp'9999-12-31 23:59:59.999999', timestamp_ntz'2024-01-01 00:00:00', date'9999-12-31', 1e300,"
        " 1.5, 99999999.99, false, 0, X'')",
        "INSERT INTO t VALUES (4, '__HIVE_DEFAULT_PARTITION__', NULL, NULL, NULL, -0.0D, 0.0F, 0, NULL, 1, NULL)",
        "DELETE FROM t WHERE a = 2",
    ],
    "widened_types": [
        f"CREATE TABLE t (a INT, f FLOAT, d DATE, dec DECIMAL(6, 2), sm SMALLINT, st STRUCT<x: INT>) USING delta"
        f" TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported', {PLAIN})",
        "INSERT INTO t VALUES (1, 1.5, date'2024-01-01', 12.25, 7, struct(1))",
        "ALTER TABLE t ALTER COLUMN a TYPE BIGINT",
        "ALTER TABLE t ALTER COLUMN f TYPE DOUBLE",
        "ALTER TABLE t ALTER COLUMN d TYPE TIMESTAMP_NTZ",
        "ALTER TABLE t ALTER COLUMN dec TYPE DECIMAL(10, 4)",
        "ALTER TABLE t ALTER COLUMN sm TYPE INT",
        "ALTER TABLE t ALTER COLUMN st.x TYPE BIGINT",
        "INSERT INTO t VALUES (5000000000, 0.1, timestamp_ntz'2024-01-01 12:00:00', 12.3456, 70000,"
        " struct(5000000000))",
        "DELETE FROM t WHERE a = 1",
    ],
    "clustered_and_generated": [
        f"CREATE TABLE t (a BIGINT GENERATED ALWAYS AS IDENTITY, s STRING, u STRING GENERATED ALWAYS AS (upper(s)))"
        f" USING delta CLUSTER BY (s) TBLPROPERTIES ({DV}, 'delta.enableInCommitTimestamps' = 'true')",
        "ALTER TABLE t ADD CONSTRAINT named CHECK (s <> 'bad')",
        "INSERT INTO t (s) VALUES ('x'), ('y')",
        "OPTIMIZE t",
        "UPDATE t SET s = 'z' WHERE s = 'y'",
    ],
    "overwrites": [
        f"CREATE TABLE t (a BIGINT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ({PLAIN})",
        "INSERT INTO t SELECT id, id % 3 FROM range(0, 12, 1, 1)",
        "INSERT INTO t REPLACE WHERE p = 1 VALUES (1, 1), (100, 1)",
        "INSERT OVERWRITE t PARTITION (p = 2) VALUES (2)",
        "INSERT OVERWRITE t VALUES (7, 7)",
        "RESTORE TABLE t TO VERSION AS OF 1",
        "TRUNCATE TABLE t",
    ],
    "nested": [
        f"CREATE TABLE t (a INT, st STRUCT<f: DOUBLE, l: ARRAY<STRUCT<q: TIMESTAMP>>>,"
        f" m MAP<INT, ARRAY<DECIMAL(5, 1)>>) USING delta TBLPROPERTIES ({DV})",
        "INSERT INTO t VALUES (1, struct(double('NaN'), array(struct(timestamp'2024-01-01 00:00:00'))),"
        " map(1, array(1.5, NULL))), (2, NULL, NULL),"
        " (3, struct(NULL, NULL), map()), (4, struct(-0.0D, array()), NULL)",
        "ALTER TABLE t ADD COLUMN st.extra STRING",
        "DELETE FROM t WHERE a = 3",
    ],
    "two_writers": [
        f"CREATE TABLE t (a BIGINT, s STRING) USING delta TBLPROPERTIES ({PLAIN})",
        "INSERT INTO t VALUES (1, 'spark')",
    ],
}


def write(spark: Any, name: str, folder: Path = FOLDER) -> None:
    """One table."""
    path = folder / name
    shutil.rmtree(folder / name, ignore_errors=True)
    for statement in TABLES[name]:
        spark.sql(statement.replace("TABLE t ", f"TABLE delta.`{path}` ").replace("INTO t ", f"INTO delta.`{path}` ")
                  .replace("OVERWRITE t ", f"OVERWRITE delta.`{path}` ").replace("FROM t", f"FROM delta.`{path}`")
                  .replace("UPDATE t ", f"UPDATE delta.`{path}` ").replace("OPTIMIZE t", f"OPTIMIZE delta.`{path}`")
                  .replace("USING (SELECT", " t USING (SELECT"))  # fmt: skip
    # the files of check sums that Hadoop writes beside each file
    for litter in path.rglob(".*.crc"):
        litter.unlink()


def session() -> Any:
    """A Spark of its own with Delta."""
    from sweeparea.infra.services import spark_connect
    from sweeparea.infra.setup import jars
    from sweeparea.infra.setup.java import find_java

    os.environ.update(JAVA_HOME=str(find_java().home), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    from pyspark.sql import SparkSession

    scratch = tempfile.mkdtemp()
    builder = SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", jars.class_path())
    conf = {
        **spark_connect.SESSION_CONF,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": scratch,
        "spark.local.dir": scratch,
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    made = session()
    for table in sys.argv[1:] or TABLES:
        write(made, table)
        print(table, flush=True)
    made.stop()
