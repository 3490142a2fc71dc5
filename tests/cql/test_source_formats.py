"""FROM FORMAT, as far as it is judged without Spark."""

from __future__ import annotations

import pytest

from sweeparea.cql.declarations.catalog import Catalog
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.source_formats import columns_of
from sweeparea.cql.text.errors import BindError, CqlError, RefusedError

STREAM = "CREATE STREAM s FROM FORMAT {} TIMESTAMP BY t HEARTBEAT FOR t AS t"


@pytest.mark.parametrize(
    "source",
    [
        "'json' PATH 'dir' OPTIONS (multiLine = true) SCHEMA (t BIGINT, st STRUCT<a: INT>)",
        "'csv' PATH 's3://b/dir' OPTIONS (header = true, mode = 'FAILFAST') SCHEMA (t TIMESTAMP)",
        "'text' PATH 'dir'",
        "'rate'",
        "'some.package.Source' OPTIONS (x = 1)",
    ],
)
def test_formats_are_offered(source: str) -> None:
    catalog = Catalog.of(parse_text(STREAM.format(source)))
    assert catalog.streams["s"].source.kind == "format"


@pytest.mark.parametrize(
    ("source", "kind", "says"),
    [
        ("'json' PATH 'dir'", BindError, "has no SCHEMA"),
        ("'parquet' SCHEMA (t BIGINT)", BindError, "has no PATH"),
        ("'delta' PATH 'dir'", BindError, "Write FROM DELTA 'dir'"),
        ("'json' PATH 'd' OPTIONS (mode = dropMalformed) SCHEMA (t INT)", RefusedError, "drops malformed records"),
        ("'csv' PATH 'd' OPTIONS (columnNameOfCorruptRecord = c) SCHEMA (t INT)", RefusedError, "go to quarantine"),
        ("'orc' PATH 'd' OPTIONS (ignoreCorruptFiles = TRUE) SCHEMA (t INT)", RefusedError, "cannot be read"),
    ],
)
def test_what_would_lose_records_is_refused_with_the_way_out(source: str, kind: type[CqlError], says: str) -> None:
    with pytest.raises(kind, match=says) as caught:
        Catalog.of(parse_text(STREAM.format(source)))
    assert caught.value.place is not None
    assert caught.value.hint


def test_columns_are_those_of_the_schema_else_of_the_format() -> None:
    [rate] = parse_text(STREAM.format("'rate'"))
    [own] = parse_text(STREAM.format("'json' PATH 'd' SCHEMA (t BIGINT)"))
    assert columns_of(rate.source) == (("timestamp", "timestamp"), ("value", "bigint"))  # type: ignore[attr-defined]
    assert columns_of(own.source) == (("t", "bigint"),)  # type: ignore[attr-defined]
