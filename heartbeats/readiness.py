"""Which queries of an application can make progress: one read of its ledger, no Spark.

A query is ready when the minimum heartbeat of its inputs lies beyond the instant it has committed. A query that reads
another query sees that query's committed instant as its input's heartbeat, so chains need nothing special.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeparea.heartbeats.minimum import query_heartbeat


@dataclass(frozen=True)
class Ready:
    """``done``: the instant up to which the query has committed (None: nothing yet); ``ready``: its inputs' minimum
    heartbeat."""

    done: int | None
    ready: int | None

    @property
    def is_ready(self) -> bool:
        return self.ready is not None and (self.done is None or self.ready > self.done)


def snapshot(data_folder: str, queries: Mapping[str, Sequence[str]]) -> dict[str, Ready]:
    """The state of all ``queries`` (name to the names of its inputs) in one ledger state.

    A static relation is at the end of time from the moment it has been copied, so it holds up its readers until then
    only. Raises NoTimeError for a query without inputs.
    """
    return judge(committed(data_folder), queries)


def committed(data_folder: str) -> dict[str, int | None]:
    """Per name in the ledger its committed tick. Empty before anything has been committed."""
    from sweeparea.tables.ledger import Ledger

    return {name: row.committed for name, row in Ledger(data_folder).head().items()}


def judge(heads: Mapping[str, int | None], queries: Mapping[str, Sequence[str]]) -> dict[str, Ready]:
    """``snapshot`` as a pure function of the ledger's committed ticks."""
    return {
        query: Ready(heads.get(query), query_heartbeat(query, {name: heads.get(name) for name in inputs}))
        for query, inputs in queries.items()
    }
