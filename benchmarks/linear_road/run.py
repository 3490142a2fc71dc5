"""Linear Road's queries over the traffic, slice by slice, and whether their answers are those of the recomputation."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.cpu import cpu_seconds
from benchmarks.linear_road import generator, recompute, source
from benchmarks.linear_road.generator import Traffic
from benchmarks.linear_road.recompute import Answers, Bag
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.admit import admit, advance
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import Processed, process
from sweeparea.spark_jobs.orchestration.side_by_side import each_of
from sweeparea.tables.log.delta_log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
TAIL = 120
"""Seconds behind the traffic in which cars that have left go out of all that is checked."""
THREADS = 2


@dataclass(frozen=True)
class Program:
    """One of the two texts: what it reads, what answers it must have, and the queries that they are compared of."""

    name: str
    inputs: Sequence[str]
    answers: Callable[[Traffic, list[int]], Answers]
    streams: Sequence[str]
    relations: Sequence[str]

    @property
    def text(self) -> str:
        return (HERE / f"{self.name}.cql").read_text(encoding="utf-8")


PROGRAMS = {
    "script": Program(
        "script",
        source.SCRIPT,
        recompute.script,
        ("SegTollStr", "tollstr", "accnot", "TollAssessStr", "accbalout"),
        ("AccSeg", "VolSM", "SegTollRel", "AccBal"),
    ),
    "page": Program(
        "page",
        source.PAGE,
        recompute.page,
        ("TollStr", "AccNotifyStr", "AccBalOutStr", "ExpOutStr", "CarExitStr"),
        ("SegAvgSpeed", "SegVol", "AccSeg", "SegToll", "AccBal"),
    ),
}


@dataclass
class Ran:
    """An application that has caught up with the traffic; seconds and CPU seconds of each slice, all queries in it."""

    application: Application
    queries: Path
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    admission: float = 0.0

    def table(self, query: str) -> pa.Table:
        """A query's own table."""
        return DeltaLog(self.application.layout.result(query)).read()


def opened(program: Program, data: Path, folder: Path) -> tuple[Application, Path]:
    """An application in ``folder``, made anew, and the folder of its texts; it reads the tables in ``data``."""
    shutil.rmtree(folder, ignore_errors=True)
    queries = folder / f"road_{program.name}"
    queries.mkdir(parents=True)
    texts = [source.declared(data, name) for name in program.inputs]
    (queries / "inputs.cql").write_text("\n".join(texts), encoding="utf-8")
    (queries / "queries.cql").write_text(program.text, encoding="utf-8")
    return Application.open(queries, folder / "data"), queries


def begin(program: Program, data: Path, folder: Path, last: int, spark: SparkSession) -> Ran:
    """The same, with all that ``data`` holds admitted, which is up to second ``last``."""
    ran, begun = Ran(*opened(program, data, folder)), time.perf_counter()
    for name in program.inputs:
        admit(ran.application, name, spark)
        if name != source.STATIC:
            advance(ran.application, name, tick(last))
    ran.admission = time.perf_counter() - begun
    return ran


def catch_up(ran: Ran, cuts: Sequence[int], spark: SparkSession) -> None:
    """All queries up to each of the seconds ``cuts``, one slice each; two at a time, each behind what it reads."""

    def another() -> Application:
        return Application.open(ran.queries, ran.application.data)

    for cut in cuts:
        before, begun, until = sum(cpu_seconds().values()), time.perf_counter(), tick(cut)

        def work(mine: Application, name: str, until: int = until) -> Processed:
            return process(mine, name, spark, until=until)

        done = each_of(ran.application, another, list(ran.application.catalog.queries), work, THREADS)
        for _, report in done:
            if isinstance(report, SweepAreaError):
                raise report
        ran.seconds.append(time.perf_counter() - begun)
        ran.cpu.append(sum(cpu_seconds().values()) - before)


def tick(second: int) -> int:
    """A second of the traffic as a tick."""
    return int(generator.BEGIN.timestamp()) + second


def wrong(ran: Ran, program: Program, answers: Answers, seconds: Sequence[int]) -> list[str]:
    """Where the answers are not the recomputation's: a line for each query and second that differs."""
    found = [
        f"{name}: {told}"
        for name in program.streams
        if (told := difference(answers.streams[name], elements(ran.table(name))))
    ]
    for name in program.relations:
        table = ran.table(name)
        for second in seconds:
            told = difference(answers.relations[name, second], snapshot(table, second))
            found += [f"{name} at second {second}: {told}"] if told else []
    return found


def unlike(one: Ran, other: Ran) -> list[str]:
    """The queries whose tables do not have the same rows in both."""
    return [name for name in one.application.catalog.queries if rows(one.table(name)) != rows(other.table(name))]


def difference(right: Bag, ours: Bag) -> str:
    """What is missing and what is too much, in short; empty where the bags are equal."""
    missing, besides = right - ours, ours - right
    if not missing and not besides:
        return ""
    told = [
        f"{bag.total()} {what}, such as {sorted(bag)[0]}"
        for what, bag in (("missing", missing), ("too many", besides))
        if bag
    ]
    return f"of {right.total()} rows {' and '.join(told)}"


def elements(table: pa.Table) -> Bag:
    """A stream's elements, their seconds first."""
    return rows(table.select(["ts", *(name for name in table.column_names if name != "ts")]))


def snapshot(table: pa.Table, second: int) -> Bag:
    """A relation's rows at a second."""
    found: Bag = Counter()
    begins, ends = (_seconds(table[name]) for name in ("valid_from", "valid_to"))
    told = [table[name].to_pylist() for name in table.column_names if name not in ("valid_from", "valid_to")]
    for begun, ended, *row in zip(begins, ends, *told, strict=True):
        if begun is not None and begun <= second and (ended is None or second < ended):
            found[tuple(row)] += 1
    return found


def rows(table: pa.Table) -> Bag:
    """All rows, instants as seconds of the traffic."""
    columns = [_seconds(c) if pa.types.is_timestamp(c.type) else c.to_pylist() for c in table.columns]
    return Counter(zip(*columns, strict=True))


def _seconds(column: pa.ChunkedArray) -> list[int | None]:
    first = int(generator.BEGIN.timestamp())
    return [None if at is None else at // 1_000_000 - first for at in column.cast(pa.int64()).to_pylist()]
