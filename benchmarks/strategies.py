"""The papers' figures: the three strategies over window size, input rate and selectivity.

Golab's figures 9 to 12, 15 and 16 (Queries 1 to 4 over the size of the window, 2,000 to 200,000 ticks, one element a
tick and link) and what Hammad's 11, 12, 14 and 15 vary (rate and selectivity; queries 3, 1 and 5). The papers measure
engines that take one element at a time; here a slice is measured that brings as many ticks as ``--ticks`` says to the
state of a full window. Traffic and sales are drawn, from a seed. ``--name`` adds the lines to a file of results.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from benchmarks import record
from benchmarks.cpu import cpu_seconds, spent
from sweeparea.spark_jobs.admission.admit import admit, advance
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRATEGIES = ("upa", "negative", "direct")
WINDOWS = (2_000, 20_000, 200_000)
SOURCES, DESTINATIONS = 2_000, 10
PROTOCOLS = {"ftp": 0.02, "telnet": 0.2, "http": 0.78}
_JOIN = """SELECT a.source, a.destination, b.destination AS other
FROM link1 [RANGE {window}] AS a JOIN link2 [RANGE {window}] AS b ON a.source = b.source
WHERE a.protocol = '{protocol}' AND b.protocol = '{protocol}'"""
_SALES = """SELECT MAX(m.sales) AS best
FROM (ISTREAM(SELECT s.store, SUM(s.price) AS sales FROM sales [RANGE {window}] AS s
      WHERE s.chance < {selectivity} GROUP BY s.store)) [RANGE {longer}] AS m"""


@dataclass(frozen=True)
class Figure:
    """A query whose ``across`` varies; ``fixed`` is what else its text asks for."""

    title: str
    text: str
    across: str
    places: Sequence[float]
    fixed: dict[str, Any]

    def query(self, place: float, window: int) -> str:
        """The text at a place of the axis."""
        told = {"window": window, "rate": 1, "selectivity": 1.0, **self.fixed, self.across: place}
        return self.text.format(**told, longer=6 * int(told["window"]))


FIGURES = (
    Figure("Golab 9: join, ftp", _JOIN, "window", WINDOWS, {"protocol": "ftp"}),
    Figure("Golab 10: join, telnet", _JOIN, "window", WINDOWS[:2], {"protocol": "telnet"}),
    Figure("Golab 11: distinct sources", "SELECT DISTINCT source FROM link1 [RANGE {window}]", "window", WINDOWS, {}),
    Figure(
        "Golab 12: distinct pairs",
        "SELECT DISTINCT source, destination FROM link1 [RANGE {window}]",
        "window",
        WINDOWS,
        {},
    ),
    Figure(
        "Golab 15: negation",
        "SELECT source FROM link1 [RANGE {window}] EXCEPT ALL SELECT source FROM link2 [RANGE {window}]",
        "window",
        WINDOWS,
        {},
    ),
    Figure(
        "Golab 16: join of distinct sources",
        "SELECT a.source FROM (SELECT DISTINCT source FROM link1 [RANGE {window}]) AS a,"
        " (SELECT DISTINCT source FROM link2 [RANGE {window}]) AS b WHERE a.source = b.source",
        "window",
        WINDOWS,
        {},
    ),
    Figure(
        "Hammad 11: sum by store",
        "SELECT store, SUM(price * quantity) AS sales FROM sales [RANGE {window}] GROUP BY store",
        "rate",
        (1, 4, 16),
        {},
    ),
    Figure(
        "Hammad 12: sum of a selection",
        "SELECT SUM(price) AS total FROM sales [RANGE {window}] WHERE chance < {selectivity}",
        "selectivity",
        (0.2, 0.6, 1.0),
        {},
    ),
    Figure("Hammad 14: maximum of sums", _SALES, "rate", (1, 4, 16), {"selectivity": 0.2}),
    Figure("Hammad 15: maximum of sums", _SALES, "selectivity", (0.1, 0.4, 0.8), {}),
)
STREAMS = {"link": ("link1", "link2"), "sales": ("sales",)}


def drawn(name: str, first: int, last: int, rate: int) -> pa.Table:
    """The elements of the ticks from ``first`` up to ``last``, ``rate`` of each."""
    ticks = np.repeat(np.arange(first, last), rate)
    chance, n = np.random.default_rng([first, sum(name.encode())]), (last - first) * rate
    if name == "sales":
        columns = {"store": chance.integers(0, 100, n), "price": chance.integers(1, 1_000, n)}
        columns |= {"quantity": chance.integers(1, 10, n), "chance": chance.random(n)}
    else:
        # few sources are in most of the traffic
        columns = {"source": (SOURCES * chance.random(n) ** 3).astype(np.int64)}
        columns |= {"destination": chance.integers(0, DESTINATIONS, n)}
        columns |= {"protocol": chance.choice(list(PROTOCOLS), n, p=list(PROTOCOLS.values()))}
    return pa.table({"at": ticks, **columns})


def measured(
    spark: SparkSession, figure: Figure, place: float, ticks: int, repeat: int
) -> dict[str, tuple[float, float]]:
    """Of each strategy the median seconds and CPU seconds of a slice behind a full window."""
    window = int(place) if figure.across == "window" else 2_000
    rate = int(place) if figure.across == "rate" else 1
    names = STREAMS["sales" if "sales [" in figure.text else "link"]
    queries = [f"{strategy}_{number}" for number in range(repeat) for strategy in STRATEGIES]
    text = figure.query(place, window)
    with tempfile.TemporaryDirectory() as folder:
        program = [
            f"CREATE STREAM {name} FROM DELTA 'source/{name}' TIMESTAMP BY at HEARTBEAT MANUAL;" for name in names
        ]
        for query in queries:
            strategy = query.partition("_")[0]
            program.append(f"CREATE CONTINUOUS QUERY {query} WITH (strategy = '{strategy}') AS\n{text};")
        queries_folder = Path(folder) / "bench"
        queries_folder.mkdir()
        (queries_folder / "bench.cql").write_text("\n".join(program))
        application = Application.open(queries_folder)
        found: dict[str, list[tuple[float, float]]] = {strategy: [] for strategy in STRATEGIES}
        filled = min(2 * window, window + 20_000)
        for first, last in ((0, filled), (filled, filled + ticks)):
            for name in names:
                write_deltalake(str(application.data / "source" / name), drawn(name, first, last, rate), mode="append")
                admit(application, name, spark)
                advance(application, name, last - 1)
            for query in queries:
                before, begun = cpu_seconds(), time.perf_counter()
                process(application, query, spark)
                took = time.perf_counter() - begun, sum(spent(before).values())
                if first:
                    found[query.partition("_")[0]].append(took)
    return {
        strategy: (statistics.median(s for s, _ in each), statistics.median(c for _, c in each))
        for strategy, each in found.items()
    }


def main() -> None:
    """Prints each figure's lines as they come."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=20_000, help="of the slice that is measured")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--figure", action="append", help="only those with this in their title (repeatable)")
    parser.add_argument("--name", help="a file in benchmarks/results to add the lines to")
    options = parser.parse_args()
    lines = []
    with spark_session() as spark:
        for figure in FIGURES:
            if options.figure and not any(text in figure.title for text in options.figure):
                continue
            series: dict[str, list[tuple[float, float]]] = {strategy: [] for strategy in STRATEGIES}
            for place in figure.places:
                found = measured(spark, figure, place, options.ticks, options.repeat)
                for strategy, (seconds, cpu) in found.items():
                    series[strategy].append((place, round(seconds, 3)))
                    print(
                        f"{figure.title}, {figure.across} {place}: {strategy} {seconds:.2f} s, CPU {cpu:.1f} s",
                        flush=True,
                    )
            lines.append({"title": figure.title, "across": figure.across, "unit": "seconds", "series": series})
    if options.name:
        kept = (
            record.read(options.name)
            if (record.FOLDER / f"{options.name}.json").exists()
            else record.Record(options.name)
        )
        kept.lines = [line for line in kept.lines if line["title"] not in {new["title"] for new in lines}] + lines
        kept.write()


if __name__ == "__main__":
    main()
