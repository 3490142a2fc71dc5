"""Airflow's plugin: the timetable of queries, and the page of ``dags/page`` behind Airflow's login and permissions."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, cast

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dag import DagModel
from airflow.plugins_manager import AirflowPlugin
from airflow.utils.session import create_session
from sqlalchemy import select

from sweeparea.dags.page.routes import make_app
from sweeparea.dags.timetables import HeartbeatSchedule


class AirflowAccess:
    """Users and permissions are those of Airflow's auth manager."""

    @property
    def user(self) -> Callable[..., Any]:
        return get_user

    def allowed(self, user: Any, dag_ids: Set[str], method: str) -> set[str]:
        manager, how = get_auth_manager(), cast(Any, method)
        found = manager.get_authorized_dag_ids(user=user, method=how) & dag_ids
        # a DAG that Airflow does not have belongs to no team: whoever may see all DAGs may see that it is gone
        missing = set(dag_ids) - found
        return found | manager.filter_authorized_dag_ids(dag_ids=missing - _known(missing), user=user, method=how)

    def may_run(self, user: Any, dag_ids: Set[str]) -> set[str]:
        manager, run = get_auth_manager(), DagAccessEntity.RUN
        return {
            dag_id
            for dag_id in dag_ids
            if manager.is_authorized_dag(method="POST", access_entity=run, details=DagDetails(id=dag_id), user=user)
        }


def _known(dag_ids: Set[str]) -> set[str]:
    if not dag_ids:
        return set()
    with create_session() as session:
        return set(session.scalars(select(DagModel.dag_id).where(DagModel.dag_id.in_(dag_ids))))


app = make_app(AirflowAccess())


class SweepAreaPlugin(AirflowPlugin):
    """Registers the timetable, the page, and a place for it in the navigation and on every DAG."""

    name = "sweeparea"
    timetables = [HeartbeatSchedule]  # noqa: RUF012 -- Airflow's interface
    fastapi_apps = [{"app": app, "url_prefix": "/sweeparea", "name": "SweepArea"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {
            "name": "Continuous queries",
            "href": "/sweeparea/",
            "destination": "nav",
            "category": "browse",
            "url_route": "continuous-queries",
        },
        {
            "name": "Continuous query",
            "href": "/sweeparea/?dag={DAG_ID}",
            "destination": "dag",
            "url_route": "continuous-query",
        },
    ]
