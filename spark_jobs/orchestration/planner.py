"""What ``apply`` would change: the files against what is deployed, name by name, in the order in which it is done.

Nothing is computed and nothing is written. All problems are told at once: faults of every file, sources that are not
there, queries that cannot be bound or that no operator runs, queries whose past RETAIN has let go, changed definitions
that nobody said should be replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.beside_steps import built_beside
from sweeparea.spark_jobs.orchestration.declared_steps import DeclaredSteps
from sweeparea.spark_jobs.orchestration.deployment_plan import DeploymentPlan
from sweeparea.spark_jobs.orchestration.estimates import Estimates
from sweeparea.spark_jobs.orchestration.hidden_steps import HiddenSteps
from sweeparea.spark_jobs.orchestration.plan_basis import PlanBasis
from sweeparea.spark_jobs.orchestration.plan_checks import PlanChecks
from sweeparea.spark_jobs.orchestration.plan_notes import PlanNotes
from sweeparea.spark_jobs.orchestration.steps import Forget, Keep, Step

if TYPE_CHECKING:
    from sweeparea.spark_jobs.declarations.analysis import Checking


def plan(
    application: Application, prune: bool = False, beside: bool = False, checking: Checking | None = None
) -> DeploymentPlan:
    """The plan of an application that was opened leniently. ``prune`` drops what the files no longer declare.
    ``beside``: new results of queries are computed beside the old ones where that can be done. ``checking`` has Spark
    look at the expressions of what is new or changed; where it has no Spark, a note says so.
    """
    basis = PlanBasis(application)
    checks = PlanChecks(basis, checking)
    for fault in application.faults:
        basis.problem(fault)
    declared = DeclaredSteps(basis, checks)
    steps = [declared.step(name, statement) for name, statement in basis.catalog.declared().items()]
    checks.check_again()
    # what could not be read may still declare these names
    gone = _gone(basis, prune) if basis.catalog.complete else []
    steps, orphans = HiddenSteps(basis).placed(steps, gone)
    if beside:
        steps = built_beside(basis, steps)
    notes = PlanNotes(application, basis.deployed, basis.head, basis.rebuilt, checking)
    return DeploymentPlan(
        application.name, str(application.data), (*steps, *gone, *orphans), basis.problems, tuple(notes)
    )


def _gone(basis: PlanBasis, prune: bool) -> list[Step]:
    """What is deployed or has run, but is not declared any more: readers before what they read."""
    declared = basis.catalog.declared()
    kinds = {row.name: row.kind for row in (*basis.head.values(), *basis.deployed.values())}
    gone = {name: kind for name, kind in kinds.items() if name not in declared and not is_hidden(name)}
    ordered: list[str] = []

    def visit(name: str) -> None:
        if name in ordered:
            return
        for reader in gone:
            if reader in basis.deployed and name in basis.deployed[reader].depends_on and reader != name:
                visit(reader)
        ordered.append(name)

    for name in sorted(gone):
        visit(name)
    step = Forget if prune else Keep
    why = "" if prune else "stays, but is not run: `apply --prune` drops it"
    return [step(name, gone[name], why, lost=Estimates(basis).lost(name)) for name in ordered]
