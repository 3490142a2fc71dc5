"""The events on disk, once for all engines: ``python -m benchmarks.nexmark.source --events 1000000``.

Each stream is a folder with two Parquet files, every second event in each, both in the order of time: two readers go
through the time together, as those of two partitions of a log would. A Delta log beside the files names the same two.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import convert_to_deltalake

from benchmarks.nexmark import generator
from sweeparea.infra import settings

STREAMS = ("person", "auction", "bid")
SIDE = "side_input"
"""What q13 joins with."""
SIDE_KEYS = 10_000
FILES = 2


def events_folder(count: int, seed: int = generator.SEED) -> Path:
    """The folder with the first ``count`` events, which is made if it is not there; one folder for each stream."""
    folder = settings.data_folder() / "benchmarks" / f"nexmark-{count}-{seed}"
    made_from = hashlib.sha256(b"".join(Path(file).read_bytes() for file in (generator.__file__, __file__)))
    stamp = folder / "made-from"
    if not stamp.is_file() or stamp.read_text() != made_from.hexdigest():
        shutil.rmtree(folder, ignore_errors=True)
        write(folder, count, seed)
        stamp.write_text(made_from.hexdigest())
    return folder


def write(folder: Path, count: int, seed: int = generator.SEED) -> None:
    """Writes the streams and the side input of q13 into ``folder``."""
    writers: dict[str, list[pq.ParquetWriter]] = {}
    for block in generator.events(count, seed):
        for name, table in block.items():
            if name not in writers:
                writers[name] = [_writer(folder / name, number, table.schema) for number in range(FILES)]
            for number, writer in enumerate(writers[name]):
                writer.write_table(table.take(pa.array(range(number, table.num_rows, FILES), pa.int64())))
    values = [f"value {key}" for key in range(SIDE_KEYS)]
    side = pa.table({"key": pa.array(range(SIDE_KEYS), pa.int64()), "value": values})
    writers[SIDE] = [_writer(folder / SIDE, 0, side.schema)]
    writers[SIDE][0].write_table(side)
    for name, files in writers.items():
        for writer in files:
            writer.close()
        convert_to_deltalake(str(folder / name), name=name)


def _writer(folder: Path, number: int, schema: pa.Schema) -> pq.ParquetWriter:
    folder.mkdir(parents=True, exist_ok=True)
    return pq.ParquetWriter(folder / f"part-{number}.parquet", schema, compression="snappy")


def main() -> None:
    """Writes the events and tells how many bytes they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    begun = time.perf_counter()
    folder = events_folder(parser.parse_args().events)
    size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    print(f"{folder}: {size / 1e6:.0f} MB ({time.perf_counter() - begun:.1f} s)")


if __name__ == "__main__":
    main()
