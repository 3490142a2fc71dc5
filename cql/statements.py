"""The statements of the language as plain data. ``parser.py`` makes them; a statement keeps the text it was read
from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sqlglot import exp

from sweeparea.cql.durations import DurationText
from sweeparea.cql.errors import Place
from sweeparea.cql.source_text import SourceText, Span


@dataclass(frozen=True)
class SourceSpec:
    """Where a stream or relation comes from. ``kind`` is delta; ``uri`` a path, URI or ``catalog.schema.table``."""

    kind: str
    uri: str


@dataclass(frozen=True)
class SourceExpression:
    """A scalar expression over the columns of a source: its tree, its characters and its text as Spark SQL."""

    tree: exp.Expr
    span: Span
    source: SourceText

    @property
    def text(self) -> str:
        return self.source.splice(self.span)

    @property
    def place(self) -> Place:
        return self.source.place(self.span[0])


@dataclass(frozen=True)
class HeartbeatSpec:
    """How heartbeats arise. ``kind``: for (maximum of ``expression`` over admitted elements), each_batch, column,
    clock, manual.

    ``column`` is the column that FOR and FROM COLUMN name, ``lag`` the microseconds of FROM CLOCK LAG.
    """

    kind: str
    column: str | None = None
    expression: SourceExpression | None = None
    lag: int = 0
    place: Place | None = None


@dataclass(frozen=True)
class ConstraintSpec:
    """``CONSTRAINT name EXPECT (expression) ON VIOLATION ..``; ``on_violation`` is quarantine, fail or warn."""

    name: str
    expression: SourceExpression
    on_violation: str
    place: Place


@dataclass(frozen=True)
class Statement:
    """Base of all statements: where it stands and its text."""

    place: Place
    text: str


@dataclass(frozen=True)
class CreateStream(Statement):
    """``CREATE STREAM``. Durations are microseconds. ``late``: reject; ``on_source_change``: fail, ignore, correct."""

    name: str
    source: SourceSpec
    timestamp_by: str
    chronon_us: int | None = None
    sequence_by: str | None = None
    heartbeat: HeartbeatSpec | None = None
    max_ahead: int | None = None
    late: str = "reject"
    on_source_change: str = "fail"
    retain: int | None = None
    constraints: tuple[ConstraintSpec, ...] = ()
    replace: bool = False


@dataclass(frozen=True)
class CreateRelation(Statement):
    """``CREATE RELATION``. ``contents`` says where its history comes from: static in this version."""

    name: str
    source: SourceSpec
    contents: str = "static"
    heartbeat: HeartbeatSpec | None = None
    retroactive: bool = True
    late: str = "reject"
    constraints: tuple[ConstraintSpec, ...] = ()
    replace: bool = False


@dataclass(frozen=True)
class CreateQuery(Statement):
    """``CREATE CONTINUOUS QUERY``. ``select`` is the syntax tree, ``source`` the text its spans refer to.

    ``materialize`` holds (kind, every) pairs in the order written, kind among relation, istream, dstream, rstream.
    """

    name: str
    select: exp.Expr
    source: SourceText
    start_at: DurationText | None = None
    materialize: tuple[tuple[str, DurationText | None], ...] = ()
    constraints: tuple[ConstraintSpec, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    settings_places: dict[str, Place] = field(default_factory=dict, compare=False, hash=False)
    replace: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """``DROP STREAM | RELATION | CONTINUOUS QUERY name [PURGE]``; ``kind`` is stream, relation or query."""

    kind: str
    name: str
    purge: bool = False


@dataclass(frozen=True)
class SetSetting(Statement):
    """``SET name = value``, for the application."""

    name: str
    value: str


@dataclass(frozen=True)
class RefreshRelation(Statement):
    """``REFRESH RELATION name``."""

    name: str


@dataclass(frozen=True)
class Explain(Statement):
    """``EXPLAIN CONTINUOUS QUERY name`` (``name``) or ``EXPLAIN SELECT ..`` (``query``)."""

    name: str | None = None
    query: CreateQuery | None = None


@dataclass(frozen=True)
class Show(Statement):
    """``SHOW STREAMS | RELATIONS | CONTINUOUS QUERIES``; ``kind`` is stream, relation or query."""

    kind: str


@dataclass(frozen=True)
class Describe(Statement):
    """``DESCRIBE name``."""

    name: str


def parse_text(text: str, filename: str = "<text>") -> list[Statement]:
    """The statements of a text. Raises one error or ``CqlErrors`` with at most one error a statement."""
    from sweeparea.cql.parser import parse

    return parse(text, filename)


def parse_file(path: str | Path) -> list[Statement]:
    """As ``parse_text``, of a UTF-8 file."""
    from sweeparea.cql.errors import ParseError

    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not UTF-8 text (byte {error.start})", None, "Save the file as UTF-8") from None
    except OSError as error:
        raise ParseError(
            f"{path} cannot be read: {error.strerror}", None, "Remove it, or make it a readable file"
        ) from None
    return parse_text(text, str(path))
