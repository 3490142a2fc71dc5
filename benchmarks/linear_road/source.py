"""The traffic on disk, as NEXMark's events are: Parquet files that a Delta log names, a folder each.

``common_input`` has the benchmark's input tuples of all types, as STREAM's script reads them, beside its streams of
minutes; the page's four streams and its relation of segments are the same tuples under the page's names.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import convert_to_deltalake

from benchmarks.linear_road import generator
from benchmarks.linear_road.generator import Traffic

FILES = 2
PAGE = ("CarLocStr", "AccBalQueryStr", "ExpQueryStr", "CreditStr", "AllSeg")
SCRIPT = ("common_input", "minutes", "minute_ends", "minute_segments")
STATIC = "AllSeg"
_ABSENT = -1
"""In a column that an input tuple of its type does not have."""


def tables(traffic: Traffic) -> dict[str, pa.Table]:
    """The streams by name, each in the order of time, and the relation."""
    reports, asked, given = traffic.reports, traffic.requests, traffic.credits
    rows = len(reports["scd"])
    absent = np.full(len(asked["scd"]), _ABSENT)
    common = {"type": np.concatenate([np.full(rows, generator.POSITION), asked["type"]])}
    for name in generator.COLUMNS:
        common[name] = np.concatenate([reports[name], asked.get(name, absent)])
    common["qid"] = np.concatenate([np.full(rows, _ABSENT), asked["qid"]])
    order = np.argsort(common["scd"], kind="stable")
    common = {name: column[order] for name, column in common.items()}
    ways, ways_of = traffic.expressways, 2 * generator.SEGMENTS
    segment = np.arange(ways * ways_of)
    segments = {"dir": segment // generator.SEGMENTS % 2, "seg": segment % generator.SEGMENTS}
    minutes = np.arange(traffic.seconds // 60 + 1)
    minute = np.repeat(minutes, len(segment))
    every = {name: np.tile(column, len(minutes)) for name, column in {"xway": segment // ways_of, **segments}.items()}
    balance, spent = (asked["type"] == kind for kind in (generator.BALANCE, generator.EXPENDITURE))
    cars = {"car_id": "vid", "speed": "speed", "exp_way": "xway", "lane": "lane", "dir": "dir", "x_pos": "pos"}
    return {
        "common_input": _stream(common["scd"], common),
        "minutes": _stream(60 * minutes, {"mnt": minutes}),
        "minute_ends": _stream(60 * minutes[1:], {"mnt": minutes[:-1]}),
        "minute_segments": _stream(60 * minute, {"mnt": minute, **every}),
        "CarLocStr": _stream(reports["scd"], {name: reports[column] for name, column in cars.items()}),
        "AccBalQueryStr": _questions(asked, balance),
        "ExpQueryStr": _questions(asked, spent),
        "CreditStr": _stream(given["scd"], {"car_id": given["vid"], "credit": given["amount"]}),
        "AllSeg": pa.table({"exp_way": segment // ways_of, **segments}),
    }


def write(folder: Path, traffic: Traffic) -> None:
    """Writes all of them below ``folder``."""
    for name, table in tables(traffic).items():
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
        for number in range(FILES):
            part = table.take(pa.array(range(number, table.num_rows, FILES), pa.int64()))
            pq.write_table(part, folder / name / f"part-{number}.parquet", compression="snappy")
        convert_to_deltalake(str(folder / name), name=name)


def declared(folder: Path, name: str) -> str:
    """The statement that declares one of them."""
    source = f"FROM DELTA '{folder / name}'"
    if name == STATIC:
        return f"CREATE RELATION {name} {source} STATIC;"
    return (
        f"CREATE STREAM {name} {source} TIMESTAMP BY at CHRONON INTERVAL 1 SECOND"
        " HEARTBEAT MANUAL MAX AHEAD INTERVAL 99999 DAYS;"
    )


def _questions(asked: dict[str, np.ndarray], of: np.ndarray) -> pa.Table:
    return _stream(asked["scd"][of], {"car_id": asked["vid"][of], "query_id": asked["qid"][of]})


def _stream(scd: np.ndarray, columns: dict[str, np.ndarray]) -> pa.Table:
    return pa.table({**columns, "at": generator.instants(scd)})
