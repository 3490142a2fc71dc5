"""What can be told of ``FROM FORMAT`` before Spark sees it: a format's own columns, options that would lose records."""

from __future__ import annotations

from collections.abc import Iterator

from sweeparea.cql.syntax.statements import CreateRelation, CreateStream, SourceKind, SourceSpec
from sweeparea.cql.text.errors import BindError, RefusedError

FIXED: dict[str, tuple[tuple[str, str], ...]] = {
    "rate": (("timestamp", "timestamp"), ("value", "bigint")),
    "rate-micro-batch": (("timestamp", "timestamp"), ("value", "bigint")),
    "socket": (("value", "string"),),
    "text": (("value", "string"),),
    "kafka": (
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestamptype", "int"),
    ),
}
"""Columns of formats that have the same ones everywhere."""
FILES = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
"""Formats of files in a folder."""
PARSED = ("csv", "json", "xml")
"""Formats whose records may be malformed one by one: those go to quarantine with their whole text."""
_LOSING = {
    "mode": ("DROPMALFORMED", "drops malformed records", "Leave it out: they go to quarantine, with their text"),
    "ignorecorruptfiles": ("TRUE", "skips files that cannot be read", "Leave it out, and move such files away"),
    "ignoremissingfiles": (
        "TRUE",
        "skips files that have vanished",
        "Leave it out, and keep files until they are admitted",
    ),
    "latestfirst": ("TRUE", "may pass over old files", "Leave it out"),
}
"""Options by name in lower case: the value in capitals that loses records, how, and the way out."""


def columns_of(source: SourceSpec) -> tuple[tuple[str, str], ...]:
    """The columns of a source by its declaration; empty where only Spark knows."""
    return source.schema or FIXED.get(source.format.lower(), ())


def in_folder(source: SourceSpec) -> bool:
    """Whether a source is all files of one folder, so that looking at the folder tells whether something came."""
    return source.format.lower() in FILES and not any(sign in source.uri for sign in "*?[{")


def format_faults(statement: CreateStream | CreateRelation) -> Iterator[BindError | RefusedError]:
    """What is wrong with a statement's FROM FORMAT."""
    source, place = statement.source, statement.place
    if source.kind != SourceKind.FORMAT:
        return
    name = source.format.lower()
    if name == "delta":
        yield BindError(
            "FROM FORMAT 'delta' is not how a Delta table is read: as a stream of Spark's it loses updates and deletes",
            place,
            f"Write FROM DELTA '{source.uri or 'path'}'",
        )
    if name in FILES and not source.uri:
        yield BindError(f"FROM FORMAT '{source.format}' has no PATH", place, "Name the folder of the files: PATH 'dir'")
    if name in FILES and not columns_of(source):
        yield BindError(
            f"FROM FORMAT '{source.format}' has no SCHEMA, and columns are not guessed from what happens to lie there",
            place,
            "Name the columns: SCHEMA (id BIGINT, at TIMESTAMP)",
        )
    for option, value in source.options:
        losing = _LOSING.get(option.lower())
        if losing is not None and value.upper() == losing[0]:
            yield RefusedError(f"the option {option} = {value} loses records: it {losing[1]}", place, losing[2])
        if option.lower() == "columnnameofcorruptrecord":
            yield RefusedError(
                f"the option {option} is SweepArea's own",
                place,
                "Leave it out: malformed records go to quarantine, with their text",
            )
