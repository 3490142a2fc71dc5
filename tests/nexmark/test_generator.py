"""The events that benchmarks draw: the benchmark's proportions and hot keys, and the same ones again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from benchmarks.nexmark import generator, source

COUNT = 2 * generator.BLOCK


def drawn(count: int, seed: int = generator.SEED) -> dict[str, pa.Table]:
    blocks = [dict(block.items()) for block in generator.events(count, seed)]
    return {name: pa.concat_tables(block[name] for block in blocks) for name in source.STREAMS}


@pytest.fixture(scope="module")
def events() -> dict[str, pa.Table]:
    return drawn(COUNT)


def column(table: pa.Table, name: str) -> np.ndarray:
    return table[name].cast(pa.int64()).to_numpy()


def test_proportions(events: dict[str, pa.Table]):
    assert {name: table.num_rows * 50 // COUNT for name, table in events.items()} == {
        "person": 1,
        "auction": 3,
        "bid": 46,
    }


def test_same_events_again_and_a_small_draw_begins_a_large_one(events: dict[str, pa.Table]):
    small = drawn(12_345)
    assert small == drawn(12_345)
    assert {name: table.num_rows for name, table in small.items()} == {"person": 247, "auction": 741, "bid": 11_357}
    for name, table in small.items():
        assert table.equals(events[name].slice(0, table.num_rows))
    assert not small["bid"].equals(drawn(12_345, seed=8)["bid"])


def test_events_are_in_order_and_within_their_time(events: dict[str, pa.Table]):
    for table in events.values():
        assert (np.diff(column(table, "date_time")) >= 0).all()
        assert table["date_time"][0].as_py() == generator.BEGIN
        assert table["date_time"][-1].as_py() < generator.end(COUNT)


def test_who_is_named_is_there_or_among_the_next(events: dict[str, pa.Table]):
    people, auctions, bids = (events[name] for name in source.STREAMS)
    assert column(people, "id").tolist() == list(range(1_000, 1_000 + people.num_rows))
    assert column(auctions, "id").tolist() == list(range(1_000, 1_000 + auctions.num_rows))
    lead = generator.LEAD
    for table, name in ((auctions, "seller"), (bids, "bidder")):
        known = 1_000 + np.searchsorted(column(people, "date_time"), column(table, "date_time"), "right")
        assert (column(table, name) < known + lead).all()
    known = 1_000 + np.searchsorted(column(auctions, "date_time"), column(bids, "date_time"), "right")
    assert (column(bids, "auction") < known + lead).all()
    assert (column(bids, "auction") >= known - 2 * generator.AUCTIONS_IN_FLIGHT).all()
    assert (column(auctions, "expires") > column(auctions, "date_time")).all()
    assert set(column(auctions, "category").tolist()) == {10, 11, 12, 13, 14}
    assert pc.all(pc.greater(auctions["reserve"], auctions["initial_bid"])).as_py()  # pyright: ignore[reportAttributeAccessIssue]


def test_hot_keys(events: dict[str, pa.Table]):
    auctions, bids = events["auction"], events["bid"]
    hot_auction = column(bids, "auction") % generator.HOT_GROUP == 0
    hot_bidder = column(bids, "bidder") % generator.HOT_GROUP == 1
    hot_seller = column(auctions, "seller") % generator.HOT_GROUP == 0
    assert [round(float(hot.mean()), 1) for hot in (hot_auction, hot_bidder, hot_seller)] == [0.5, 0.8, 0.8]
    hot_channel = pc.is_in(bids["channel"], pa.array(generator.HOT_CHANNELS)).to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
    assert round(float(hot_channel.mean()), 1) == 0.5


def test_sizes_and_addresses(events: dict[str, pa.Table]):
    for name, wanted in (("bid", 100), ("auction", 500), ("person", 200)):
        table = events[name]
        texts = [column_ for column_ in table.columns if pa.types.is_string(column_.type)]
        if name == "bid":  # where it came from is besides
            texts = texts[2:]
        length = sum(pc.sum(pc.binary_length(text)).as_py() for text in texts)  # pyright: ignore[reportAttributeAccessIssue]
        numbers = 8 * (len(table.columns) - len(texts) - (2 if name == "bid" else 0))
        assert abs(length / table.num_rows + numbers - wanted) < 0.1 * wanted
    urls = events["bid"]["url"].to_pylist()[:100]
    assert all(url.startswith("https://www.nexmark.com/") and len(url.split("/")) == 7 for url in urls)


def test_all_engines_read_the_same_files(tmp_path: Path, events: dict[str, pa.Table]):
    source.write(tmp_path, 12_345)
    for name in source.STREAMS:
        log = DeltaTable(str(tmp_path / name))
        assert sorted(log.file_uris()) == [str(tmp_path / name / f"part-{n}.parquet") for n in range(source.FILES)]
        read = log.to_pyarrow_table()
        order = "auction" if name == "bid" else "id"
        wanted = events[name].slice(0, read.num_rows)
        keys = [("date_time", "ascending"), (order, "ascending"), ("extra", "ascending")]
        assert read.sort_by(keys).equals(wanted.sort_by(keys))
