"""``make bench`` and ``make bench-full``: what is claimed of speed, measured beside rivals, into one file of results.

The small part takes some 15 minutes on two quiet cores: small slices (and Structured Streaming's), the sliding sum and
six queries of NEXMark over a million events against Flink and DuckDB. ``--full`` has all queries, all engines and ten
million events, and runs the other benchmarks of this folder, whose prints it keeps.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import record, sliding
from benchmarks.engines.process import NAMES
from benchmarks.nexmark import suite as nexmark
from benchmarks.race import available, race, racers, tell
from benchmarks.suite import Suite
from sweeparea.infra import settings

SIX = ("q4", "q5", "q7", "q15", "q18", "q19")
RIVALS = ("sweeparea", "flink", "duckdb")
OTHERS = {
    "planning": [],
    "strategies": ["--name", "{name}"],
    "linear_road": ["--name", "{name}"],
    "kernels": [],
    "late_repair": [],
    "state_scaling": [],
    "a_year_of_minutes": ["slices"],
    "history": [],
    "cluster": [],
    "year_of_flights": [],
}
"""Benchmarks of this folder with their arguments."""


@dataclass(frozen=True)
class Heat:
    """Queries of a suite, by some engines."""

    suite: Suite
    queries: Sequence[str]
    engines: Sequence[str]
    repeat: int


def heats(full: bool, events: int, rows: int, repeat: int) -> Iterator[Heat]:
    """What is raced; each suite's data is written when its turn comes."""
    yield Heat(sliding.suite(rows), ("sum",), NAMES if full else RIVALS, repeat)
    if not full:
        yield Heat(nexmark.suite(events), SIX, RIVALS, repeat)
        return
    for size, times in ((events, repeat), (10 * events, 1)):
        suite = nexmark.suite(size)
        yield Heat(suite, tuple(suite.queries()), NAMES, times)
    yield Heat(nexmark.suite(events, 100), SIX, ("sweeparea", "duckdb", "spark"), 1)


def small_slices(slices: int) -> dict[str, Any]:
    """Small slices by us and by Structured Streaming, each in a process of its own, as a case."""
    case: dict[str, Any] = {"suite": "small slice", "data": "1,000 rows each", "query": "average", "engines": {}}
    for engine in ("sweeparea", "streaming"):
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / "figures.json"
            arguments = ["--engine", engine, "--slices", str(slices), "--json", str(kept)]
            fault = printed("small_slice", arguments)[1]
            if kept.exists():
                found = {**json.loads(kept.read_text()), "rows": 1_000, "answer": "not compared"}
                case["engines"][engine] = {**found, "median": round(statistics.median(found["seconds"]), 3)}
                tell(f"small slice {engine}: {case['engines'][engine]['median']} s")
            else:
                case["engines"][engine] = {"fault": fault}
                tell(f"small slice {engine}: {fault}")
    return case


def printed(name: str, arguments: Sequence[str]) -> tuple[str, str]:
    """Runs a benchmark of this folder; what it printed, and the end of its errors if it failed."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(command, cwd=settings.source_root(), capture_output=True, text=True)
    return done.stdout, done.stderr[-400:].strip() if done.returncode else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures; 1 if an answer of ours was not the reference's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--name", help="of the file of results (bench, or bench-full)")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the sliding sum")
    parser.add_argument("--slices", type=int, default=20, help="small ones")
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args(arguments)
    begun = time.perf_counter()
    kept = record.Record(options.name or ("bench-full" if options.full else "bench"))
    kept.cases.append(small_slices(options.slices))
    kept.write()
    for heat in heats(options.full, options.events, options.rows, options.repeat):
        tell(f"{heat.suite.name}, {heat.suite.label}")
        with racers(heat.suite, available(heat.engines), kept) as found:
            for query in heat.queries:
                kept.cases.append(race(found, heat.suite, query, heat.repeat))
                kept.write()
    for name, given in OTHERS.items() if options.full else ():
        tell(name)
        text, fault = printed(name, [argument.replace("{name}", kept.name) for argument in given])
        kept.lines = record.read(kept.path).lines  # some put their own there
        kept.printed[name] = text + fault
        kept.write()
    wrong = [f"{c['suite']} {c['query']}" for c in kept.cases if _ours(c).get("answer") == "differs"]
    tell(f"written: {kept.path} ({(time.perf_counter() - begun) / 60:.1f} minutes)")
    if wrong:
        tell(f"answers of ours differ: {', '.join(wrong)}")
    return 1 if wrong else 0


def _ours(case: dict[str, Any]) -> dict[str, Any]:
    return case["engines"].get("sweeparea", {})


if __name__ == "__main__":
    sys.exit(main())
