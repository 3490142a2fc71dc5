"""What a deployment plan leaves as it is, though the settings or the sources say otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sweeparea.infra import dag_names, environments, settings, zones
from sweeparea.operators import user
from sweeparea.operators.user_code.user_modules import Modules
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.declared_rows import kind_of
from sweeparea.spark_jobs.deployment.planned import Planned
from sweeparea.spark_jobs.orchestration.padding import Padding
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind

if TYPE_CHECKING:
    from sweeparea.spark_jobs.declarations.analysis import Checking


class PlanNotes:
    """The notes of a plan, each a text; ``rebuilt`` names are computed anew, so nothing is to be told of them."""

    def __init__(
        self,
        application: Application,
        deployed: Mapping[str, DeployedRow],
        head: Mapping[str, LedgerRow],
        rebuilt: Collection[str],
        checking: Checking | None,
    ) -> None:
        self.application, self.checking = application, checking
        self.catalog, self.registry = application.catalog, application.registry
        self.deployed, self.head, self.rebuilt = deployed, head, rebuilt
        self.padding = Padding(application, head)

    def __iter__(self) -> Iterator[str]:
        if self.checking is not None and self.checking.unchecked:
            command = self.application.command("plan", "--check-types")
            missing = self.checking.missing.rstrip(".")
            yield (
                f"There is no Spark, so it did not check the types of all expressions: {missing}"
                if missing
                else f"Spark does not run, so it did not check the types of all expressions: `{command}` lets it"
            )
        yield from self._unscheduled()
        yield from self._padding()
        yield from self._sharing()
        yield from self._zones()

    def _unscheduled(self) -> Iterator[str]:
        """Why Airflow cannot run the application, where it would."""
        folder = self.application.folder
        if folder is None or folder.resolve().parent != settings.applications_folder().resolve():
            return
        if environments.scheduled(folder):
            sources = [*self.catalog.streams, *self.catalog.relations]
            chosen = [{**self.catalog.settings, **dict(q.settings)} for q in self.catalog.queries.values()]
            groups = dict.fromkeys(own["dag"] for own in chosen if "dag" in own)
            limited = [own for own in (self.catalog.settings, *chosen) if "alert_after" in own]
            names = (self.application.name, sources, self.catalog.queries, groups)
            for fault in dag_names.faults(*names, alerts=bool(limited)):
                yield f"Airflow has no DAGs for it. {fault}"
            if any("notify" not in own for own in limited):
                yield (
                    "alert_after is set, and notify is not: what is too far behind stands in `status` and in the log of"
                    f" the DAG {dag_names.alerts_dag_id(self.application.name)}, and nobody is sent anything"
                )
            targets = {own["notify"] for own in (self.catalog.settings, *chosen) if "notify" in own}
            yield from _nobody(folder, sorted(targets))

    def _zones(self) -> Iterator[str]:
        """Queries whose results were computed by other rules of a time zone."""
        for name, row in self.head.items():
            if row.kind == NameKind.QUERY and (found := zones.changed(row.of_query.zones or {})):
                several = len(found) > 1
                yield (
                    f"the rules of the time zone{'s' * several} {', '.join(found)} have changed since results of {name}"
                    f" were computed (they are of release {zones.release()} now):"
                    f" `{self.application.command('backfill', name)}` computes these again"
                )

    def _padding(self) -> Iterator[str]:
        """Columns of sources that are admitted otherwise than they are declared now."""
        for name, statement in self.catalog.declared().items():
            if name not in self.rebuilt and (why := self.padding.missing(name, statement)):
                readers = ", ".join(self.catalog.readers(name)) or "no query"
                yield (
                    f"{name}: {why}, so comparisons, groups and lengths of it are not those of Spark. It goes on as it"
                    f" was, and so does what reads it ({readers}); CREATE OR REPLACE {kind_of(statement).upper()}"
                    f" {name} admits it anew, and computes its readers from START"
                )
            elif name not in self.rebuilt and (why := self.padding.redeclared(name, statement)):
                yield (
                    f"{name}: {why}, so admit stops until it is so again; CREATE OR REPLACE"
                    f" {kind_of(statement).upper()} {name} admits it anew, and computes its readers from START"
                )

    def _sharing(self) -> Iterator[str]:
        """Queries that go on without sharing, though they could, and those that go on sharing, though they should not:
        what a running query shares is never changed under it.
        """
        running = {n: row for n, row in self.deployed.items() if n in self.catalog.queries and n not in self.rebuilt}
        running = {n: row for n, row in running.items() if self.registry.computed(row, self.head.get(n))}
        if not self.catalog.environment.share_subplans:
            sharing = [name for name, row in running.items() if Planned.of(row.planned).shared]
            if sharing:
                yield f"share_subplans is off, but {_go_on(sharing)} sharing as registered; {self._way_out(sharing)}"
            return
        if not any(not Planned.of(row.planned).shared for row in running.values()):
            return
        ideal = self.application.plans.proposed(self.catalog.queries)
        apart = [n for n, row in running.items() if set(ideal[n].shared) - set(Planned.of(row.planned).shared)]
        apart = [n for n in apart if not Planned.of(running[n].planned).shared]
        if apart:
            yield (
                f"share_subplans is on, but {_go_on(apart)} as registered, each computing on its own what it has in"
                f" common with others; {self._way_out(apart)}"
            )

    def _way_out(self, names: list[str]) -> str:
        drops = "; ".join(self.application.command("drop", name) for name in names)
        return f"to change that, drop them together and apply again, which computes them anew from START: {drops}"


def _go_on(names: list[str]) -> str:
    return f"{', '.join(names)} {'goes' if len(names) == 1 else 'go'} on"


def _nobody(folder: Path, targets: Iterable[str]) -> Iterator[str]:
    """Who is to be alerted and cannot be found."""
    for target in targets:
        try:
            user.find(target, Modules.of(folder, target))
        except user.UserCodeError as error:
            yield f"notify = {target!r}: nobody can be alerted. {error}"
