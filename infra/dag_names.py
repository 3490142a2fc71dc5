"""What Airflow calls an application and its DAGs, and which names it does not take.

Airflow wants ids of letters, digits, ``_``, ``-`` and ``.`` (and other characters than ASCII nowhere in assets), at
most 250 of them, and tags of at most 100. An application's folder may be called otherwise: then the commands run it,
and Airflow cannot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_ID = 250
LONGEST_TAG = 100
_FIT = re.compile(r"[A-Za-z0-9_.-]+")


def application_name(application: str) -> str:
    """The name of an application that is named by its folder: ``shop@dev`` of ``/opt/shop@dev``."""
    return application.rpartition("/")[2]


def dag_prefix(application: str) -> str:
    """What the ids of an application's DAGs begin with: its name, as ``shop.dev`` where it is ``shop@dev``."""
    return application_name(application).replace("@", ".")


def admit_dag_id(application: str, source: str) -> str:
    """The DAG that admits a stream or a relation."""
    return f"{dag_prefix(application)}__admit_{source}"


def query_dag_id(application: str, query: str) -> str:
    """The DAG of a continuous query."""
    return f"{dag_prefix(application)}__{query}"


def group_dag_id(application: str, group: str) -> str:
    """The DAG that runs the queries of a group (``WITH (dag = 'hourly')``) together."""
    return f"{dag_prefix(application)}__{group}"


def alerts_dag_id(application: str) -> str:
    """The DAG that alerts of what is too far behind the clock."""
    return f"{dag_prefix(application)}__alerts"


def maintenance_dag_id(application: str) -> str:
    """The DAG that maintains an application's tables."""
    return f"{dag_prefix(application)}__maintenance"


def lineage_uri(application: str, name: str) -> str:
    """The asset of a stream, relation or query in Airflow's graph."""
    return f"x-sweeparea://{dag_prefix(application)}/table/{name}"


def faults(
    application: str, sources: Iterable[str], queries: Iterable[str], groups: Iterable[str] = (), alerts: bool = False
) -> list[str]:
    """Why Airflow cannot have the DAGs of an application, a sentence each; none: it can. ``groups`` are the names that
    its queries give as ``dag``; ``alerts``: it has a DAG that alerts.

    >>> faults("shop", ["orders"], ["sales"])
    []
    >>> print(*faults("my shop", [], []))
    Airflow takes names of ASCII letters, digits, _, - and . only, and the folder of the application 'my shop' has \
others: rename the folder.
    """
    prefix = dag_prefix(application)
    if not _FIT.fullmatch(prefix):
        return [
            "Airflow takes names of ASCII letters, digits, _, - and . only, and the folder of the application"
            f" {application!r} has others: rename the folder."
        ]
    if len(prefix) > LONGEST_TAG:
        return [
            f"The name of the application {application} has {len(prefix)} characters, and a tag of Airflow's at most"
            f" {LONGEST_TAG}: rename the folder."
        ]
    made: dict[str, str] = {}
    found = []
    wanted = [
        (maintenance_dag_id(application), "its maintenance", ""),
        *([(alerts_dag_id(application), "its alerts", "")] if alerts else []),
        *((admit_dag_id(application, s), f"the admission of {s}", "") for s in sources),
        *((query_dag_id(application, q), f"the continuous query {q}", "the query") for q in queries),
        *((group_dag_id(application, g), f"dag = {g!r} of its queries", "the group: dag = '..'") for g in groups),
    ]
    for id_, what, rename in wanted:
        if id_ in made:
            found.append(
                f"In the application {application} {what} would get the same DAG as {made[id_]}. Rename {rename}."
            )
        elif len(id_) > LONGEST_ID:
            found.append(
                f"The id of a DAG of Airflow's has at most {LONGEST_ID} characters, and that of {what} of the"
                f" application {application} would have {len(id_)}: give it a shorter name."
            )
        made.setdefault(id_, what)
    return found
