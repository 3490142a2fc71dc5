"""How all streams and queries of an application are, from one reading of its ledger: what the overview shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.dags.model import ApplicationDags, Query, Source
from sweeparea.dags.page.commits import PastCommit, trend
from sweeparea.dags.page.holding import holding, words_of_length
from sweeparea.dags.page.looks import Look
from sweeparea.dags.page.moments import Json, heartbeat, length, of_clock, of_tick, tick_micros
from sweeparea.heartbeats.lag import LAG, Lag, chronons, lags
from sweeparea.heartbeats.policies import MAX_TICK
from sweeparea.heartbeats.readiness import Ready, judge
from sweeparea.infra.dag_names import admit_dag_id, group_dag_id, query_dag_id
from sweeparea.tables.publication.deployed import DeployedRow
from sweeparea.tables.publication.incidents import Incident
from sweeparea.tables.publication.ledger import LedgerRow


@dataclass(frozen=True)
class Facts:
    """What is known of an application at ``now`` (microseconds since the epoch): its ledger, what is deployed, open
    incidents, looks at files, last commits.
    """

    dags: ApplicationDags
    head: Mapping[str, LedgerRow]
    deployed: Mapping[str, DeployedRow]
    incidents: Mapping[str, Incident]
    looks: Mapping[str, Look]
    commits: Mapping[str, Sequence[PastCommit]]
    now: int

    @property
    def inputs(self) -> dict[str, list[str]]:
        return {name: list(query.inputs) for name, query in self.dags.queries.items()}


class Overview:
    """Streams and queries as plain data for the page."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.positions = judge(facts.head, facts.inputs)
        self.chronons = chronons(facts.head, facts.inputs)
        names = [*(n for n, source in facts.dags.sources.items() if not source.static), *facts.dags.queries]
        running = {name: replace(row, paused=False) for name, row in facts.deployed.items()}
        self.lags = lags(dict.fromkeys(names, MAX_TICK), facts.head, running, facts.inputs, facts.now)

    def stream(self, name: str) -> Json:
        """A stream or relation."""
        facts, source = self.facts, self.facts.dags.sources[name]
        row, look = facts.head.get(name), facts.looks.get(name, Look())
        micros = tick_micros(row, self.chronons.get(name))
        version = None if row is None else row.of_source.source_version
        totals = dict(row.of_source.totals or {}) if row is not None else {}
        return {
            "name": name,
            "app": facts.dags.name,
            "dag": admit_dag_id(facts.dags.name, name),
            "kind": source.kind.value,
            "static": source.static,
            "heartbeat": heartbeat(row, self.chronons.get(name)),
            "lag": _lag(self.lags.get(name)),
            "trend": trend(facts.commits.get(name, ()), micros),
            "version": version,
            "newest": look.newest,
            "admitted": look.admitted if look.admitted is not None else totals.get("rows"),
            "late": totals.get("late", 0),
            "quarantined": look.kept_out,
            "remembered": look.remembered,
            "totals": totals,
            "at": of_clock(row.at if row else None),
            "states": self._stream_states(source, row, look),
        }

    def query(self, name: str) -> Json:
        """A continuous query."""
        facts, query = self.facts, self.facts.dags.queries[name]
        row, position, chronon = facts.head.get(name), self.positions[name], self.chronons.get(name)
        info = None if row is None else row.of_query
        behind = None
        if position.done is not None and position.ready is not None:
            behind = length(max(0, position.ready - position.done), chronon)
        group = query.group
        return {
            "name": name,
            "app": facts.dags.name,
            "dag": query_dag_id(facts.dags.name, name),
            "group": None if group is None else group_dag_id(facts.dags.name, group),
            "inputs": list(query.inputs),
            "committed": of_tick(position.done, chronon),
            "ready": None if position.ready is None or position.ready >= MAX_TICK else of_tick(position.ready, chronon),
            "behind": behind,
            "lag": _lag(self.lags.get(name)),
            "trend": trend(facts.commits.get(name, ()), chronon),
            "at": of_clock(row.at if row else None),
            "phases": dict(info.seconds or {}) if info else {},
            "seconds": None if info is None else round(sum((info.seconds or {}).values()), 3),
            "rows": dict(info.rows or {}) if info else {},
            "state_rows": sum(info.state.rows.values()) if info else None,
            "state_bytes": sum(info.state.bytes.values()) if info else None,
            "checks": sum(v.get("checks", 0) for v in (info.verdicts or ())) if info else 0,
            "warnings": _warnings(row),
            "paused": (deployed := facts.deployed.get(name)) is not None and deployed.paused,
            "states": self._query_states(query, row, position, facts.looks.get(name, Look())),
        }

    def held_back(self, name: str) -> list[str]:
        """Why a query is where it is, in sentences, from the query down to its sources."""
        return holding(name, self.facts.dags, self.facts.head, self.positions, self.chronons, self.facts.looks)

    def _stream_states(self, source: Source, row: LedgerRow | None, look: Look) -> list[Json]:
        found = _broken(look)
        if look.lost:
            found.append(_state("lost", look.lost))
        found += self._incidents(source.name, admit_dag_id(self.facts.dags.name, source.name))
        version = None if row is None else row.of_source.source_version
        if row is None:
            found.append(_state("never", "It was not admitted yet."))
        elif look.newest is not None and not source.static and look.newest > (version or 0):
            count = look.newest - (version or 0)
            found.append(
                _state("behind", f"{count} version{'s' * (count > 1)} of its source {_are(count)} to be admitted.")
            )
        elif row.committed is None:
            found.append(_state("waiting", "No row has given it a heartbeat yet."))
        return found or [_state("static" if source.static else "current", "")]

    def _query_states(self, query: Query, row: LedgerRow | None, position: Ready, look: Look) -> list[Json]:
        facts, name = self.facts, query.name
        found = _broken(look)
        found += self._incidents(name, query_dag_id(facts.dags.name, name))
        if position.corrected is not None:
            found.append(_state("repairing", "An input was corrected; its next run repairs the results."))
        if warnings := _warnings(row):
            told = ", ".join(f"{check} ({count})" for check, count in warnings.items())
            found.append(_state("warned", f"The last slice's verdict has warnings: {told}."))
        deployed = facts.deployed.get(name)
        if deployed is not None and deployed.paused:
            found.append(_state("paused", "PAUSE CONTINUOUS QUERY stopped it; resume lets it go on."))
        if position.done is None:
            found.append(_state("never", "It has never run."))
        chronon, sentence = self.chronons.get(name), next(iter(self.held_back(name)), "")
        if position.ready is None:
            found.append(_state("waiting", sentence))
        elif position.is_ready and position.corrected is None and position.done is not None:
            behind = words_of_length(position.ready - position.done, chronon)
            found.append(_state("behind", f"Its inputs are {behind} ahead; a run is due."))
        elif position.is_ready and position.corrected is None:
            found.append(_state("behind", "Its inputs have heartbeats; its first run is due."))
        elif not position.is_ready:
            found.append(_state("current", sentence))
        return found

    def _incidents(self, name: str, dag_id: str) -> list[Json]:
        wanted = (f"{LAG}{name}", f"failed {dag_id}")
        incidents = (self.facts.incidents.get(each) for each in wanted)
        return [_state("incident", incident.text, since=of_clock(incident.since)) for incident in incidents if incident]


def overview(facts: Facts, allowed: set[str]) -> Json:
    """All streams, relations and queries of which the DAG is ``allowed``."""
    app, found = facts.dags.name, Overview(facts)
    streams = [name for name in facts.dags.sources if admit_dag_id(app, name) in allowed]
    queries = [name for name in facts.dags.queries if query_dag_id(app, name) in allowed and not is_hidden(name)]
    return {
        "name": app,
        "streams": [found.stream(name) for name in streams],
        "queries": [found.query(name) for name in queries],
    }


def dag_ids(dags: ApplicationDags) -> set[str]:
    """The DAGs of an application's streams, relations and queries."""
    return {
        *(admit_dag_id(dags.name, name) for name in dags.sources),
        *(query_dag_id(dags.name, name) for name in dags.queries),
    }


def _state(kind: str, text: str, **more: Any) -> Json:
    return {"kind": kind, "text": text, **more}


def _broken(look: Look) -> list[Json]:
    found = [_state("wrong", f"{fault}.") for fault in look.wrong]
    return found + ([_state("stands_still", look.refused)] if look.refused else [])


def _warnings(row: LedgerRow | None) -> dict[str, Any]:
    verdicts = () if row is None else row.of_query.verdicts or ()
    return {check: count for verdict in verdicts for check, count in (verdict.get("warnings") or {}).items()}


def _lag(lag: Lag | None) -> Json | None:
    """The lag behind the clock; ``since_commit``: its time is no clock's, so it is the time since its last commit."""
    if lag is None:
        return None
    return {"ms": lag.micros / 1000, "since_commit": lag.ticks, "never": lag.never}


def _are(count: int) -> str:
    return "are" if count > 1 else "is"
