"""What applications' ledgers say, as metrics of Prometheus: ``sweeparea metrics``. No Spark, nothing listens.

Names and labels are described in ``docs/metrics.md`` and stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from sweeparea.infra.errors import UsageError
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.facts import ApplicationFacts
from sweeparea.spark_jobs.commands.input_status import InputFacts
from sweeparea.spark_jobs.commands.prometheus_text import Metric
from sweeparea.spark_jobs.commands.query_status import QueryFacts
from sweeparea.spark_jobs.commands.status_json import (
    InputState,
    QueryState,
    age,
    clock_text,
    input_state,
    query_state,
    warnings_of,
)
from sweeparea.tables.publication.ledger import LedgerRow

HELP = {
    "up": "1 if the application's files and tables could be read, else 0.",
    "alerts": "Alerts that are not over.",
    "input_state": "1 for the state that a stream or relation is in, 0 for all others.",
    "heartbeat_timestamp_seconds": "Heartbeat of a stream or relation, seconds since 1970 UTC.",
    "heartbeat_age_seconds": "Time from the heartbeat of a stream or relation until it was looked at.",
    "source_version": "Last version of the source table that was admitted.",
    "source_newest_version": "Newest version of the source table.",
    "admitted_rows": "Rows in the table of admitted rows.",
    "quarantined_rows": "Rows in quarantine.",
    "input_events_total": "What has happened to rows and heartbeats of a stream or relation over its life.",
    "query_state": "1 for the state that a continuous query is in, 0 for all others.",
    "query_paused": "1 while a continuous query is paused.",
    "committed_timestamp_seconds": "Instant up to which results are final, seconds since 1970 UTC.",
    "lag_seconds": "Time from the committed instant until it was looked at.",
    "behind_seconds": "By how much the heartbeats of the inputs are ahead of the committed instant.",
    "behind_ticks": "As behind_seconds, in ticks: of time that is BIGINT as well.",
    "slice_seconds": "Seconds of the last slice, by phase.",
    "slice_read_rows": "Rows that the last slice read, about.",
    "slice_written_rows": "Rows that the last slice wrote, by table.",
    "state_rows": "Rows in a SweepArea.",
    "state_bytes": "Bytes of a SweepArea's files.",
    "verdict_warnings": "Rows of the last slice that break a check which only warns.",
    "commits_total": "Commits of a name.",
    "last_commit_timestamp_seconds": "When a name was last committed, seconds since 1970 UTC.",
}
COUNTERS = ("input_events_total", "commits_total")


class Exposed:
    """The metrics of several applications, each with all of its samples together, as the format wants it."""

    def __init__(self) -> None:
        self.metrics = {
            name: Metric(f"sweeparea_{name}", text, "counter" if name in COUNTERS else "gauge")
            for name, text in HELP.items()
        }
        self._seen: dict[str, str] = {}

    def reserve(self, application: Application) -> bool:
        """Takes an application's name, which tells its samples apart; False if it is there already. UsageError where
        another one has it.
        """
        other = self._seen.get(application.name)
        if other is not None and other != str(application.data):
            raise UsageError(
                f"Two of these applications are called {application.name} (data in {other} and in {application.data}),"
                " so their metrics could not be told apart. Rename the folder of one."
            )
        self._seen[application.name] = str(application.data)
        return other is None

    def down(self, application: str) -> None:
        """An application that cannot be read. What was told of its name before stays."""
        if not any(labels["application"] == application for labels, _ in self.metrics["up"].samples):
            self.metrics["up"].add(0, application=application)

    def add(self, facts: ApplicationFacts) -> None:
        """The samples of an application."""
        name = facts.name
        self.metrics["up"].add(1, application=name)
        self.metrics["alerts"].add(len(facts.alerts), application=name)
        for each in facts.inputs:
            labels = {"application": name, "name": each.name}
            self._of_input(each, facts.at, labels)
            self._commit(each.row, {**labels, "kind": each.kind.value})
        for each in facts.queries:
            self._of_query(each, facts.at, {"application": name, "query": each.name})
            self._commit(each.row, {"application": name, "name": each.name, "kind": "query"})

    def _of_input(self, facts: InputFacts, at: int, labels: Mapping[str, str]) -> None:
        self._state("input_state", InputState, input_state(facts), labels)
        row = facts.row
        if row is None:
            return
        add = self.metrics
        tick = None if facts.static else row.committed
        add["heartbeat_timestamp_seconds"].add(_seconds(facts.time, tick), **labels)
        add["heartbeat_age_seconds"].add(age(facts.time, tick, at), **labels)
        add["source_version"].add(row.of_source.source_version, **labels)
        add["source_newest_version"].add(facts.newest, **labels)
        if not (facts.unreadable or facts.stopped):
            add["admitted_rows"].add(facts.rows, **labels)
            add["quarantined_rows"].add(facts.kept_out, **labels)
        for event, count in (row.of_source.totals or {}).items():
            add["input_events_total"].add(count, **labels, event=event)

    def _of_query(self, facts: QueryFacts, at: int, labels: Mapping[str, str]) -> None:
        self._state("query_state", QueryState, query_state(facts), labels)
        add, row = self.metrics, facts.row
        add["query_paused"].add(int(facts.paused), **labels)
        if row is None:
            return
        info, known = row.of_query, bool(facts.heartbeats)  # else its plan, and so what a tick is, is not known
        if known:
            add["committed_timestamp_seconds"].add(_seconds(facts.time, facts.done), **labels)
            add["lag_seconds"].add(age(facts.time, facts.done, at), **labels)
        if known and facts.ready is not None and facts.done is not None:
            add["behind_ticks"].add(facts.behind, **labels)
            if facts.time.clock:
                add["behind_seconds"].add(facts.behind * facts.time.chronon / 1e6, **labels)
        for phase, seconds in (info.seconds or {}).items():
            add["slice_seconds"].add(seconds, **labels, phase=phase)
        add["slice_read_rows"].add(info.rows_in, **labels)
        for table, rows in (info.rows or {}).items():
            add["slice_written_rows"].add(rows, **labels, table=table)
        for area, rows in info.state.rows.items():
            add["state_rows"].add(rows, **labels, area=area)
            add["state_bytes"].add(info.state.bytes.get(area, 0), **labels, area=area)
        for check, rows in warnings_of(info.verdicts).items():
            add["verdict_warnings"].add(rows, **labels, check=check)

    def _state(self, metric: str, states: type[StrEnum], state: StrEnum, labels: Mapping[str, str]) -> None:
        for each in states:
            self.metrics[metric].add(int(each == state), **labels, state=each.value)

    def _commit(self, row: LedgerRow | None, labels: Mapping[str, str]) -> None:
        if row is not None:
            self.metrics["commits_total"].add(row.seq, **labels)
            self.metrics["last_commit_timestamp_seconds"].add(row.at / 1e6, **labels)


def required_data(application: Application) -> None:
    """UsageError where the data folder is not there: what it held is not known then, rather than nothing."""
    folder = application.data
    if isinstance(folder, Path) and not folder.is_dir():
        raise UsageError(
            f"Application {application.name} has no data folder {folder}: nothing was admitted there yet, or it is not"
            f" mounted. Run `{application.command('admit')}`, or name the folder that has its tables by --data."
        )


def _seconds(time: TimeDomain | None, tick: int | None) -> float | None:
    if time is None or tick is None or not time.clock or clock_text(tick * time.chronon) is None:
        return None
    return tick * time.chronon / 1e6
