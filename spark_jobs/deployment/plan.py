"""What ``apply`` would change: the files against what is deployed, name by name, in the order in which it is done.

Nothing is computed and nothing is written. All problems are told at once: faults of every file, sources that are not
there, queries that cannot be bound or that no operator runs, queries whose past RETAIN has let go, changed definitions
that nobody said should be replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from sweeparea.cql.declarations.catalog import Declared
from sweeparea.cql.declarations.differences import Difference
from sweeparea.cql.syntax.statements import CreateFunction, CreateQuery
from sweeparea.cql.syntax.trees import table_names
from sweeparea.cql.text.errors import CqlErrors, in_order
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra import zones
from sweeparea.infra.errors import SweepAreaError, UnfitSetupError, UsageError
from sweeparea.spark_jobs.declarations.application import Application
from sweeparea.spark_jobs.declarations.user_code import registered
from sweeparea.spark_jobs.deployment import planning
from sweeparea.spark_jobs.deployment.history_gone import HistoryGone, require_history
from sweeparea.spark_jobs.deployment.planning import Planned
from sweeparea.spark_jobs.deployment.registry import ChangedDefinition, kind_of
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.ledger import ZONES, LedgerRow
from sweeparea.tables.sources.char_columns import CHARS

if TYPE_CHECKING:
    from sweeparea.spark_jobs.declarations.analysis import Checking


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
    by the next run, ``lost`` how many result rows are dropped, None where unknown. ``renew``: nothing was computed by
    what is deployed, so that it may be registered anew. ``beside``: the new results are computed beside the old ones
    and exchanged then; ``follows``: where those that it reads are replaced so, it can take over what differs.
    """

    name: str
    kind: str
    action: Action
    why: str = ""
    difference: Difference = field(default_factory=lambda: Difference(()))
    rows: int | None = None
    lost: int | None = None
    renew: bool = False
    beside: bool = False
    follows: bool = False


@dataclass(frozen=True)
class DeploymentPlan:
    """Steps in the order of dependency, what is gone from the files last; ``problems`` forbid applying it. ``notes``
    tell what it leaves as it is, though the settings say otherwise.
    """

    application: str
    data: str
    steps: tuple[Step, ...]
    problems: tuple[SweepAreaError, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, *actions: Action) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.action in actions)

    @property
    def changes(self) -> tuple[Step, ...]:
        """What ``apply`` would do."""
        return self.of(Action.REGISTER, Action.UPDATE, Action.REBUILD, Action.DROP)

    @property
    def exit_code(self) -> int:
        """What a command ends with that shows the problems: as for wrong texts, unless an unfit Spark is all."""
        if not self.problems:
            return 0
        unfit = all(isinstance(problem, UnfitSetupError) for problem in self.problems)
        return (UnfitSetupError if unfit else UsageError).exit_code


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
        return DeploymentPlan(
            application.name, str(application.data), (*steps, *gone, *orphans), problems, tuple(self._notes())
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
            if step.action is Action.REBUILD and step.kind == "query" and head is not None:
                row = self.deployed.get(step.name)
                statement = self.catalog.queries[step.name]
                below = [placed[n] for n in self.catalog.dependencies(statement) if n in placed]
                whole = row is not None and head.registration == row.registration
                whole = whole and row is not None and not Planned.of(row.planned).shared
                if whole and all(other.beside for other in below if other.action is Action.REBUILD):
                    step = replace(step, beside=True, follows=not step.difference.rebuild and self._same(step, head))
            placed[step.name] = step
        return list(placed.values())

    def _same(self, step: Step, head: LedgerRow) -> bool:
        """Whether a query's SweepAreas are those of its plan, and no function that it calls has become another."""
        statement = self.catalog.queries[step.name]
        if any(name in self.rebuilt for name in self.catalog.functions_of(statement)):
            return False
        try:
            return not self.registry.stale(self.application.plan(step.name), head)
        except SweepAreaError:
            return False

    # -- hidden queries ------------------------------------------------------------------------------------------------

    def _with_hidden(self, steps: list[Step], gone: list[Step]) -> tuple[list[Step], list[Step]]:
        """The steps with those of hidden queries, each before its first reader; and what no query reads any more."""
        planned = self._planned(steps)
        steps = [self._chosen_again(step, planned) for step in steps]
        left = [step.name for step in gone if step.action is Action.KEEP and step.name in self.deployed]
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
        orphans = [
            Step(name, "shared", Action.DROP, why, lost=self._lost(name)) for name in sorted(there - readers.keys())
        ]
        return placed, orphans

    def _planned(self, steps: list[Step]) -> dict[str, Planned]:
        """By query what its plan will be chosen by: what is registered anew is chosen together."""
        anew = [s.name for s in steps if s.kind == "query" and self._chosen_anew(s)]
        # the results of those that are adopted come from plans that were chosen by their texts alone
        proposed = self.registry.propose({name for name in anew if name not in self.head or name in self.rebuilt})
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
        return replace(step, action=Action.UPDATE, why=why, renew=True)

    def _hidden_step(self, name: str, readers: list[str]) -> Step:
        why = f"a subplan of {', '.join(readers)}"
        if name not in self.deployed:
            return Step(name, "shared", Action.REGISTER, why)
        if name in self.rebuilt:
            return Step(name, "shared", Action.REBUILD, why, lost=self._lost(name))
        return Step(name, "shared", Action.NOTHING)

    def _is_rebuilt(self, hidden: str) -> bool:
        """Whether a hidden query is computed anew, with all its readers."""
        if hidden in self.rebuilt:
            return True
        row, head = self.deployed.get(hidden), self.head.get(hidden)
        if row is None or head is None:
            return False
        anew = head.registration != row.registration or any(name in self.rebuilt for name in row.depends_on)
        try:
            anew = anew or self.registry.stale(self.application.plan(hidden), head)
        except SweepAreaError:
            return False  # its readers are stale, and told of
        if anew:
            self.rebuilt.append(hidden)
        return anew

    def _notes(self) -> Iterator[str]:
        if self.checking is not None and self.checking.unchecked:
            command = self.application.command("plan", "--check-types")
            missing = self.checking.missing.rstrip(".")
            yield (
                f"There is no Spark, so it did not check the types of all expressions: {missing}"
                if missing
                else f"Spark does not run, so it did not check the types of all expressions: `{command}` lets it"
            )
        yield from self._sharing_notes()
        yield from self._zone_notes()

    def _zone_notes(self) -> Iterator[str]:
        """Queries whose results were computed by other rules of a time zone."""
        for name, row in self.head.items():
            if row.kind == "query" and (found := zones.changed(row.info.get(ZONES, {}))):
                several = len(found) > 1
                yield (
                    f"the rules of the time zone{'s' * several} {', '.join(found)} have changed since results of {name}"
                    f" were computed (they are of release {zones.release()} now):"
                    f" `{self.application.command('backfill', name)}` computes these again"
                )

    def _sharing_notes(self) -> Iterator[str]:
        """Queries that go on without sharing, though they could, and those that go on sharing, though they should not:
        what a running query shares is never changed under it.
        """
        for name, statement in self.catalog.declared().items():
            if name not in self.rebuilt and (why := self._unpadded(name, statement)):
                readers = ", ".join(self.catalog.readers(name)) or "no query"
                yield (
                    f"{name}: {why}, so comparisons, groups and lengths of it are not those of Spark. It goes on as it"
                    f" was, and so does what reads it ({readers}); CREATE OR REPLACE {kind_of(statement).upper()}"
                    f" {name} admits it anew, and computes its readers from START"
                )
            elif name not in self.rebuilt and (why := self._redeclared(name, statement)):
                yield (
                    f"{name}: {why}, so admit stops until it is so again; CREATE OR REPLACE"
                    f" {kind_of(statement).upper()} {name} admits it anew, and computes its readers from START"
                )
        running = {n: row for n, row in self.deployed.items() if n in self.catalog.queries and n not in self.rebuilt}
        running = {n: row for n, row in running.items() if self.registry.computed(row, self.head.get(n))}
        if not self.catalog.environment.share_subplans:
            sharing = [name for name, row in running.items() if Planned.of(row.planned).shared]
            if sharing:
                yield f"share_subplans is off, but {_go_on(sharing)} sharing as registered; {self._way_out(sharing)}"
            return
        if not any(not Planned.of(row.planned).shared for row in running.values()):
            return
        ideal = planning.proposed(self.application, self.catalog.queries)
        apart = [n for n, row in running.items() if set(ideal[n].shared) - set(Planned.of(row.planned).shared)]
        apart = [n for n in apart if not Planned.of(running[n].planned).shared]
        if apart:
            yield (
                f"share_subplans is on, but {_go_on(apart)} as registered, each computing on its own what it has in"
                f" common with others; {self._way_out(apart)}"
            )

    def _way_out(self, names: list[str]) -> str:
        drops = "; ".join(self.application.command("drop", name) for name in names)
        return f"to change that, drop them together and apply again, which computes them anew from START: {drops}"

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
        if found.rebuild and not self.registry.computed(row, head):
            why = "nothing was computed by the old definition yet"
            return Step(name, kind, Action.UPDATE, why, found, renew=True)
        if found.rebuild and not statement.replace:
            self._problem(self.registry.refusal(name, found))
            return Step(name, kind, Action.REFUSE, "changed, but not declared CREATE OR REPLACE", found)
        why = "CREATE OR REPLACE" if found.rebuild else self._why_rebuilt(name, statement, row, head)
        if why:
            self.rebuilt.append(name)
            self._require_history(name, statement)
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
            why = self._unpadded(name, statement) or self._redeclared(name, statement)
            return why if statement.replace else ""
        below = [n for n in self.catalog.dependencies(statement) if n in self.rebuilt]
        below += [n for n in self.catalog.functions_of(statement) if n in self.rebuilt]
        shared = [n for n in Planned.of(row.planned).shared if self._is_rebuilt(n)]
        below = below or shared
        if below:
            return f"reads {', '.join(below)}, rebuilt above"
        try:
            stale = self.registry.stale(self.application.plan(name), head)
        except SweepAreaError:
            return ""  # told of among the problems
        if not stale:
            return ""
        if others := self.registry.other_columns(head):
            return f"reads {', '.join(others)}, which got other columns in an apply that was interrupted"
        return "this version plans it otherwise, its SweepAreas cannot be continued"

    def _unpadded(self, name: str, statement: Declared) -> str:
        """Which columns of a source an earlier version has admitted without the padding of CHAR(n); empty if none."""
        padded, now = self._chars(name, statement)
        found = [f"{c} is {kind.upper()}" for c, kind in now.items() if c not in padded]
        return f"{', '.join(found)}, and was admitted without its padding by an earlier version" if found else ""

    def _redeclared(self, name: str, statement: Declared) -> str:
        """Which columns of a source were admitted as CHAR of another length than now; empty if none."""
        padded, now = self._chars(name, statement)
        found = [f"{c} was {k.upper()} and is {now.get(c, 'no CHAR').upper()} now" for c, k in padded.items()]
        return ", ".join(text for text, (c, kind) in zip(found, padded.items(), strict=True) if now.get(c) != kind)

    def _chars(self, name: str, statement: Declared) -> tuple[dict[str, str], dict[str, str]]:
        """The columns that are admitted padded with the types by which they are, and the CHAR columns of the source now
        that are admitted; nothing of a name that is no source or was never admitted.
        """
        head = self.head.get(name)
        if head is None or isinstance(statement, CreateQuery | CreateFunction):
            return {}, {}
        try:
            now = self.application.source_table(name).char_columns()
            admitted = {column for column, _ in self.application.input_schema(name).columns}
        except SweepAreaError:
            return {}, {}  # told of by _check
        return head.info.get(CHARS, {}), {c: kind for c, kind in now.items() if c in admitted}

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
                application.plan(name)
            elif isinstance(statement, CreateFunction):
                registered([statement], application.modules)
            else:
                try:
                    application.source_table(name).version()
                except SweepAreaError as error:
                    # queries over it fail with the same words, which need not be repeated for each
                    self.problems[str(error)] = SweepAreaError(f"{statement.place}: {name}: {error}")
                    return
                application.check_source(name)
        except SweepAreaError as error:
            self._problem(error)

    def _require_history(self, name: str, statement: Declared) -> None:
        """Whether all that a query is to be computed from is still there."""
        if not isinstance(statement, CreateQuery):
            return
        try:
            plan = self.application.plan(name)
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
    lines += [line for note in plan.notes for line in ("", f"Note: {note}")]
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
    return step.name if step.kind == "shared" else f"{step.kind} {step.name}"


def _go_on(names: list[str]) -> str:
    return f"{', '.join(names)} {'goes' if len(names) == 1 else 'go'} on"


def _said(step: Step) -> str:
    parts = [step.why] if step.why else []
    if step.beside:
        what = "it takes over what differs" if step.follows else "the new ones are computed beside them"
        parts.append(f"{step.lost or 0:,} rows stay readable while {what}")
    elif step.lost and step.action in (Action.REBUILD, Action.DROP):
        parts.append(f"{step.lost:,} rows that were computed are dropped")
    elif step.lost and step.action is Action.KEEP:
        parts.append(f"{step.lost:,} rows")
    if step.rows is not None:
        parts.append(f"up to {step.rows:,} rows to read")
    return "; ".join(parts)
