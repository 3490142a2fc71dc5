"""Engines side by side on one suite: each in a process of its own, in turns, answers compared before a time counts.

    python -m benchmarks.race --events 1000000 --query q4 --engine sweeparea --engine flink --repeat 3 --name mine

Start-up is apart. Each engine first computes a query once for its answer, which also warms it up; an answer is right if
it is the reference's (DuckDB's, else the first engine's that has one). Then the engines take turns ``--repeat`` times.
Results go to ``benchmarks/results/<name>.json``. Other work on the machine makes the seconds longer: compare what
stands in one file, and look at its CPU seconds and load.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.engines import flink_setup
from benchmarks.engines.process import NAMES, EngineFault, EngineProcess
from benchmarks.engines.task import Query, Source
from benchmarks.suite import Suite
from sweeparea.infra import settings

REFERENCES = ("duckdb", "spark", "flink", "sweeparea", "streaming")
"""Whose answer the others are compared with, the first of them that takes part."""


class Racers:
    """The processes of the engines; one that has ended is started anew when it is asked again."""

    def __init__(self, suite: Suite, names: Sequence[str], scratch: Path, kept: record.Record, patience: float):
        self.names = list(names)
        self._suite, self._scratch, self._kept, self._patience = suite, scratch, kept, patience
        self._running: dict[str, EngineProcess] = {}
        self._started = 0

    def __getitem__(self, name: str) -> EngineProcess:
        process = self._running.get(name)
        if process is None or not process.alive():
            self._started += 1
            folder = self._scratch / str(self._started)
            folder.mkdir(parents=True)
            source = Source(self._suite.tables, self._suite.begin, self._suite.end, str(folder))
            self._running[name] = process = EngineProcess(name, source, self._patience)
            self._kept.versions[name] = process.versions
            self._kept.startup[name] = round(process.startup, 1)
            tell(f"{name}: started in {process.startup:.1f} s")
        return process

    def stop(self) -> None:
        """Ends all of them."""
        for process in self._running.values():
            process.stop()


@contextmanager
def racers(suite: Suite, names: Sequence[str], kept: record.Record, patience: float = 900) -> Iterator[Racers]:
    """Starts the engines, and ends them; where they write is removed."""
    folder = settings.data_folder() / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="race-", dir=folder))
    found = Racers(suite, names, scratch, kept, patience)
    try:
        yield found
    finally:
        found.stop()
        shutil.rmtree(scratch, ignore_errors=True)


def race(found: Racers, suite: Suite, name: str, repeat: int) -> dict[str, Any]:
    """One query by all engines: the case as it is kept."""
    case: dict[str, Any] = {"suite": suite.name, "data": suite.label, "query": name, "engines": {}}
    queries: dict[str, Query] = {}
    for engine in sorted(found.names, key=REFERENCES.index):
        query = suite.query(name, engine)
        if isinstance(query, str):
            case["engines"][engine] = {"cannot": query}
            continue
        begun = time.perf_counter()
        try:
            answer = found[engine].answer(query)
        except EngineFault as fault:
            case["engines"][engine] = {"fault": str(fault)}
            tell(f"{name} {engine}: {str(fault)[:300]}")
            continue
        mine = {"rows": answer["rows"], "digest": answer["digest"], "seconds": [], "cpu": [], "phases": {}}
        reference = case.setdefault("reference", engine)
        first = case["engines"].get(reference, mine)
        mine["answer"] = "equal" if (mine["rows"], mine["digest"]) == (first["rows"], first["digest"]) else "differs"
        case["engines"][engine] = mine
        tell(f"{name} {engine}: {mine['rows']:,} rows, answer {mine['answer']} ({time.perf_counter() - begun:.1f} s)")
        if mine["answer"] == "equal":
            queries[engine] = query
    for _ in range(repeat):
        for engine in [engine for engine in found.names if engine in queries]:
            mine = case["engines"][engine]
            try:
                ran = found[engine].run(queries[engine])
            except EngineFault as fault:
                mine["fault"] = str(fault)
                tell(f"{name} {engine}: {str(fault)[:300]}")
                del queries[engine]
                continue
            mine["seconds"].append(round(ran["seconds"], 3))
            mine["cpu"].append(ran["cpu"])
            for phase, seconds in ran["phases"].items():
                mine["phases"].setdefault(phase, []).append(seconds)
            tell(f"{name} {engine}: {ran['seconds']:.1f} s, CPU {ran['cpu']:.1f} s")
    for mine in case["engines"].values():
        if mine.get("seconds"):
            mine["median"] = round(statistics.median(mine["seconds"]), 3)
    return case


def available(names: Sequence[str]) -> list[str]:
    """The engines of these that can run here; says of the others why not."""
    missing = flink_setup.missing() if "flink" in names else ""
    if missing:
        tell(f"flink is left out: {missing}")
    return [name for name in names if name != "flink" or not missing]


def tell(text: str) -> None:
    """Progress, with the time."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the queries; 1 if an answer of ours was not the reference's."""
    from benchmarks.nexmark import suite as nexmark

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--query", action="append", help="only this one (repeatable)")
    parser.add_argument("--engine", action="append", choices=NAMES, help="only this one (repeatable)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--slices", type=int, default=1, help="of time, in which SweepArea computes")
    parser.add_argument("--name", default="race")
    options = parser.parse_args(arguments)
    suite = nexmark.suite(options.events, options.slices)
    kept = record.Record(options.name)
    with racers(suite, available(options.engine or NAMES), kept) as found:
        for name in options.query or suite.queries():
            kept.cases.append(race(found, suite, name, options.repeat))
            kept.write()
    wrong = [c["query"] for c in kept.cases if c["engines"].get("sweeparea", {}).get("answer") == "differs"]
    tell(f"written: {kept.path}" + (f"; answers differ: {', '.join(wrong)}" if wrong else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
