"""What is measured, for Airflow's StatsD or OpenTelemetry: nothing is sent, or imported, where ``[metrics]`` is off.

Where the receiver takes tags (OpenTelemetry, Datadog, InfluxDB) a measure is ``sweeparea.<measure>`` with the tags
``application`` and ``name``; plain StatsD has none, so they stand in its path:
``sweeparea.<application>.<name>.<measure>``. Airflow's prefix comes before. ``docs/metrics.md`` lists them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sweeparea.heartbeats.lag import chronons
from sweeparea.heartbeats.minimum import INFINITE
from sweeparea.heartbeats.readiness import judge
from sweeparea.tables.publication.name_kinds import NameKind

if TYPE_CHECKING:
    from sweeparea.tables.publication.ledger import LedgerRow

log = logging.getLogger(__name__)

EVERY = 15.0
"""Seconds between two looks at how far behind everything is."""
_SINKS = ("statsd_on", "statsd_datadog_enabled", "otel_on")
_TAKE_TAGS = ("statsd_datadog_enabled", "statsd_influxdb_enabled")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
"""What does not fit in a part of a path; a dot would make two parts of one."""
_UNFIT_TAG = re.compile(r"[^A-Za-z0-9_./-]")
"""What Airflow would drop a measure for, whose tags stand in its name (InfluxDB)."""


def on() -> bool:
    """Whether Airflow sends metrics anywhere."""
    return _set(_SINKS)


def _set(options: Sequence[str]) -> bool:
    from airflow.sdk.configuration import conf

    return any(conf.getboolean("metrics", option, fallback=False) for option in options)


def _tagged() -> bool:
    return _set(_TAKE_TAGS) or not _set(("statsd_on",))


def begin() -> None:
    """Once in a process that Airflow has not made ready for what tasks send: its triggerer."""
    from airflow.sdk.configuration import conf
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    legacy = conf.getboolean("metrics", "legacy_names_on", fallback=True)
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=legacy)


def count(application: str, name: str, measure: str, by: int = 1, **tags: str) -> None:
    """Adds to a counter. Zero is sent as well, so that there is one from the first run on."""
    _send("incr", application, name, measure, by, tags)


def gauge(application: str, name: str, measure: str, value: float, **tags: str) -> None:
    """Sets a gauge."""
    _send("gauge", application, name, measure, value, tags)


def timing(application: str, name: str, measure: str, seconds: float, **tags: str) -> None:
    """A length of time."""
    _send("timing", application, name, measure, timedelta(seconds=seconds), tags)


def _send(how: str, application: str, name: str, measure: str, value: Any, tags: Mapping[str, str]) -> None:
    try:
        from airflow.sdk.observability import stats

        send: Callable[..., None] = getattr(stats, how)
        if _tagged():
            every = {"application": application, "name": name, **tags}
            send(f"sweeparea.{measure}", value, tags={key: _UNFIT_TAG.sub("_", v) for key, v in every.items()})
        else:
            parts = (application, name, measure, *tags.values())
            send(".".join(("sweeparea", *(_UNFIT.sub("_", part) for part in parts))), value)
    except Exception as error:  # a receiver that is wrong or away makes no task fail
        log.debug("The measure %s of %s.%s was not sent: %s", measure, application, name, error)


# -- what a task has done ----------------------------------------------------------------------------------------------

_COUNTED = {
    "versions": "source_versions",
    "rows": "admitted_rows",
    "quarantined": "quarantined_rows",
    "late": "late_rows",
    "slices": "slices",
    "rows_in": "read_rows",
    "rows_out": "written_rows",
}
"""Numbers of a job's report and the counters that they are added to."""


def send_report(application: str, name: str, report: Mapping[str, Any]) -> None:
    """What a job that has ended well says of a name."""
    for key, measure in _COUNTED.items():
        number = report.get(key)
        if isinstance(number, Mapping):  # by reason
            number = sum(number.values())
        if isinstance(number, int):
            count(application, name, measure, number)
    for phase, seconds in (report.get("phases") or {}).items():
        timing(application, name, "slice_time", seconds, phase=phase)
    if isinstance(report.get("seconds"), int | float):
        timing(application, name, "run_time", report["seconds"])


def send_failure(application: str, name: str) -> None:
    """An attempt of a task has failed."""
    count(application, name, "failures")


# -- how far behind everything is --------------------------------------------------------------------------------------


def distances(
    head: Mapping[str, LedgerRow], queries: Mapping[str, Sequence[str]], now: int
) -> Iterator[tuple[str, str, float]]:
    """(name, measure, seconds) of all that have an instant of the clock, at ``now`` (microseconds since the epoch).

    ``heartbeat_age`` of streams and relations, ``lag`` of queries: until now; ``behind``: a query's distance from its
    inputs' heartbeats. ``queries`` are names with those of their inputs.
    """
    ticks = chronons(head, queries)
    for name, row in head.items():
        chronon = 1 if row.kind == NameKind.RELATION else ticks.get(name)
        if row.committed is None or row.committed == INFINITE or not chronon or not ticks.get(name):
            continue
        if row.kind != NameKind.QUERY:
            yield name, "heartbeat_age", (now - row.committed * chronon) / 1e6
        elif name in queries:
            yield name, "lag", (now - row.committed * chronon) / 1e6
    for name, state in judge(head, {name: inputs for name, inputs in queries.items() if name in head}).items():
        chronon = ticks.get(name)
        if chronon and state.ready is not None and state.done is not None and state.ready != INFINITE:
            yield name, "behind", max(0, state.ready - state.done) * chronon / 1e6


def send_distances(
    application: str, head: Mapping[str, LedgerRow], queries: Mapping[str, Sequence[str]], now: int
) -> None:
    """Sends them as gauges, in seconds."""
    for name, measure, seconds in distances(head, queries, now):
        gauge(application, name, f"{measure}_seconds", seconds)
