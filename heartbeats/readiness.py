"""Which queries of an application can make progress: one read of its ledger, no Spark.

A query is ready when the minimum heartbeat of its inputs lies beyond the instant it has committed, or when an input has
been corrected (a late element that was repaired, an element taken back) since the query read it. A query that reads
another query sees that query's committed instant as its input's heartbeat, so chains need nothing special.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.heartbeats.minimum import query_heartbeat
from sweeparea.heartbeats.policies import last_tick_at
from sweeparea.tables.publication.name_kinds import NameKind

if TYPE_CHECKING:
    from sweeparea.tables.publication.ledger import LedgerRow


@dataclass(frozen=True)
class Ready:
    """``done``: the instant up to which the query has committed (None: nothing yet); ``ready``: its inputs' minimum
    heartbeat; ``corrected``: the greatest correction of its inputs that it has not read (their commit's sequence
    number, None if there is none).
    """

    done: int | None
    ready: int | None
    corrected: int | None = None

    @property
    def is_ready(self) -> bool:
        if self.corrected is not None:
            return True
        return self.ready is not None and (self.done is None or self.ready > self.done)


def snapshot(data_folder: str, queries: Mapping[str, Sequence[str]]) -> dict[str, Ready]:
    """The state of all ``queries`` (name to the names of its inputs) in one ledger state.

    A static relation is at the end of time from the moment it has been copied, so it holds up its readers until then
    only. Raises NoTimeError for a query without inputs.
    """
    from sweeparea.tables.publication.ledger import Ledger

    return judge(Ledger(data_folder).head(), queries)


def judge(head: Mapping[str, LedgerRow], queries: Mapping[str, Sequence[str]]) -> dict[str, Ready]:
    """``snapshot`` as a pure function of the ledger's rows."""
    return {
        query: Ready(
            head[query].committed if query in head else None,
            query_heartbeat(query, known(head, query, inputs)),
            correction(head, query, queries),
        )
        for query, inputs in queries.items()
    }


def known(head: Mapping[str, LedgerRow], query: str, inputs: Sequence[str]) -> dict[str, int | None]:
    """Per input of a query its heartbeat in the query's ticks. Relations count microseconds, where time is the clock's:
    of them it is the last tick that lies wholly at or before their heartbeat.
    """
    rows = {name: head.get(name) for name in inputs}
    counting = [head.get(query), *(row for row in rows.values() if row is not None and row.kind != NameKind.RELATION)]
    chronon = max((row.info.get("chronon") or 1 for row in counting if row is not None), default=1)
    found: dict[str, int | None] = {}
    for name, row in rows.items():
        found[name] = None if row is None else row.committed
        if row is not None and row.committed is not None and row.kind == NameKind.RELATION and row.info.get("chronon"):
            found[name] = last_tick_at(row.committed, chronon)
    return found


def correction(head: Mapping[str, LedgerRow], query: str, queries: Mapping[str, Sequence[str]]) -> int | None:
    """The greatest ``correction_seq`` of an input beyond what the query has pinned; None if it has read all.

    An input without a pin has been read whole. A subplan that queries share (it is none of ``queries``) is brought
    forward by its readers, so its inputs count as theirs.
    """
    row = head.get(query)
    if row is None or row.committed is None:
        return None
    found = []
    for name, pin in row.pins.items():
        owner = name if name in head else name.rpartition("__")[0]
        source = head.get(owner)
        if source is None:
            continue
        corrected = source.correction_seq
        if corrected > pin.get("seq", corrected):
            found.append(corrected)
        elif source.kind == NameKind.QUERY and owner not in queries:
            inner = correction(head, owner, queries)
            found += [] if inner is None else [inner]
    return max(found, default=None)
