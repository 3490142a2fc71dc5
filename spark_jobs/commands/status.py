"""How far an application is: one line per stream, relation and query, from one ledger state. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.input_status import input_line
from sweeparea.spark_jobs.commands.query_status import query_line
from sweeparea.spark_jobs.deployment.planned import readers_of
from sweeparea.tables.publication.incidents import Incidents


def status(application: Application, hidden: bool = False) -> str:
    """The report as text. ``hidden`` shows the subplans that queries share as well."""
    head = application.ledger.head()
    lines = [f"Application {application.name}, data in {application.data}", "", "Streams and relations"]
    for name in [*application.catalog.streams, *application.catalog.relations]:
        lines.append(f"  {name}: {input_line(application, name, head.get(name))}")
    lines += ["", "Continuous queries"]
    for name in application.catalog.queries:
        lines.append(f"  {name}: {query_line(application, name, head)}")
    shared = sorted({n for n in (*application.registry.deployed.rows(), *head) if is_hidden(n)}) if hidden else []
    if shared:
        lines += ["", "Shared subplans"]
    for name in shared:
        readers = ", ".join(readers_of(application.registry.deployed.rows(), name)) or "no query"
        lines.append(f"  {name}: {query_line(application, name, head)}; read by {readers}")
    incidents = Incidents(str(application.data)).open()
    if incidents:
        lines += ["", "Alerts that are not over"]
    for incident in sorted(incidents.values(), key=lambda one: (one.since, one.name)):
        since = datetime.fromtimestamp(incident.since / 1e6, UTC)
        lines.append(f"  since {since:%Y-%m-%d %H:%M:%S}: {incident.text}")
    return "\n".join(lines)
