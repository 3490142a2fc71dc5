"""Registering: which definition a name's tables were made by, and whether the files still hold that definition.

A name is registered once, by ``sweeparea apply`` or by the first job that needs it. Afterwards every job compares its
declaration with the deployed one: what says the same is continued, what says something else is refused with the
difference, and what says it otherwise without changing a row is taken over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sweeparea.cql.rewrites import take
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.spark_jobs.deployment.changed_definition import ChangedDefinition
from sweeparea.spark_jobs.deployment.deployed_definitions import DeployedDefinitions
from sweeparea.spark_jobs.deployment.discard import discard
from sweeparea.spark_jobs.deployment.planned import Planned
from sweeparea.tables.errors import LostRace
from sweeparea.tables.publication.deployed import DeployedRow, Rows
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind


class Registry(DeployedDefinitions):
    """What changes the deployed table of an application."""

    def registration(self, name: str, row: LedgerRow | None) -> str:
        """The registration of a name, which is registered now if it never was.

        ``row`` is its ledger row. ChangedDefinition if its tables were made by another definition.
        """
        deployed = self.deployed.rows().get(name)
        if deployed is None:
            deployed = self.register(name, row)
        found = self.difference(name, deployed)
        if found.rebuild and not self.computed(deployed, row):
            return self.renew(name, deployed).registration  # nothing was computed by the old definition yet
        if found.rebuild:
            raise self.refusal(name, found)
        if found or self.wanted(name).fingerprint != deployed.fingerprint:
            deployed = self.take_over(name, deployed)
        if row is None:
            return self._unused(deployed)
        if row.registration != deployed.registration:
            raise ChangedDefinition(
                f"{name} was registered anew, but its old results are still there: an `apply` or `drop` was"
                f" interrupted. Run `{self.declared.command('apply')}`, which finishes it."
            )
        return deployed.registration

    def register(self, name: str, row: LedgerRow | None) -> DeployedRow:
        """Registers a name that is not deployed. Tables made before there was a deployed table are adopted."""
        self.require_registrable(name, row)
        wanted = self.wanted(name)
        if row is not None:  # its plan was chosen by its text alone
            return self.deployed.register(replace(wanted, registration=row.registration))
        return self.deployed.register(self._with_planned(wanted))

    def take_over(self, name: str, deployed: DeployedRow) -> DeployedRow:
        """Stores the files' definition for a name whose results it does not change. LostRace: it was dropped or
        registered anew since ``deployed`` was read.
        """
        wanted = replace(self.wanted(name), registration=deployed.registration, planned=deployed.planned)
        stands = self.deployed.succeed(wanted, deployed.registration)
        if stands is None or stands.registration != deployed.registration:
            raise _overtaken(name)
        return stands

    def renew(self, name: str, old: DeployedRow | None) -> DeployedRow:
        """Stores the files' definition under a new registration: what was computed before belongs to another, ``old``
        as it was read. LostRace: somebody else has dropped the name meanwhile, or registered another definition.
        """
        wanted = self._with_planned(self.wanted(name))
        stands = self.deployed.succeed(wanted, None if old is None else old.registration)
        if stands is None or (stands.fingerprint, stands.settings) != (wanted.fingerprint, wanted.settings):
            raise _overtaken(name)
        return stands

    def _with_planned(self, wanted: DeployedRow) -> DeployedRow:
        return (
            replace(wanted, planned=self.plans.fresh(wanted.name).as_dict())
            if wanted.kind == NameKind.QUERY
            else wanted
        )

    def _unused(self, deployed: DeployedRow) -> str:
        """The registration for a first commit. One that has committed before is not used again: the history would take
        the new commits for done.
        """
        ledger = self.declared.ledger
        if not ledger.used(deployed.app):
            return deployed.registration
        row = ledger.row(deployed.name)
        if row is not None:
            return row.registration  # another run's first commit came in between
        try:
            discard(self.declared, self.deployed, deployed.name, deployed.registration, purge=False)
        except LostRace as error:
            raise _overtaken(deployed.name) from error
        return self.renew(deployed.name, deployed).registration

    def settle(self, name: str) -> None:
        """Gives a query that has not run yet the rates that could not be measured when it was registered."""
        deployed = self.deployed.rows().get(name)
        if deployed is None or is_hidden(name) or Planned.of(deployed.planned).inputs is not None:
            return
        ledger = self.declared.ledger
        if name in ledger.head() or ledger.used(deployed.app):
            return
        self.plans.forget_rates(name)
        inputs, shared = self.plans.rates(name), Planned.of(deployed.planned).shared
        if inputs is None:
            return
        if set(take(self.plans.whole(name, inputs), shared).inputs) & set(shared) != set(shared):
            inputs = {}  # what is shared was planned without them
        wanted = Planned(inputs, shared, Planned.of(deployed.planned).columns).as_dict()

        def fill(rows: Rows) -> Rows:
            row = rows.get(name)
            if row is None or row.registration != deployed.registration or "inputs" in row.planned:
                return rows  # a faster run's are as good, but all must have the same
            return {**rows, name: replace(row, planned=wanted)}

        self.deployed.change(fill)

    def keep_columns(self, name: str, columns: Sequence[str]) -> None:
        """Before a stream or relation gains columns: the deployed queries that read it go on with those it has."""

        def keep(rows: Rows) -> Rows:
            kept = dict(rows)
            for row in rows.values():
                planned = Planned.of(row.planned)
                if row.kind == NameKind.QUERY and name in row.depends_on and name not in planned.columns:
                    known = {**planned.columns, name: tuple(columns)}
                    kept[row.name] = replace(row, planned=replace(planned, columns=known).as_dict())
            return rows if kept == rows else kept

        self.deployed.change(keep)


def _overtaken(name: str) -> LostRace:
    return LostRace(
        f"{name} was dropped or registered anew by another run meanwhile. Nothing of this run was stored. Start it"
        " again: it goes on from what stands there."
    )
