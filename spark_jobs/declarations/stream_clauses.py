"""What of a stream's clauses does not fit the columns of its source or its time."""

from __future__ import annotations

from collections.abc import Iterator

from sweeparea.cql.binding.scope.inputs import InputSchema
from sweeparea.cql.syntax.statements import CreateStream, HeartbeatKind
from sweeparea.cql.text.errors import ParseError, TypeError_
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.domain import TimeKind
from sweeparea.operators.user_code.user_modules import Modules
from sweeparea.spark_jobs.declarations import user_code
from sweeparea.spark_jobs.declarations.source_columns import no_column


def clause_faults(declared: CreateStream, schema: InputSchema, modules: Modules | None) -> Iterator[SweepAreaError]:
    """What of a stream's clauses does not fit its columns or its time; ``modules`` are the application's."""
    columns = [column for column, _ in schema.columns]
    known = {column.lower() for column in columns}
    places = declared.places
    if declared.sequence_by is not None and declared.sequence_by.lower() not in known:
        yield no_column("SEQUENCE BY", declared.sequence_by, columns, places.get("sequence_by", declared.place))
    deduplicate = declared.deduplicate
    if deduplicate is not None:
        for column in deduplicate.columns:
            if column.lower() not in known:
                yield no_column("DEDUPLICATE BY", column, columns, deduplicate.place)
    lengths = [(declared.late_within, "LATE REPAIR WITHIN")]
    lengths += [(deduplicate.within, "DEDUPLICATE BY .. WITHIN")] if deduplicate is not None else []
    for length, what in lengths:
        try:
            if length is not None:
                length.in_ticks(schema.time, what)
        except ParseError as error:
            yield error
    spec = declared.heartbeat
    if spec is not None and spec.kind == HeartbeatKind.POLICY:
        try:
            user_code.policy(spec.policy or "", modules, spec.place)
        except SweepAreaError as error:
            yield error
    if schema.time.kind == TimeKind.BIGINT:
        hint = "Leave it out, or count time by a TIMESTAMP column"
        if spec is not None and spec.kind == HeartbeatKind.CLOCK:
            yield TypeError_(
                f"HEARTBEAT FROM CLOCK of stream {declared.name} needs time that a clock tells, but"
                f" {declared.timestamp_by} is a BIGINT sequence number",
                spec.place,
                "Take a heartbeat from the rows, such as HEARTBEAT EACH BATCH, or HEARTBEAT MANUAL",
            )
        if declared.max_ahead is not None:
            yield TypeError_(
                f"MAX AHEAD of stream {declared.name} compares with the source's clock, but {declared.timestamp_by} is"
                " a BIGINT sequence number",
                places.get("max_ahead", declared.place),
                hint,
            )
