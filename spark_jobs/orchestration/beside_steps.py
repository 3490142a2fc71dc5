"""Which queries are computed anew beside their old results, which stay readable."""

from __future__ import annotations

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.deployment.planned import Planned
from sweeparea.spark_jobs.orchestration.plan_basis import PlanBasis
from sweeparea.spark_jobs.orchestration.steps import Follow, Rebuild, RebuildBeside, Step
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind


def built_beside(basis: PlanBasis, steps: list[Step]) -> list[Step]:
    """The steps, with those marked that need not take old results away first: of queries that share no subplan,
    whose inputs stay or are queries of that kind.
    """
    placed: dict[str, Step] = {}
    for step in steps:
        head = basis.head.get(step.name)
        if isinstance(step, Rebuild) and step.kind == NameKind.QUERY and head is not None:
            row = basis.deployed.get(step.name)
            statement = basis.catalog.queries[step.name]
            below = [placed[n] for n in basis.catalog.dependencies(statement) if n in placed]
            whole = row is not None and head.registration == row.registration
            whole = whole and row is not None and not Planned.of(row.planned).shared
            if whole and all(isinstance(other, RebuildBeside) for other in below if isinstance(other, Rebuild)):
                follows = not step.difference.rebuild and _same(basis, step, head)
                step = (Follow if follows else RebuildBeside)(**vars(step))
        placed[step.name] = step
    return list(placed.values())


def _same(basis: PlanBasis, step: Step, head: LedgerRow) -> bool:
    """Whether a query's SweepAreas are those of its plan, and no function that it calls has become another."""
    statement = basis.catalog.queries[step.name]
    if any(name in basis.rebuilt for name in basis.catalog.functions_of(statement)):
        return False
    try:
        return not basis.registry.stale(basis.application.plans.plan(step.name), head)
    except SweepAreaError:
        return False
