"""The steps of what the files declare: each name against what is deployed of it."""

from __future__ import annotations

from sweeparea.cql.declarations.catalog import Declared
from sweeparea.cql.declarations.differences import DefinitionDifference
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.deployment.changed_definition import ChangedDefinition
from sweeparea.spark_jobs.deployment.declared_rows import kind_of
from sweeparea.spark_jobs.deployment.planned import Planned
from sweeparea.spark_jobs.orchestration.estimates import Estimates
from sweeparea.spark_jobs.orchestration.padding import Padding
from sweeparea.spark_jobs.orchestration.plan_basis import PlanBasis
from sweeparea.spark_jobs.orchestration.plan_checks import PlanChecks
from sweeparea.spark_jobs.orchestration.steps import Rebuild, Refuse, Register, Renew, Step, TakeOver, Unchanged
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind


class DeclaredSteps:
    """To be asked name by name in order of dependency: what is rebuilt has its readers rebuilt."""

    def __init__(self, basis: PlanBasis, checks: PlanChecks) -> None:
        self.basis, self.checks, self.estimates = basis, checks, Estimates(basis)
        self.application, self.catalog, self.registry = basis.application, basis.catalog, basis.registry

    def step(self, name: str, statement: Declared) -> Step:
        """What ``apply`` does with a name; problems are noted."""
        self.checks.check(name, statement)
        kind, row, head = kind_of(statement), self.basis.deployed.get(name), self.basis.head.get(name)
        if head is None:
            self.checks.require_history(name, statement)
        try:
            if row is None:
                why = self.registry.refused(name, head)
                if why:
                    self.basis.problem(ChangedDefinition(why))
                    return Refuse(name, kind, why)
                adopted = "its tables were made before there was a list of what is deployed" if head else ""
                return Register(name, kind, adopted, rows=None if head else self.estimates.rows(name, statement))
            found = self.registry.difference(name, row)
        except SweepAreaError as error:
            self.basis.problem(error)
            return Refuse(name, kind, "see the problems")
        return self._changed(name, kind, statement, row, head, found)

    def _changed(
        self,
        name: str,
        kind: NameKind,
        statement: Declared,
        row: DeployedRow,
        head: LedgerRow | None,
        found: DefinitionDifference,
    ) -> Step:
        if found.rebuild and not self.registry.computed(row, head):
            why = "nothing was computed by the old definition yet"
            return Renew(name, kind, why, found)
        if found.rebuild and not statement.replace:
            self.basis.problem(self.registry.refusal(name, found))
            return Refuse(name, kind, "changed, but not declared CREATE OR REPLACE", found)
        why = "CREATE OR REPLACE" if found.rebuild else self._why_rebuilt(name, statement, row, head)
        if why:
            self.basis.rebuilt.append(name)
            self.checks.require_history(name, statement)
            rows = self.estimates.rows(name, statement)
            return Rebuild(name, kind, why, found, rows, self.estimates.lost(name))
        if found or row.fingerprint != self.registry.wanted(name).fingerprint:
            return TakeOver(name, kind, "results stay as they are", found)
        return Unchanged(name, kind)

    def _why_rebuilt(self, name: str, statement: Declared, row: DeployedRow, head: LedgerRow | None) -> str:
        """Why a name is computed anew though its own definition gives the same results; empty if it is not."""
        if head is None:
            return ""
        if head.registration != row.registration:
            return "an earlier apply or drop was interrupted"
        if not isinstance(statement, CreateQuery):
            padding = Padding(self.application, self.basis.head)
            why = padding.missing(name, statement) or padding.redeclared(name, statement)
            return why if statement.replace else ""
        below = [n for n in self.catalog.dependencies(statement) if n in self.basis.rebuilt]
        below += [n for n in self.catalog.functions_of(statement) if n in self.basis.rebuilt]
        shared = [n for n in Planned.of(row.planned).shared if self._is_rebuilt(n)]
        below = below or shared
        if below:
            return f"reads {', '.join(below)}, rebuilt above"
        try:
            stale = self.registry.stale(self.application.plans.plan(name), head)
        except SweepAreaError:
            return ""  # told of among the problems
        if not stale:
            return ""
        if others := self.registry.other_columns(head):
            return f"reads {', '.join(others)}, which got other columns in an apply that was interrupted"
        return "this version plans it otherwise, its SweepAreas cannot be continued"

    def _is_rebuilt(self, hidden: str) -> bool:
        """Whether a hidden query is computed anew, with all its readers."""
        if hidden in self.basis.rebuilt:
            return True
        row, head = self.basis.deployed.get(hidden), self.basis.head.get(hidden)
        if row is None or head is None:
            return False
        anew = head.registration != row.registration or any(name in self.basis.rebuilt for name in row.depends_on)
        try:
            anew = anew or self.registry.stale(self.application.plans.plan(hidden), head)
        except SweepAreaError:
            return False  # its readers are stale, and told of
        if anew:
            self.basis.rebuilt.append(hidden)
        return anew
