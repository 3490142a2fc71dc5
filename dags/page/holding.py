"""What holds a query where it is, in words: from the query down to the sources that nobody writes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from sweeparea.dags.model import ApplicationDags
from sweeparea.dags.page.looks import Look
from sweeparea.dags.page.moments import tick_micros
from sweeparea.heartbeats.policies import MAX_TICK
from sweeparea.heartbeats.readiness import Ready, known
from sweeparea.tables.publication.ledger import LedgerRow

MOST = 12
"""Sentences of one query."""


def holding(
    query: str,
    dags: ApplicationDags,
    head: Mapping[str, LedgerRow],
    positions: Mapping[str, Ready],
    chronons: Mapping[str, int],
    looks: Mapping[str, Look],
) -> list[str]:
    """Sentences, the query's own first, then those of the inputs that hold it, down to the sources."""
    found: list[str] = []
    pending, seen = [query], set[str]()
    while pending and len(found) < MOST:
        name = pending.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name in dags.queries:
            sentence, below = _query(name, dags, head, positions[name], chronons.get(name))
            pending += below
        else:
            sentence = _source(name, dags, head.get(name), chronons.get(name), looks.get(name, Look()))
        found.append(sentence)
    return found


def _query(
    name: str, dags: ApplicationDags, head: Mapping[str, LedgerRow], position: Ready, chronon: int | None
) -> tuple[str, list[str]]:
    inputs = dags.queries[name].inputs
    ticks = known(head, name, inputs)
    if position.corrected is not None:
        return f"{name} has to repair results: an input was corrected after it was read. Its next run does it.", []
    missing = [each for each, tick in ticks.items() if tick is None]
    if missing:
        return f"{name} waits for the first heartbeat of {', '.join(missing)}.", missing
    if position.is_ready:
        return f"{name} is held by nothing: a run is due up to {instant(position.ready, chronon)}.", []
    least = [each for each, tick in ticks.items() if tick == position.ready]
    others = [tick for tick in ticks.values() if tick is not None and tick != position.ready]
    ahead = ""
    if others and position.ready is not None:
        further = min(others)
        if further < MAX_TICK:
            ahead = f"; its other inputs are {words_of_length(further - position.ready, chronon)} further"
    at = instant(position.ready, chronon)
    return f"{name} is up to date and waits for {', '.join(least)}, known up to {at}{ahead}.", least


def _source(name: str, dags: ApplicationDags, row: LedgerRow | None, chronon: int | None, look: Look) -> str:
    source = dags.sources.get(name)
    if source is None:
        return f"{name} is a part that queries share."
    what = f"{source.kind.value.capitalize()} {name}"
    if look.refused:
        return f"{what} stands still: {look.refused}"
    if look.lost:
        return f"{what}: {look.lost}"
    if row is None:
        return f"{what} was not admitted yet{'' if look.newest is not None else '; its source cannot be read'}."
    version = row.of_source.source_version or 0
    if look.newest is not None and look.newest > version and not source.static:
        return f"{what} has admitted version {version} of its source, which is at {look.newest}: a run is due."
    taken = f"has admitted all of its source (version {version}, {_ago(row.at)})"
    if row.committed is None:
        return f"{what} {taken}, and no row has given it a heartbeat yet."
    at = instant(row.committed, tick_micros(row, chronon))
    return f"{what} {taken}; its heartbeat is {at}. It goes on when its source gets rows."


def instant(tick: int | None, micros: int | None) -> str:
    """A tick as its instant in UTC, or as the number it is."""
    if tick is None:
        return "nothing"
    if tick >= MAX_TICK:
        return "the end of time"
    if not micros:
        return f"tick {tick}"
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick * micros)
    except OverflowError:
        return f"tick {tick}"
    return f"{moment.replace(tzinfo=None).isoformat(sep=' ')} UTC"


def words_of_length(ticks: int, micros: int | None) -> str:
    """A number of ticks as people say it.

    >>> words_of_length(90, 60_000_000), words_of_length(3, 0)
    ('1.5 h', '3 ticks')
    """
    if not micros:
        return f"{ticks} tick{'s' * (ticks != 1)}"
    seconds = ticks * micros / 1e6
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * size or (unit != "days" and seconds >= size):
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _ago(at: int) -> str:
    moment = datetime.fromtimestamp(at / 1e6, UTC).replace(tzinfo=None, microsecond=0)
    return f"on {moment.isoformat(sep=' ')} UTC"
