"""How many rows a step of a deployment plan reads or drops, as the logs of the tables tell."""

from __future__ import annotations

from sweeparea.cql.declarations.catalog import Declared
from sweeparea.cql.syntax.statements import CreateFunction, CreateQuery
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.orchestration.plan_basis import PlanBasis
from sweeparea.tables.log.delta_log import DeltaLog


class Estimates:
    """Rows to be read and rows that go, of the names of a plan."""

    def __init__(self, basis: PlanBasis) -> None:
        self.basis = basis
        self.application, self.catalog = basis.application, basis.catalog

    def rows(self, name: str, statement: Declared) -> int | None:
        """At most how many rows the next run reads for a name; None where that is not known."""
        try:
            if isinstance(statement, CreateFunction):
                return None
            if not isinstance(statement, CreateQuery):
                return self._source_rows(name)
            inputs = self.catalog.inputs(statement)
            if any(self.catalog.owner(n) in self.catalog.queries for n in inputs):
                return None  # that result is not there yet
            return sum(self._source_rows(n) if self._anew(n) else self._admitted_rows(n) for n in inputs)
        except SweepAreaError:
            return None

    def lost(self, name: str) -> int:
        """How many rows of results (or admitted rows) go when a name's tables go."""
        layout = self.application.layout
        return sum(_rows_of(DeltaLog(path)) for path in (layout.result(name), layout.admitted(name)))

    def _anew(self, name: str) -> bool:
        return name in self.basis.rebuilt or name not in self.basis.head

    def _source_rows(self, name: str) -> int:
        table = self.application.sources.table(name)
        table.version()  # raises where there is none
        return _rows_of(DeltaLog(table.uri))

    def _admitted_rows(self, name: str) -> int:
        return _rows_of(DeltaLog(self.application.layout.admitted(name)))


def _rows_of(log: DeltaLog) -> int:
    return sum(f.rows for f in log.files()) if log.exists() else 0
