"""What ``apply`` would change: the files against what is deployed, name by name, in the order in which it is done.

Nothing is computed and nothing is written. All problems are told at once: faults of every file, sources that are not
there, queries that cannot be bound or that no operator runs, changed definitions that nobody said should be replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from sweeparea.cql.catalog import Declared, table_names
from sweeparea.cql.differences import Difference
from sweeparea.cql.errors import CqlErrors
from sweeparea.cql.statements import CreateFunction, CreateQuery
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.registry import ChangedDefinition, app_of, stale_state
from sweeparea.tables.delta_log import DeltaLog
from sweeparea.tables.deployed import DeployedRow
from sweeparea.tables.ledger import LedgerRow


class Action(Enum):
    """What ``apply`` does with a name."""

    REGISTER = "register"
    UPDATE = "update"
    REBUILD = "rebuild"
    REFUSE = "refuse"
    DROP = "drop"
    KEEP = "keep"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Step:
    """One name's part of a plan. ``why`` says in words what is done; ``rows`` is at most how many rows will be read
    by the next run, ``lost`` how many result rows are dropped, None where unknown.
    """

    name: str
    kind: str
    action: Action
    why: str = ""
    difference: Difference = field(default_factory=lambda: Difference(()))
    rows: int | None = None
    lost: int | None = None


@dataclass(frozen=True)
class DeploymentPlan:
    """Steps in the order of dependency, what is gone from the files last; ``problems`` forbid applying it."""

    application: str
    data: str
    steps: tuple[Step, ...]
    problems: tuple[SweepAreaError, ...] = ()

    def of(self, *actions: Action) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.action in actions)

    @property
    def changes(self) -> tuple[Step, ...]:
        """What ``apply`` would do."""
        return self.of(Action.REGISTER, Action.UPDATE, Action.REBUILD, Action.DROP)


def plan(application: Application, prune: bool = False) -> DeploymentPlan:
    """The plan of an application that was opened leniently. ``prune`` drops what the files no longer declare."""
    return _Planner(application, prune).plan()


class _Planner:
    def __init__(self, application: Application, prune: bool) -> None:
        self.application, self.prune = application, prune
        self.catalog, self.registry = application.catalog, application.registry
        self.deployed = self.registry.deployed.rows()
        self.head = application.ledger.head()
        self.problems: dict[str, SweepAreaError] = {}
        self.rebuilt: list[str] = []

    def plan(self) -> DeploymentPlan:
        for fault in self.application.faults:
            self._problem(fault)
        steps = [self._step(name, statement) for name, statement in self.catalog.declared().items()]
        # what could not be read may still declare these names
        gone = self._gone() if self.catalog.complete else []
        application = self.application
        return DeploymentPlan(application.name, str(application.data), (*steps, *gone), tuple(self.problems.values()))

    def _problem(self, error: SweepAreaError) -> None:
        for one in error.errors if isinstance(error, CqlErrors) else (error,):
            self.problems.setdefault(str(one), one)

    # -- what the files declare ----------------------------------------------------------------------------------------

    def _step(self, name: str, statement: Declared) -> Step:
        self._check(name, statement)
        kind, row, head = self.registry.wanted(name).kind, self.deployed.get(name), self.head.get(name)
        try:
            if row is None:
                why = self.registry.refused(name, head)
                if why:
                    self._problem(ChangedDefinition(why))
                    return Step(name, kind, Action.REFUSE, why)
                adopted = "its tables were made before there was a list of what is deployed" if head else ""
                return Step(name, kind, Action.REGISTER, adopted, rows=None if head else self._rows(name, statement))
            found = self.registry.difference(name, row)
        except SweepAreaError as error:
            self._problem(error)
            return Step(name, kind, Action.REFUSE, "see the problems")
        return self._changed(name, kind, statement, row, head, found)

    def _changed(
        self, name: str, kind: str, statement: Declared, row: DeployedRow, head: LedgerRow | None, found: Difference
    ) -> Step:
        if found.rebuild and head is None and not self.application.ledger.used(app_of(row)):
            return Step(name, kind, Action.UPDATE, "nothing was computed by the old definition yet", found)
        if found.rebuild and not statement.replace:
            self._problem(self.registry.refusal(name, found))
            return Step(name, kind, Action.REFUSE, "changed, but not declared CREATE OR REPLACE", found)
        why = "CREATE OR REPLACE" if found.rebuild else self._why_rebuilt(name, statement, row, head)
        if why:
            self.rebuilt.append(name)
            rows = self._rows(name, statement)
            return Step(name, kind, Action.REBUILD, why, found, rows, self._lost(name))
        if found or row.fingerprint != self.registry.wanted(name).fingerprint:
            return Step(name, kind, Action.UPDATE, "results stay as they are", found)
        return Step(name, kind, Action.NOTHING)

    def _why_rebuilt(self, name: str, statement: Declared, row: DeployedRow, head: LedgerRow | None) -> str:
        """Why a name is computed anew though its own definition gives the same results; empty if it is not."""
        if head is None:
            return ""
        if head.registration != row.registration:
            return "an earlier apply or drop was interrupted"
        if not isinstance(statement, CreateQuery):
            return ""
        below = [n for n in self.catalog.dependencies(statement) if n in self.rebuilt]
        if below:
            return f"reads {', '.join(below)}, rebuilt above"
        try:
            stale = stale_state(self.application.plan(name), head)
        except SweepAreaError:
            return ""  # told of among the problems
        return "this version plans it otherwise, its SweepAreas cannot be continued" if stale else ""

    def _check(self, name: str, statement: Declared) -> None:
        """Whether the declaration can be run, as far as that shows without running it."""
        application = self.application
        try:
            if isinstance(statement, CreateQuery):
                known = {n.lower() for n in self.catalog.declared()}
                names = {application.catalog.owner(n).lower() for n in table_names(statement.select)}
                names = {n if n in known else n.rpartition("__")[0] or n for n in names}
                if not self.catalog.complete and not names <= known:
                    return  # it reads something that could not be read
                application.plan(name)
            elif not isinstance(statement, CreateFunction):
                try:
                    application.source_table(name).version()
                except SweepAreaError as error:
                    # queries over it fail with the same words, which need not be repeated for each
                    self.problems[str(error)] = SweepAreaError(f"{statement.place}: {name}: {error}")
                    return
                if name in self.catalog.streams:
                    application.source_expressions(name)
        except SweepAreaError as error:
            self._problem(error)

    # -- what they no longer declare -----------------------------------------------------------------------------------

    def _gone(self) -> list[Step]:
        """What is deployed or has run, but is not declared any more: readers before what they read."""
        declared = self.catalog.declared()
        kinds = {row.name: row.kind for row in (*self.head.values(), *self.deployed.values())}
        gone = {name: kind for name, kind in kinds.items() if name not in declared}
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
        action = Action.DROP if self.prune else Action.KEEP
        why = "" if self.prune else "stays, but is not run: `apply --prune` drops it"
        return [Step(name, gone[name], action, why, lost=self._lost(name)) for name in ordered]

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
        table = self.application.source_table(name)
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


_TITLES = {
    Action.REGISTER: "Added",
    Action.UPDATE: "Changed, without a change of results",
    Action.REBUILD: "Rebuilt from START",
    Action.REFUSE: "Refused",
    Action.DROP: "Dropped",
    Action.KEEP: "Not in the files any more",
}


def text(plan: DeploymentPlan, diffs: bool = True) -> str:
    """A plan as text, for the terminal."""
    lines = [f"Plan for {plan.application}, data in {plan.data}"]
    width = max([0, *(len(_called(step)) for step in plan.steps)])
    for action, title in _TITLES.items():
        steps = plan.of(action)
        if steps:
            lines += ["", title]
        for step in steps:
            lines.append(f"  {_called(step).ljust(width)}  {_said(step)}".rstrip())
            lines += [f"      {change}" for change in step.difference.changes]
            if diffs and step.difference.diff:
                lines += [f"      | {line}" for line in step.difference.diff.splitlines()]
    same = plan.of(Action.NOTHING)
    if same:
        lines += ["", f"Unchanged: {', '.join(step.name for step in same)}"]
    if plan.problems:
        lines += ["", f"Problems ({len(plan.problems)}); nothing is applied until they are solved"]
        for problem in plan.problems:
            # the difference stands above already
            shown = (
                str(problem).splitlines()[:1] if isinstance(problem, ChangedDefinition) else str(problem).splitlines()
            )
            lines += [f"  {line}" for line in shown]
    elif not plan.changes:
        lines += ["", "Nothing to apply."]
    elif len(plan.changes) > 1:
        lines += ["", f"In this order: {', '.join(step.name for step in plan.changes)}"]
    return "\n".join(lines)


def _called(step: Step) -> str:
    return f"{step.kind} {step.name}"


def _said(step: Step) -> str:
    parts = [step.why] if step.why else []
    if step.lost and step.action in (Action.REBUILD, Action.DROP):
        parts.append(f"{step.lost:,} rows that were computed are dropped")
    elif step.lost and step.action is Action.KEEP:
        parts.append(f"{step.lost:,} rows")
    if step.rows is not None:
        parts.append(f"up to {step.rows:,} rows to read")
    return "; ".join(parts)
