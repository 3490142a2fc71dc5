"""What Arrow computes of expressions, against Spark: random ones over values at the edges of each type."""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from sweeparea.operators.linear.computed import ConstantValue, evaluated, selected
from sweeparea.spark_jobs.evaluation import in_arrow
from sweeparea.spark_jobs.spark import frames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: dict[str, tuple[str, list[str]]] = {
    "t": ("tinyint", ["-128", "127", "0", "3"]),
    "i": ("int", ["-2147483648", "2147483647", "0", "-7", "7", "123"]),
    "b": ("bigint", ["-9223372036854775808", "9223372036854775807", "0", "-246", "246", "5"]),
    "d": ("decimal(5,2)", ["999.99", "-999.99", "0.00", "1.50", "-0.01"]),
    "e": ("decimal(38,0)", ["1", "-99999999999999999999999999999999999999", "0"]),
    "s": ("string", ["'a'", "'B'", "''", "'é'", "'a '", "'😀'", "'b'"]),
    "y": ("date", ["DATE'1582-10-04'", "DATE'2024-02-29'", "DATE'9999-12-31'"]),
    "z": (
        "timestamp",
        [
            "TIMESTAMP'1969-12-31 23:59:59.999999Z'",
            "TIMESTAMP'2024-02-29 23:00:00Z'",
            "TIMESTAMP'1582-10-04 12:34:56Z'",
            "TIMESTAMP'0001-01-01 00:00:00Z'",
            "timestamp_micros(253402300800000000L)",
            "timestamp_micros(-70000000000000001L)",
            "timestamp_micros(9223372036854775807L)",
            "timestamp_micros(-9223372036854775808L)",
        ],
    ),
    "w": ("timestamp_ntz", ["TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ'2024-12-31 23:59:59'"]),
    "f": ("double", ["0.0D", "-0.0D", "CAST('NaN' AS DOUBLE)", "1.5D"]),
    "o": ("boolean", ["TRUE", "FALSE"]),
}
CONSTANTS = ["0", "1", "-7", "123", "2147483648", "1.5", "0.908", "-0.01", "00.50", "1.", ".5", "'a'", "'é'", "''"]
CONSTANTS += [
    "'a '",
    "300",
    "99999999999999999999",
    "1L",
    "1e0",
    "TRUE",
    "NULL",
    "'it''s'",
    "'2024-02-29'",
    r"'\u0061'",
]


ALWAYS = ["`i` % 123", "`b` % 5", "mod(`b`, 7)", "0.908 * `b`", "`d` * 1.5", "-0.01 * `i`", "`e` IS NULL", "NOT `o`"]
ALWAYS += ["date_format(`z`, 'yyyy-MM-dd')", "DATE_FORMAT(`z`, 'HH:mm:ss')", "date_format(`w`, 'yyyy_MM/dd HH.mm')"]
ALWAYS += ["date_format(`z`, 'yyyyMMdd')", "date_format(`z`, 'MM') = '02'", "date_format(`z`, 'yyyy')"]
ALWAYS += ["IF((`b` < 10), (1), NULL)", "CASE WHEN `i` > 0 THEN `b` WHEN `o` THEN 7 ELSE 0 END", "IF(`o`, `s`, `s`)"]
ALWAYS += ["CASE WHEN `e` IS NULL OR `t` = 3 THEN `z` END", "if(`o`, 1, 2)", "IF(`o`, NULL, `d`)"]
"""Forms that may not be missing among the random ones."""


class Expressions:
    """Random texts: most are of a form that Arrow may compute, some nearly so. Not all are legal."""

    def __init__(self, r: random.Random) -> None:
        self.r = r

    def value(self) -> str:
        r = self.r
        column, constant = f"`{r.choice(list(COLUMNS))}`", r.choice(CONSTANTS)
        forms = [column] * 6 + [constant] * 4 + [f"{column} % {constant}", f"{constant} * {column}"]
        forms += [f"{column} * {constant}", f"mod({column}, {constant})", f"({column})", f"-{column}"]
        other = r.choice([column, constant, "NULL", f"`{r.choice(list(COLUMNS))}`"])
        test = f"{column} {r.choice(['=', '<', '>='])} {r.choice(CONSTANTS)}"
        cases = [f"CASE WHEN {test} THEN {other} ELSE {column} END", f"IF({test}, {constant}, {other})"]
        pattern = "".join(r.choice([*"yMdHms-/:. _'", "yyyy", "MM", "dd", "HH"]) for _ in range(r.randint(1, 4)))
        return r.choice([*forms, *cases, f"date_format(`z`, '{pattern}')"])

    def condition(self, depth: int = 2) -> str:
        r, value = self.r, self.value
        if depth and r.random() < 0.5:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return r.choice([f"({a} AND {b})", f"({a}) OR {b}", f"NOT ({a})", f"NOT {a} AND {b}", f"({a}) = ({b})"])
        sign = r.choice(["=", "<>", "!=", "<", "<=", ">", ">=", "==", "<=>"])
        members = ", ".join(r.choice(CONSTANTS) for _ in range(r.randint(1, 3)))
        negated = r.choice(["", "NOT "])
        return r.choice(
            [
                *[f"{value()} {sign} {value()}"] * 4,
                f"{value()} {negated}IN ({members})",
                f"{value()} {negated}BETWEEN {value()} AND {value()}",
                f"{value()} IS {negated}NULL",
                "`o`",
            ]
        )


def _rows(spark: SparkSession, r: random.Random, size: int = 60) -> pa.Table:
    """Rows of all columns, with NULLs, as a table has them."""
    lines = []
    for _ in range(size):
        values = (r.choice([*values, "NULL"]) for _, values in COLUMNS.values())
        lines.append(", ".join(values))
    names = ", ".join(COLUMNS)
    cast = [f"CAST({name} AS {kind}) AS {name}" for name, (kind, _) in COLUMNS.items()]
    found = spark.sql(f"SELECT * FROM VALUES {', '.join(f'({line})' for line in lines)} AS v({names})").selectExpr(
        *cast
    )
    schema = pa.schema(frames.fields(found, list(COLUMNS)))
    return found.toArrow().cast(schema)


def _legal(frame: Any, texts: list[str]) -> list[tuple[str, pa.DataType]]:
    """Those that Spark accepts, with their types."""
    from pyspark.errors import AnalysisException, ParseException

    found = []
    for text in texts:
        try:
            made = frame.selectExpr(f"({text}) AS x")
            found.append((text, frames.comparable_types(made, ["x"]).get("x", pa.null())))
        except (AnalysisException, ParseException):
            continue
    return found


@pytest.mark.spark
def test_arrow_computes_what_spark_does(spark: SparkSession):
    r = random.Random(20_261_130)
    rows = _rows(spark, r)
    frame = frames.from_arrow(spark, rows)
    types = frames.comparable_types(frame, list(COLUMNS))
    made = Expressions(r)
    conditions = dict.fromkeys(made.condition() for _ in range(6_000))
    known = list(islice((text for text in conditions if in_arrow.condition(text, types) is not None), 120))
    drawn = dict.fromkeys([*ALWAYS, *(made.value() for _ in range(400))])
    values = [text for text in drawn if in_arrow.computed(text, types)][:70]
    assert values[: len(ALWAYS)] == ALWAYS
    legal = [(text, kind) for text, kind in _legal(frame, known + values) if not pa.types.is_null(kind)]
    assert len(known) == 120
    assert len(legal) > 120
    told = frame.selectExpr(*(f"({text}) AS x{i}" for i, (text, _) in enumerate(legal))).toArrow()
    products = 0
    for i, (text, kind) in enumerate(legal):
        tree = in_arrow.computed(text, types)
        assert tree is not None
        if text not in known and (tree.type != kind or isinstance(tree, ConstantValue)):
            continue  # a projection asks Spark for the type, and leaves the expression to it
        products += "*" in text
        assert tree.type == kind, text
        # instants of years that Python does not have are compared as well
        assert _chunked(evaluated(tree, rows)).equals(told.column(f"x{i}").cast(kind)), text
        if text in known:
            kept = selected(rows, tree)
            assert kept.num_rows == sum(value is True for value in told.column(f"x{i}").to_pylist()), text
    assert products > 2


def _chunked(values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


TYPES = {"b": pa.int64(), "d": pa.decimal128(5, 2), "f": pa.float64(), "s": pa.string(), "i": pa.int32()}
TYPES["z"] = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "text",
    [
        "`f` = 1", "`f` IS NULL", "`b` + 1 > 2", "`b` = 1.5", "`b` = '1'", "`s` = 1", r"`s` = '\u0061'", "`b` % 0 = 1",
        "`b` % -3 = 1", "`i` % 3000000000 = 1", "1 = 1", "`s` LIKE 'a%'", "upper(`s`) = 'A'", "`b`", "`b` > NULL",
        "`b` IN (SELECT 1)", "`s` <=> 'a'", "`b`.`c` = 1", "`x` = 1",
        "`d` * `d` > 1", "2 * `b` > 1", "date_format(`z`, 'y') = '1'", "date_format(`z`, 'EEEE') = 'Monday'",
        "date_format(`z`, 'MMMM') = '1'", "date_format(`z`, '') = ''", "date_format(`z`, `s`) = '1'",
        "date_format(`b`, 'MM') = '1'",
        "CASE WHEN `f` = 1 THEN 1 END = 1", "CASE `b` WHEN 1 THEN 2 END = 2", "IF(`b` = 1, NULL, NULL) = 1",
        "IF(`b` = 1, `i`, `b`) = 1", "IF(`b` = 1, `i`, 3000000000) = 1", "IF(TRUE, `b`, 1) = 1",
        "`b` = 1 " + "OR `b` = 1 " * 500,
    ],
)  # fmt: skip
def test_what_may_fail_or_differ_is_left_to_spark(text: str):
    assert in_arrow.condition(text, TYPES) is None
