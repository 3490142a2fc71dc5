"""NEXMark as a suite: q0 to q22 without q6 (Flink cannot) and q12 (by the machine's clock)."""

from __future__ import annotations

from pathlib import Path

from benchmarks.engines.task import Table
from benchmarks.nexmark import generator, source
from benchmarks.suite import Suite

_COLUMNS = {
    "person": "id, name text, email_address text, credit_card text, city text, state text, date_time instant,"
    " extra text",
    "auction": "id, item_name text, description text, initial_bid, reserve, date_time instant, expires instant, seller,"
    " category, extra text",
    "bid": "auction, bidder, price, channel text, url text, date_time instant, extra text",
    source.SIDE: "key, value text",
}


def suite(events: int, slices: int = 1) -> Suite:
    """The suite over the first ``events`` events, which are written if they are not there, in so many slices."""
    folder = source.events_folder(events)
    tables = [
        Table(name, str(folder / name), columns(name), None if name == source.SIDE else "date_time")
        for name in _COLUMNS
    ]
    begin, end = (int(instant.timestamp() * 1000) for instant in (generator.BEGIN, generator.end(events)))
    label = f"{events:,} events" + (f" in {slices} slices" if slices > 1 else "")
    return Suite("nexmark", label, tables, begin, end, Path(__file__).parent / "queries", slices)


def columns(table: str) -> list[tuple[str, str]]:
    """The columns of a stream or of the side input, with their kinds."""
    words = [column.split() for column in _COLUMNS[table].split(",")]
    return [(word[0], word[1] if len(word) > 1 else "integer") for word in words]
