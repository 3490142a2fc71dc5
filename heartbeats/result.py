"""Whether a query's results are final up to an instant, as its ledger says: one read, no Spark, no ``.cql`` files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from sweeparea.heartbeats.lag import chronons
from sweeparea.heartbeats.minimum import query_heartbeat
from sweeparea.heartbeats.readiness import correction, known
from sweeparea.infra.errors import UsageError
from sweeparea.tables.publication.name_kinds import NameKind

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Reached:
    """``wanted``, ``committed`` and ``ready`` (the inputs' least heartbeat) are ticks of ``chronon`` microseconds, or
    of BIGINT time where that is 0; None: there is none yet. ``corrected``: an input was corrected behind what the query
    has read, so results up to ``committed`` may be repaired.
    """

    wanted: int | None
    committed: int | None
    ready: int | None
    chronon: int | None
    corrected: bool

    @property
    def has_result(self) -> bool:
        """Whether results are final up to the instant that is wanted."""
        return self._beyond(self.committed) and not self.corrected

    @property
    def has_inputs(self) -> bool:
        """Whether the query can be processed so far."""
        return self._beyond(self.ready)

    def _beyond(self, tick: int | None) -> bool:
        return tick is not None and self.wanted is not None and tick >= self.wanted

    @property
    def words(self) -> str:
        """How far it is."""
        again = ", and is to be repaired" if self.corrected else ""
        return f"committed up to {self._text(self.committed)}, its inputs up to {self._text(self.ready)}{again}"

    def _text(self, tick: int | None) -> str:
        if tick is None or not self.chronon:
            return "nothing yet" if tick is None else str(tick)
        try:
            return (_EPOCH + dt.timedelta(microseconds=tick * self.chronon)).isoformat(sep=" ").removesuffix("+00:00")
        except OverflowError:
            return "the end of time"


def progress(data_folder: str, query: str, up_to: str, inputs: Sequence[str]) -> Reached:
    """How far a query is on its way to the instant ``up_to``, which belongs to what has to be done: 2013-01-31
    12:00:00 (UTC unless it has a zone), or a tick. ``inputs`` are the names that it reads.

    UsageError where ``up_to`` is no instant of the query's time. Where nothing was ever committed that cannot be told,
    and nothing is reached.
    """
    from sweeparea.tables.publication.deployed import Deployed
    from sweeparea.tables.publication.ledger import Ledger

    head = Ledger(data_folder).head()
    # hidden queries are none of these: what is corrected below one counts as its reader's (``correction``)
    names = {r.name: r.depends_on for r in Deployed(data_folder).rows().values() if r.kind == NameKind.QUERY}
    reads = {**names, query: tuple(inputs)}
    chronon = chronons(head, reads).get(query)
    row = head.get(query)
    return Reached(
        None if chronon is None else tick_of(up_to, chronon),
        None if row is None else row.committed,
        query_heartbeat(query, known(head, query, inputs)) if inputs else None,
        chronon,
        correction(head, query, reads) is not None,
    )


def tick_of(text: str, chronon: int) -> int:
    """The tick in which an instant lies. UsageError where the text is none.

    >>> tick_of("1970-01-01 00:01:30", 60_000_000), tick_of("7", 0), tick_of("1970-01-01T01:00:00+01:00", 1)
    (1, 7, 0)
    """
    if not chronon:
        if text.strip().removeprefix("-").isdigit():
            return int(text)
        raise UsageError(f"{text!r} is no tick: the query's time is counted in BIGINT ticks, so give a whole number.")
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{text!r} is no instant. Write it as 2013-01-31 or 2013-01-31 12:00:00 (UTC).") from None
    moment = moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment
    return (moment - _EPOCH) // dt.timedelta(microseconds=1) // chronon
