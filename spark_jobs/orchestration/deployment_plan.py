"""A deployment plan: its steps, its problems, and its text for the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from sweeparea.infra.errors import SweepAreaError, UnfitSetupError, UsageError
from sweeparea.spark_jobs.deployment.changed_definition import ChangedDefinition
from sweeparea.spark_jobs.orchestration.steps import Action, Step


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
        return tuple(step for step in self.steps if step.changes)

    @property
    def exit_code(self) -> int:
        """What a command ends with that shows the problems: as for wrong texts, unless an unfit Spark is all."""
        if not self.problems:
            return 0
        unfit = all(isinstance(problem, UnfitSetupError) for problem in self.problems)
        return (UnfitSetupError if unfit else UsageError).exit_code


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
    width = max([0, *(len(step.called) for step in plan.steps)])
    for action, title in _TITLES.items():
        steps = plan.of(action)
        if steps:
            lines += ["", title]
        for step in steps:
            lines.append(f"  {step.called.ljust(width)}  {step.explained()}".rstrip())
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
