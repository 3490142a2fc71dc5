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


def dag_prefix(application: str) -> str:
    """What the ids of an application's DAGs begin with: its name, as ``shop.dev`` where it is ``shop@dev``."""
    return application.replace("@", ".")


def admit_dag_id(application: str, source: str) -> str:
    """The DAG that admits a stream or a relation."""
    return f"{dag_prefix(application)}__admit_{source}"


def query_dag_id(application: str, query: str) -> str:
    """The DAG of a continuous query."""
    return f"{dag_prefix(application)}__{query}"


def maintenance_dag_id(application: str) -> str:
    """The DAG that maintains an application's tables."""
    return f"{dag_prefix(application)}__maintenance"


def faults(application: str, sources: Iterable[str], queries: Iterable[str]) -> list[str]:
    """Why Airflow cannot have the DAGs of an application, a sentence each; none: it can.

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
    sources, queries = list(sources), list(queries)
    ids = {**{query_dag_id(application, q): f"the continuous query {q}" for q in queries}}
    found = []
    for query in queries:
        if query_dag_id(application, query) == maintenance_dag_id(application):
            found.append(
                f"The continuous query {query} of the application {application} would get the same DAG as its"
                " maintenance. Rename the query."
            )
    for source in sources:
        if admit_dag_id(application, source) in ids:
            found.append(
                f"The continuous query admit_{source} of the application {application} would get the same DAG as the"
                f" admission of {source}. Rename the query."
            )
        ids[admit_dag_id(application, source)] = f"the admission of {source}"
    found += [
        f"The id of a DAG of Airflow's has at most {LONGEST_ID} characters, and that of {what} of the application"
        f" {application} would have {len(id_)}: give it a shorter name."
        for id_, what in ids.items()
        if len(id_) > LONGEST_ID
    ]
    return found
