"""Apply: makes what is deployed what the files say, as ``plan`` has shown it.

Two ways of replacing a name, classes of the same two methods. ``Beside``: a query's new results are computed beside
the old ones and exchanged when they have caught up; those that read it take over what differs. ``Replacement``: the
old results go, and the next runs compute new ones from START; for streams and relations, whose readers have nothing to
read meanwhile, and for all where that was asked for.

A run that is killed leaves nothing half done that the next one does not finish: readers go before what they read, a
name's ledger row goes before its tables, and these before it gets its new registration, under which others may begin;
the deployed row of a dropped name goes last.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.declarations.application import Application
from sweeparea.spark_jobs.deployment.drop import drop, drop_unread, take_away
from sweeparea.spark_jobs.deployment.plan import Action, DeploymentPlan, Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        old = application.registry.deployed.rows().get(name)
        take_away(application, name, purge=True)
        application.registry.renew(name, old)
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


class Beside(Replacement):
    """Replaces queries that a plan says are built beside what is there, with a Spark session for it."""

    def __init__(self, application: Application, tell: Tell, spark: SparkSession) -> None:
        super().__init__(application, tell)
        self.spark = spark
        self._renewed: set[str] = set()

    def clear(self, step: Step) -> None:
        """Nothing goes before there is something in its place."""
        if not step.beside:
            super().clear(step)

    def build(self, step: Step) -> None:
        """Computes a query under its new definition, or lets a reader of one follow."""
        if not step.beside:
            super().build(step)
            return
        from sweeparea.spark_jobs.rewriting.replace import replace_query
        from sweeparea.spark_jobs.slices.process import process

        application, name = self.application, step.name
        reads = {application.owner(n) for n in application.whole(name).inputs}
        if step.follows and not reads & self._renewed:
            report = process(application, name, self.spark, tell=self.tell)
            if not report.repaired:
                self.tell(f"{name}: nothing of what it reads has changed")
        elif replace_query(application, name, self.spark, self.tell).renewed:
            self._renewed.add(name)


def apply(
    application: Application,
    plan: DeploymentPlan,
    tell: Tell = lambda text: None,
    session: Callable[[], AbstractContextManager[SparkSession]] | None = None,
) -> int:
    """Carries out a plan of this application; returns how many names were changed. NotApplied if it has problems.

    ``session`` gives the Spark session for queries that are built beside what is there.
    """
    if any(step.beside for step in plan.steps) and not plan.problems:
        assert session is not None
        with session() as spark:
            return _apply(application, plan, tell, Beside(application, tell, spark))
    return _apply(application, plan, tell, Replacement(application, tell))


def _apply(application: Application, plan: DeploymentPlan, tell: Tell, replacement: Replacement) -> int:
    if plan.problems:
        count = len(plan.problems)
        error = NotApplied(f"Nothing was applied: the plan has {count} problem{'s' if count > 1 else ''}, shown above.")
        error.exit_code = plan.exit_code
        raise error
    registry, head = application.registry, application.ledger.head()
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
            registry.renew(step.name, deployed) if step.renew else registry.take_over(step.name, deployed)
            tell(f"{step.name}: changed")
        elif step.action is Action.REBUILD:
            replacement.build(step)
    for step in plan.of(Action.DROP):
        # a hidden query has gone with its last reader
        for line in drop_unread(application) if step.kind == "shared" else drop(application, step.name):
            tell(line)
    return len(plan.changes)
