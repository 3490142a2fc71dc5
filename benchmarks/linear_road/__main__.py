"""Linear Road: ``python -m benchmarks.linear_road --expressways 1 2 --cars 2000 --minutes 10``.

Both texts (the page's 16 queries, the script's 37) run over the same traffic, in one slice and in slices of
``--slice`` seconds. Their answers are compared with a recomputation in plain Python, at every minute and at random
seconds, and both slicings row for row with each other: a difference ends the benchmark with an error. Printed are
seconds and CPU seconds of a slice, and how much faster than the traffic that is: above 1 it keeps up.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import record
from benchmarks.linear_road import generator, run, source
from benchmarks.linear_road.generator import Traffic
from benchmarks.linear_road.run import PROGRAMS, TAIL, Program
from sweeparea.spark_jobs.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RANDOM_SECONDS = 10


class WrongAnswers(Exception):
    """Answers that are not those of the recomputation, not the same in both slicings, or none at all."""


def measured(
    spark: SparkSession, program: Program, traffic: Traffic, length: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Runs a text in both slicings and compares; median seconds and CPU seconds of a slice of ``length`` seconds.

    Raises WrongAnswers.
    """
    last = traffic.seconds + TAIL
    seconds = checked(traffic)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source.write(folder / "traffic", traffic)
        whole = run.begin(program, folder / "traffic", folder / "whole", last, spark)
        run.catch_up(whole, [last], spark)
        sliced = run.begin(program, folder / "traffic", folder / "sliced", last, spark)
        run.catch_up(sliced, [*range(length - 1, traffic.seconds, length), last], spark)
        answers = program.answers(traffic, seconds)
        faults = [f"no {name}: give more cars or minutes" for name in program.streams if not answers.streams[name]]
        faults += [f"one slice: {told}" for told in run.wrong(whole, program, answers, seconds)]
        faults += [f"many slices: {told}" for told in run.wrong(sliced, program, answers, seconds)]
        faults += [f"not the same in one slice and in many: {name}" for name in run.unlike(whole, sliced)]
    if faults:
        raise WrongAnswers("\n".join(faults))
    rows = sum(bag.total() for bag in (*answers.streams.values(), *answers.relations.values()))
    # the first slice compiles, the last one has no traffic
    took, cpu = statistics.median(sliced.seconds[1:-1]), statistics.median(sliced.cpu[1:-1])
    tell(
        f"{program.name}, {traffic.expressways} expressways, {traffic.rate:,.0f} reports/s: answers equal ({rows:,}"
        f" rows in streams and at {len(seconds)} seconds, {len(sliced.seconds)} slices and one); admitted in"
        f" {sliced.admission:.1f} s"
    )
    tell(
        f"  slices of {length} s: median {took:.2f} s, CPU {cpu:.2f} s: {length / took:.1f} times real time"
        f" ({length * 2 / cpu:.1f} by the CPU of two cores)"
    )
    tell(
        f"  one slice of {traffic.seconds} s: {whole.seconds[0]:.1f} s, CPU {whole.cpu[0]:.1f} s:"
        f" {traffic.seconds / whole.seconds[0]:.1f} times real time, {len(traffic.reports['scd']) / whole.cpu[0]:,.0f}"
        " reports a CPU second"
    )
    return {"rate": round(traffic.rate, 1), "seconds": round(took, 3), "cpu": round(cpu, 3)}


def checked(traffic: Traffic) -> list[int]:
    """The seconds at which relations are compared: all minutes' first and last ones, and some between."""
    chance = random.Random(1)
    some = {chance.randrange(traffic.seconds) for _ in range(RANDOM_SECONDS)}
    return sorted(some | {m + d for m in range(60, traffic.seconds, 60) for d in (-1, 0)} | {traffic.seconds - 1})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures; 1 if an answer differs."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.linear_road",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--expressways", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--cars", type=int, default=2_000, help="at a time, on each expressway")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--slice", type=int, default=60, help="seconds of traffic in a slice")
    parser.add_argument("--program", action="append", choices=[*PROGRAMS], help="only this text (repeatable)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--name", help="a file in benchmarks/results to add the figures to")
    options = parser.parse_args(arguments)
    if not 0 < 3 * options.slice <= 60 * options.minutes:
        parser.error(
            "give three slices of traffic or more: --slice is in seconds, --minutes is how long the traffic is"
        )
    lines: list[str] = []
    series: dict[str, dict[str, list[tuple[float, float]]]] = {"seconds": {}, "cpu": {}}

    def tell(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    tell(f"{options.cars:,} cars on an expressway at a time, reports every {generator.REPORT} s")
    with spark_session() as spark:
        for expressways in options.expressways:
            traffic = generator.traffic(expressways, options.cars, options.minutes, options.seed)
            for name in options.program or PROGRAMS:
                try:
                    found = measured(spark, PROGRAMS[name], traffic, options.slice, tell)
                except WrongAnswers as fault:
                    print(f"{name}: answers differ\n{fault}", file=sys.stderr)
                    return 1
                for value, of in series.items():
                    of.setdefault(name, []).append((found["rate"], found[value]))
    if options.name:
        _keep(options.name, lines, series, options.slice)
    return 0


def _keep(name: str, lines: list[str], series: dict[str, Any], length: int) -> None:
    exists = (record.FOLDER / f"{name}.json").exists()
    kept = record.read(name) if exists else record.Record(name)
    title = f"Linear Road: slices of {length} seconds"
    paper = (
        "The texts over the same traffic, all answers equal to the recomputation's. A text keeps up where its slice"
        f" takes less than {length} seconds."
    )
    figure = {"title": title, "across": "reports", "unit": "CPU seconds", "series": series["cpu"], "paper": paper}
    kept.lines = [line for line in kept.lines if line["title"] != title] + [{**figure, "clock": series["seconds"]}]
    kept.printed["linear_road"] = "\n".join(lines)
    kept.write()


if __name__ == "__main__":
    sys.exit(main())
