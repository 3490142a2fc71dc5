"""How the time of a minute slice grows with the number of commits, and what it would be after a year of them (525,600).

Two claims. ``tables`` (without Spark; CPU time, which other load leaves alone): what the tables take of a slice. It
stages an append to a stream, to a relation's closed rows and a replaced SweepArea, commits to the ledger, applies, and
lists the files that the next slice reads.
``slices``: whole slices of a grouped sliding query, admit and process, through Spark. Maintenance runs every so many.

    python -m benchmarks.a_year_of_minutes [tables | slices] [commits] [maintenance every] [file for each slice's time]

What was measured is printed as it goes, a line every fifth of the run at the latest; an interrupt ends the run with the
report of what there is. The file gets a line a slice: its number, seconds, and those of a maintenance after it.
"""

from __future__ import annotations

import math
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from sweeparea.tables.log import scan
from sweeparea.tables.log.compaction import compact
from sweeparea.tables.log.files import write_file
from sweeparea.tables.publication.ledger import Ledger
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover
from sweeparea.tables.publication.retention import trim

YEAR = 525_600
WEEK = 10_080
"""From here on as many removed files leave a table's checkpoints as come: nothing of a table grows any more."""
ROWS = 20
STREAM = pa.schema([("key", pa.int64()), ("value", pa.float64()), ("ts", pa.int64())])
RELATION = pa.schema([*list(STREAM)[:2], ("valid_from", pa.int64()), ("valid_to", pa.int64())])
AREA = pa.schema([*STREAM, ("n", pa.int64())])
TABLES = {"results/q": ("valid_to", RELATION), "results/q__istream": ("ts", STREAM), "state/q/aggregate": ("ts", AREA)}


def main() -> None:
    """Prints the time of a slice at marks of the run, the median of each tenth, the trend, and what it gives later."""
    what = sys.argv[1] if len(sys.argv) > 1 else "tables"
    commits = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000 if what == "tables" else 200
    every = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    kept = sys.argv[4] if len(sys.argv) > 4 else os.devnull
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends with a report, as Ctrl-C does
    seconds: list[float] = []
    pauses: list[float] = []
    step, width = max(1, min(1_000, commits // 5)), max(1, min(2 * every or 100, commits // 10))
    with tempfile.TemporaryDirectory() as folder, open(kept, "a", buffering=1) as file:
        try:
            for each, pause in {"tables": tables, "slices": slices}[what](folder, commits, every):
                seconds.append(each)
                file.write(f"{len(seconds)} {each:.6f} {'' if pause is None else f'{pause:.6f}'}\n")
                if pause is not None:
                    pauses.append(pause)
                if len(seconds) == width or len(seconds) % step == 0:
                    at_mark(0 if len(seconds) == width else len(seconds), seconds[-width:])
        except KeyboardInterrupt:
            print(f"interrupted after {len(seconds):,} of {commits:,}")
        report(f"{what}: {len(seconds):,} minute slices, maintenance every {every}", seconds, every=max(1, every))
        if pauses:
            report(f"maintenance, {len(pauses)} times", pauses, a_slice=every)


def at_mark(mark: int, seconds: Sequence[float]) -> None:
    """One line: the median of the slices nearest to a mark, with the middle half of them."""
    low, middle, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else [*seconds] * 3
    print(
        f"  at slice {mark:,}: median {1000 * middle:.1f} ms of {len(seconds)}"
        f" (half of them {1000 * low:.1f} to {1000 * high:.1f})",
        flush=True,
    )


def report(title: str, seconds: Sequence[float], a_slice: int = 1, every: int = 1) -> None:
    """Medians over tenths of the run in ms, and a line through its second half, continued to a week and to a year.

    The line is of least squares, through the medians of ``every`` figures each, so that what maintenance changes
    within a period is no trend. ``a_slice``: so many slices belong to each figure.
    """
    print(title)
    tenths = [statistics.median(part) for part in parts(seconds, max(1, len(seconds) // 10))]
    print(f"  median ms by tenths: {', '.join(f'{1000 * s:.1f}' for s in tenths)}")
    half = [statistics.median(part) for part in parts(seconds[len(seconds) // 2 :], every)]
    if len(half) > 3:
        at = [a_slice * (len(seconds) // 2 + every * (i + 0.5)) for i in range(len(half))]
        slope, start = statistics.linear_regression(at, half)
        off = [median - start - slope * x for x, median in zip(at, half, strict=True)]
        centre = statistics.mean(at)
        square = sum(x * x for x in off) / (len(half) - 2)
        apart = sum((x - centre) ** 2 for x in at)
        error = math.sqrt(square / apart)
        print(f"  trend of the second half {1e6 * slope:+.2f} us a slice (standard error {1e6 * error:.2f})")
        for text, then in (("a week", WEEK), ("a year", YEAR)):
            error = math.sqrt(square * (1 / len(half) + (then - centre) ** 2 / apart))
            print(
                f"  the line after {text} ({then:,} slices): {1000 * (start + slope * then):.0f} ms"
                f" (standard error {1000 * error:.0f})"
            )
        print("  (too much from a week on: then as many removed files leave the checkpoints as come)")
    sys.stdout.flush()


def parts(seconds: Sequence[float], size: int) -> list[Sequence[float]]:
    """Figures in parts of ``size``, without a last one that is not full."""
    return [seconds[at : at + size] for at in range(0, size * (len(seconds) // size), size)]


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
        publication = Publication(folder, ledger, "q", NameKind.QUERY, "r1")
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
    from sweeparea.spark_jobs.application import Application
    from sweeparea.spark_jobs.orchestration.process import process
    from sweeparea.spark_jobs.spark.session import spark_session
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
