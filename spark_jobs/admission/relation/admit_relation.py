"""Admitting a relation, by where its contents come from: a snapshot that is pinned, or a history of changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sweeparea.cql.syntax.statements import HeartbeatKind
from sweeparea.heartbeats import policies
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.admission.judging.report import Admitted
from sweeparea.spark_jobs.admission.relation.change_relation import RelationAdmission
from sweeparea.spark_jobs.admission.relation.static import pin
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark.errors import NotReadyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def admit_relation(
    application: Application,
    name: str,
    registration: str,
    spark: SparkSession,
    tell: Callable[[str], None],
    baseline: bool = False,
) -> Admitted:
    """Admits what is new in a relation's source: of a static one its snapshot, once. ``baseline`` goes on from the
    source as it is now where versions are gone.
    """
    if application.is_static(name):
        return pin(application, name, registration, spark)
    return RelationAdmission(application, name, registration, spark, tell, baseline).run()


def advance_relation(application: Application, name: str, heartbeat: int) -> int | None:
    """Moves the heartbeat of a relation declared HEARTBEAT MANUAL to a tick; returns what it was."""
    declared = application.catalog.relations[name]
    if declared.heartbeat is None or declared.heartbeat.kind != HeartbeatKind.MANUAL:
        raise SweepAreaError(
            f"Relation {name} ({declared.place}) moves its heartbeat by itself. Only one declared HEARTBEAT MANUAL is"
            " moved by hand."
        )
    row = application.ledger.head().get(name)
    if row is None:
        raise NotReadyError(f"Relation {name} has not been admitted yet. Run `{application.command('admit', name)}`.")
    move = RelationAdmission(application, name, row.registration).move
    return move(lambda before: policies.Manual().set(name, before, heartbeat))
