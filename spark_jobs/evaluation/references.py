"""``EXPECT (a) REFERENCES other(b)``: values that another relation must have at the instant of their row.

DuckDB looks them up in the files of the other's table: how often a key is there is a running sum over time, of which
the last one at or before the row's instant counts (an ASOF join). NULLs reference nothing and pass.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sweeparea.heartbeats.policies import last_tick_at
from sweeparea.infra.errors import SweepAreaError
from sweeparea.infra.storage import is_remote
from sweeparea.operators.plan.plan import Expectation
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.quality import by_name
from sweeparea.quality.by_name import Result
from sweeparea.quality.records import SAMPLES
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.scan import dataset

if TYPE_CHECKING:
    import duckdb

    from sweeparea.spark_jobs.application import Application


def judged(application: Application, expectation: Expectation, rows: pa.Table, time: TimeDomain, upto: int) -> Result:
    """The result over ``rows``: the referencing columns and ``__tick``, up to a tick. SweepAreaError where what is
    referenced is not known so far.
    """
    told: dict[str, Any] = dict(expectation.arguments)
    other, columns, keys = told["other"], list(told["columns"]), list(told["other_columns"])
    if not rows.num_rows:
        return by_name.references(expectation, 0, 0, ())
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    _changes(application, connection, other, keys, time, upto)
    numbered = rows.append_column("__row", pa.array(range(rows.num_rows), pa.int64()))
    connection.register("__rows", numbered)
    names = [f"k{i}" for i in range(len(keys))]
    known = " AND ".join(f"{_quoted(c)} IS NOT NULL" for c in columns)
    own = ", ".join(f"{_quoted(c)} AS {n}" for c, n in zip(columns, names, strict=True))
    same = " AND ".join(f"r.{n} = s.{n}" for n in names)
    found = connection.sql(
        f"WITH r AS (SELECT {own}, __tick, __row FROM __rows WHERE {known}),"
        f" sums AS (SELECT {', '.join(names)}, begun, sum(n) OVER (PARTITION BY {', '.join(names)} ORDER BY begun) AS n"
        f" FROM (SELECT {', '.join(names)}, begun, sum(n) AS n FROM __changes GROUP BY ALL))"
        f" SELECT r.__row, count(*) OVER () AS missing FROM r ASOF LEFT JOIN sums AS s ON {same}"
        " AND r.__tick >= s.begun"
        f" WHERE coalesce(s.n, 0) <= 0 ORDER BY r.__row LIMIT {SAMPLES}"
    ).fetchall()
    missing = found[0][1] if found else 0
    sample: list[str] = []
    if found:
        shown = rows.take(pa.array([row for row, _ in found])).to_pylist()
        for row in shown:
            at = instant_text(time, row.pop("__tick"))
            sample.append(json.dumps({**row, "at": at}, ensure_ascii=False, default=str))
    return by_name.references(expectation, rows.num_rows, missing, sample)


def _changes(
    application: Application, connection: duckdb.DuckDBPyConnection, other: str, keys: Sequence[str], time: TimeDomain,
    upto: int,
) -> None:  # fmt: skip
    """The view ``__changes``: keys ``k0``, .., from which tick on (``begun``) there are ``n`` more of them."""
    declared = {n.lower(): n for n in (*application.catalog.relations, *application.catalog.queries)}
    other = declared.get(other.lower(), other)
    row = application.ledger.row(application.owner(other))
    if row is None or row.committed is None:
        raise SweepAreaError(f"{other} is not known yet, so nothing can be looked up in it.")
    is_query = application.is_query(application.owner(other))
    scale = 1 if is_query else application.scale(other, time)
    known_upto = last_tick_at(row.committed, scale)
    if is_query and time.clock:
        known_upto = ((row.committed + 1) * (row.of_query.chronon or 1)) // time.chronon - 1
    if known_upto < upto:
        raise SweepAreaError(
            f"{other} is known up to {instant_text(time, known_upto)} only: process or admit it first."
        )
    table = application.plans.result_table(other) if is_query else application.layout.admitted(other)
    log = application.ledger.log(table)
    names = {name.lower(): name for name in log.schema().names}
    unknown = [key for key in keys if key.lower() not in names]
    if unknown:
        raise SweepAreaError(f"{other} has no column {', '.join(unknown)}.")
    selected = ", ".join(f"{_quoted(names[key.lower()])} AS k{i}" for i, key in enumerate(keys))
    register(connection, "__other", log)
    if not is_query:
        floor = f"(__tick - ((__tick % {scale}) + {scale}) % {scale}) // {scale}"
        connection.execute(f"CREATE VIEW __changes AS SELECT {selected}, {floor} AS begun, __n AS n FROM __other")
        return
    if "valid_from" not in names:
        raise SweepAreaError(f"{other} is a stream, which holds nothing at an instant: name a relation.")
    divisor = time.stored_scale

    def ticks(column: str) -> str:
        return f"epoch_us({column}) // {divisor}" if time.clock else column

    connection.execute(
        f"CREATE VIEW __changes AS SELECT {selected}, {ticks('valid_from')} AS begun, 1 AS n FROM __other UNION ALL"
        f" SELECT {selected}, {ticks('valid_to')} AS begun, -1 AS n FROM __other WHERE valid_to IS NOT NULL"
    )


def register(connection: duckdb.DuckDBPyConnection, name: str, log: DeltaLog) -> None:
    """Makes a table known to DuckDB under a name, as it stands."""
    files = log.uris(log.files())
    if not files:
        connection.register(name, log.schema().empty_table())
    elif is_remote(files[0]):
        connection.register(name, dataset(files, log.schema()))
    else:
        listed = ", ".join("'" + f.removeprefix("file://").replace("'", "''") + "'" for f in files)
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}], union_by_name = true)")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
