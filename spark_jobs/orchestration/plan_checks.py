"""Whether what the files declare can be run, as far as that shows without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.cql.binding.scope.inputs import SchemaKind
from sweeparea.cql.declarations.catalog import Declared, table_names
from sweeparea.cql.syntax.statements import (
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    ExpectationKind,
)
from sweeparea.cql.text.errors import BindError, listing, nearest
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.declarations.user_code import registered
from sweeparea.spark_jobs.deployment.history_gone import HistoryGone, require_history
from sweeparea.spark_jobs.orchestration.plan_basis import PlanBasis

if TYPE_CHECKING:
    from sweeparea.spark_jobs.declarations.analysis import Checking


class PlanChecks:
    """Notes what it finds with the plan's problems. ``checking`` has Spark look at the expressions of what is new or
    changed.
    """

    def __init__(self, basis: PlanBasis, checking: Checking | None) -> None:
        self.basis, self.checking = basis, checking
        self.application, self.catalog, self.registry = basis.application, basis.catalog, basis.registry

    def check(self, name: str, statement: Declared) -> None:
        """Whether the declaration can be run, as far as that shows without running it."""
        row = self.basis.deployed.get(name)
        same = row is not None and row.fingerprint == self.registry.wanted(name).fingerprint
        with self.application.asking(None if same else self.checking):
            self._check_types(name, statement)

    def check_again(self) -> None:
        """Checks the types of all where a later declaration has made a session that the first ones did without."""
        checking = self.checking
        if checking is not None and checking.unchecked and checking.session() is not None:
            checking.unchecked = False
            for name, statement in self.catalog.declared().items():
                self.check(name, statement)

    def _check_types(self, name: str, statement: Declared) -> None:
        application = self.application
        try:
            if isinstance(statement, CreateQuery):
                known = {n.lower() for n in self.catalog.declared()}
                names = {application.catalog.owner(n).lower() for n in table_names(statement.select)}
                names = {n if n in known else n.rpartition("__")[0] or n for n in names}
                if not self.catalog.complete and not names <= known:
                    return  # it reads something that could not be read
                application.plans.plan(name)
                self._check_references(statement)
            elif isinstance(statement, CreateFunction):
                registered([statement], application.modules)
            else:
                try:
                    application.sources.table(name).version()
                except SweepAreaError as error:
                    self.basis.source_problem(error, f"{statement.place}: {name}")
                    return
                application.sources.check(name)
                self._check_references(statement)
        except SweepAreaError as error:
            self.basis.problem(error)

    def _check_references(self, statement: CreateQuery | CreateStream | CreateRelation) -> None:
        """Whether what expectations reference has these columns, and holds something at an instant."""
        declared = {n.lower(): n for n in (*self.catalog.relations, *self.catalog.queries)}
        for spec in statement.expectations:
            if spec.kind != ExpectationKind.REFERENCES:
                continue
            told = dict(spec.arguments)
            other, wanted = str(told["other"]), told["other_columns"]
            schema = self.application.plans.input_schema(declared[other.lower()])
            at, what = spec.argument_places.get("other", spec.place), f"constraint {spec.name}"
            if schema.kind == SchemaKind.STREAM:
                self.basis.problem(
                    BindError(
                        f"{what}: {other} is a stream, which holds nothing at an instant",
                        at,
                        "Name a relation, or a query whose result is one",
                    )
                )
                continue
            columns = [column for column, _ in schema.columns]
            for column in wanted if isinstance(wanted, tuple) else ():
                if str(column).lower() not in {c.lower() for c in columns}:
                    hint = nearest(str(column), columns) or f"Columns are {listing(columns)}"
                    self.basis.problem(BindError(f"{what}: {other} has no column {column}", at, hint))

    def require_history(self, name: str, statement: Declared) -> None:
        """Whether all that a query is to be computed from is still there."""
        if not isinstance(statement, CreateQuery):
            return
        try:
            plan = self.application.plans.plan(name)
            if all(self.application.owner(read) not in self.basis.rebuilt for read in plan.inputs):
                require_history(self.application, plan, plan.start)
        except HistoryGone as error:
            self.basis.problem(SweepAreaError(f"{statement.place}: {error}"))
        except SweepAreaError:
            return  # told of by ``check``
