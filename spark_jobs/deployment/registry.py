"""Registering: which definition a name's tables were made by, and whether the files still hold that definition.

A name is registered once, by ``sweeparea apply`` or by the first job that needs it. Afterwards every job compares its
declaration with the deployed one: what says the same is continued, what says something else is refused with the
difference, and what says it otherwise without changing a row is taken over.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING


from sweeparea.cql.declarations.canonical import declaration
from sweeparea.cql.declarations.catalog import Declared
from sweeparea.cql.declarations.differences import NEUTRAL_SETTINGS, Change, Difference, difference, unified
from sweeparea.cql.printing.plan_printer import NotPrintable, print_plan
from sweeparea.cql.rewrites import Input, take
from sweeparea.cql.syntax.column_lists import without_column_types
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateFunction, CreateQuery, CreateRelation, CreateStream
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.encoding import strategy_of
from sweeparea.operators.plan.plan_identity import result_identity, state_identity, strategy_in
from sweeparea.spark_jobs.declarations.user_code import source_fingerprint
from sweeparea.spark_jobs.deployment import planning
from sweeparea.spark_jobs.deployment.planning import Planned
from sweeparea.tables.errors import LostRace
from sweeparea.tables.log.delta_log import DeltaLog, schema_text
from sweeparea.tables.publication.deployed import Deployed, DeployedRow, Rows
from sweeparea.tables.publication.ledger import LedgerRow, now_micros

if TYPE_CHECKING:
    from sweeparea.operators.plan.plan import Plan
    from sweeparea.spark_jobs.declarations.application import Application


class ChangedDefinition(SweepAreaError):
    """The files hold another definition than the one a name's tables were made by."""

    type = "BindError"
    exit_code = 2


def kind_of(statement: Declared) -> str:
    """stream, relation, query or function."""
    kinds = {
        CreateStream: "stream",
        CreateRelation: "relation",
        CreateQuery: "query",
        CreateFunction: "function",
    }
    return kinds[type(statement)]


class Registry:
    """The deployed table of an application, seen against its files."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.deployed = Deployed(str(application.data))
        self._rows: dict[str, DeployedRow] = {}
        self._rates: dict[str, dict[str, Input] | None] = {}
        self._proposed: dict[str, Planned] = {}

    # -- what stands in the files --------------------------------------------------------------------------------------

    def wanted(self, name: str) -> DeployedRow:
        """The row that the declaration of a name in the files would give, with a new registration."""
        if name not in self._rows:
            self._rows[name] = self._hidden(name) if is_hidden(name) else self._declared(name)
        return replace(self._rows[name], registration=str(uuid.uuid4()), deployed_at=now_micros())

    def _declared(self, name: str) -> DeployedRow:
        catalog = self.application.catalog
        statement = catalog.declared()[name]
        taken = declaration(statement)
        is_query = isinstance(statement, CreateQuery)
        return DeployedRow(
            name=name,
            kind=kind_of(statement),
            definition=taken.text,
            fingerprint=taken.fingerprint,
            registration="",
            depends_on=(*catalog.dependencies(statement), *catalog.functions_of(statement)) if is_query else (),
            settings=self._outside(statement),
            engine=engine_version(),
        )

    def _hidden(self, name: str) -> DeployedRow:
        """A hidden query's row: its text is for people, its name is its fingerprint."""
        application = self.application
        plan = application.plan(name)
        try:
            text = print_plan(plan)
        except NotPrintable:
            text = ""
        reads = dict.fromkeys((*map(application.owner, plan.inputs), *(f.name for f in plan.functions)))
        return DeployedRow(name, "shared", text, name, "", tuple(reads), {}, engine_version())

    def _outside(self, statement: Declared) -> dict[str, str]:
        """What applies to a declaration from outside its text."""
        catalog = self.application.catalog
        if isinstance(statement, CreateQuery):
            own = dict(statement.settings)
            return {name: value for name, value in catalog.settings.items() if name not in own}
        exchanged = {name.lower() for name in catalog.environment.sources}
        if isinstance(statement, CreateStream | CreateRelation):
            source = statement.source.uri if statement.name.lower() in exchanged else ""
            policy = "" if statement.heartbeat is None else statement.heartbeat.policy
            code = source_fingerprint(policy, self.application.modules) if policy else ""
            return {name: value for name, value in (("source", source), ("policy", code)) if value}
        if isinstance(statement, CreateFunction) and self.application.functions:
            code = source_fingerprint(statement.target, self.application.modules)
            return {"code": code} if code else {}
        return {}

    # -- what plans are chosen by --------------------------------------------------------------------------------------

    def planned(self, name: str) -> Planned:
        """What a query's plan is chosen by: as it was registered, else as it would be now."""
        row = self.deployed.rows().get(name)
        return self.fresh(name) if row is None else Planned.of(row.planned)

    def rates_of(self, name: str) -> Mapping[str, Input]:
        """The rates that a query's plan is chosen by: those of its registration, else those of now."""
        row = self.deployed.rows().get(name)
        return (self.rates(name) if row is None else Planned.of(row.planned).inputs) or {}

    def rates(self, name: str) -> dict[str, Input] | None:
        """The rates of a query's inputs as they are now."""
        if name not in self._rates:
            catalog = self.application.catalog
            self._rates[name] = planning.measured(self.application, catalog.inputs(name))
        return self._rates[name]

    def fresh(self, name: str) -> Planned:
        """What a query would be planned by if it were registered now, together with all that are not yet."""
        if name not in self._proposed:
            deployed = self.deployed.rows()
            self.propose({name, *(q for q in self.application.catalog.queries if q not in deployed)})
        return self._proposed.get(name, Planned())

    def propose(self, free: Iterable[str]) -> dict[str, Planned]:
        """As ``fresh`` for queries that are registered together."""
        self._rates.clear()
        self._proposed |= planning.proposed(self.application, free)
        return self._proposed

    def settle(self, name: str) -> None:
        """Gives a query that has not run yet the rates that could not be measured when it was registered."""
        deployed = self.deployed.rows().get(name)
        if deployed is None or is_hidden(name) or Planned.of(deployed.planned).inputs is not None:
            return
        application = self.application
        if name in application.ledger.head() or application.ledger.used(app_of(deployed)):
            return
        self._rates.pop(name, None)
        inputs, shared = self.rates(name), Planned.of(deployed.planned).shared
        if inputs is None:
            return
        if set(take(application.whole(name, inputs), shared).inputs) & set(shared) != set(shared):
            inputs = {}  # what is shared was planned without them
        wanted = Planned(inputs, shared, Planned.of(deployed.planned).columns).as_dict()

        def fill(rows: Rows) -> Rows:
            row = rows.get(name)
            if row is None or row.registration != deployed.registration or "inputs" in row.planned:
                return rows  # a faster run's are as good, but all must have the same
            return {**rows, name: replace(row, planned=wanted)}

        self.deployed.change(fill)

    # -- columns that inputs gained ------------------------------------------------------------------------------------

    def columns_of(self, query: str) -> Mapping[str, tuple[str, ...]]:
        """The columns of its inputs that a deployed query knows, where they have gained others since it was registered;
        none where the files hold another definition, which sees all.
        """
        row = self.deployed.rows().get(query)
        if row is None or not (columns := Planned.of(row.planned).columns):
            return {}
        return columns if self.wanted(query).fingerprint == row.fingerprint else {}

    def keep_columns(self, name: str, columns: Sequence[str]) -> None:
        """Before a stream or relation gains columns: the deployed queries that read it go on with those it has."""

        def keep(rows: Rows) -> Rows:
            kept = dict(rows)
            for row in rows.values():
                planned = Planned.of(row.planned)
                if row.kind == "query" and name in row.depends_on and name not in planned.columns:
                    known = {**planned.columns, name: tuple(columns)}
                    kept[row.name] = replace(row, planned=replace(planned, columns=known).as_dict())
            return rows if kept == rows else kept

        self.deployed.change(keep)

    # -- against what is deployed --------------------------------------------------------------------------------------

    def difference(self, name: str, row: DeployedRow) -> Difference:
        """What the files say otherwise than the deployed row; empty if nothing."""
        wanted = self.wanted(name)
        if is_hidden(name):
            return Difference(())  # another one would have another name
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
            planned = Planned.of(row.planned)
            rates, columns = planned.inputs or {}, planned.columns
            old = replace(old, name=row.name, select=without_column_types(old.select))
            before = application.bind(old, row.settings, rates, columns)
            now = application.bind(application.query(row.name), application.catalog.settings, rates, columns)
            return result_identity(before) == result_identity(now)
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
                f" interrupted. Run `{self.application.command('apply')}`, which finishes it."
            )
        return deployed.registration

    def computed(self, deployed: DeployedRow, row: LedgerRow | None) -> bool:
        """Whether anything was computed by a deployed definition; by a function, whether a query that calls it was."""
        ledger = self.application.ledger
        if deployed.kind == "function":
            head = ledger.head()
            return any(reader in head for reader in self.readers(deployed.name))
        return row is not None or ledger.used(app_of(deployed))

    def refused(self, name: str, row: LedgerRow | None) -> str:
        """Why a name is not run as its files now stand, in a sentence; empty if it is. Changes nothing."""
        deployed = self.deployed.rows().get(name)
        try:
            if deployed is None:
                self._check_case(name)
                self._check_adopted(name, row)
                return ""
            found = self.difference(name, deployed)
            if found.rebuild and self.computed(deployed, row):
                return str(self.refusal(name, found)).splitlines()[0]
        except SweepAreaError as error:
            return str(error)
        if row is not None and deployed.kind == "query":
            changed = (self.refused(f, None) for f in self.application.catalog.functions_of(name))
            if why := next(filter(None, changed), ""):
                return why
        if row is not None and row.registration != deployed.registration:
            return f"an `apply` or `drop` was interrupted: run `{self.application.command('apply')}` to finish it"
        return ""

    def refusal(self, name: str, found: Difference) -> ChangedDefinition:
        """The error that says what differs and what can be done."""
        application = self.application
        statement = application.catalog.declared()[name]
        kind = {"query": "CONTINUOUS QUERY"}.get(kind_of(statement), kind_of(statement).upper())
        write = "" if getattr(statement, "replace", False) else f"write CREATE OR REPLACE {kind} {name} and "
        below = self.readers(name)
        also = f" and of {', '.join(below)}, which rest{'s' if len(below) == 1 else ''} on it," if below else ""
        apply, shown = application.command("apply"), application.command("plan")
        if isinstance(statement, CreateFunction):
            return ChangedDefinition(
                f"{statement.place}: The definition of {name} has changed since it was deployed: {found}. Results of"
                f" two definitions are never mixed, and {', '.join(below)} {'has' if len(below) == 1 else 'have'} been"
                f" computed by the old one. Either give the new one a name of its own, or {write}run `{apply}`,"
                f" which computes the results of {', '.join(below)} anew from START (`{shown}` shows it beforehand)."
                f"\n{found.diff}".rstrip()
            )
        return ChangedDefinition(
            f"{statement.place}: The definition of {name} has changed since it was deployed: {found}. Results of two"
            " definitions are never mixed. Either give the new definition a name of its own, or"
            f" {write}run `{apply}`, which computes the results of {name}{also} anew from START"
            f" (`{shown}` shows it beforehand); `{application.command('drop', name)}` removes its tables only."
            f"\n{found.diff}".rstrip()
        )

    def readers(self, name: str) -> tuple[str, ...]:
        """The deployed or declared queries that rest on a name, directly or through others, nearest first."""
        catalog, deployed = self.application.catalog, self.deployed.rows()
        reads = {row.name: row.depends_on for row in deployed.values() if row.kind == "query"}
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

    # -- changing it ---------------------------------------------------------------------------------------------------

    def register(self, name: str, row: LedgerRow | None) -> DeployedRow:
        """Registers a name that is not deployed. Tables made before there was a deployed table are adopted."""
        self._check_case(name)
        self._check_adopted(name, row)
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
        return replace(wanted, planned=self.fresh(wanted.name).as_dict()) if wanted.kind == "query" else wanted

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
        from sweeparea.spark_jobs.deployment.drop import discard

        try:
            discard(self.application, deployed.name, deployed.registration, purge=False)
        except LostRace as error:
            raise _overtaken(deployed.name) from error
        return self.renew(deployed.name, deployed).registration

    def _check_case(self, name: str) -> None:
        for other in self.deployed.rows():
            if other != name and other.lower() == name.lower():
                raise ChangedDefinition(
                    f"{name} is deployed as {other}: names that differ in case only are one name. Write {other} in the"
                    f" files, or run `{self.application.command('drop', other)}` first."
                )

    def _check_adopted(self, name: str, row: LedgerRow | None) -> None:
        known = None if row is None else row.info.get("definition")
        if known is None or is_hidden(name):
            return
        statement = self.application.catalog.declared()[name]
        first = hashlib.sha256(" ".join(statement.text.split()).encode()).hexdigest()[:16]  # as version 0.1.0 told
        if known not in (first, self.wanted(name).fingerprint):
            raise ChangedDefinition(
                f"{statement.place}: The definition of {name} has changed since it was first run, and the text of then"
                " is not known. Results of two definitions are never mixed. Give the new definition a new name, or run"
                f" `{self.application.command('drop', name)}` to remove the old tables and start again."
            )

    # -- SweepAreas ----------------------------------------------------------------------------------------------------

    def check_state(self, plan: Plan, row: LedgerRow | None) -> None:
        """Refuses to continue SweepAreas that another plan has left, though the text is the same."""
        if row is not None and self.stale(plan, row):
            raise ChangedDefinition(
                f"{plan.name} is planned otherwise than when its SweepAreas were written (by another version of"
                f" SweepArea, or over other inputs), so they cannot be continued. Run"
                f" `{self.application.command('apply')}`: it computes {plan.name} anew from START."
            )

    def other_columns(self, row: LedgerRow) -> list[str]:
        """What a query reads of other queries that has got other columns since its last slice."""
        known = row.info.get(COLUMNS) or {}
        return [n for n, hash_ in known.items() if hash_ != columns_hash(DeltaLog(self.application.result_table(n)))]

    def stale(self, plan: Plan, row: LedgerRow) -> bool:
        """Whether a query's SweepAreas, or those of the hidden queries that it was registered with, are not those of
        its plan, or a query that it reads has got other columns since.
        """
        if self.other_columns(row):
            return True
        deployed = self.deployed.rows().get(plan.name)
        shared = set() if deployed is None else set(Planned.of(deployed.planned).shared)
        return stale_state(plan, row) or shared != {name for name in plan.inputs if is_hidden(name)}


def _overtaken(name: str) -> LostRace:
    return LostRace(
        f"{name} was dropped or registered anew by another run meanwhile. Nothing of this run was stored. Start it"
        " again: it goes on from what stands there."
    )


COLUMNS = "columns"
"""In a query's ledger info: the columns of the queries' results that it reads, each as a hash."""


def columns_hash(log: DeltaLog) -> str | None:
    """A hash of a table's columns; None: there is no table."""
    return hashlib.sha256(schema_text(log.schema()).encode()).hexdigest()[:16] if log.exists() else None


def app_of(row: DeployedRow) -> str:
    """The application id that a registration's commits carry (``LedgerRow.app``)."""
    return f"{row.name}:{row.registration}"


def stale_state(plan: Plan, row: LedgerRow) -> bool:
    """Whether a query's SweepAreas hold rows of operators that its plan does not have in this form."""
    known = row.info.get("plan")
    if known is not None and strategy_in(known) != strategy_of(plan):
        return True  # also where only the result has rows: who tells of an end that is still to come has changed
    areas = {op: n for op, n in (row.info.get("state_rows") or {}).items() if op != "materialize"}
    return known is not None and any(areas.values()) and known != state_identity(plan)


def engine_version() -> str:
    """The version of SweepArea."""
    try:
        return metadata.version("sweeparea")
    except metadata.PackageNotFoundError:
        return "source"


_CLAUSES = {"source": "FROM (environment)", "code": "Python source", "policy": "Python source of HEARTBEAT POLICY"}


def _parsed(definition: str) -> Declared | None:
    try:
        statements = parse_text(definition, "deployed")
    except SweepAreaError:
        return None
    return statements[0] if len(statements) == 1 and isinstance(statements[0], Declared) else None


def _outside_changes(before: dict[str, str], after: dict[str, str]) -> Iterable[Change]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            # one that was registered without its code's fingerprint is taken for unchanged
            rebuild = name not in NEUTRAL_SETTINGS and not (name in ("code", "policy") and before.get(name) is None)
            clause = _CLAUSES.get(name, f"SET {name} =")
            yield Change(clause, before.get(name), after.get(name), rebuild=rebuild)
