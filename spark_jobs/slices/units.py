"""Expectations of a query judged over the rows of a slice, or of the units of time that it completes.

What is judged is the query's own result, where it keeps one: a relation's rows count where they begin, a stream's at
their instants. A unit ``[k * per, (k + 1) * per)`` is judged once, by the slice that reaches its last tick, from what
was published before and what is staged; so its verdict does not depend on how time was cut. Units that begin before
START, and before the first row that there is, are not judged.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Expectation, Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.quality import by_name
from sweeparea.quality.by_name import Result
from sweeparea.spark_jobs.evaluation import references
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.spark_jobs.slices.result_tables import Line, file_of
from sweeparea.tables.log import scan
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile
from sweeparea.tables.publication.ledger import now_micros

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application


@dataclass(frozen=True)
class TickRange:
    """Rows of a table: files of it, and between which ticks (both inclusive) its rows count."""

    files: Sequence[str]
    low: int
    high: int


@dataclass(frozen=True)
class JudgedSlice:
    """What a slice ``(since, h1]`` adds to the ``plan``'s own result: ``table`` is its folder, ``lines`` its staged
    files; ``whole``: it has the rows of all keys. ``content``: the stretch was computed again, and these are the files
    that its table will hold, up to the query's instant ``committed``: then the units are judged that it touches.
    """

    application: Application
    plan: Plan
    place: SlicePlace
    since: int
    h1: int
    tables: Mapping[str, tuple[str, pa.Schema]]
    lines: Sequence[Line]
    whole: bool = True
    content: Sequence[DataFile] | None = None
    committed: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """What is written to the result that is judged."""
        if "open" in self.tables:
            return ("closed", "open")
        kinds = (self.plan.kind, ResultKind.ISTREAM, ResultKind.RSTREAM, ResultKind.DSTREAM)
        return (next(kind for kind in kinds if kind in self.tables),)

    @property
    def table(self) -> tuple[str, pa.Schema]:
        return self.tables[self.keys[0]]

    @property
    def instant(self) -> str:
        """The column of a row's instant."""
        return "valid_from" if "open" in self.keys else "ts"

    # -- rows ----------------------------------------------------------------------------------------------------------

    def parts(self, low: int) -> Iterator[TickRange]:
        """The rows from tick ``low`` up to the slice's end."""
        path, _ = self.table
        if self.content is not None:
            yield self._part(path, self.content, low, self.committed)
            return
        if low <= self.since:
            log = self.place.ledger.log(path)
            own = log.files() if log.exists() else []
            begun = low
            if self.place.stands is not None:  # computed beside: before stands what is published
                published = self._published()
                begun = max(low, self.place.stands + 1)
                if published.exists() and low < begun:
                    yield self._part(published.uri, published.files(), low, begun - 1)
            if begun <= self.since:
                yield self._part(path, own, begun, self.since)
        staged = [file_of(line) for line in self.lines if line["target"] in self.keys]
        yield self._part(path, staged, max(low, self.since + 1), self.h1)

    def _published(self) -> DeltaLog:
        return self.application.ledger.log(self.application.layout.result(self.table[0].rsplit("/", 1)[-1]))

    def _first(self, files: Sequence[DataFile]) -> int | None:
        least = [scan.bounds(file, self.instant)[0] for file in files if file.rows]
        known = [at for at in least if at is not None]
        return min(known) // self.plan.time.stored_scale if known else None

    def _part(self, uri: str, files: Sequence[DataFile], low: int, high: int) -> TickRange:
        scale = self.plan.time.stored_scale
        near = scan.prune(files, self.instant, low * scale, high * scale)
        return TickRange([f"{uri}/{file.path}" for file in near if file.rows], low, high)

    def rows(self, columns: Sequence[str], low: int, high: int | None = None) -> pa.Table:
        """Columns of the rows between two ticks, and their instants as ``__tick`` (int64)."""
        _, schema = self.table
        scale = self.plan.time.stored_scale
        wanted = pa.schema([*(schema.field(c) for c in columns), pa.field("__tick", pa.int64())])
        found: list[pa.Table] = [wanted.empty_table()]
        for part in self.parts(low):
            upto = part.high if high is None else min(part.high, high)
            if not part.files or upto < part.low:
                continue
            within = scan.within(schema, [(self.instant, part.low * scale, upto * scale)])
            rows = scan.dataset(part.files, schema).to_table(columns=[*columns, self.instant], filter=within)
            ticks = pc.divide(rows.column(self.instant).cast(pa.int64()), scale)
            found.append(rows.select(columns).append_column("__tick", ticks).cast(wanted))
        return pa.concat_tables(found)

    # -- judging -------------------------------------------------------------------------------------------------------

    def judged(self) -> list[Result]:
        """The results of all expectations, in their order. None where only some keys were computed."""
        expectations = self.plan.expectations
        if not expectations or not self.whole or self.h1 <= self.since:
            return []
        found: list[Result] = []
        for per in dict.fromkeys(e.per for e in expectations):
            if per is None and self.content is not None:
                continue
            own = [e for e in expectations if e.per == per]
            found += self._of_commit(own) if per is None else self._of_units(own, per)
        by_name.name_units(found, self.plan.time.instant)
        return found

    def _of_commit(self, expectations: Sequence[Expectation]) -> list[Result]:
        _, schema = self.table
        labels = [name for name in schema.names if name in {c.label for c in self.plan.root.columns}]
        of_rows = [e for e in expectations if e.kind in ("gx", "volume")]
        found: list[Result] = []
        if of_rows:
            rows = self.rows(by_name.columns_of(of_rows, labels), self.since + 1)
            found += by_name.of_rows(rows, of_rows)
        for expectation in expectations:
            if expectation.kind == "fresh":
                found.append(by_name.fresh(expectation, now_micros() - (self.h1 + 1) * self.plan.time.clock))
            elif expectation.kind == "references":
                found.append(self._references(expectation))
        return found

    def _references(self, expectation: Expectation) -> Result:
        columns: Any = dict(expectation.arguments)["columns"]
        rows = self.rows(columns, self.since + 1)
        try:
            return references.judged(self.application, expectation, rows, self.plan.time, self.h1)
        except SweepAreaError as error:
            return by_name.not_judged(expectation, str(error))

    def _of_units(self, expectations: Sequence[Expectation], per: int) -> list[Result]:
        _, schema = self.table
        last: int = max((dict(e.arguments).get("last", 0) for e in expectations), default=0)  # type: ignore[type-var,assignment]
        first, end = (self.since + 1) // per, (self.h1 + 1) // per
        if self.content is not None:
            end = min(self.h1 // per + 1, (self.committed + 1) // per)
        if end <= first:
            return []
        begun = -(-max(self.plan.start, -(1 << 61)) // per)  # the first unit that lies after START
        low = max(first - last, begun)
        labels = [name for name in schema.names if name in {c.label for c in self.plan.root.columns}]
        columns = by_name.columns_of([e for e in expectations if e.kind == "gx"], labels)
        rows = self.rows(columns, low * per, end * per - 1)
        least: int | None = pc.min(rows.column("__tick")).as_py() if rows.num_rows else None
        # a result that begins later has no volume before
        if not self._any_before(low * per):
            if least is None:
                return []
            start = max(low, least // per)
        else:
            start = low
        return by_name.of_units(rows, expectations, per, start, first, end)

    def _any_before(self, low: int) -> bool:
        """Whether the result has rows before a tick."""
        log = self._published()
        if not log.exists():
            return False
        first = self._first(log.files())
        return first is not None and first < low
