"""What tests of operators share: a DuckDB that evaluates Spark SQL in Spark's place."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest


@pytest.fixture(scope="session")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Its BIGINT arithmetic fails on overflow as Spark's does in ANSI mode."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("CREATE MACRO pmod(a, b) AS ((a % b) + b) % b")
        yield connection
