"""``EVERY d [ANCHOR a]`` of Rstream in ticks, and where it may be left out (semantics section 5)."""

from __future__ import annotations

from sweeparea.cql.syntax.dialect.streams import StreamOperator, ToStream
from sweeparea.cql.text.durations import DurationText
from sweeparea.cql.text.errors import ParseError, Place, RefusedError
from sweeparea.cql.text.source_text import SourceText
from sweeparea.operators.time.domain import MICROS, TimeDomain, micros_text


def every_of(operator: ToStream, source: SourceText, time: TimeDomain) -> tuple[int | None, int]:
    """(every, anchor) of a relation-to-stream operator; every is None for Istream, Dstream and Rstream at each tick."""
    place = source.place(operator.span[0])
    if operator.kind != StreamOperator.RSTREAM:
        if operator.every is not None:
            raise ParseError(
                f"EVERY belongs to RSTREAM: {operator.kind} speaks at the instants at which something changes",
                place,
                "Leave it out, or write RSTREAM(.. EVERY ..)",
            )
        return None, 0
    return every_in_ticks(operator.every, operator.anchor, time, place)


def every_in_ticks(
    every: DurationText | None, anchor: DurationText | None, time: TimeDomain, place: Place
) -> tuple[int | None, int]:
    """(every, anchor) in ticks. RefusedError without EVERY where that would be more than one answer a second."""
    if every is None:
        if time.kind == "TIMESTAMP" and time.chronon < MICROS["SECOND"]:
            raise RefusedError(
                "RSTREAM without EVERY would repeat the whole answer at each tick, and a tick is "
                f"{micros_text(time.chronon)} here",
                place,
                "Write RSTREAM(.. EVERY INTERVAL 1 HOUR), or declare CHRONON INTERVAL 1 SECOND or longer on the stream",
            )
        return None, 0
    ticks = every.in_ticks(time, "EVERY")
    if ticks <= 0:
        raise ParseError(
            "EVERY must be longer than zero",
            every.source.place(every.span[0]),
            "Leave it out: Rstream then speaks at every instant",
        )
    return ticks, anchor.in_ticks(time, "ANCHOR") if anchor is not None else 0
