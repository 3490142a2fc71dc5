"""Names that a printed plan makes up, and lengths of time as its time domain writes them."""

from __future__ import annotations

import re

from sweeparea.operators.nodes import RelationScan, StreamScan
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain, TimeKind

_LIKE_ID = re.compile(r"c\d+", re.IGNORECASE)


class Naming:
    """Columns are named by their ids, behind a prefix that no column of a source begins with; entries of FROM get
    aliases.
    """

    def __init__(self, plan: Plan) -> None:
        self.time: TimeDomain = plan.time
        self._aliases = 0
        taken = {n.lower() for node in plan.root.walk() for n in _source_names(node)}
        self._prefix = "" if not any(_LIKE_ID.fullmatch(n) for n in taken) else "k_"
        while self._prefix and any(n.startswith(self._prefix) for n in taken):
            self._prefix += "k_"

    def every(self, every: int | None, anchor: int) -> str:
        return self.length(every or 0) + (f" ANCHOR {self.length(anchor)}" if anchor else "")

    def length(self, ticks: int) -> str:
        """Ticks as the time domain writes them."""
        if self.time.kind == TimeKind.BIGINT:
            return str(ticks)
        return f"INTERVAL {'-' if ticks < 0 else ''}{abs(ticks) * self.time.chronon} MICROSECONDS"

    def id(self, column: Column | str) -> str:
        return self._prefix + (column if isinstance(column, str) else column.id)

    def alias(self) -> str:
        self._aliases += 1
        return f"{self._prefix}t{self._aliases}"


def _source_names(node: Node) -> list[str]:
    return [n for _, n in node.source] if isinstance(node, StreamScan | RelationScan) else []
