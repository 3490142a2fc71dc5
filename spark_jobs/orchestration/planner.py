"""What ``apply`` would change: the files against what is deployed, name by name, in the order in which it is done.

Nothing is computed and nothing is written. All problems are told at once: faults of every file, sources that are not
there, queries that cannot be bound or that no operator runs, queries whose past RETAIN has let go, changed definitions
that nobody said should be replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.cql.declarations.catalog import Declared, table_names
from sweeparea.cql.declarations.differences import DefinitionDifference
from sweeparea.cql.syntax.statements import CreateFunction, CreateQuery
from sweeparea.cql.text.errors import CqlErrors, in_order
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.declarations.user_code import registered
from sweeparea.spark_jobs.deployment.changed_definition import ChangedDefinition
from sweeparea.spark_jobs.deployment.declared_rows import kind_of
from sweeparea.spark_jobs.deployment.history_gone import HistoryGone, require_history
from sweeparea.spark_jobs.deployment.planned import Planned
from sweeparea.spark_jobs.orchestration.deployment_plan import DeploymentPlan
from sweeparea.spark_jobs.orchestration.padding import Padding
from sweeparea.spark_jobs.orchestration.plan_notes import PlanNotes
from sweeparea.spark_jobs.orchestration.steps import (
    Action,
    Follow,
    Forget,
    Keep,
    Rebuild,
    RebuildBeside,
    Refuse,
    Register,
    Renew,
    Step,
    TakeOver,
    Unchanged,
)
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.ledger import LedgerRow

if TYPE_CHECKING:
    from sweeparea.spark_jobs.declarations.analysis import Checking


def plan(
    application: Application, prune: bool = False, beside: bool = False, checking: Checking | None = None
) -> DeploymentPlan:
    """The plan of an application that was opened leniently. ``prune`` drops what the files no longer declare.
    ``beside``: new results of queries are computed beside the old ones where that can be done. ``checking`` has Spark
    look at the expressions of what is new or changed; where it has no Spark, a note says so.
    """
    return _Planner(application, prune, beside, checking).plan()


class _Planner:
    def __init__(self, application: Application, prune: bool, beside: bool, checking: Checking | None) -> None:
        self.application, self.prune, self.beside, self.checking = application, prune, beside, checking
        self.catalog, self.registry = application.catalog, application.registry
        self.deployed = self.registry.deployed.rows()
        self.head = application.ledger.head()
        self.problems: dict[str, SweepAreaError] = {}
        self.rebuilt: list[str] = []

    def plan(self) -> DeploymentPlan:
        for fault in self.application.faults:
            self._problem(fault)
        steps = [self._step(name, statement) for name, statement in self.catalog.declared().items()]
        self._check_again()
        # what could not be read may still declare these names
        gone = self._gone() if self.catalog.complete else []
        application = self.application
        steps, orphans = self._with_hidden(steps, gone)
        if self.beside:
            steps = self._beside(steps)
        problems = tuple(in_order(self.problems.values()))
        notes = PlanNotes(application, self.deployed, self.head, self.rebuilt, self.checking)
        return DeploymentPlan(
            application.name, str(application.data), (*steps, *gone, *orphans), problems, tuple(notes)
        )

    def _check_again(self) -> None:
        """Checks the types of all where a later declaration has made a session that the first ones did without."""
        checking = self.checking
        if checking is not None and checking.unchecked and checking.session() is not None:
            checking.unchecked = False
            for name, statement in self.catalog.declared().items():
                self._check(name, statement)

    def _beside(self, steps: list[Step]) -> list[Step]:
        """The steps, with those marked that need not take old results away first: of queries that share no subplan,
        whose inputs stay or are queries of that kind.
        """
        placed: dict[str, Step] = {}
        for step in steps:
            head = self.head.get(step.name)
            if isinstance(step, Rebuild) and step.kind == "query" and head is not None:
                row = self.deployed.get(step.name)
                statement = self.catalog.queries[step.name]
                below = [placed[n] for n in self.catalog.dependencies(statement) if n in placed]
                whole = row is not None and head.registration == row.registration
                whole = whole and row is not None and not Planned.of(row.planned).shared
                if whole and all(isinstance(other, RebuildBeside) for other in below if isinstance(other, Rebuild)):
                    follows = not step.difference.rebuild and self._same(step, head)
                    step = (Follow if follows else RebuildBeside)(**vars(step))
            placed[step.name] = step
        return list(placed.values())

    def _same(self, step: Step, head: LedgerRow) -> bool:
        """Whether a query's SweepAreas are those of its plan, and no function that it calls has become another."""
        statement = self.catalog.queries[step.name]
        if any(name in self.rebuilt for name in self.catalog.functions_of(statement)):
            return False
        try:
            return not self.registry.stale(self.application.plans.plan(step.name), head)
        except SweepAreaError:
            return False

    # -- hidden queries ------------------------------------------------------------------------------------------------

    def _with_hidden(self, steps: list[Step], gone: list[Step]) -> tuple[list[Step], list[Step]]:
        """The steps with those of hidden queries, each before its first reader; and what no query reads any more."""
        planned = self._planned(steps)
        steps = [self._chosen_again(step, planned) for step in steps]
        left = [step.name for step in gone if isinstance(step, Keep) and step.name in self.deployed]
        kept = planned | {name: Planned.of(self.deployed[name].planned) for name in left}
        readers: dict[str, list[str]] = {}
        for name, own in kept.items():
            for hidden in own.shared:
                readers.setdefault(hidden, []).append(name)
        placed: list[Step] = []
        for step in steps:
            for hidden in planned.get(step.name, Planned()).shared:
                if all(hidden != other.name for other in placed):
                    placed.append(self._hidden_step(hidden, readers[hidden]))
            placed.append(step)
        there = {name for name in (*self.deployed, *self.head) if is_hidden(name) and self.catalog.complete}
        why = "no query reads it any more"
        orphans: list[Step] = [
            Forget(name, "shared", why, lost=self._lost(name)) for name in sorted(there - readers.keys())
        ]
        return placed, orphans

    def _planned(self, steps: list[Step]) -> dict[str, Planned]:
        """By query what its plan will be chosen by: what is registered anew is chosen together."""
        anew = [s.name for s in steps if s.kind == "query" and self._chosen_anew(s)]
        # the results of those that are adopted come from plans that were chosen by their texts alone
        proposed = self.application.plans.propose(
            {name for name in anew if name not in self.head or name in self.rebuilt}
        )
        found = {s.name: Planned.of(self.deployed[s.name].planned) for s in steps if s.name in self.deployed}
        return found | {name: proposed[name] for name in anew if name in proposed}

    def _chosen_anew(self, step: Step) -> bool:
        """Whether nothing that was computed rests on how a query was planned."""
        if step.action in (Action.NOTHING, Action.UPDATE):
            return not self.registry.computed(self.deployed[step.name], self.head.get(step.name))
        return step.action in (Action.REGISTER, Action.REBUILD)

    def _chosen_again(self, step: Step, planned: dict[str, Planned]) -> Step:
        """The step of a registered query that has computed nothing and would now share other subplans."""
        if step.kind != "query" or step.action not in (Action.NOTHING, Action.UPDATE):
            return step
        before = Planned.of(self.deployed[step.name].planned).shared
        if before == planned[step.name].shared:
            return step
        why = step.why or "nothing was computed yet, and it shares other subplans now"
        return Renew(**{**vars(step), "why": why})

    def _hidden_step(self, name: str, readers: list[str]) -> Step:
        why = f"a subplan of {', '.join(readers)}"
        if name not in self.deployed:
            return Register(name, "shared", why)
        if name in self.rebuilt:
            return Rebuild(name, "shared", why, lost=self._lost(name))
        return Unchanged(name, "shared")

    def _is_rebuilt(self, hidden: str) -> bool:
        """Whether a hidden query is computed anew, with all its readers."""
        if hidden in self.rebuilt:
            return True
        row, head = self.deployed.get(hidden), self.head.get(hidden)
        if row is None or head is None:
            return False
        anew = head.registration != row.registration or any(name in self.rebuilt for name in row.depends_on)
        try:
            anew = anew or self.registry.stale(self.application.plans.plan(hidden), head)
        except SweepAreaError:
            return False  # its readers are stale, and told of
        if anew:
            self.rebuilt.append(hidden)
        return anew

    def _problem(self, error: SweepAreaError) -> None:
        for one in error.errors if isinstance(error, CqlErrors) else (error,):
            self.problems.setdefault(str(one), one)

    # -- what the files declare ----------------------------------------------------------------------------------------

    def _step(self, name: str, statement: Declared) -> Step:
        self._check(name, statement)
        kind, row, head = kind_of(statement), self.deployed.get(name), self.head.get(name)
        if head is None:
            self._require_history(name, statement)
        try:
            if row is None:
                why = self.registry.refused(name, head)
                if why:
                    self._problem(ChangedDefinition(why))
                    return Refuse(name, kind, why)
                adopted = "its tables were made before there was a list of what is deployed" if head else ""
                return Register(name, kind, adopted, rows=None if head else self._rows(name, statement))
            found = self.registry.difference(name, row)
        except SweepAreaError as error:
            self._problem(error)
            return Refuse(name, kind, "see the problems")
        return self._changed(name, kind, statement, row, head, found)

    def _changed(
        self,
        name: str,
        kind: str,
        statement: Declared,
        row: DeployedRow,
        head: LedgerRow | None,
        found: DefinitionDifference,
    ) -> Step:
        if found.rebuild and not self.registry.computed(row, head):
            why = "nothing was computed by the old definition yet"
            return Renew(name, kind, why, found)
        if found.rebuild and not statement.replace:
            self._problem(self.registry.refusal(name, found))
            return Refuse(name, kind, "changed, but not declared CREATE OR REPLACE", found)
        why = "CREATE OR REPLACE" if found.rebuild else self._why_rebuilt(name, statement, row, head)
        if why:
            self.rebuilt.append(name)
            self._require_history(name, statement)
            rows = self._rows(name, statement)
            return Rebuild(name, kind, why, found, rows, self._lost(name))
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
            padding = Padding(self.application, self.head)
            why = padding.missing(name, statement) or padding.redeclared(name, statement)
            return why if statement.replace else ""
        below = [n for n in self.catalog.dependencies(statement) if n in self.rebuilt]
        below += [n for n in self.catalog.functions_of(statement) if n in self.rebuilt]
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

    def _check(self, name: str, statement: Declared) -> None:
        """Whether the declaration can be run, as far as that shows without running it."""
        row = self.deployed.get(name)
        same = row is not None and row.fingerprint == self.registry.wanted(name).fingerprint
        with self.application.asking(None if same else self.checking):
            self._check_types(name, statement)

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
            elif isinstance(statement, CreateFunction):
                registered([statement], application.modules)
            else:
                try:
                    application.sources.table(name).version()
                except SweepAreaError as error:
                    # queries over it fail with the same words, which need not be repeated for each
                    self.problems[str(error)] = SweepAreaError(f"{statement.place}: {name}: {error}")
                    return
                application.sources.check(name)
        except SweepAreaError as error:
            self._problem(error)

    def _require_history(self, name: str, statement: Declared) -> None:
        """Whether all that a query is to be computed from is still there."""
        if not isinstance(statement, CreateQuery):
            return
        try:
            plan = self.application.plans.plan(name)
            if all(self.application.owner(read) not in self.rebuilt for read in plan.inputs):
                require_history(self.application, plan, plan.start)
        except HistoryGone as error:
            self._problem(SweepAreaError(f"{statement.place}: {error}"))
        except SweepAreaError:
            return  # told of by _check

    # -- what they no longer declare -----------------------------------------------------------------------------------

    def _gone(self) -> list[Step]:
        """What is deployed or has run, but is not declared any more: readers before what they read."""
        declared = self.catalog.declared()
        kinds = {row.name: row.kind for row in (*self.head.values(), *self.deployed.values())}
        gone = {name: kind for name, kind in kinds.items() if name not in declared and not is_hidden(name)}
        ordered: list[str] = []

        def visit(name: str) -> None:
            if name in ordered:
                return
            for reader in gone:
                if reader in self.deployed and name in self.deployed[reader].depends_on and reader != name:
                    visit(reader)
            ordered.append(name)

        for name in sorted(gone):
            visit(name)
        step = Forget if self.prune else Keep
        why = "" if self.prune else "stays, but is not run: `apply --prune` drops it"
        return [step(name, gone[name], why, lost=self._lost(name)) for name in ordered]

    # -- estimates -----------------------------------------------------------------------------------------------------

    def _rows(self, name: str, statement: Declared) -> int | None:
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

    def _anew(self, name: str) -> bool:
        return name in self.rebuilt or name not in self.head

    def _source_rows(self, name: str) -> int:
        table = self.application.sources.table(name)
        table.version()  # raises where there is none
        return _rows_of(DeltaLog(table.uri))

    def _admitted_rows(self, name: str) -> int:
        return _rows_of(DeltaLog(self.application.layout.admitted(name)))

    def _lost(self, name: str) -> int:
        """How many rows of results (or admitted rows) go when a name's tables go."""
        layout = self.application.layout
        return sum(_rows_of(DeltaLog(path)) for path in (layout.result(name), layout.admitted(name)))


def _rows_of(log: DeltaLog) -> int:
    return sum(f.rows for f in log.files()) if log.exists() else 0
