"""What is deployed, seen against what the files say; changes nothing."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from sweeparea.cql.declarations.differences import Change, DefinitionDifference, difference, unified
from sweeparea.cql.syntax.column_lists import without_column_types
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.plan_identity import result_identity
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.spark_jobs.deployment.changed_definition import ChangedDefinition, outside_changes, parsed, refusal
from sweeparea.spark_jobs.deployment.declared_rows import DeclaredRows
from sweeparea.spark_jobs.deployment.planned import Planned
from sweeparea.spark_jobs.deployment.query_plans import QueryPlans
from sweeparea.spark_jobs.deployment.stale import columns_hash, stale_state
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind


class DeployedDefinitions:
    """The deployed table of an application, seen against its files."""

    def __init__(self, declared: Declarations, plans: QueryPlans) -> None:
        self.declared, self.plans, self.deployed = declared, plans, plans.deployed
        self._declared_rows = DeclaredRows(declared, plans)

    def wanted(self, name: str) -> DeployedRow:
        """The row that the declaration of a name in the files would give, with a new registration."""
        return self._declared_rows.row(name)

    def fingerprint(self, name: str) -> str:
        """The identity of a name's definition."""
        return self.wanted(name).fingerprint

    def paused(self, name: str) -> bool:
        """Whether a query was paused (PAUSE CONTINUOUS QUERY)."""
        row = self.deployed.rows().get(name)
        return row is not None and row.paused

    def difference(self, name: str, row: DeployedRow) -> DefinitionDifference:
        """What the files say otherwise than the deployed row; empty if nothing."""
        wanted = self.wanted(name)
        if is_hidden(name):
            return DefinitionDifference(())  # another one would have another name
        if (wanted.fingerprint, wanted.settings) == (row.fingerprint, row.settings):
            return DefinitionDifference(())
        statement = self.declared.catalog.declared()[name]
        old = parsed(row.definition)
        if old is None:
            found = DefinitionDifference((Change("the definition", "the deployed one", "the one in the files"),))
        else:
            found = difference(old, statement)
        changes = (*found.changes, *outside_changes(row.settings, wanted.settings))
        found = DefinitionDifference(changes, unified(row.definition, wanted.definition))
        if found.rebuild and isinstance(old, CreateQuery) and self._same_result(old, row):
            return replace(found, changes=tuple(replace(c, rebuild=False) for c in found.changes))
        return found

    def _same_result(self, old: CreateQuery, row: DeployedRow) -> bool:
        """Whether the deployed text and the files' are planned alike: then they have the same results (law S4)."""
        try:
            planned = Planned.of(row.planned)
            rates, columns = planned.inputs or {}, planned.columns
            old = replace(old, name=row.name, select=without_column_types(old.select))
            before = self.plans.bind(old, row.settings, rates, columns)
            now = self.plans.bind(self.declared.query(row.name), self.declared.catalog.settings, rates, columns)
            return result_identity(before) == result_identity(now)
        except SweepAreaError:
            return False  # what cannot be planned is not known to be the same

    def computed(self, deployed: DeployedRow, row: LedgerRow | None) -> bool:
        """Whether anything was computed by a deployed definition; by a function, whether a query that calls it was."""
        ledger = self.declared.ledger
        if deployed.kind == NameKind.FUNCTION:
            head = ledger.head()
            return any(reader in head for reader in self.readers(deployed.name))
        return row is not None or ledger.used(deployed.app)

    def refused(self, name: str, row: LedgerRow | None) -> str:
        """Why a name is not run as its files now stand, in a sentence; empty if it is. Changes nothing."""
        deployed = self.deployed.rows().get(name)
        try:
            if deployed is None:
                self.require_registrable(name, row)
                return ""
            found = self.difference(name, deployed)
            if found.rebuild and self.computed(deployed, row):
                return str(self.refusal(name, found)).splitlines()[0]
        except SweepAreaError as error:
            return str(error)
        if row is not None and deployed.kind == NameKind.QUERY:
            changed = (self.refused(f, None) for f in self.declared.catalog.functions_of(name))
            if why := next(filter(None, changed), ""):
                return why
        if row is not None and row.registration != deployed.registration:
            return f"an `apply` or `drop` was interrupted: run `{self.declared.command('apply')}` to finish it"
        return ""

    def refusal(self, name: str, found: DefinitionDifference) -> ChangedDefinition:
        """The error that says what differs and what can be done."""
        return refusal(self.declared, name, found, self.readers(name))

    def readers(self, name: str) -> tuple[str, ...]:
        """The deployed or declared queries that rest on a name, directly or through others, nearest first."""
        catalog, deployed = self.declared.catalog, self.deployed.rows()
        reads = {row.name: row.depends_on for row in deployed.values() if row.kind == NameKind.QUERY}
        reads |= {q: (*catalog.dependencies(q), *catalog.functions_of(q)) for q in catalog.queries}
        found: dict[str, None] = {}
        pending = [name]
        while pending:
            source = pending.pop(0)
            for query, inputs in reads.items():
                if source in inputs and query not in found and query != name:
                    found[query] = None
                    pending.append(query)
        return tuple(found)

    def require_registrable(self, name: str, row: LedgerRow | None) -> None:
        """ChangedDefinition where a name that is not deployed must not be: it is deployed in another spelling, or its
        tables were made by another text before there was a deployed table.
        """
        self._check_case(name)
        self._check_adopted(name, row)

    def _check_case(self, name: str) -> None:
        for other in self.deployed.rows():
            if other != name and other.lower() == name.lower():
                raise ChangedDefinition(
                    f"{name} is deployed as {other}: names that differ in case only are one name. Write {other} in the"
                    f" files, or run `{self.declared.command('drop', other)}` first."
                )

    def _check_adopted(self, name: str, row: LedgerRow | None) -> None:
        known = None if row is None else row.of_query.definition
        if known is None or is_hidden(name):
            return
        statement = self.declared.catalog.declared()[name]
        first = hashlib.sha256(" ".join(statement.text.split()).encode()).hexdigest()[:16]  # as version 0.1.0 told
        if known not in (first, self.wanted(name).fingerprint):
            raise ChangedDefinition(
                f"{statement.place}: The definition of {name} has changed since it was first run, and the text of then"
                " is not known. Results of two definitions are never mixed. Give the new definition a new name, or run"
                f" `{self.declared.command('drop', name)}` to remove the old tables and start again."
            )

    def other_columns(self, row: LedgerRow) -> list[str]:
        """What a query reads of other queries that has got other columns since its last slice."""
        known = row.of_query.columns or {}
        return [n for n, hash_ in known.items() if hash_ != columns_hash(DeltaLog(self.plans.result_table(n)))]

    def stale(self, plan: Plan, row: LedgerRow) -> bool:
        """Whether a query's SweepAreas, or those of the hidden queries that it was registered with, are not those of
        its plan, or a query that it reads has got other columns since.
        """
        if self.other_columns(row):
            return True
        deployed = self.deployed.rows().get(plan.name)
        shared = set() if deployed is None else set(Planned.of(deployed.planned).shared)
        return stale_state(plan, row) or shared != {name for name in plan.inputs if is_hidden(name)}

    def check_state(self, plan: Plan, row: LedgerRow | None) -> None:
        """Refuses to continue SweepAreas that another plan has left, though the text is the same."""
        if row is not None and self.stale(plan, row):
            raise ChangedDefinition(
                f"{plan.name} is planned otherwise than when its SweepAreas were written (by another version of"
                f" SweepArea, or over other inputs), so they cannot be continued. Run"
                f" `{self.declared.command('apply')}`: it computes {plan.name} anew from START."
            )
