"""One stream, relation or query in full: its text, slices or admissions, state, what holds it back."""

from __future__ import annotations

from collections.abc import Sequence

from sweeparea.cql.explain.graph import as_graph
from sweeparea.dags.page.commits import admits, slices
from sweeparea.dags.page.moments import Json, tick_micros
from sweeparea.dags.page.state import Facts, Overview
from sweeparea.dags.page.tables import names_of
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.input_status import input_facts, input_line
from sweeparea.spark_jobs.commands.query_status import query_facts, query_line
from sweeparea.tables.publication.ledger import LedgerRow

SLICES = 120
"""Commits that a chart shows."""


def query(facts: Facts, application: Application, name: str) -> Json:
    """A continuous query."""
    overview, row = Overview(facts), facts.head.get(name)
    declared = facts.dags.queries[name]
    chronon = overview.chronons.get(name)
    return {
        **overview.query(name),
        "text": declared.text,
        "place": declared.place,
        "held_back": overview.held_back(name),
        "status": query_line(query_facts(application, name, dict(facts.head))),
        "slices": slices(_commits(application, row), chronon),
        "areas": _areas(row),
        "tables": names_of(application.ledger, name),
        "readers": [other for other, query in facts.dags.queries.items() if name in query.inputs],
        "clock": chronon != 0,
    }


def stream(facts: Facts, application: Application, name: str) -> Json:
    """A stream or relation."""
    overview, row = Overview(facts), facts.head.get(name)
    source = facts.dags.sources[name]
    return {
        **overview.stream(name),
        "text": source.text,
        "place": source.place,
        "uri": source.uri,
        "status": input_line(application, input_facts(application, name, row)),
        "admits": admits(_commits(application, row), tick_micros(row, overview.chronons.get(name))),
        "manual": is_manual(application, name),
        "readers": [query for query, declared in facts.dags.queries.items() if name in declared.inputs],
        "clock": overview.chronons.get(name) != 0,
    }


def plan(application: Application, name: str) -> Json:
    """How a query is run, as a picture's parts."""
    return as_graph(application.plans.plan(name), application.unchanging())


def is_manual(application: Application, name: str) -> bool:
    """Whether a person moves the heartbeat of a stream or relation."""
    from sweeparea.cql.syntax.statements import HeartbeatKind

    declared = application.source(name).heartbeat
    return declared is not None and declared.kind == HeartbeatKind.MANUAL


def _commits(application: Application, row: LedgerRow | None) -> Sequence[LedgerRow]:
    """The last commits of a name, the one that stands included."""
    if row is None:
        return []
    found = application.ledger.history(row.name, after=row.seq - SLICES)
    own = [each for each in found if each.registration == row.registration]
    return [*own, row] if not any(each.seq == row.seq for each in own) else own


def _areas(row: LedgerRow | None) -> list[Json]:
    """The SweepAreas: rows and bytes, how many rows count, what the last slice wrote, the key."""
    if row is None:
        return []
    state = row.of_query.state
    found = []
    for op in state.rows:
        area = state[op]
        keys = list(area.keys) if area.keys else []
        found.append(
            {"op": op, "rows": area.rows, "bytes": area.bytes, "live": area.live, "touched": area.touched, "keys": keys}
        )
    return found
