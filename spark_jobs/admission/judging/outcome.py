"""What the rows of a version of a source have come to."""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.cql.syntax.statements import HeartbeatKind
from sweeparea.heartbeats.policies import VersionFacts
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging.judge import as_heartbeat
from sweeparea.spark_jobs.admission.judging.rules import Rules
from sweeparea.spark_jobs.admission.judging.state import StreamState
from sweeparea.spark_jobs.spark import json_values


@dataclass
class Outcome:
    """What the rows of a version have come to, gathered over its pieces. ``counts`` as ``state.COUNTS``."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    warned: Counter[str] = field(default_factory=Counter)
    least_tick: int | None = None
    max_tick: int | None = None
    max_heartbeat: int | None = None
    sources: dict[str, int] = field(default_factory=dict)
    elements: list[pa.Table] = field(default_factory=list)

    def saw(self, good: pa.Table, rules: Rules, latest: int | None = None) -> None:
        """Notes what the heartbeat's policy wants to know of admitted elements, and how early they are. Heartbeats
        beyond ``latest`` (microseconds) are counted and not taken.
        """
        ticks = pc.min_max(good.column("__tick")).as_py()
        self.least_tick = _least(self.least_tick, ticks["min"])
        self.max_tick = _greatest(self.max_tick, ticks["max"])
        values = good.column("__heartbeat")
        if latest is not None:
            distant = pc.fill_null(pc.greater(values, latest), False)
            self.counts["distant"] += pc.sum(distant).as_py() or 0
            values = pc.if_else(distant, pa.scalar(None, pa.int64()), values)
        greatest = as_heartbeat(pc.max(values).as_py(), rules.domain)
        self.max_heartbeat = _greatest(self.max_heartbeat, greatest)
        spec = rules.declared.heartbeat
        if spec is not None and spec.kind == HeartbeatKind.PER and spec.column is not None:
            column = next(c for c in rules.columns if c.lower() == spec.column.lower())
            for key, tick in by_source(good.column(column), values, rules.domain).items():
                self.sources[key] = max(tick, self.sources.get(key, tick))
        if spec is not None and spec.kind == HeartbeatKind.POLICY:
            self.elements.append(good.select([*rules.columns, "__tick"]))

    def add(self, other: Outcome) -> None:
        """What other rows of the same version, or of another one in the same commit, have come to, besides."""
        self.counts.update(other.counts)
        self.reasons += other.reasons
        self.warned += other.warned
        self.least_tick = _least(self.least_tick, other.least_tick)
        self.max_tick = _greatest(self.max_tick, other.max_tick)
        self.max_heartbeat = _greatest(self.max_heartbeat, other.max_heartbeat)
        for key, tick in other.sources.items():
            self.sources[key] = max(tick, self.sources.get(key, tick))
        self.elements += other.elements

    def facts(self, state: StreamState, read_time: int) -> VersionFacts:
        """What the heartbeat's policy is told; ``read_time``: when the source's log was read (microseconds)."""
        return VersionFacts(self.max_tick, self.max_heartbeat, state.instant, read_time, self.sources, state.policy)


def by_source(column: pa.ChunkedArray, values: pa.ChunkedArray, domain: TimeDomain) -> dict[str, int]:
    """HEARTBEAT PER: the greatest heartbeat of each value of ``column`` (as JSON text), NULL heartbeats apart."""
    known = pc.is_valid(values)
    column, values = column.filter(known), values.filter(known)
    if not len(values):
        return {}
    code, count = keys.codes([column])
    most = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(most, code, keys.int64_of(values))
    at = np.unique(code, return_index=True)[1]
    shown = json_values.rows(keys.canonical(pa.table({"source": column.take(pa.array(at))})), [0])
    found: dict[str, int] = {}
    for (value,), greatest in zip(shown, most.tolist(), strict=True):
        tick = as_heartbeat(greatest, domain)
        assert tick is not None
        found[json.dumps(value, ensure_ascii=False)] = tick
    return found


def _least(a: int | None, b: int | None) -> int | None:
    return min((x for x in (a, b) if x is not None), default=None)


def _greatest(a: int | None, b: int | None) -> int | None:
    return max((x for x in (a, b) if x is not None), default=None)
