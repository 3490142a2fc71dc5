"""Expectations of a stream or relation over several rows, judged when they are admitted: see ``slices/units.py``, which
does the same for queries.

Of a commit those rows are judged that it brings. A unit of event time is judged by the commit whose heartbeat passes
its last tick, from all that stands admitted in it then; what is admitted later, as late elements, is not judged again.
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Expectation
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values import keys
from sweeparea.operators.values.netting import netted
from sweeparea.quality import by_name, records, verdict
from sweeparea.quality.verdict_tables import refused
from sweeparea.spark_jobs.admission.judging.stage import Stage
from sweeparea.spark_jobs.admission.judging.verdicts import accepting
from sweeparea.tables.log import scan
from sweeparea.tables.publication.info import SourceInfo
from sweeparea.tables.publication.name_kinds import NameKind

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application


@dataclass(frozen=True)
class StagedCommit:
    """One commit of a source that is staged: its heartbeat goes from ``before`` to ``after`` (ticks); ``instant`` is
    the commit's own c(v) in microseconds, ``newest`` the greatest tick that it brings.
    """

    application: Application
    stage: Stage
    columns: Sequence[str]
    time: TimeDomain
    kind: NameKind
    version: int
    instant: int = 0
    newest: int | None = None
    before: int | None = None
    after: int | None = None

    def judge(self, expectations: Sequence[Expectation], info: SourceInfo) -> SourceInfo:
        """``info`` with the results of ``expectations`` among its verdicts. QualityFailure where one that fails is not
        met; its verdict is kept as refused.
        """
        results: list[by_name.Result] = []
        expectations = accepting(self.stage.publication.previous, self.version)(expectations)
        for per in dict.fromkeys(e.per for e in expectations):
            own = [e for e in expectations if e.per == per]
            results += self._of_commit(own) if per is None else self._of_units(own, per)
        if not results:
            return info
        by_name.name_units(results, self.time.instant)
        name, attempt = self.stage.publication.name, self.stage.attempt
        rows = sum(file.rows for file in self.stage.brought)
        judged = verdict.with_results(verdict.Verdict(True, [], 0.0, rows), results)
        own_entry = records.entry(name, judged)
        entries = records.merged([*(info.verdicts or ()), own_entry])
        entries[0]["rows"] = max(rows, *(e["rows"] for e in (info.verdicts or [own_entry])))
        if not judged.ok:
            self._refuse(entries)
            what = f"version {self.version} of its source"
            verdict.require(judged, name, what, verdict.NOT_ADMITTED)
        return replace(info, verdicts=entries, judged=attempt)

    def _refuse(self, entries: Sequence[records.Entry]) -> None:
        publication, stage = self.stage.publication, self.stage
        refused(
            self.application.ledger, publication.name, self.kind, entries,
            registration=publication.registration, seq=stage.seq, attempt=stage.attempt, upto=self.after,
            chronon=self.time.clock, source_version=self.version,
        )  # fmt: skip

    def _of_commit(self, expectations: Sequence[Expectation]) -> list[by_name.Result]:
        of_rows = [e for e in expectations if e.kind in ("gx", "volume")]
        found: list[by_name.Result] = []
        if of_rows:
            rows = self._brought(by_name.columns_of(of_rows, self.columns))
            found += by_name.of_rows(rows, of_rows)
        for expectation in expectations:
            if expectation.kind == "fresh":
                newest = None if self.newest is None else (self.newest + 1) * self.time.chronon
                found.append(by_name.fresh(expectation, None if newest is None else max(0, self.instant - newest)))
            elif expectation.kind == "references":
                found.append(self._references(expectation))
        return found

    def _references(self, expectation: Expectation) -> by_name.Result:
        from sweeparea.spark_jobs.evaluation import references

        columns: Any = dict(expectation.arguments)["columns"]
        rows = self._brought(columns)
        try:
            return references.judged(self.application, expectation, rows, self.time, 0)
        except SweepAreaError as error:
            return by_name.not_judged(expectation, str(error))

    def _brought(self, columns: Sequence[str]) -> pa.Table:
        log = self.stage.admitted
        return _plain(log.uris(self.stage.brought), self.stage.schema, columns, None, None)

    def _of_units(self, expectations: Sequence[Expectation], per: int) -> list[by_name.Result]:
        if self.after is None:
            return []
        last: int = max(int(str(dict(e.arguments).get("last", 0))) for e in expectations)
        log, schema = self.stage.admitted, self.stage.schema
        live = log.files()
        least = [scan.bounds(file, "__tick")[0] for file in [*live, *self.stage.brought] if file.rows]
        known = [tick for tick in least if tick is not None]
        if not known:
            return []
        begun = -(-min(known) // per)  # the unit of the first element is seldom whole
        first = begun if self.before is None else max(begun, (self.before + 1) // per)
        end = (self.after + 1) // per
        if end <= first:
            return []
        low = max(first - last, begun)
        columns = by_name.columns_of([e for e in expectations if e.kind == "gx"], self.columns)
        uris = log.uris([*live, *self.stage.brought, *self.stage.moved])
        rows = _plain(list(dict.fromkeys(uris)), schema, columns, low * per, end * per - 1)
        return by_name.of_units(rows, expectations, per, low, first, end)


def _plain(
    uris: Sequence[str], schema: pa.Schema, columns: Sequence[str], low: int | None, high: int | None
) -> pa.Table:
    """Elements between two ticks, one row a copy, what was taken back gone: columns and ``__tick``."""
    names = [*columns, "__tick"]
    wanted = pa.schema([schema.field(name) for name in names])
    if not uris:
        return wanted.empty_table()
    within = None if low is None and high is None else scan.within(schema, [("__tick", low, high)])
    rows = scan.dataset(uris, schema).to_table(columns=[*names, "__n"], filter=within)
    n = keys.int64_of(rows.column("__n"))
    if len(n) and (n != 1).any():
        code, count = keys.codes([rows.column(name) for name in names])
        net = netted(code, np.zeros(len(n), np.int64), n)
        rows = rows.take(pa.array(np.repeat(keys.first_rows(code, count)[net[0]], np.maximum(net[2], 0))))
    return rows.select(names).cast(wanted)


__all__ = ["StagedCommit"]
