"""DAGs from an application: one per stream or relation, one per continuous query, one for maintenance.

Each DAG is woken by an asset of its own, which a watcher in Airflow's triggerer raises while the stream or query is
behind. A second asset per stream and query, which nothing is scheduled on, draws the lineage graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher

from sweeparea.dags.model import ApplicationDags, Query, Source
from sweeparea.dags.operator import SweepAreaOperator, TaskAction
from sweeparea.dags.scheduling import Scheduling
from sweeparea.dags.timetables import HeartbeatSchedule
from sweeparea.heartbeats.trigger import BehindTrigger
from sweeparea.infra.dag_names import admit_dag_id, dag_prefix, maintenance_dag_id, query_dag_id

START = datetime(1900, 1, 1, tzinfo=UTC)
"""Before any instant that someone may want to backfill; live runs have no date."""
GROUP = "sweeparea"
PAGE = "/plugin/continuous-queries"
"""The page of ``plugins/sweeparea_plugin.py`` in Airflow's UI."""


def build(application: ApplicationDags) -> list[DAG]:
    """All DAGs of an application."""
    dags = [_admit_dag(application, source) for source in application.sources.values()]
    dags += [_query_dag(application, query) for query in application.queries.values()]
    return [*dags, _maintenance_dag(application)]


def _admit_dag(application: ApplicationDags, source: Source) -> DAG:
    app, name = application.name, source.name
    with DAG(
        admit_dag_id(app, name),
        schedule=[_wake(application, name, admit_dag_id(app, name))],
        description=f"Copies {name} once"
        if source.static
        else f"Admits what is new for {name} and moves its heartbeat",
        **_common(
            source.scheduling,
            [app, source.kind.value],
            source.text,
            source.place,
            f"Admits to the tables `admitted.{name}` and `quarantine.{name}`, read by `sweeparea sql {app}`.",
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
            app=app,
            subject=name,
            action=TaskAction.ADMIT,
            max_active_tis_per_dag=1,
            inlets=[table],
            outlets=[_lineage(app, name)],
        )
    return dag


def _query_dag(application: ApplicationDags, query: Query) -> DAG:
    app, name = application.name, query.name
    with DAG(
        query_dag_id(app, name),
        schedule=HeartbeatSchedule(assets=_wake(application, name, query_dag_id(app, name)), slice=query.slice),  # pyright: ignore[reportAbstractUsage]
        description=f"Continuous query over {', '.join(query.inputs)}",
        **_common(query.scheduling, [app, "query"], query.text, query.place, _results(app, query)),
    ) as dag:
        SweepAreaOperator(
            task_id="process",
            app=app,
            subject=name,
            action=TaskAction.PROCESS,
            slice=query.slice,
            max_active_tis_per_dag=1,
            inlets=[_lineage(app, table) for table in query.inputs],
            outlets=[_lineage(app, name)],
        )
    return dag


def _maintenance_dag(application: ApplicationDags) -> DAG:
    app = application.name
    with DAG(
        maintenance_dag_id(app),
        schedule=application.maintenance,
        description="Packs small files, lets go what RETAIN allows, deletes old files",
        **{
            **_common(application.scheduling, [app, "maintenance"], "", "", ""),
            "catchup": False,
            "doc_md": "`sweeparea maintain`, beside live slices",
        },
    ) as dag:
        SweepAreaOperator(
            task_id="maintain",
            app=app,
            subject=app,
            action=TaskAction.MAINTAIN,
            max_active_tis_per_dag=1,
            inlets=[],
            outlets=[],
        )
    return dag


def _results(app: str, query: Query) -> str:
    """Where the results of a query are, in words."""
    kept = ", ".join(f"`{table}`" for table in query.tables)
    also = f" (kept: {kept})" if kept else ""
    return f"Results in the table `{query.name}`{also}, read by `sweeparea sql {app}`."


def _common(scheduling: Scheduling, tags: Sequence[str], text: str, place: str, tables: str) -> dict[str, Any]:
    return {
        "start_date": START,
        "catchup": True,
        "max_active_runs": 1,
        "is_paused_upon_creation": False,
        # made in a function: Airflow would count them as DAGs of whatever file calls it
        "auto_register": False,
        "default_args": scheduling.arguments,
        "tags": list(dict.fromkeys((GROUP, *tags, *scheduling.tags))),
        "doc_md": f"`{place}`\n\n{_fenced(text)}\n\n{tables} [How far it is]({PAGE})",
    }


def _fenced(text: str) -> str:
    """A text as a block of code, whatever is in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}sql\n{text}\n{fence}"


def _wake(application: ApplicationDags, name: str, dag_id: str) -> Asset:
    app = application.name
    trigger = BehindTrigger(name, application.watched(), dag_id=dag_id)
    return Asset(
        f"{app}.{name}.wake",
        uri=f"x-sweeparea://{dag_prefix(app)}/wake/{name}",
        group=GROUP,
        watchers=[AssetWatcher(f"{app}.{name}.behind", trigger)],
    )


def _lineage(app: str, name: str) -> Asset:
    return Asset(f"{app}.{name}", uri=f"x-sweeparea://{dag_prefix(app)}/table/{name}", group=GROUP)
