"""The same queries by one core, by two, and by a standalone cluster of two workers of one core: same tables, seconds.

    python -m benchmarks.cluster --events 200000 --query q4 --query q5 --repeat 3

Master, workers, driver and executors run on this machine and listen on 127.0.0.1 only, which is looked at. Each place
admits the streams anew and computes each query twice to warm up; then they take turns ``--repeat`` times. All tables of
results and the admitted streams are written sorted, as CSV; if one of a place differs in a byte from that of the first
place, or a query fails, the exit code is 1. Whatever was started is ended.

CPU seconds are those of all processes of a place; seconds of the clock tell a speed-up only where nothing else runs.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import ipaddress
import os
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow.csv as pa_csv

from benchmarks.engines.process import EngineFault, EngineProcess
from benchmarks.engines.task import Source
from benchmarks.nexmark import suite as nexmark
from benchmarks.race import tell
from benchmarks.suite import Suite
from sweeparea.infra import settings
from sweeparea.infra.services import processes, spark_cluster
from sweeparea.tables.log.delta_log import DeltaLog

PLACES = ("local[1]", "local[2]", "cluster")
"""Where is computed; answers and seconds of the later ones are held against the first."""
QUERIES = ("q4", "q5", "q18")
Runs = dict[str, dict[str, list[dict[str, Any]]]]
"""What an engine told of each run, by query and place."""
WORKERS = WARM_UP = 2
"""An executor that was not there yet when the first run began warms up in the second one."""


@contextmanager
def master(place: str, folder: Path) -> Iterator[tuple[str, list[psutil.Process]]]:
    """What SWEEPAREA_SPARK_MASTER is for a place, and the cluster's processes; they end with the block."""
    if place != "cluster":
        yield place, []
        return
    with spark_cluster.running(folder, workers=WORKERS) as address:
        found = [service for name in processes.services(folder) if (service := processes.running(name, folder))]
        yield address, [psutil.Process(service.pid) for service in found]


@contextmanager
def started(place: str, suite: Suite, folder: Path) -> Iterator[EngineProcess]:
    """An engine that computes in a place, with folders of its own, and has admitted the streams."""
    folder.mkdir()
    with master(place, folder / "cluster") as (address, beside):
        source = Source(suite.tables, suite.begin, suite.end, str(folder))
        engine = EngineProcess("sweeparea", source, 1800, master=address, beside=beside)
        try:
            tell(f"{place}: started, and streams admitted, in {engine.startup:.1f} s")
            yield engine
        finally:
            engine.stop()


def measure(engines: dict[str, EngineProcess], suite: Suite, names: Sequence[str], repeat: int) -> Runs:
    """Runs the queries in all places, in turns. EngineFault where one fails, or listens for the whole world."""
    runs: Runs = {name: {place: [] for place in engines} for name in names}
    for name in names:
        query = suite.query(name, "sweeparea")
        if isinstance(query, str):
            raise EngineFault(f"{name}: {query}")
        for turn in range(WARM_UP + repeat):
            for place, engine in engines.items():
                ran = engine.run(query)
                if turn >= WARM_UP:
                    runs[name][place].append(ran)
                    tell(f"{name} {place}: {ran['seconds']:.1f} s, CPU {ran['cpu']:.1f} s")
    for place, engine in engines.items():
        if wide := listening_beyond(engine.processes()):
            raise EngineFault(f"{place} listens on {', '.join(wide)}")
    return runs


def listening_beyond(found: Sequence[psutil.Process]) -> list[str]:
    """Addresses on which one of the processes listens and that are not this machine's own."""
    wide = set()
    for process in found:
        try:
            wide |= {c.laddr.ip for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN}
        except psutil.NoSuchProcess:  # it has ended meanwhile
            continue
    return sorted(ip for ip in wide if not _loopback(ip))


def _loopback(ip: str) -> bool:
    address = ipaddress.ip_address(ip)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def executors(folder: Path) -> int:
    """How many of the workers below a folder have started an executor."""
    return len({path.parent for path in folder.glob("worker-*/app-*")})


def digests(data: Path) -> dict[str, str]:
    """Of each table of results and each admitted stream in a data folder: the digest of its rows, sorted by all their
    columns, as CSV.
    """
    found = {}
    for folder in sorted([*(data / "results").iterdir(), *(data / "admitted").iterdir()]):
        rows = DeltaLog(str(folder)).read()
        rows = rows.sort_by([(column, "ascending") for column in rows.column_names])
        text = io.BytesIO()
        pa_csv.write_csv(rows, text)
        size, digest = text.tell(), hashlib.sha256(text.getbuffer()).hexdigest()
        found[f"{folder.parent.name}/{folder.name}"] = f"{rows.num_rows:,} rows, {size:,} bytes, {digest[:16]}"
    return found


def different(found: dict[str, dict[str, str]]) -> list[str]:
    """What differs between the tables of the first place and of another one."""
    (first, wanted), *others = found.items()
    return [
        f"{table}: {first} {wanted.get(table)}, {place} {tables.get(table)}"
        for place, tables in others
        for table in sorted({*wanted, *tables})
        if wanted.get(table) != tables.get(table)
    ]


def report(runs: Runs) -> None:
    """A line a query and place: medians, and how many times faster than the first place, by turns."""
    for name, places in runs.items():
        first = next(iter(places.values()))
        for place, each in places.items():
            seconds, cpu = (statistics.median(run[of] for run in each) for of in ("seconds", "cpu"))
            times = statistics.median(one["seconds"] / run["seconds"] for one, run in zip(first, each, strict=True))
            print(f"{name:>5} {place:>9}: {seconds:6.2f} s, CPU {cpu:6.2f} s, {times:.2f} times as fast", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures; 1 if a table differs or a place cannot compute a query."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--slices", type=int, default=1, help="of time, one after the other")
    parser.add_argument("--query", action="append", help=f"repeatable; default {', '.join(QUERIES)}")
    parser.add_argument("--place", action="append", choices=PLACES, help="repeatable; default all, in this order")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a cluster must not outlive this
    suite = nexmark.suite(given.events, given.slices)
    below = settings.data_folder() / "benchmarks"
    below.mkdir(parents=True, exist_ok=True)
    scratch, places = Path(tempfile.mkdtemp(prefix="cluster-", dir=below)), given.place or PLACES
    try:
        tell(f"{suite.name}, {suite.label}; load {os.getloadavg()[0]:.1f}")
        with ExitStack() as stack:
            engines = {place: stack.enter_context(started(place, suite, scratch / place)) for place in places}
            runs = measure(engines, suite, given.query or QUERIES, given.repeat)
        found = {place: digests(scratch / place / "sweeparea" / "bench" / ".data") for place in places}
        used = executors(scratch / "cluster" / "cluster")
    except EngineFault as fault:
        tell(str(fault))
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    report(runs)
    for table, digest in found[places[0]].items():
        tell(f"{table}: {digest}")
    wrong = different(found)
    tell("\n".join(("tables differ:", *wrong)) if wrong else f"equal byte for byte in {', '.join(found)}")
    if "cluster" in places and used != WORKERS:
        tell(f"{used} of {WORKERS} workers have computed")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
