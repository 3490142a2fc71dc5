"""Apply: makes what is deployed what the files say, as ``plan`` has shown it.

Replacing a query drops its results and SweepAreas, and those of every query that rests on it; the next runs compute
them anew from START. ``Replacement`` is the one place that knows how a name is replaced: building the new results
beside the old ones and exchanging them afterwards would be another class of the same two methods.

A run that is killed leaves nothing half done that the next one does not finish: a name gets its new registration
before its old ledger row goes, readers go before what they read, and the deployed row of a dropped name goes last.
"""

from __future__ import annotations

from collections.abc import Callable

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.drop import discard, drop, drop_unread
from sweeparea.spark_jobs.plan import Action, DeploymentPlan, Step

Tell = Callable[[str], None]


class NotApplied(SweepAreaError):
    """A plan with problems; nothing of it was applied."""

    exit_code = 2


class Replacement:
    """Replaces names in place: the old results go, the new ones are computed by the next runs."""

    def __init__(self, application: Application, tell: Tell) -> None:
        self.application, self.tell = application, tell

    def clear(self, step: Step) -> None:
        """Takes the old results of a name away; readers are cleared before what they read."""
        application, name = self.application, step.name
        application.registry.renew(name)
        row = application.ledger.head().get(name)
        if row is not None:
            application.ledger.forget(name, row.seq)
        discard(application, name, row.registration if row else "", purge=True)
        if step.kind != "function":
            self.tell(f"{name}: {step.lost or 0:,} rows dropped")

    def build(self, step: Step) -> None:
        """Lets the new results come to be; called in order of dependency."""
        if step.kind in ("shared", "function"):
            self.tell(f"{step.name}: registered anew")
            return
        job = "process" if step.kind == "query" else "admit"
        what = "computed anew from START" if step.kind == "query" else "admitted anew"
        self.tell(f"{step.name}: registered anew; `{self.application.command(job, step.name)}`: {what}")


def apply(application: Application, plan: DeploymentPlan, tell: Tell = lambda text: None) -> int:
    """Carries out a plan of this application; returns how many names were changed. NotApplied if it has problems."""
    if plan.problems:
        count = len(plan.problems)
        raise NotApplied(f"Nothing was applied: the plan has {count} problem{'s' if count > 1 else ''}, shown above.")
    registry, head = application.registry, application.ledger.head()
    replacement = Replacement(application, tell)
    rebuilt = plan.of(Action.REBUILD)
    for step in reversed(rebuilt):
        replacement.clear(step)
    # a hidden query is made from its readers' plans, so these come first
    for step in sorted(plan.steps, key=lambda step: step.kind == "shared"):
        if step.action is Action.REGISTER:
            registry.register(step.name, head.get(step.name))
            tell(f"{step.name}: registered")
        elif step.action is Action.UPDATE:
            deployed = registry.deployed.rows()[step.name]
            registry.renew(step.name) if step.renew else registry.take_over(step.name, deployed)
            tell(f"{step.name}: changed")
        elif step.action is Action.REBUILD:
            replacement.build(step)
    for step in plan.of(Action.DROP):
        # a hidden query has gone with its last reader
        for line in drop_unread(application) if step.kind == "shared" else drop(application, step.name):
            tell(line)
    return len(plan.changes)
