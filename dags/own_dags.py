"""``application_dags``: the DAGs of one application, for a file in the DAGs folder of any Airflow."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from sweeparea.dags.scheduling import OVERRIDABLE
from sweeparea.infra.dag_names import dag_prefix
from sweeparea.infra.errors import UsageError

if TYPE_CHECKING:
    from airflow.sdk import DAG


def application_dags(application: str | PathLike[str], *, env: str | None = None, **settings: Any) -> dict[str, DAG]:
    """The DAGs of an application by their ids, for ``globals().update(application_dags('/opt/shop'))``.

    ``application`` is its folder of ``.cql`` files, by an absolute path that is the same wherever tasks run (or the
    name of one under ``queries/`` of SWEEPAREA_HOME); ``env`` an environment of its ``sweeparea.toml``. ``settings``
    are those of ``OVERRIDABLE``, and stand in for SET of the files: ``spark='spark_prod', retries=5``.

    Raises a SweepAreaError where the files are wrong, which Airflow shows as the import error of the DAG file. In a
    task of another application it returns nothing, since that needs none of these.
    """
    from airflow.sdk import get_parsing_context

    from sweeparea.dags.factory import build
    from sweeparea.dags.model import load

    given = fspath(application)
    if not given.startswith("/") and any(mark in given for mark in "/~"):
        raise UsageError(
            f"application_dags({given!r}): give an absolute path, since Airflow's processes work in several folders:"
            " Path(__file__).parent / 'shop' names a folder beside the DAG file."
        )
    place = given.rstrip("/") if env is None else f"{given.rstrip('/')}@{env}"
    overriding = checked({name: str(value) for name, value in settings.items() if value is not None})
    wanted = get_parsing_context().dag_id
    if wanted is not None and not wanted.startswith(f"{dag_prefix(place)}__"):
        return {}
    return {dag.dag_id: dag for dag in build(load(place, overriding))}


def checked(settings: dict[str, str]) -> dict[str, str]:
    """Settings of DAGs as they are. UsageError for one that is none, or a value that it does not take."""
    from sweeparea.cql.syntax.settings import fault_of

    for name, value in settings.items():
        if name not in OVERRIDABLE:
            raise UsageError(
                f"application_dags: {name} is no setting of DAGs. There are {', '.join(sorted(OVERRIDABLE))}; others"
                " belong in the files, or in an environment of sweeparea.toml, where jobs find them too."
            )
        if fault := fault_of(name, value, None):
            raise UsageError(f"application_dags: {fault}")
    return settings
