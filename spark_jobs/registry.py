"""Registering: which definition a name's tables were made by, and whether the files still hold that definition.

A name is registered once, by ``sweeparea apply`` or by the first job that needs it. Afterwards every job compares its
declaration with the deployed one: what says the same is continued, what says something else is refused with the
difference, and what says it otherwise without changing a row is taken over.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING

from sweeparea.cql.canonical import declaration
from sweeparea.cql.catalog import Declared
from sweeparea.cql.differences import NEUTRAL_SETTINGS, Change, Difference, difference, unified
from sweeparea.cql.statements import CreateFunction, CreateQuery, CreateRelation, CreateStream, parse_text
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan_identity import result_identity, state_identity
from sweeparea.tables.deployed import Deployed, DeployedRow
from sweeparea.tables.ledger import LedgerRow, now_micros

if TYPE_CHECKING:
    from sweeparea.operators.logical import Plan
    from sweeparea.spark_jobs.application import Application


class ChangedDefinition(SweepAreaError):
    """The files hold another definition than the one a name's tables were made by."""

    type = "BindError"
    exit_code = 2


def kind_of(statement: Declared) -> str:
    """stream, relation, query or function."""
    kinds = {CreateStream: "stream", CreateRelation: "relation", CreateQuery: "query", CreateFunction: "function"}
    return kinds[type(statement)]


class Registry:
    """The deployed table of an application, seen against its files."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.deployed = Deployed(str(application.data))
        self._rows: dict[str, DeployedRow] = {}

    # -- what stands in the files --------------------------------------------------------------------------------------

    def wanted(self, name: str) -> DeployedRow:
        """The row that the declaration of a name in the files would give, with a new registration."""
        if name not in self._rows:
            catalog = self.application.catalog
            statement = catalog.declared()[name]
            taken = declaration(statement)
            reads = catalog.dependencies(statement) if isinstance(statement, CreateQuery) else ()
            self._rows[name] = DeployedRow(
                name=name,
                kind=kind_of(statement),
                definition=taken.text,
                fingerprint=taken.fingerprint,
                registration="",
                depends_on=reads,
                settings=self._outside(statement),
                engine=engine_version(),
            )
        return replace(self._rows[name], registration=str(uuid.uuid4()), deployed_at=now_micros())

    def _outside(self, statement: Declared) -> dict[str, str]:
        """What applies to a declaration from outside its text."""
        catalog = self.application.catalog
        if isinstance(statement, CreateQuery):
            own = dict(statement.settings)
            return {name: value for name, value in catalog.settings.items() if name not in own}
        exchanged = {name.lower() for name in catalog.environment.sources}
        if isinstance(statement, CreateStream | CreateRelation) and statement.name.lower() in exchanged:
            return {"source": statement.source.uri}
        return {}

    # -- against what is deployed --------------------------------------------------------------------------------------

    def difference(self, name: str, row: DeployedRow) -> Difference:
        """What the files say otherwise than the deployed row; empty if nothing."""
        wanted = self.wanted(name)
        if (wanted.fingerprint, wanted.settings) == (row.fingerprint, row.settings):
            return Difference(())
        statement = self.application.catalog.declared()[name]
        old = _parsed(row.definition)
        if old is None:
            found = Difference((Change("the definition", "the deployed one", "the one in the files"),))
        else:
            found = difference(old, statement)
        changes = (*found.changes, *_outside_changes(row.settings, wanted.settings))
        found = Difference(changes, unified(row.definition, wanted.definition))
        if found.rebuild and isinstance(old, CreateQuery) and self._same_result(old, row):
            return replace(found, changes=tuple(replace(c, rebuild=False) for c in found.changes))
        return found

    def _same_result(self, old: CreateQuery, row: DeployedRow) -> bool:
        """Whether the deployed text and the files' are planned alike: then they have the same results (law S4)."""
        application = self.application
        try:
            before = application.bind(replace(old, name=row.name), row.settings)
            return result_identity(before) == result_identity(application.plan(row.name))
        except SweepAreaError:
            return False  # what cannot be planned is not known to be the same

    def registration(self, name: str, row: LedgerRow | None) -> str:
        """The registration of a name, which is registered now if it never was.

        ``row`` is its ledger row. ChangedDefinition if its tables were made by another definition.
        """
        deployed = self.deployed.rows().get(name)
        if deployed is None:
            deployed = self.register(name, row)
        found = self.difference(name, deployed)
        if found.rebuild and row is None and not self.application.ledger.used(app_of(deployed)):
            return self.renew(name).registration  # nothing was computed by the old definition yet
        if found.rebuild:
            raise self.refusal(name, found)
        if found or self.wanted(name).fingerprint != deployed.fingerprint:
            deployed = self.take_over(name, deployed)
        if row is None:
            return self._unused(deployed)
        if row.registration != deployed.registration:
            raise ChangedDefinition(
                f"{name} was registered anew, but its old results are still there: an `apply` or `drop` was"
                f" interrupted. Run `sweeparea apply {self.application.name}`, which finishes it."
            )
        return deployed.registration

    def refused(self, name: str, row: LedgerRow | None) -> str:
        """Why a name is not run as its files now stand, in a sentence; empty if it is. Changes nothing."""
        deployed = self.deployed.rows().get(name)
        try:
            if deployed is None:
                self._check_case(name)
                self._check_adopted(name, row)
                return ""
            found = self.difference(name, deployed)
            if found.rebuild and (row is not None or self.application.ledger.used(app_of(deployed))):
                return str(self.refusal(name, found)).splitlines()[0]
        except SweepAreaError as error:
            return str(error)
        if row is not None and row.registration != deployed.registration:
            return f"an `apply` or `drop` was interrupted: run `sweeparea apply {self.application.name}` to finish it"
        return ""

    def refusal(self, name: str, found: Difference) -> ChangedDefinition:
        """The error that says what differs and what can be done."""
        application = self.application
        statement = application.catalog.declared()[name]
        kind = {"query": "CONTINUOUS QUERY"}.get(kind_of(statement), kind_of(statement).upper())
        write = "" if getattr(statement, "replace", False) else f"write CREATE OR REPLACE {kind} {name} and "
        below = self.readers(name)
        also = f" and of {', '.join(below)}, which rest{'s' if len(below) == 1 else ''} on it," if below else ""
        return ChangedDefinition(
            f"The definition of {name} has changed since it was deployed: {found}. Results of two definitions are never"
            f" mixed. Either give the new definition a name of its own, or {write}run `sweeparea apply"
            f" {application.name}`, which drops the results of {name}{also} and computes them anew from START"
            f" (`sweeparea plan {application.name}` shows it beforehand); `sweeparea drop {application.name} {name}`"
            f" removes its tables only.\n{found.diff}".rstrip()
        )

    def readers(self, name: str) -> tuple[str, ...]:
        """The deployed or declared queries that rest on a name, directly or through others, nearest first."""
        catalog, deployed = self.application.catalog, self.deployed.rows()
        reads = {row.name: row.depends_on for row in deployed.values() if row.kind == "query"}
        reads |= {query: catalog.dependencies(query) for query in catalog.queries}
        found: dict[str, None] = {}
        pending = [name]
        while pending:
            source = pending.pop(0)
            for query, inputs in reads.items():
                if source in inputs and query not in found and query != name:
                    found[query] = None
                    pending.append(query)
        return tuple(found)

    # -- changing it ---------------------------------------------------------------------------------------------------

    def register(self, name: str, row: LedgerRow | None) -> DeployedRow:
        """Registers a name that is not deployed. Tables made before there was a deployed table are adopted."""
        self._check_case(name)
        self._check_adopted(name, row)
        wanted = self.wanted(name)
        return self.deployed.register(wanted if row is None else replace(wanted, registration=row.registration))

    def take_over(self, name: str, deployed: DeployedRow) -> DeployedRow:
        """Stores the files' definition for a name whose results it does not change."""
        wanted = replace(self.wanted(name), registration=deployed.registration, paused=deployed.paused)
        self.deployed.put(wanted)
        return wanted

    def renew(self, name: str) -> DeployedRow:
        """Stores the files' definition under a new registration: what was computed before belongs to another."""
        paused = name in self.deployed.rows() and self.deployed.rows()[name].paused
        wanted = replace(self.wanted(name), paused=paused)
        self.deployed.put(wanted)
        return wanted

    def _unused(self, deployed: DeployedRow) -> str:
        """The registration for a first commit. One that has committed before is not used again: the history would take
        the new commits for done.
        """
        ledger = self.application.ledger
        if not ledger.used(app_of(deployed)):
            return deployed.registration
        row = ledger.row(deployed.name)
        if row is not None:
            return row.registration  # another run's first commit came in between
        from sweeparea.spark_jobs.drop import discard

        discard(self.application, deployed.name, deployed.registration, purge=False)
        return self.renew(deployed.name).registration

    def _check_case(self, name: str) -> None:
        for other in self.deployed.rows():
            if other != name and other.lower() == name.lower():
                raise ChangedDefinition(
                    f"{name} is deployed as {other}: names that differ in case only are one name. Write {other} in the"
                    f" files, or run `sweeparea drop {self.application.name} {other}` first."
                )

    def _check_adopted(self, name: str, row: LedgerRow | None) -> None:
        known = None if row is None else row.info.get("definition")
        if known is None:
            return
        statement = self.application.catalog.declared()[name]
        first = hashlib.sha256(" ".join(statement.text.split()).encode()).hexdigest()[:16]  # as version 0.1.0 told
        if known not in (first, self.wanted(name).fingerprint):
            raise ChangedDefinition(
                f"The definition of {name} has changed since it was first run, and the text of then is not known."
                " Results of two definitions are never mixed. Give the new definition a new name, or run `sweeparea"
                f" drop {self.application.name} {name}` to remove the old tables and start again."
            )

    # -- SweepAreas ----------------------------------------------------------------------------------------------------

    def check_state(self, plan: Plan, row: LedgerRow | None) -> None:
        """Refuses to continue SweepAreas that another plan has left, though the text is the same."""
        if row is not None and stale_state(plan, row):
            raise ChangedDefinition(
                f"{plan.name} is planned otherwise than when its SweepAreas were written (by another version of"
                f" SweepArea, or over other inputs), so they cannot be continued. Run `sweeparea apply"
                f" {self.application.name}`: it computes {plan.name} anew from START."
            )


def app_of(row: DeployedRow) -> str:
    """The application id that a registration's commits carry (``LedgerRow.app``)."""
    return f"{row.name}:{row.registration}"


def stale_state(plan: Plan, row: LedgerRow) -> bool:
    """Whether a query's SweepAreas hold rows of operators that its plan does not have in this form."""
    known = row.info.get("plan")
    areas = {op: n for op, n in (row.info.get("state_rows") or {}).items() if op != "materialize"}
    return known is not None and any(areas.values()) and known != state_identity(plan)


def engine_version() -> str:
    """The version of SweepArea."""
    try:
        return metadata.version("sweeparea")
    except metadata.PackageNotFoundError:
        return "source"


def _parsed(definition: str) -> Declared | None:
    try:
        statements = parse_text(definition, "deployed")
    except SweepAreaError:
        return None
    return statements[0] if len(statements) == 1 and isinstance(statements[0], Declared) else None


def _outside_changes(before: dict[str, str], after: dict[str, str]) -> Iterable[Change]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            clause = "FROM (environment)" if name == "source" else f"SET {name} ="
            yield Change(clause, before.get(name), after.get(name), rebuild=name not in NEUTRAL_SETTINGS)
