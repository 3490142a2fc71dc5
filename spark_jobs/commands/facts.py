"""What there is to say of an application, gathered once for all that shows it: ``status``, its JSON, metrics. No Spark.

One ledger state, so that what is told of two names fits together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.input_status import InputFacts, input_facts
from sweeparea.spark_jobs.commands.query_status import QueryFacts, query_facts
from sweeparea.spark_jobs.deployment.planned import readers_of
from sweeparea.spark_jobs.orchestration.accept import Refusal, refusals
from sweeparea.tables.publication.incidents import Incident, Incidents
from sweeparea.tables.publication.ledger import now_micros


@dataclass(frozen=True)
class ApplicationFacts:
    """``at``: when it was looked at, in microseconds since the epoch (UTC). ``shared``: hidden queries, where they were
    asked for, with the queries that read each of them in ``readers``. ``alerts``: those that are not over;
    ``refused``: verdicts that were refused, until their name has run well or somebody accepts them.
    """

    name: str
    data: str
    at: int
    inputs: tuple[InputFacts, ...]
    queries: tuple[QueryFacts, ...]
    shared: tuple[QueryFacts, ...] = ()
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    alerts: tuple[Incident, ...] = ()
    refused: tuple[Refusal, ...] = ()


def facts_of(application: Application, hidden: bool = False) -> ApplicationFacts:
    """Gathers the facts. ``hidden``: also of the subplans that queries share."""
    head = application.ledger.head()
    deployed = application.registry.deployed.rows()
    shared = sorted({n for n in (*deployed, *head) if is_hidden(n)}) if hidden else []
    catalog = application.catalog
    alerts = Incidents(str(application.data)).open().values()
    return ApplicationFacts(
        application.name,
        str(application.data),
        now_micros(),
        tuple(input_facts(application, name, head.get(name)) for name in [*catalog.streams, *catalog.relations]),
        tuple(query_facts(application, name, head) for name in catalog.queries),
        tuple(query_facts(application, name, head) for name in shared),
        {name: tuple(readers_of(deployed, name)) for name in shared},
        tuple(sorted(alerts, key=lambda one: (one.since, one.name))),
        tuple(refusals(application, head).values()),
    )
