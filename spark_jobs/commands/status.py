"""How far an application is: one line per stream, relation and query, from one ledger state. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime

from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.facts import facts_of
from sweeparea.spark_jobs.commands.input_status import input_line
from sweeparea.spark_jobs.commands.query_status import query_line
from sweeparea.spark_jobs.orchestration.accept import refusal_text


def status(application: Application, hidden: bool = False) -> str:
    """The report as text. ``hidden`` shows the subplans that queries share as well."""
    facts = facts_of(application, hidden)
    lines = [f"Application {facts.name}, data in {facts.data}", "", "Streams and relations"]
    lines += [f"  {each.name}: {input_line(application, each)}" for each in facts.inputs]
    lines += ["", "Continuous queries"]
    lines += [f"  {each.name}: {query_line(each)}" for each in facts.queries]
    if facts.shared:
        lines += ["", "Shared subplans"]
    for each in facts.shared:
        readers = ", ".join(facts.readers[each.name]) or "no query"
        lines.append(f"  {each.name}: {query_line(each)}; read by {readers}")
    if facts.refused:
        lines += ["", "Refused verdicts that are not over"]
    lines += [f"  {refusal_text(application, refusal)}" for refusal in facts.refused]
    if facts.alerts:
        lines += ["", "Alerts that are not over"]
    for incident in facts.alerts:
        since = datetime.fromtimestamp(incident.since / 1e6, UTC)
        lines.append(f"  since {since:%Y-%m-%d %H:%M:%S}: {incident.text}")
    return "\n".join(lines)
