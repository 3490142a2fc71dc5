"""The papers' figures: the three strategies over window size, input rate and selectivity.

``figures.py`` has the queries. The papers measure engines that take one element at a time; here a slice is measured
that brings as many ticks as ``--ticks`` says to the state of a full window. Of ``--repeat`` slices in a row that with
the fewest CPU seconds counts, for the first one also compiles. The figures of space tell the bytes of state behind it.
``--name`` adds the lines to a file of results, from which ``python -m benchmarks.page`` draws them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import write_deltalake

from benchmarks import figures, record
from benchmarks.cpu import cpu_seconds
from benchmarks.figures import FIGURES, Figure, Place
from sweeparea.spark_jobs.admission.admit import admit, advance
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.spark_jobs.spark.session import spark_session
from sweeparea.tables.publication.info import AreasInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRATEGIES = ("upa", "negative", "direct")


@dataclass(frozen=True)
class Taken:
    """What a slice took: seconds by the clock, of CPU, and the bytes of state behind it."""

    seconds: float
    cpu: float
    state: int


def measured(spark: SparkSession, figure: Figure, place: Place, ticks: int, repeat: int) -> dict[str, Taken]:
    """Of each strategy the best of ``repeat`` slices behind a full window."""
    told, text = figure.told(place), figure.query(place)
    window, rate = int(told["window"]), int(told["rate"])
    if figure.across == "elements":
        ticks = int(place) // rate
    with tempfile.TemporaryDirectory() as folder:
        program = figures.declared()
        for strategy in STRATEGIES:
            program.append(f"CREATE CONTINUOUS QUERY {strategy} WITH (strategy = '{strategy}') AS\n{text};")
        queries_folder = Path(folder) / "bench"
        queries_folder.mkdir()
        (queries_folder / "bench.cql").write_text("\n".join(program))
        application = Application.open(queries_folder)
        streams, relations = figures.inputs(text)
        for name in relations:
            write_deltalake(str(application.data / "source" / name), figures.favourites(name))
            admit(application, name, spark)
        found: dict[str, list[Taken]] = {strategy: [] for strategy in STRATEGIES}
        filled = min(2 * window, window + 20_000)
        ends = [0, *(filled + ticks * number for number in range(repeat + 1))]
        for number, (first, last) in enumerate(pairwise(ends)):
            for name in streams:
                elements = figures.drawn(name, first, last, rate)
                write_deltalake(str(application.data / "source" / name), elements, mode="append")
                admit(application, name, spark)
                advance(application, name, last - 1)
            # there and back: who comes later finds classes loaded that two strategies share
            for strategy in STRATEGIES if number % 2 else reversed(STRATEGIES):
                before, begun = sum(cpu_seconds().values()), time.perf_counter()
                process(application, strategy, spark)
                took = time.perf_counter() - begun, sum(cpu_seconds().values()) - before
                if number:
                    state = AreasInfo.of(application.ledger.head()[strategy].info).bytes
                    found[strategy].append(Taken(*took, sum(state.values())))
    return {strategy: min(each, key=lambda taken: taken.cpu) for strategy, each in found.items()}


def lines(figure: Figure, found: Mapping[Place, Mapping[str, Taken]]) -> list[dict[str, Any]]:
    """The figure as it is kept in a file of results, and the one that shows the space of the same runs."""

    def series(value: str) -> dict[str, list[tuple[Place, float]]]:
        return {
            strategy: [(place, round(getattr(taken[strategy], value), 3)) for place, taken in found.items()]
            for strategy in STRATEGIES
        }

    told = {"across": figure.across}
    kept = {"title": figure.title, **told, "unit": "CPU seconds", "series": series("cpu"), "clock": series("seconds")}
    if not figure.space:
        return [{**kept, "paper": figure.paper}]
    title, paper = figure.space
    space = {"title": title, **told, "unit": "bytes of state", "series": series("state"), "paper": paper}
    return [{**kept, "paper": figure.paper}, space]


def keep(name: str, new: Sequence[dict[str, Any]]) -> None:
    """Puts lines into a file of results, in the place of those with their titles."""
    exists = (record.FOLDER / f"{name}.json").exists()
    kept = record.read(name) if exists else record.Record(name)
    kept.commit = ", ".join(dict.fromkeys([*filter(None, kept.commit.split(", ")), record.commit()]))
    titles = {line["title"] for line in new}
    kept.lines = [line for line in kept.lines if line["title"] not in titles] + list(new)
    kept.write()


def main() -> None:
    """Prints each figure's lines as they come."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=10_000, help="of the slice that is measured")
    parser.add_argument("--repeat", type=int, default=4, help="slices; an even number is fair to all")
    parser.add_argument("--figure", action="append", help="only those with this in their title (repeatable)")
    parser.add_argument("--name", help="a file in benchmarks/results to add the lines to")
    options = parser.parse_args()
    with spark_session() as spark:
        for figure in FIGURES:
            if options.figure and not any(text in figure.title for text in options.figure):
                continue
            found: dict[Place, dict[str, Taken]] = {}
            for place in figure.places:
                found[place] = measured(spark, figure, place, options.ticks, options.repeat)
                for strategy, taken in found[place].items():
                    print(
                        f"{figure.title}, {figure.across} {place}: {strategy} {taken.seconds:.2f} s,"
                        f" CPU {taken.cpu:.2f} s, state {taken.state:,} bytes",
                        flush=True,
                    )
            if options.name:
                keep(options.name, lines(figure, found))


if __name__ == "__main__":
    main()
