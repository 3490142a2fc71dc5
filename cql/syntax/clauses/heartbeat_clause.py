"""``HEARTBEAT ..``: how heartbeats of a stream or relation arise."""

from __future__ import annotations

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.clauses.words import Words
from sweeparea.cql.syntax.statements import HeartbeatKind
from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.keywords import misspelt


class HeartbeatClause(Words):
    """Reads what follows HEARTBEAT."""

    def heartbeat(self) -> st.HeartbeatSpec:
        here = self.source.place(self._prev.start)
        if self.take("EACH", "BATCH"):
            return st.HeartbeatSpec(HeartbeatKind.EACH_BATCH, place=here)
        if self.take("MANUAL"):
            return st.HeartbeatSpec(HeartbeatKind.MANUAL, place=here)
        if self.take("POLICY"):
            return st.HeartbeatSpec(
                HeartbeatKind.POLICY, place=here, policy=self.string("a policy", "HEARTBEAT POLICY 'name'")
            )
        if self.take("FROM", "COLUMN"):
            return st.HeartbeatSpec(HeartbeatKind.COLUMN, column=self.name("a column"), place=here)
        if self.take("FROM", "CLOCK"):
            lag = self._lag() if self.take("LAG") else 0
            return st.HeartbeatSpec(HeartbeatKind.CLOCK, lag=lag, place=here)
        if self.word() in ("FOR", "PER"):
            kind = HeartbeatKind(self.word().lower())
            self._advance()
            column = self.name("a column")
            self.need("AS")
            expression = self.expression_here("the heartbeat")
            idle = self.positive("IDLE AFTER") if kind == HeartbeatKind.PER and self.take("IDLE", "AFTER") else None
            return st.HeartbeatSpec(kind, column=column, expression=expression, place=here, idle=idle)
        raise self.fail(
            "FOR, EACH BATCH, FROM COLUMN, FROM CLOCK, PER, MANUAL or POLICY",
            "FOR", "EACH", "FROM", "PER", "MANUAL", "POLICY",
            hint=misspelt(self.word(), ("FOR", "EACH", "FROM", "PER", "MANUAL", "POLICY"))
            or "Write HEARTBEAT FOR departed AS departed - INTERVAL 30 MINUTES",
        )  # fmt: skip

    def _lag(self) -> int:
        here, lag = self.here(), self.duration("LAG")
        if lag < 0:
            raise ParseError(
                "LAG must not be negative: a heartbeat ahead of the clock would make every row late",
                here,
                "Write LAG INTERVAL 1 MINUTE, or leave it out",
            )
        return lag
