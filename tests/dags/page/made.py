"""Data folders with a past, made without Spark: commits in a ledger, results, quarantine, corrections.

``shop`` has three queries, of which one has results, one is behind and warned, one has never run. ``many`` has 200.
Names, texts and rows try to be markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from sweeparea.spark_jobs.admission.judging.stage import ENGINE_FIELDS, QUARANTINE_SCHEMA
from sweeparea.spark_jobs.application import Application
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.incidents import Incident, Incidents
from sweeparea.tables.publication.ledger import SCHEMA, LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication

EVIL = "<img src=x onerror=\"window.hacked='%s'\"><script>window.hacked='%s'</script>"
SHOP = """\
-- Orders come within five minutes. {text}
CREATE STREAM orders
  FROM DELTA 'source/orders'
  TIMESTAMP BY ordered CHRONON INTERVAL 1 SECOND
  HEARTBEAT FOR ordered AS ordered - INTERVAL 5 MINUTES;

CREATE STREAM returns
  FROM DELTA 'source/returns' TIMESTAMP BY ordered CHRONON INTERVAL 1 SECOND HEARTBEAT MANUAL;

CREATE RELATION products FROM DELTA 'source/products' STATIC;

-- What each kind of goods brought within the last hour. {comment}
CREATE CONTINUOUS QUERY revenue AS
SELECT kind, SUM(price) AS revenue, COUNT(*) AS orders
FROM orders [RANGE INTERVAL 1 HOUR]
GROUP BY kind;

CREATE CONTINUOUS QUERY surges AS
ISTREAM(
  SELECT kind, revenue FROM revenue WHERE revenue > 1000 AND kind <> 'a long text that no box of a picture holds');

CREATE CONTINUOUS QUERY sent_back WITH (dag = 'hourly') AS
SELECT kind, COUNT(*) AS n FROM returns [RANGE INTERVAL 1 DAY] GROUP BY kind;
"""
MANY = 200
SECOND = 1_000_000
NOW = int(datetime.now(UTC).timestamp()) * SECOND
ORDER = pa.schema([("ordered", pa.timestamp("us", "UTC")), ("kind", pa.string()), ("price", pa.int64())])
REVENUE = pa.schema(
    [
        ("kind", pa.string()),
        ("revenue", pa.int64()),
        ("orders", pa.int64()),
        ("valid_from", pa.timestamp("us", "UTC")),
        ("valid_to", pa.timestamp("us", "UTC")),
    ]
)
CORRECTIONS = pa.schema(
    [
        ("row", pa.struct(list(REVENUE)[:3])),
        ("ts", pa.timestamp("us", "UTC")),
        ("sign", pa.int64()),
        ("kind", pa.string()),
        ("cause", pa.string()),
        ("seq", pa.int64()),
    ]
)
PHASES = {"plan": 0.03, "compute": 0.9, "quality": 0.2}


def hostile(what: str) -> str:
    """A text that is markup."""
    return EVIL % (what, what)


def tidy(what: str) -> str:
    """A text as it comes in pictures."""
    return {"value": "cake", "corrected": "tea", "check": "revenue < 500", "row": "milk"}.get(what, "")


def shop(home: Path, text: Callable[[str], str] = hostile) -> Application:
    """The application of three queries; ``text`` gives what people have written somewhere."""
    application = _declared(home, "shop", SHOP.format(text=text("text"), comment=text("comment")))
    data = str(application.data)
    for name in ("orders", "returns", "products"):
        write_deltalake(f"{data}/source/{name}", pa.Table.from_pylist([], schema=ORDER))
    _orders(application, text)
    _revenue(application, text)
    _surges(application, text)
    words = f"The continuous query surges is more than 0:15:00 behind the clock; it waits for revenue. {text('i')}"
    incident = Incident("lag surges", words.strip(), NOW)
    Incidents(data).change([incident])
    return application


def many(home: Path, count: int = MANY) -> Application:
    """An application of many queries over four streams."""
    lines = [
        f"CREATE STREAM s{i} FROM DELTA 'source/s{i}' TIMESTAMP BY ordered CHRONON INTERVAL 1 SECOND"
        " HEARTBEAT FOR ordered AS ordered - INTERVAL 1 MINUTE;"
        for i in range(4)
    ]
    lines += [
        f"CREATE CONTINUOUS QUERY q{i:03} AS SELECT kind, COUNT(*) AS n FROM s{i % 4} [RANGE 1 HOUR] GROUP BY kind;"
        if i < count - 20
        else f"CREATE CONTINUOUS QUERY q{i:03} AS SELECT kind, n FROM q{i - 60:03} WHERE n > {i};"
        for i in range(count)
    ]
    application = _declared(home, "many", "\n".join(lines))
    ledger, tick = application.ledger, NOW // SECOND - 120
    for i in range(4):
        write_deltalake(f"{application.data}/source/s{i}", pa.Table.from_pylist([], schema=ORDER))
    declared = [*application.catalog.streams, *application.catalog.queries]
    deployed = {name: replace(application.registry.wanted(name), registration="r1") for name in declared}
    application.plans.deployed.change(lambda rows: deployed)
    rows = [
        _row(f"s{i}", NameKind.STREAM, 9, tick, {"source_version": 0, "chronon": SECOND, "totals": {"late": i}})
        for i in range(4)
    ]
    for i in range(count):
        if i % 50 == 7:  # has never run
            continue
        info: dict[str, Any] = {"chronon": SECOND, "rows": {"open": i}, "seconds": PHASES, "state_rows": {"a": i}}
        warnings = {"expect_n": i} if i % 40 == 3 else {}
        info["verdicts"] = [{"table": f"q{i:03}", "rows": i, "checks": 3, "warnings": warnings}]
        done = tick - 3600 * (i % 5 == 1)
        read = f"s{i % 4}" if i < count - 20 else f"q{i - 60:03}"
        rows.append(_row(f"q{i:03}", NameKind.QUERY, 9, done, info, {read: {"seq": 9, "heartbeat": done}}))
    ledger.create()
    write_deltalake(ledger.layout.ledger, _table(rows), mode="append")
    past = [
        replace(row, seq=seq, at=row.at - (9 - seq) * 60 * SECOND, committed=(row.committed or 0) - (9 - seq) * 60)
        for row in rows
        for seq in range(3, 10)
    ]
    write_deltalake(ledger.layout.history, _table(past), mode="append")
    return application


def broken(home: Path) -> None:
    """An application that cannot be read."""
    folder = home / "queries" / "broken"
    folder.mkdir(parents=True)
    (folder / "broken.cql").write_text(f"CREATE CONTINUOUS QUERY `{hostile('b')}` AS SELECT nothing FROM nowhere;")


def _declared(home: Path, name: str, text: str) -> Application:
    folder = home / "queries" / name
    folder.mkdir(parents=True)
    (folder / f"{name}.cql").write_text(text)
    return Application.open(folder, home / ".data" / name)


def _publish(
    application: Application,
    name: str,
    kind: NameKind,
    committed: int | None,
    info: Mapping[str, Any],
    tables: Mapping[str, pa.Table] | None = None,
    pins: dict[str, dict[str, Any]] | None = None,
) -> None:
    """One commit: rows are appended to tables, by their paths."""
    rows = application.plans.deployed.rows()
    if name not in rows:
        application.registry.register(name, None)
        rows = application.plans.deployed.rows()
    publication = Publication(str(application.data), application.ledger, name, kind, rows[name].registration)
    attempt = publication.begin()
    for path, table in (tables or {}).items():
        DeltaLog(path).create(table.schema, name="made", description="made for a test")
        publication.stage(path, [write_file(table, path, attempt, "part-0")])
    publication.commit(committed, pins or {}, dict(info))


def _orders(application: Application, text: Callable[[str], str]) -> None:
    layout = application.layout
    begin = NOW // SECOND - 6 * 3600
    reasons = (
        "timestamp column ordered is NULL",
        "late: at or below the heartbeat",
        text("reason") or "price < 0 (constraint paid)",
    )
    for version in range(6):
        beat = begin + 3600 * version
        elements = [
            {
                "ordered": _at(beat - 60 * i),
                "kind": "tea",
                "price": i,
                "__tick": beat - 60 * i,
                "__seq": version,
                "__n": 1,
            }
            for i in range(30)
        ]
        admitted = pa.Table.from_pylist(elements, schema=pa.schema([*ORDER, *ENGINE_FIELDS]))
        out = [
            {
                "__stream": "orders",
                "__version": version,
                "__seq": version + 1,
                "__reason": reasons[i % 3],
                "__tick": beat - 8000 if i % 3 == 1 else None,
                "__row": json.dumps({"ordered": None, "kind": text("row"), "price": i}),
                "__n": 1,
            }
            for i in range(version)
        ]
        tables = {layout.admitted("orders"): admitted}
        if out:
            tables[layout.quarantine("orders")] = pa.Table.from_pylist(out, schema=QUARANTINE_SCHEMA)
        info = {
            "source_version": version,
            "rows": 30,
            "quarantined": len(out),
            "totals": {"rows": 30 * (version + 1), "late": version, "quarantined": version},
            "chronon": SECOND,
        }
        _publish(application, "orders", NameKind.STREAM, beat, info, tables)


def _revenue(application: Application, text: Callable[[str], str]) -> None:
    layout = application.layout
    begin = NOW // SECOND - 6 * 3600
    for hour in range(5):
        start = begin + 3600 * hour
        rows = [
            {
                "kind": kind,
                "revenue": 100 + (hour * 37 + i * 53 + k * 91) % 240,
                "orders": i,
                "valid_from": _at(start + 600 * i),
                "valid_to": None if hour == 4 and i == 5 else _at(start + 600 * (i + 1)),
            }
            for k, kind in enumerate(("tea", "coffee", text("value")))
            for i in range(6)
        ]
        tables = {layout.result("revenue"): pa.Table.from_pylist(rows, schema=REVENUE)}
        info = _query_info(hour, start)
        if hour == 4:
            cause = f"late elements of orders {text('cause')}".strip()
            row = {"kind": text("corrected"), "revenue": 7, "orders": 1}
            told = [
                {"row": row, "ts": _at(start), "sign": s, "kind": "relation", "cause": cause, "seq": 5} for s in (1, -1)
            ]
            tables[layout.result("revenue__corrections")] = pa.Table.from_pylist(told, schema=CORRECTIONS)
            info["rewrite"] = {"cause": cause, "since": start, "upto": start + 60, "rows": "+1 -1 rows"}
        _publish(application, "revenue", NameKind.QUERY, start + 3600, info, tables, {"orders": {"seq": hour + 2}})


def _query_info(number: int, start: int) -> dict[str, Any]:
    return {
        "h0": start,
        "rows_in": 30,
        "rows": {"closed": 17, "open": 1},
        "state_rows": {"aggregate2": 3, "materialize": 3},
        "state_bytes": {"aggregate2": 4100, "materialize": 1800},
        "state_live": {"aggregate2": 3},
        "state_keys": {"aggregate2": ["c1"]},
        "verdicts": [{"table": "revenue", "rows": 18, "checks": 5, "warnings": {}}],
        "seconds": {phase: seconds * (1 + number % 3) for phase, seconds in PHASES.items()},
        "chronon": SECOND,
    }


def _surges(application: Application, text: Callable[[str], str]) -> None:
    begin = NOW // SECOND - 5 * 3600
    warnings = {f"expect {text('check')}": 3}
    info = _query_info(0, begin - 60) | {
        "verdicts": [{"table": "surges", "rows": 4, "checks": 2, "warnings": warnings}]
    }
    _publish(application, "surges", NameKind.QUERY, begin, info, {}, {"revenue": {"seq": 1}})


def _row(
    name: str,
    kind: NameKind,
    seq: int,
    committed: int,
    info: dict[str, Any],
    pins: dict[str, dict[str, Any]] | None = None,
) -> LedgerRow:
    return LedgerRow(name, kind, "r1", seq, committed, f"attempt-{name}", pins or {}, {}, info, NOW - 60 * SECOND)


def _table(rows: Sequence[LedgerRow]) -> pa.Table:
    plain = ("name", "kind", "registration", "seq", "committed", "attempt")
    records = [
        {
            **{key: getattr(row, key) for key in plain},
            **{key: json.dumps(getattr(row, key)) for key in ("pins", "actions", "info")},
            "at": _at(row.at / SECOND),
        }
        for row in rows
    ]
    return pa.Table.from_pylist(records, schema=SCHEMA)


def _at(seconds: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
