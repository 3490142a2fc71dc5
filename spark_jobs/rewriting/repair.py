"""Late repair: what a query's inputs changed at instants that it has committed is brought into its results (law L1).

Only the stretch of time that the changes can touch is computed anew (``operators/plan/touched.py``), beside the
published tables; what differs is published as one commit and logged, and passed on to the queries that read this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.touched import Stretch, touched
from sweeparea.operators.state.splice import NotMet
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.rewriting.rewrite import Rewrite
from sweeparea.spark_jobs.rewriting.rewritten import Rewritten
from sweeparea.spark_jobs.rewriting.rewritten_areas import NotSelectable
from sweeparea.spark_jobs.rewriting.shadow import Shadow
from sweeparea.spark_jobs.slices.catch_up import Tell
from sweeparea.spark_jobs.slices.corrections import announced, pending
from sweeparea.spark_jobs.slices.only import only
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.spark_jobs.spark.instants import slice_text
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import Publication, recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def repair(application: Application, plan: Plan, spark: SparkSession, tell: Tell) -> Iterator[Rewritten]:
    """Repairs a query until none of its inputs has a correction that it lacks; yields what each round has changed."""
    while True:
        row = application.ledger.row(plan.name)
        if row is None or row.committed is None:
            return
        head = application.ledger.head()
        if not announced(application, plan, row, head):
            return
        owners = {name: application.owner(name) for name in plan.inputs}
        recover(str(application.data), application.ledger, owners.values())
        pins = {name: head[owner].seq for name, owner in owners.items()}
        found = pending(application, plan, row, head, pins, row.committed)
        stretch = touched(plan.root, found)
        read = {name: {"seq": pins[name], "heartbeat": head[owner].committed} for name, owner in owners.items()}
        if stretch is None or stretch.first > row.committed:
            _acknowledge(application, plan, row, read)
            continue
        done = _Repair(application, plan, spark, row, read, _cause(found, row, pins), tell).run(stretch, set(found))
        tell(f"{plan.name}: {done.words}")
        yield done


FEW_ROWS = 200_000
"""Where no more rows are read, all keys are computed anew: selecting some has costs of its own."""


@dataclass(frozen=True)
class _Repair:
    """A repair of what a query has committed in ``row``. ``read``: what its row says of its inputs from then on;
    ``cause``: what was corrected, in words.
    """

    application: Application
    plan: Plan
    spark: SparkSession
    row: LedgerRow
    read: Mapping[str, dict[str, int | None]]
    cause: str
    tell: Tell

    def run(self, stretch: Stretch, names: set[str]) -> Rewritten:
        """Computes the ``stretch`` that corrections of the inputs ``names`` touch anew, and exchanges what differs."""
        plan, committed = self.plan, self.row.committed
        assert committed is not None
        since = max(stretch.first, plan.start) - 1
        # contents are equal again after the last instant touched: what begins or ends there is part of the difference
        closed = stretch.last + 1 <= committed
        upto = stretch.last + 1 if closed else committed
        pins = {name: told["seq"] or 0 for name, told in self.read.items()}
        given = (self.application, plan, self.spark, since, pins, self.tell)
        with Shadow(*given, checkpoints=True) as shadow:
            some = done = None
            if shadow.rows(upto) > FEW_ROWS:
                some = only(self.application, plan, self.row, pins, names, committed)
            if some is not None:
                with Shadow(*given, only=some) as narrow, suppress(NotSelectable):
                    done = _exchanged(narrow, upto, closed, self.row, self.cause, self.read)
            if done is None:
                done = _exchanged(shadow, upto, closed, self.row, self.cause, self.read)
        done.words = f"repaired {slice_text(plan.time, since, upto)} after {self.cause}: {done.counts}"
        return done


def _exchanged(
    shadow: Shadow, upto: int, closed: bool, row: LedgerRow, cause: str, read: Mapping[str, dict[str, int | None]]
) -> Rewritten:
    assert row.committed is not None
    shadow.run(upto)
    try:
        return Rewrite(shadow, upto, closed).publish(cause, row, read, always=True, repairs=True)
    except NotMet:
        shadow.run(row.committed)
        return Rewrite(shadow, row.committed, closed=False).publish(cause, row, read, always=True, repairs=True)


def _cause(found: Mapping[str, Stretch], row: LedgerRow, pins: Mapping[str, int]) -> str:
    parts = [f"{name} (commits {row.pins[name]['seq'] + 1} to {pins[name]})" for name in sorted(found)]
    return f"corrections of {', '.join(parts)}"


def _acknowledge(
    application: Application, plan: Plan, row: LedgerRow, read: Mapping[str, dict[str, int | None]]
) -> None:
    """Notes that an input's corrections concern no instant that the query has committed."""
    place = SlicePlace.of(application, plan.name)
    publication = Publication(place.data, place.ledger, plan.name, NameKind.QUERY, place.registration)
    publication.begin()
    publication.require(row)
    publication.commit(committed=row.committed, pins=dict(read), info=dict(row.info))
