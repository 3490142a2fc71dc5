"""How the time of a minute slice grows with the number of commits, and what it would be after a year of them (525,600).

Two claims. ``tables`` (without Spark; CPU time, which other load leaves alone): what the tables take of a slice. It
stages an append to a stream, to a relation's closed rows and a replaced SweepArea, commits to the ledger, applies, and
lists the files that the next slice reads.
``slices``: whole slices of a grouped sliding query, admit and process, through Spark. Maintenance runs every so many.

    python -m benchmarks.a_year_of_minutes [tables | slices] [commits] [maintenance every]
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from sweeparea.tables import scan
from sweeparea.tables.compaction import compact
from sweeparea.tables.files import write_file
from sweeparea.tables.ledger import Ledger
from sweeparea.tables.publish import Publication, recover
from sweeparea.tables.retention import trim

YEAR = 525_600
ROWS = 20
STREAM = pa.schema([("key", pa.int64()), ("value", pa.float64()), ("ts", pa.int64())])
RELATION = pa.schema([*list(STREAM)[:2], ("valid_from", pa.int64()), ("valid_to", pa.int64())])
AREA = pa.schema([*STREAM, ("n", pa.int64())])
TABLES = {"results/q": ("valid_to", RELATION), "results/q__istream": ("ts", STREAM), "state/q/aggregate": ("ts", AREA)}


def main() -> None:
    """Prints the median of each tenth of the run, the trend, and what it gives after a year."""
    what = sys.argv[1] if len(sys.argv) > 1 else "tables"
    commits = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000 if what == "tables" else 200
    every = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    with tempfile.TemporaryDirectory() as folder:
        seconds, pauses = [], []
        try:
            for each, pause in {"tables": tables, "slices": slices}[what](folder, commits, every):
                seconds.append(each)
                if pause is not None:
                    pauses.append(pause)
        except KeyboardInterrupt:
            commits = len(seconds)
        report(f"{what}: {commits:,} minute slices, maintenance every {every}", seconds)
        if pauses:
            report(f"maintenance, {len(pauses)} times", pauses)


def report(title: str, seconds: Sequence[float]) -> None:
    """Medians over tenths of the run in ms, and the least-squares line through them, continued to a year."""
    size = max(1, len(seconds) // 10)
    tenths = [statistics.median(seconds[at : at + size]) for at in range(0, size * (len(seconds) // size), size)]
    print(title)
    print(f"  median ms by tenths: {', '.join(f'{1000 * s:.1f}' for s in tenths)}")
    half = tenths[len(tenths) // 2 :]
    if len(half) > 3:
        at = [size * (i + 0.5) for i in range(len(tenths) - len(half), len(tenths))]
        slope, start = statistics.linear_regression(at, half)
        off = [tenth - start - slope * x for x, tenth in zip(at, half, strict=True)]
        spread = (sum(x * x for x in off) / (len(half) - 2) / sum((x - statistics.mean(at)) ** 2 for x in at)) ** 0.5
        print(
            f"  trend of the second half {1e6 * slope:+.2f} us a slice (standard error {1e6 * spread:.2f});"
            f" a year of it: {1000 * (start + slope * YEAR):.0f} ms"
        )


def rows(schema: pa.Schema, minute: int, chance: random.Random) -> pa.Table:
    """Some rows of one minute."""
    columns: dict[str, list[float | int]] = {
        "key": [chance.randrange(50) for _ in range(ROWS)],
        "value": [chance.random() for _ in range(ROWS)],
    }
    ticks = [60 * minute + chance.randrange(60) for _ in range(ROWS)]
    return pa.table({f.name: columns.get(f.name, ticks) for f in schema}, schema=schema)


def tables(folder: str, commits: int, every: int) -> Iterator[tuple[float, float | None]]:
    """Seconds of each commit, and of the maintenance after it where there was any."""
    chance = random.Random(1)
    for minute in range(commits):
        begun = time.process_time()
        ledger = Ledger(folder)  # a run opens its tables anew
        recover(folder, ledger, ["q"])
        publication = Publication(folder, ledger, "q", "query", "r1")
        attempt = publication.begin()
        for name, (column, schema) in TABLES.items():
            log = ledger.log(name)
            log.create(schema, name="q", description="a table of a benchmark")
            files = log.files()
            scan.prune(files, column, 60 * (minute - 10), None)
            file = write_file(rows(schema, minute, chance), log.uri, attempt, "part")
            publication.stage(log.uri, [file], files if name.startswith("state/") else ())
        publication.commit(60 * minute, {"s": {"seq": minute}}, {"h0": minute})
        seconds, pause = time.process_time() - begun, None
        if every and minute % every == every - 1:
            begun = time.process_time()
            for name, (column, _) in TABLES.items():
                if not name.startswith("state/"):
                    compact(ledger.log(name), column)
                trim(ledger.log(name), seconds=0)  # a minute takes less than one here
            history = ledger.log(ledger.layout.history)
            compact(history, "seq", ("name", "seq"))
            trim(history, seconds=0)
            ledger.log(ledger.layout.ledger).trim(60, 0)  # an hour
            ledger.clean()
            pause = time.process_time() - begun
        yield seconds, pause


def slices(folder: str, commits: int, every: int) -> Iterator[tuple[float, float | None]]:
    """As ``tables``, of whole slices: admit and process."""
    from deltalake import write_deltalake

    from benchmarks.small_slice import DECLARATIONS
    from benchmarks.small_slice import minute as readings
    from sweeparea.spark_jobs.admission.admit import admit
    from sweeparea.spark_jobs.deployment.application import Application
    from sweeparea.spark_jobs.session import spark_session
    from sweeparea.spark_jobs.slices.process import process
    from sweeparea.spark_jobs.upkeep.maintain import maintain

    chance = random.Random(1)
    queries = Path(folder) / "bench"
    queries.mkdir()
    (queries / "bench.cql").write_text(DECLARATIONS)
    tell: Callable[[str], None] = lambda text: None  # noqa: E731
    with spark_session() as spark:
        for minute in range(commits):
            application = Application.open(queries)
            rows_ = readings(minute, chance).slice(0, 100)
            write_deltalake(str(application.data / "source/readings"), rows_, mode="append")
            begun = time.perf_counter()
            admit(application, "readings", spark)
            process(application, "averages", spark)
            seconds, pause = time.perf_counter() - begun, None
            if every and minute % every == every - 1:
                begun = time.perf_counter()
                maintain(application, tell=tell)
                pause = time.perf_counter() - begun
            yield seconds, pause


if __name__ == "__main__":
    main()
