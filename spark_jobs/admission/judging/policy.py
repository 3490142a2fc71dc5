"""The heartbeat policy that a stream declares, and what is said where the clock does not fit it."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from sweeparea.cql.syntax.statements import CreateStream, HeartbeatKind
from sweeparea.heartbeats import policies
from sweeparea.heartbeats.per_source import PerSource
from sweeparea.heartbeats.user_policy import UserPolicy
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.spark_jobs.declarations import user_code
from sweeparea.spark_jobs.declarations.declarations import Declarations

SAME = 1_000_000
"""Microseconds by which clocks of machines that share a data folder may differ."""


def policy_of(
    application: Declarations, declared: CreateStream, domain: TimeDomain, version: int, elements: pa.Table | None
) -> policies.Policy:
    """The policy of a stream's HEARTBEAT clause; a Python policy is told ``version`` and the ``elements`` that it
    brought.
    """
    spec = declared.heartbeat
    if spec is None:
        raise SweepAreaError(
            f"Stream {declared.name} ({declared.place}) declares no HEARTBEAT, so no query over it would ever be woken."
            f" Add one, for example HEARTBEAT FOR {declared.timestamp_by} AS {declared.timestamp_by} - INTERVAL 10"
            " MINUTES."
        )
    match spec.kind:
        case HeartbeatKind.FOR:
            return policies.BoundedDisorder()
        case HeartbeatKind.EACH_BATCH:
            return policies.EachBatch()
        case HeartbeatKind.COLUMN:
            return policies.FromColumn()
        case HeartbeatKind.CLOCK:
            return policies.FromClock(spec.lag, domain.chronon)
        case HeartbeatKind.PER:
            return PerSource(spec.idle, declared.name)
        case HeartbeatKind.POLICY:
            call = user_code.policy(spec.policy or "", application.modules, spec.place)
            none = pa.table({"__tick": pa.array([], pa.int64())})
            return UserPolicy(spec.policy or "", call, declared.name, version, none if elements is None else elements)
    return policies.Manual()


def set_back(time: TimeDomain, heartbeat: int | None, now: int, lag: int = 0) -> str:
    """What is to be said of a heartbeat that was the clock's less ``lag`` and lies ahead of that at ``now`` (both
    microseconds): somebody has set the clock back since. Empty: it does not. Machines' clocks differ by less than
    ``SAME``.
    """
    ahead = 0 if heartbeat is None else (heartbeat + 1) * time.chronon - (now - lag)
    if ahead < SAME + time.chronon:
        return ""
    return (
        f"its heartbeat is {timedelta(seconds=ahead // 1_000_000)} ahead of the clock, which was set back: it goes on"
        " when the clock has come there, and until then elements up to it count as late"
    )
