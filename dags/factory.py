"""DAGs from an application: one per stream or relation, one per continuous query, one per group of queries, one for
maintenance, one for alerts.

Each DAG is woken by an asset of its own, which a watcher in Airflow's triggerer raises while the stream or query is
behind. A second asset per stream and query, which nothing is scheduled on, draws the lineage graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from airflow.sdk import DAG, Asset, AssetAlias, AssetWatcher
from airflow.timetables.trigger import CronTriggerTimetable

from sweeparea.dags.alerts import callbacks, quality_page
from sweeparea.dags.model import ApplicationDags, Query, Source
from sweeparea.dags.operator import SweepAreaOperator, TaskAction
from sweeparea.dags.scheduling import Scheduling
from sweeparea.dags.timetables import HeartbeatSchedule
from sweeparea.heartbeats.trigger import ALERTS, BehindTrigger, GroupTrigger
from sweeparea.infra.dag_names import (
    admit_dag_id,
    alerts_dag_id,
    dag_prefix,
    group_dag_id,
    lineage_uri,
    maintenance_dag_id,
    query_dag_id,
)

START = datetime(1900, 1, 1, tzinfo=UTC)
"""Before any instant that someone may want to backfill; live runs have no date."""
GROUP = "sweeparea"
PAGE = "/plugin/continuous-queries"
"""The page of ``plugins/sweeparea_plugin.py`` in Airflow's UI."""


def page_of(kind: str, app: str, name: str) -> str:
    """Where the page shows a ``query`` or a ``stream``: Airflow takes what is behind the view's own path for
    what its frame opens.
    """
    return f"{PAGE}/sweeparea/?{urlencode({kind: f'{app}/{name}'}, safe='/@')}"


def build(application: ApplicationDags, dag_id: str | None = None) -> list[DAG]:
    """All DAGs of an application, or the one of an id: a task needs no other."""
    app = application.name
    made: dict[str, Callable[[], DAG]] = {
        admit_dag_id(app, source.name): partial(_admit_dag, application, source)
        for source in application.sources.values()
    }
    made |= {query_dag_id(app, q.name): partial(_query_dag, application, q) for q in application.queries.values()}
    made |= {
        group_dag_id(app, name): partial(_group_dag, application, name, members)
        for name, members in application.groups.items()
    }
    if application.limits:
        made[alerts_dag_id(app)] = partial(_alerts_dag, application)
    made[maintenance_dag_id(app)] = partial(_maintenance_dag, application)
    return [make() for name, make in made.items() if dag_id in (None, name)]


def _admit_dag(application: ApplicationDags, source: Source) -> DAG:
    app, name = application.name, source.name
    with DAG(
        admit_dag_id(app, name),
        schedule=[
            _wake(application, name, BehindTrigger(name, application.watched_text, dag_id=admit_dag_id(app, name)))
        ],
        description=f"Copies {name} once"
        if source.static
        else f"Admits what is new for {name} and moves its heartbeat",
        **_common(
            application,
            source.scheduling,
            [app, source.kind.value],
            _documented(
                source.text,
                source.place,
                f"Admits to the tables `admitted.{name}` and `quarantine.{name}`, read by `sweeparea sql {app}`."
                f" {quality_link(app, name)}",
                page_of("stream", app, name),
            ),
            names=[name],
        ),
    ) as dag:
        table = Asset(
            f"{app}.{name}.source",
            uri=f"x-sweeparea://{dag_prefix(app)}/source/{name}",
            group=GROUP,
            extra={"uri": source.uri},
        )
        SweepAreaOperator(
            task_id="admit",
            app=application.place,
            subject=name,
            action=TaskAction.ADMIT,
            spark=source.scheduling.spark,
            python=source.scheduling.python,
            storage=source.scheduling.storage,
            max_active_tis_per_dag=1,
            inlets=[table],
            outlets=[_lineage(app, name)],
        )
    return dag


def _query_dag(application: ApplicationDags, query: Query) -> DAG:
    app, name = application.name, query.name
    alone, cron = query.group is None, query.scheduling.cron
    # of a group nobody raises the asset: the group's DAG runs it live, this one is for backfills and by hand
    woken = alone and cron is None
    trigger = BehindTrigger(name, application.watched_text, dag_id=query_dag_id(app, name)) if woken else None
    by = "" if alone else f", run live by {group_dag_id(app, str(query.group))}"
    with DAG(
        query_dag_id(app, name),
        schedule=HeartbeatSchedule(  # pyright: ignore[reportAbstractUsage]
            assets=_wake(application, name, trigger), slice=query.slice, cron=cron if alone else None
        ),
        description=f"Continuous query over {', '.join(query.inputs)}{by}",
        **_common(
            application,
            query.scheduling,
            [app, "query"],
            _documented(query.text, query.place, _results(app, query), page_of("query", app, name)),
            names=[name],
        ),
    ) as dag:
        SweepAreaOperator(
            task_id="process",
            app=application.place,
            subject=name,
            action=TaskAction.PROCESS,
            spark=query.scheduling.spark,
            python=query.scheduling.python,
            storage=query.scheduling.storage,
            slice=query.slice,
            max_active_tis_per_dag=1,
            inlets=[_lineage(app, table) for table in query.inputs],
            outlets=[_lineage(app, name)],
        )
    return dag


def _group_dag(application: ApplicationDags, group: str, members: Sequence[Query]) -> DAG:
    """Runs what is due of several queries in one task, in the order in which they read each other."""
    app, names = application.name, [query.name for query in members]
    dag_id = group_dag_id(app, group)
    own = {name: query_dag_id(app, name) for name in names}
    cron = members[0].scheduling.cron
    trigger = GroupTrigger(own, application.watched_text, dag_id=dag_id)
    by_clock = CronTriggerTimetable(cron, timezone="UTC") if cron else None  # pyright: ignore[reportAbstractUsage]
    with DAG(
        dag_id,
        schedule=by_clock or [_wake(application, f"{group}.group", trigger)],
        description=f"Continuous queries {', '.join(names)}"[:1000],
        **_common(
            application,
            application.scheduling,
            [app, "query", "group"],
            f"Runs what is due of {len(names)} continuous queries, each after those that it reads."
            f" [How far they are]({PAGE})\n\n" + "\n".join(f"- `{name}`: DAG `{own[name]}`" for name in names),
            catchup=cron is None,
            names=names,
        ),
    ) as dag:
        SweepAreaOperator(
            task_id="process",
            app=application.place,
            subject=group,
            action=TaskAction.PROCESS_GROUP,
            spark=application.scheduling.spark,
            python=application.scheduling.python,
            storage=application.scheduling.storage,
            members=own,
            parallelism=application.parallelism,
            max_active_tis_per_dag=1,
            inlets=[],
            outlets=[AssetAlias(f"{app}.{group}")],
        )
    return dag


def _alerts_dag(application: ApplicationDags) -> DAG:
    """Says once of each name that it is too far behind the clock, and once that it is not any more."""
    app = application.name
    dag_id = alerts_dag_id(app)
    limits = "\n".join(f"- `{name}`: {timedelta(microseconds=m)}" for name, m in application.limits.items())
    with DAG(
        dag_id,
        schedule=[_wake(application, "all.alerts", BehindTrigger(ALERTS, application.watched_text, dag_id=dag_id))],
        description="Alerts of what is too far behind the clock",
        **_common(
            application,
            application.scheduling,
            [app, "alerts"],
            f"How far each may be behind the clock (`alert_after`):\n\n{limits}\n\n[How far they are]({PAGE})",
        ),
    ) as dag:
        _task_of_all(application, "alert", TaskAction.ALERT)
    return dag


def _maintenance_dag(application: ApplicationDags) -> DAG:
    app = application.name
    with DAG(
        maintenance_dag_id(app),
        schedule=application.maintenance,
        description="Packs small files, lets go what RETAIN allows, deletes old files",
        **_common(
            application,
            application.scheduling,
            [app, "maintenance"],
            "`sweeparea maintain`, beside live slices",
            catchup=False,
        ),
    ) as dag:
        _task_of_all(application, "maintain", TaskAction.MAINTAIN)
    return dag


def _task_of_all(application: ApplicationDags, task_id: str, action: TaskAction) -> None:
    """The task of a DAG that has to do with all of an application."""
    SweepAreaOperator(
        task_id=task_id,
        app=application.place,
        subject=application.name,
        action=action,
        python=application.scheduling.python,
        storage=application.scheduling.storage,
        max_active_tis_per_dag=1,
        inlets=[],
        outlets=[],
    )


def _results(app: str, query: Query) -> str:
    """Where the results of a query are, in words."""
    kept = ", ".join(f"`{table}`" for table in query.tables)
    also = f" (kept: {kept})" if kept else ""
    return f"Results in the table `{query.name}`{also}, read by `sweeparea sql {app}`. {quality_link(app, query.name)}"


def quality_link(app: str, name: str) -> str:
    """Where the verdicts of a name are shown, for a DAG's text."""
    return f"[Its quality]({quality_page(app, name)})"


def _common(
    application: ApplicationDags,
    scheduling: Scheduling,
    tags: Sequence[str],
    doc: str,
    catchup: bool = True,
    names: Sequence[str] = (),
) -> dict[str, Any]:
    """What DAGs have in common; ``names`` are those that its task commits."""
    return {
        "start_date": START,
        "catchup": catchup,
        "max_active_runs": 1,
        "is_paused_upon_creation": False,
        # made in a function: Airflow would count them as DAGs of whatever file calls it
        "auto_register": False,
        "default_args": scheduling.arguments | callbacks(application, scheduling.notify, names),
        "tags": list(dict.fromkeys((GROUP, *tags, *scheduling.tags))),
        "doc_md": doc,
    }


def _documented(text: str, place: str, tables: str, page: str) -> str:
    """What a DAG says of a stream, relation or query: its text, where that stands, its ``tables``, its page."""
    return f"`{place}`\n\n{_fenced(text)}\n\n{tables} [How it is]({page})"


def _fenced(text: str) -> str:
    """A text as a block of code, whatever is in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}sql\n{text}\n{fence}"


def _wake(application: ApplicationDags, name: str, trigger: BehindTrigger | None) -> Asset:
    """The asset that wakes a DAG; without a ``trigger`` nobody raises it."""
    app = application.name
    return Asset(
        f"{app}.{name}.wake",
        uri=f"x-sweeparea://{dag_prefix(app)}/wake/{name}",
        group=GROUP,
        watchers=[] if trigger is None else [AssetWatcher(f"{app}.{name}.behind", trigger)],
    )


def _lineage(app: str, name: str) -> Asset:
    return Asset(f"{app}.{name}", uri=lineage_uri(app, name), group=GROUP)
