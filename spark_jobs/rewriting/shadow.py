"""A query computed once more, beside its tables: a stretch of time, from frozen inputs, to be taken over in one commit.

Repair, backfill and a new definition are the same thing, a run of slices in a folder of their own (law S2 makes them
equal to those that were). Operators are warmed up from as far back as the windows reach, or from START.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.plan.touched import memory, warm_from
from sweeparea.operators.time.ticks import INF
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.history_gone import require_history
from sweeparea.spark_jobs.deployment.input_sizes import new_rows
from sweeparea.spark_jobs.evaluation.only import Only
from sweeparea.spark_jobs.rewriting import checkpoint
from sweeparea.spark_jobs.slices import acceptance
from sweeparea.spark_jobs.slices.beginning import Beginning
from sweeparea.spark_jobs.slices.catch_up import Tell, catch_up, limit
from sweeparea.spark_jobs.slices.history import History
from sweeparea.spark_jobs.slices.place import SlicePlace
from sweeparea.spark_jobs.slices.slice import Slice
from sweeparea.tables.errors import LostRace
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.folders import remove_folder
from sweeparea.tables.publication.attempts import Attempts
from sweeparea.tables.publication.info import QueryInfo
from sweeparea.tables.publication.ledger import LedgerRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


WARM_UP_ROWS = 200_000
"""Reading so many rows again costs less than looking for a checkpoint."""


class Shadow:
    """The results of a query after ``since`` and its SweepAreas at ``done``, beside the published ones.

    ``pins``: per input the sequence up to which it is read; ``build`` names the folder, a new one if not given;
    ``checkpoints``: SweepAreas of an earlier instant may be gone on from, in place of START. Use as a context manager:
    the folder goes in the end. ``only``: computed for some keys.
    """

    def __init__(  # nine parameters: those without a default are what every run has, the others choose one of its uses
        self,
        application: Application,
        plan: Plan,
        spark: SparkSession,
        since: int,
        pins: Mapping[str, int],
        tell: Tell = lambda text: None,
        build: str | None = None,
        checkpoints: bool = False,
        only: Only | None = None,
    ) -> None:
        self.application, self.spark, self.tell = application, spark, tell
        self.only = only
        self.since, self.pins = max(since, plan.start - 1), dict(pins)
        origin = warm_from(plan.root, plan.start, self.since)
        self.published, self.plan = plan, replace(plan, start=origin)
        self.place = SlicePlace.beside(application, plan.name, build)
        self._attempts = Attempts(application.layout)
        # a folder of a run that is killed is removed by the query's next one, unless it is to be gone on with
        self._lock = None if build else self._attempts.begin(plan.name, self.place.registration)
        self.done = origin - 1
        self.rows_in = 0
        self.verdicts: list[Mapping[str, Any]] = []
        self._checkpoint: LedgerRow | None = None
        self._begun = self._published()
        endless = memory(plan.root) >= INF
        if checkpoints and (endless or self._warm_up() > WARM_UP_ROWS):
            self._go_on(endless)
        self.place = replace(self.place, stands=self.since)

    def rows(self, upto: int) -> int:
        """About how many rows are read to compute up to an instant, of all keys."""
        return new_rows(self.application.plans, self.published, self.done, upto)

    def _warm_up(self, done: int | None = None) -> int:
        """About how many rows are read before anything can be shown, from a given instant on."""
        return new_rows(self.application.plans, self.published, self.done if done is None else done, self.since)

    def _go_on(self, needed: bool) -> None:
        """Goes on from SweepAreas of an earlier instant, unless warming up is as cheap."""
        row = checkpoint.latest(self.application, self.published, self.since, self.pins)
        if row is None or row.committed is None or row.committed <= self.done:
            return
        size = sum(row.of_query.state.rows.values())
        if needed or 2 * (size + self._warm_up(row.committed)) < self._warm_up():
            self._checkpoint = row
            self.plan = self.published
            self.done = self.since = row.committed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        remove_folder(self.place.data, quietly=True)
        if self._lock is not None:
            self._attempts.end(self._lock)

    @property
    def row(self) -> LedgerRow | None:
        """What the last slice has committed beside."""
        return self.place.ledger.row(self.plan.name)

    def _published(self) -> tuple[str, int] | None:
        """Registration and last correction of what is published."""
        row = self.application.ledger.row(self.published.name)
        return None if row is None else (row.registration, row.correction_seq)

    def run(self, upto: int) -> None:
        """Computes on, up to an instant. HistoryGone: RETAIN has let go what that needs, before or meanwhile.
        LostRace: it failed, and another run has corrected the published results meanwhile, from which it goes on.
        """
        try:
            self._run(upto)
        except SweepAreaError as error:
            if isinstance(error, LostRace) or self._published() == self._begun:
                raise
            raise LostRace(
                f"{self.published.name}: another run was faster: it has corrected the results meanwhile, or exchanged"
                " them. Nothing of this run was published, and there is nothing to repair. Run again."
            ) from error

    def _run(self, upto: int) -> None:
        if self._checkpoint is not None and self.row is None:
            checkpoint.seed(self.application, self.published, self._checkpoint, self.place)
        first = self.done + 1
        require_history(self.application, self.plan, first)
        cuts = () if self.rows(upto) <= limit(self.plan) else (self.since,)
        cuts += acceptance.ends(self.application.ledger.row(self.plan.name))
        for done, info in catch_up(
            self.application, self.plan, self.done, upto, self._slice, self.tell, cuts, "recomputed, "
        ):
            self.done = done
            self.rows_in += info.rows_in or 0
            self.verdicts += info.verdicts or ()
        require_history(self.application, self.plan, first)

    def _slice(self, h0: int, h1: int) -> QueryInfo:
        return Slice(
            self.application,
            self.plan,
            self.spark,
            h0,
            h1,
            place=self.place,
            pins=self.pins,
            beginning=self._beginning(h0, h1),
            only=self.only,
            tell=self.tell,
        ).run()

    def _beginning(self, h0: int, h1: int) -> Beginning | None:
        if self._checkpoint is not None:
            return None  # its SweepAreas tell what is open
        if h1 <= self.since:  # nothing is to be shown yet
            return Beginning(h1, stands=self.since)
        if h0 > self.since or self.since < self.published.start:
            return None
        kept = [old for kind, (old, _) in self.tables().items() if kind.is_history and old.exists()]
        return Beginning(self.since, tuple(History.of(log, self.plan.time) for log in kept), self.only)

    def tables(self) -> dict[ResultKind, tuple[DeltaLog, DeltaLog]]:
        """Per kind of result its published table and the one beside it."""
        layouts = self.application.layout, self.place.layout
        return {
            kind: tuple(DeltaLog(layout.result(self.plan.table(kind))) for layout in layouts)  # type: ignore[misc]
            for kind in self.plan.materialize
        }
