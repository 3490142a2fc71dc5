"""A query's plan, evaluated without time, against DuckDB running the query's own text over the same tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import duckdb

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from tests.cql.nested_queries import TABLES
from tests.cql.plan_oracle import Table, evaluate

Rows = Mapping[str, list[tuple]]
INPUTS = {name: InputSchema(name, SchemaKind.RELATION, columns) for name, columns in TABLES.items()}
MANY = "more than one row"
"""What both say of a scalar subquery with several rows."""


def planned(text: str, tables: Rows) -> Counter | str:
    """What the plan of a query gives."""
    contents = {n: Table(tuple(c for c, _ in TABLES[n]), rows) for n, rows in tables.items()}
    try:
        return evaluate(bind_select(text, INPUTS).root, contents)
    except duckdb.InvalidInputException as error:
        if MANY in str(error):
            return MANY
        raise


def run_by_duckdb(text: str, tables: Rows) -> Counter | str:
    with duckdb.connect() as db:
        db.execute("SET threads = 1")
        for name, columns in TABLES.items():
            db.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {_type(t)}' for c, t in columns)})")
            if tables[name]:
                db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in columns)})", tables[name])
        try:
            return Counter(db.execute(text.replace("<=>", "IS NOT DISTINCT FROM")).fetchall())
        except duckdb.InvalidInputException as error:
            if "More than one row" in str(error):
                return MANY
            raise


def _type(type_: str) -> str:
    return "INTEGER" if type_ == "int" else "VARCHAR"
