"""Apply: makes what is deployed what the files say, as ``plan`` has shown it.

Each step of the plan says what it does (``steps.py``); here it is done. There are two ways of replacing a name. Beside:
a query's new results are computed beside the old ones and exchanged when they have caught up; those that read it take
over what differs. In place: the old results go, and the next runs compute new ones from START; for streams and
relations, whose readers have nothing to read meanwhile, and for all where that was asked for.

A run that is killed leaves nothing half done that the next one does not finish: readers go before what they read, a
name's ledger row goes before its tables, and these before it gets its new registration, under which others may begin;
the deployed row of a dropped name goes last.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.deployment_plan import DeploymentPlan
from sweeparea.spark_jobs.orchestration.drop import drop, drop_unread, take_away
from sweeparea.spark_jobs.orchestration.steps import Deployer
from sweeparea.tables.publication.name_kinds import NameKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]


class NotApplied(SweepAreaError):
    """A plan with problems; nothing of it was applied."""

    exit_code = 2


class Deployment:
    """Carries out the steps of a plan (``steps.Deployer``), with a Spark session where queries are built beside what is
    there.
    """

    def __init__(self, application: Application, tell: Tell, spark: SparkSession | None) -> None:
        self.application, self.tell, self.spark = application, tell, spark
        self._head = application.ledger.head()
        self._renewed: set[str] = set()

    def register(self, name: str) -> None:
        self.application.registry.register(name, self._head.get(name))
        self.tell(f"{name}: registered")

    def take_over(self, name: str) -> None:
        registry = self.application.registry
        registry.take_over(name, registry.deployed.rows()[name])
        self.tell(f"{name}: changed")

    def renew(self, name: str) -> None:
        registry = self.application.registry
        registry.renew(name, registry.deployed.rows()[name])
        self.tell(f"{name}: changed")

    def take_away(self, name: str, kind: NameKind, lost: int) -> None:
        """Takes the old results of a name away; readers are cleared before what they read."""
        application = self.application
        old = application.registry.deployed.rows().get(name)
        take_away(application, name, purge=True)
        application.registry.renew(name, old)
        if kind != NameKind.FUNCTION:
            self.tell(f"{name}: {lost:,} rows dropped")

    def announce(self, name: str, kind: NameKind) -> None:
        if kind in (NameKind.SHARED, NameKind.FUNCTION):
            self.tell(f"{name}: registered anew")
            return
        job = "process" if kind == NameKind.QUERY else "admit"
        what = "computed anew from START" if kind == NameKind.QUERY else "admitted anew"
        self.tell(f"{name}: registered anew; `{self.application.command(job, name)}`: {what}")

    def build_beside(self, name: str) -> None:
        from sweeparea.spark_jobs.rewriting.replace import replace_query

        if replace_query(self.application, name, self._session(), self.tell).renewed:
            self._renewed.add(name)

    def follow(self, name: str) -> None:
        from sweeparea.spark_jobs.orchestration.process import process

        application = self.application
        reads = {application.owner(n) for n in application.plans.whole(name).inputs}
        if reads & self._renewed:
            self.build_beside(name)
            return
        report = process(application, name, self._session(), tell=self.tell)
        if not report.repaired:
            self.tell(f"{name}: nothing of what it reads has changed")

    def drop(self, name: str, kind: NameKind) -> None:
        # a hidden query has gone with its last reader
        for line in drop_unread(self.application) if kind == NameKind.SHARED else drop(self.application, name):
            self.tell(line)

    def _session(self) -> SparkSession:
        assert self.spark is not None
        return self.spark


def apply(
    application: Application,
    plan: DeploymentPlan,
    tell: Tell = lambda text: None,
    session: Callable[[], AbstractContextManager[SparkSession]] | None = None,
) -> int:
    """Carries out a plan of this application; returns how many names were changed. NotApplied if it has problems.

    ``session`` gives the Spark session for queries that are built beside what is there.
    """
    if plan.problems:
        count = len(plan.problems)
        error = NotApplied(f"Nothing was applied: the plan has {count} problem{'s' if count > 1 else ''}, shown above.")
        error.exit_code = plan.exit_code
        raise error
    if any(step.needs_spark for step in plan.steps):
        assert session is not None
        with session() as spark:
            return _apply(plan, Deployment(application, tell, spark))
    return _apply(plan, Deployment(application, tell, None))


def _apply(plan: DeploymentPlan, deployer: Deployer) -> int:
    for step in reversed(plan.steps):
        step.clear(deployer)
    # a hidden query is made from its readers' plans, so these come first
    for step in sorted(plan.steps, key=lambda step: step.kind == NameKind.SHARED):
        step.make(deployer)
    for step in plan.steps:
        step.drop(deployer)
    return len(plan.changes)
