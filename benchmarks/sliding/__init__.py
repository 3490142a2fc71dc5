"""A sliding sum as a suite: each change of SUM over the last 60 s of its key, for 1,000 keys and one hour."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import convert_to_deltalake

from benchmarks.engines.task import Table
from benchmarks.sliding_sum import SECONDS, START, bids
from benchmarks.suite import Suite
from sweeparea.infra import settings


def suite(rows: int) -> Suite:
    """The suite over ``rows`` elements, which are written if they are not there: two files, as those of NEXMark."""
    folder = settings.data_folder() / "benchmarks" / f"sliding-{rows}" / "bids"
    if not (folder / "_delta_log").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        drawn = bids(rows).rename_columns(["happened", "k", "v"])  # AT is a word of DuckDB's and of Flink's
        for number in range(2):
            half = drawn.take(pa.array(range(number, rows, 2), pa.int64()))
            pq.write_table(half, folder / f"part-{number}.parquet", compression="snappy", row_group_size=50_000)
        convert_to_deltalake(str(folder), name="bids")
    table = Table("bids", str(folder), [("happened", "instant"), ("k", "integer"), ("v", "integer")], "happened")
    begin, end = START * 1000, (START + SECONDS + 120) * 1000
    return Suite("sliding sum", f"{rows:,} rows", [table], begin, end, Path(__file__).parent / "queries")
