"""A new definition of a query, computed beside the old one's results and exchanged in one commit when it has caught up.

Until then the old results stay as they are and readable; a build that fails or is killed leaves them in place, and the
next ``apply`` goes on with it. Where old and new results have the same columns only the rows that differ are exchanged,
and the queries that read them take the difference as a correction; else the table gets its new columns in that commit.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from sweeparea.heartbeats.minimum import query_heartbeat
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.plan_identity import result_identity, state_identity
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.planned import Planned
from sweeparea.spark_jobs.rewriting.rewrite import Rewrite
from sweeparea.spark_jobs.rewriting.rewritten import Rewritten
from sweeparea.spark_jobs.rewriting.shadow import Shadow
from sweeparea.spark_jobs.slices.catch_up import Tell
from sweeparea.spark_jobs.slices.corrections import pending
from sweeparea.spark_jobs.spark.errors import NotReadyError
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.folders import remove_at_once, remove_folder
from sweeparea.tables.publication.deployed import definition
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.publish import recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 10
"""So often a build follows what its inputs have gained meanwhile, before it leaves the rest to live slices."""
KINDS = tuple(ResultKind)


def replace_query(application: Application, query: str, spark: SparkSession, tell: Tell) -> Rewritten:
    """Builds a query as the files define it and exchanges it for what is deployed.

    Raises NotReadyError, with the old results in place, where the new definition cannot catch up with them yet.
    """
    with application.analyzing(spark):
        registry = application.registry
        planned = Planned(application.plans.fresh(query).inputs, ())
        plan = application.plans.bind(application.query(query), application.catalog.settings, planned.inputs)
        before = registry.deployed.rows()[query]
        recover(str(application.data), application.ledger)
        deployed, row = registry.deployed.rows()[query], application.ledger.row(query)
        left_behind(application, query)  # by a run that was killed
        wanted = replace(registry.wanted(query), planned=planned.as_dict())
        now = row is not None and before.deployed_at != row.at == deployed.deployed_at
        if row is not None and now and deployed.fingerprint == wanted.fingerprint:
            # a run was killed when its commit stood: that was applied just now
            tell(f"{query}: the new definition had been exchanged by a run that was interrupted")
            exchanged = row.of_query.exchanged
            return Rewritten(renewed=exchanged is not None and bool(exchanged.renewed))
        tell(f"{query}: the new definition is computed beside the old one, which stays readable")
        with Build(application, plan, spark, tell) as build:
            build.catch_up()
            rewrite = Rewrite(build, build.done, closed=False, whole=True)
            done = rewrite.replace(deployed.fingerprint, definition(wanted))
        left_behind(application, query)
    tell(f"{query}: replaced up to {instant_text(plan.time, build.done)}: {done.counts}")
    return done


class Build(Shadow):
    """A shadow of all of a query's time under a new plan, in a folder that the next try finds again."""

    def __init__(self, application: Application, plan: Plan, spark: SparkSession, tell: Tell) -> None:
        state = state_identity(lowered(plan))  # another version may run the same plan otherwise
        identity = f"{application.registry.fingerprint(plan.name)} {state} {result_identity(plan)}"
        head = application.ledger.head()
        pins = {name: row.seq for name, row in _inputs(application, plan, head).items()}
        super().__init__(
            application, plan, spark, plan.start - 1, pins, tell, sha256(identity.encode()).hexdigest()[:16]
        )
        recover(self.place.data, self.place.ledger)
        row = self.row
        if row is not None and row.committed is not None:
            self.done = row.committed
            self.pins = {name: pin["seq"] for name, pin in row.pins.items()}
            tell(f"{plan.name}: an earlier build had come to {instant_text(plan.time, self.done)} and is continued")

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            super().__exit__(*error)

    def catch_up(self) -> None:
        """Computes up to the heartbeats of the inputs, again while these go on, at least to where the old results
        are. What corrects an input meanwhile is left to the query's repair.
        """
        application, plan = self.application, self.published
        for _ in range(ROUNDS):
            head = application.ledger.head()
            pins = {name: row.seq for name, row in _inputs(application, plan, head).items()}
            row = self.row
            corrected = row is not None and bool(pending(application, plan, row, head, pins, self.done))
            if corrected:
                assert row is not None
                heartbeats = {name: pin["heartbeat"] for name, pin in row.pins.items()}
            else:
                self.pins, heartbeats = pins, application.plans.heartbeats(plan, head)
            ready = query_heartbeat(plan.name, heartbeats)
            if ready is not None and ready > self.done:
                self.run(ready)
            elif corrected or self.done >= (head[plan.name].committed or plan.start):
                break
            else:
                raise self._behind(ready, head[plan.name].committed)
        old = application.ledger.head()[plan.name].committed
        if self.row is None or self.done < (old or plan.start):
            remove_folder(self.place.data, quietly=True)  # what it has read was corrected: the next starts anew
            raise self._behind(self.done, old)

    def _behind(self, ready: int | None, old: int | None) -> NotReadyError:
        plan = self.published
        reached = "nowhere" if ready is None else instant_text(plan.time, ready)
        return NotReadyError(
            f"{plan.name}: its new definition, which reads {', '.join(plan.inputs)}, can be computed up to {reached}"
            f" only; the old results are known up to {instant_text(plan.time, old or plan.start - 1)}. They stay in"
            " place; apply again when its inputs have come that far."
        )


def _inputs(application: Application, plan: Plan, head: Mapping[str, LedgerRow]) -> dict[str, LedgerRow]:
    """The ledger rows of what a plan reads. NotReadyError: one has none yet."""
    missing = sorted(name for name in plan.inputs if application.owner(name) not in head)
    if missing:
        raise NotReadyError(
            f"{plan.name}: its new definition reads {', '.join(missing)}, of which nothing has been admitted or"
            " computed yet. The old results stay in place; apply again when there is something."
        )
    return {name: head[application.owner(name)] for name in plan.inputs}


def left_behind(application: Application, query: str) -> None:
    """Removes the result tables of a query that its definition does not keep any more: those that it has committed to,
    and of which its ledger row says nothing. What another run is about to make it has not committed to yet.
    """
    layout, row = application.layout, application.ledger.row(query)
    known = None if row is None else row.of_query.tables
    if row is None or known is None:
        return
    for path in (layout.result(f"{query}__{kind}") for kind in KINDS):
        log = DeltaLog(path)
        if layout.relative(path) not in known and log.exists() and log.app_version(row.app) is not None:
            application.ledger.close([path])
            remove_at_once(path, layout.spill(uuid.uuid4().hex))
