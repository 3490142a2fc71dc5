"""The rows of the deployed table that an application's files would give."""

from __future__ import annotations

import uuid
from dataclasses import replace
from importlib import metadata

from sweeparea.cql.declarations.catalog import Declared
from sweeparea.cql.printing.plan_printer import NotPrintable, print_plan
from sweeparea.cql.syntax.statements import CreateFunction, CreateQuery, CreateRelation, CreateStream
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.spark_jobs.declarations.user_code import source_fingerprint
from sweeparea.spark_jobs.deployment.query_plans import QueryPlans
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.ledger import now_micros
from sweeparea.tables.publication.name_kinds import NameKind


def kind_of(statement: Declared) -> NameKind:
    """What a statement declares."""
    kinds = {
        CreateStream: NameKind.STREAM,
        CreateRelation: NameKind.RELATION,
        CreateQuery: NameKind.QUERY,
        CreateFunction: NameKind.FUNCTION,
    }
    return kinds[type(statement)]


class DeclaredRows:
    """What stands in the files, as rows that could be deployed."""

    def __init__(self, declared: Declarations, plans: QueryPlans) -> None:
        self.declared, self.plans = declared, plans
        self._rows: dict[str, DeployedRow] = {}

    def row(self, name: str) -> DeployedRow:
        """The row that the declaration of a name in the files would give, with a new registration."""
        if name not in self._rows:
            self._rows[name] = self._hidden(name) if is_hidden(name) else self._declared(name)
        return replace(self._rows[name], registration=str(uuid.uuid4()), deployed_at=now_micros())

    def _declared(self, name: str) -> DeployedRow:
        catalog = self.declared.catalog
        statement = catalog.declared()[name]
        taken = self.declared.definition(name)
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
        plan = self.plans.plan(name)
        try:
            text = print_plan(plan)
        except NotPrintable:
            text = ""
        reads = dict.fromkeys((*map(self.declared.owner, plan.inputs), *(f.name for f in plan.functions)))
        return DeployedRow(name, NameKind.SHARED, text, name, "", tuple(reads), {}, engine_version())

    def _outside(self, statement: Declared) -> dict[str, str]:
        """What applies to a declaration from outside its text."""
        catalog = self.declared.catalog
        if isinstance(statement, CreateQuery):
            own = dict(statement.settings)
            return {name: value for name, value in catalog.settings.items() if name not in own}
        if isinstance(statement, CreateFunction):
            code = source_fingerprint(statement.target, self.declared.modules) if self.declared.functions else ""
            return {"code": code} if code else {}
        exchanged = {name.lower() for name in catalog.environment.sources}
        source = statement.source.uri if statement.name.lower() in exchanged else ""
        policy = "" if statement.heartbeat is None else statement.heartbeat.policy
        code = source_fingerprint(policy, self.declared.modules) if policy else ""
        return {name: value for name, value in (("source", source), ("policy", code)) if value}


def engine_version() -> str:
    """The version of SweepArea."""
    try:
        return metadata.version("sweeparea")
    except metadata.PackageNotFoundError:
        return "source"
