"""One mapping between Spark's DDL, Arrow's types and the Delta log's JSON."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sweeparea.tables.errors import TableError
from sweeparea.tables.log.schema import arrow_type, delta_type, same_columns, spark_type


@pytest.mark.parametrize(
    "ddl",
    [
        "bigint",
        "int",
        "smallint",
        "tinyint",
        "double",
        "float",
        "decimal(38,18)",
        "string",
        "binary",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
        "array<int>",
        "map<string,decimal(10,2)>",
        "struct<a:bigint,b:array<struct<`c d`:string>>>",
        "struct<`a``b`:int>",
    ],
)
def test_every_type_survives_the_round_trip(ddl: str) -> None:
    assert spark_type(arrow_type(ddl)) == ddl


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("LONG", "bigint"),
        ("Integer", "int"),
        ("decimal", "decimal(10,0)"),
        ("numeric ( 5 )", "decimal(5,0)"),
        ("varchar(10)", "string"),
        ("STRUCT<a INT NOT NULL, b: STRING>", "struct<a:int,b:string>"),
    ],
)
def test_other_spellings(written: str, meant: str) -> None:
    assert spark_type(arrow_type(written)) == meant


@pytest.mark.parametrize(
    "ddl", ["", "bigint int", "array<int", "decimal(39,0)", "money", "struct<int>", "map<int>", "a.b"]
)
def test_errors_name_the_type(ddl: str) -> None:
    with pytest.raises(TableError, match="column type"):
        arrow_type(ddl)


def test_json_types_of_the_log() -> None:
    json_type = {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "long"},
            {"name": "b", "type": {"type": "array", "elementType": "byte"}},
            {"name": "c", "type": {"type": "map", "keyType": "string", "valueType": "decimal(5,2)"}},
        ],
    }
    assert delta_type(json_type) == "struct<a:bigint,b:array<tinyint>,c:map<string,decimal(5,2)>>"
    assert delta_type("variant") == "variant"


def test_arrows_many_strings_are_one_type_and_unsigned_is_none() -> None:
    assert same_columns(pa.schema([("a", pa.large_string())]), pa.schema([("a", pa.string_view())]))
    with pytest.raises(TableError, match="uint64"):
        spark_type(pa.uint64())
