"""The statements of the language as plain data. ``parser.py`` makes them; a statement keeps the text it was read
from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from sqlglot import exp

from sweeparea.cql.text.durations import DurationText
from sweeparea.cql.text.errors import Place
from sweeparea.cql.text.source_text import SourceText, Span
from sweeparea.operators.plan.plan import UserKind


class SourceKind(StrEnum):
    """A Delta table, or any streaming source of Spark's."""

    DELTA = "delta"
    FORMAT = "format"


@dataclass(frozen=True)
class SourceSpec:
    """Where a stream or relation comes from.

    ``kind`` delta: ``uri`` is a path, URI or ``catalog.schema.table``. ``kind`` format: any streaming source of
    Spark's, with ``format`` its name, ``uri`` its PATH (empty where it has none), ``options`` and ``schema`` (columns
    and their Spark types; empty: what the source says).
    """

    kind: SourceKind
    uri: str
    format: str = ""
    options: tuple[tuple[str, str], ...] = ()
    schema: tuple[tuple[str, str], ...] = ()


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


class HeartbeatKind(StrEnum):
    """FOR: the maximum of an expression over the admitted elements. PER: the minimum, over the values of a column, of
    such a maximum. The others are named by their clauses.
    """

    FOR = "for"
    PER = "per"
    EACH_BATCH = "each_batch"
    COLUMN = "column"
    CLOCK = "clock"
    MANUAL = "manual"
    POLICY = "policy"


@dataclass(frozen=True)
class HeartbeatSpec:
    """How heartbeats arise.

    ``column`` is the column that FOR, FROM COLUMN and PER name, ``lag`` the microseconds of FROM CLOCK LAG, ``idle``
    those of IDLE AFTER, ``policy`` the name of a registered Python policy.
    """

    kind: HeartbeatKind
    column: str | None = None
    expression: SourceExpression | None = None
    lag: int = 0
    place: Place | None = None
    idle: int | None = None
    policy: str | None = None


@dataclass(frozen=True)
class DeduplicateSpec:
    """``DEDUPLICATE BY columns WITHIN ..``: ``within`` is a length of the stream's own time."""

    columns: tuple[str, ...]
    within: DurationText
    place: Place


@dataclass(frozen=True)
class ConstraintSpec:
    """``CONSTRAINT name EXPECT (expression) ON VIOLATION ..``; ``on_violation`` is quarantine, fail or warn."""

    name: str
    expression: SourceExpression
    on_violation: str
    place: Place


class ExpectationKind(StrEnum):
    """GX: one of Great Expectations. FRESH: how old what is newest is. VOLUME: how many rows a unit of time has.
    REFERENCES: values that another relation must have at the same instant.
    """

    GX = "gx"
    FRESH = "fresh"
    VOLUME = "volume"
    REFERENCES = "references"


@dataclass(frozen=True)
class ExpectationSpec:
    """``CONSTRAINT name EXPECT ..`` of several rows.

    ``expectation`` and ``arguments`` of kind gx are those of Great Expectations, values Python's (str, int, float,
    bool, None, tuple); of the others: fresh ``within`` (microseconds); volume ``min`` and ``max``, or ``deviations``
    and ``last``; references ``columns``, ``other`` and ``other_columns``. ``on_violation`` is fail or warn. ``per`` is
    the unit of event time that is judged, None: each commit. ``argument_places``: where each argument stands. ``suite``
    is the file that it stands in, if it is one of a suite, ``id`` its own there.
    """

    name: str
    expectation: str
    arguments: tuple[tuple[str, object], ...]
    on_violation: str
    place: Place
    kind: ExpectationKind = ExpectationKind.GX
    per: DurationText | None = None
    argument_places: dict[str, Place] = field(default_factory=dict, compare=False, hash=False, repr=False)
    suite: str = ""
    id: str = ""


@dataclass(frozen=True)
class SuiteSpec:
    """``SUITE 'file.json'``: expectations in Great Expectations' own JSON, in a file beside the ``.cql`` file."""

    path: str
    place: Place
    per: DurationText | None = None


@dataclass(frozen=True)
class Statement:
    """Base of all statements: where it stands and its text; ``written`` is it as its author laid it out, with comments,
    those before it included.
    """

    place: Place
    text: str
    written: str = field(default="", compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class CreateStream(Statement):
    """``CREATE STREAM``. Durations are microseconds, those of ``DurationText`` lengths of the stream's own time.

    ``late``: reject or repair, no older than ``late_within``; ``on_source_change``: fail, ignore, correct. ``places``
    says where each clause stands, by field; that of TIMESTAMP BY and SEQUENCE BY is the column's name.
    """

    name: str
    source: SourceSpec
    timestamp_by: str
    chronon_us: int | None = None
    sequence_by: str | None = None
    deduplicate: DeduplicateSpec | None = None
    heartbeat: HeartbeatSpec | None = None
    max_ahead: int | None = None
    late: str = "reject"
    late_within: DurationText | None = None
    on_source_change: str = "fail"
    retain: int | None = None
    constraints: tuple[ConstraintSpec, ...] = ()
    expectations: tuple[ExpectationSpec, ...] = ()
    suites: tuple[SuiteSpec, ...] = ()
    replace: bool = False
    places: dict[str, Place] = field(default_factory=dict, compare=False, hash=False)


@dataclass(frozen=True)
class CreateRelation(Statement):
    """``CREATE RELATION``. ``contents`` says where its history comes from: static, history, changes or feed.

    ``history`` are the columns of validity (from, to); ``changes`` the columns of operation and instant, with ``key``
    where operations set and end the rows of a key, and ``sequence_by`` to order a key's changes of one instant.
    """

    name: str
    source: SourceSpec
    contents: str = "static"
    history: tuple[str, str] | None = None
    changes: tuple[str, str] | None = None
    key: tuple[str, ...] = ()
    sequence_by: str | None = None
    heartbeat: HeartbeatSpec | None = None
    retroactive: bool = True
    late: str = "reject"
    late_within: DurationText | None = None
    constraints: tuple[ConstraintSpec, ...] = ()
    expectations: tuple[ExpectationSpec, ...] = ()
    suites: tuple[SuiteSpec, ...] = ()
    replace: bool = False
    places: dict[str, Place] = field(default_factory=dict, compare=False, hash=False)


@dataclass(frozen=True)
class CreateQuery(Statement):
    """``CREATE CONTINUOUS QUERY``. ``select`` is the syntax tree, ``source`` the text its spans refer to.

    ``materialize`` holds (kind, every) pairs in the order written, kind among relation, istream, dstream, rstream;
    ``materialize_anchor`` is the ANCHOR of RSTREAM EVERY; ``chronon_us`` the length of its tick, in microseconds,
    where it is declared: that of a query over relations alone, which have none of their own.
    """

    name: str
    select: exp.Expr
    source: SourceText
    start_at: DurationText | None = None
    chronon_us: int | None = None
    materialize: tuple[tuple[str, DurationText | None], ...] = ()
    materialize_anchor: DurationText | None = None
    constraints: tuple[ConstraintSpec, ...] = ()
    expectations: tuple[ExpectationSpec, ...] = ()
    suites: tuple[SuiteSpec, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    settings_places: dict[str, Place] = field(default_factory=dict, compare=False, hash=False)
    replace: bool = False
    places: dict[str, Place] = field(default_factory=dict, compare=False, hash=False)


@dataclass(frozen=True)
class CreateFunction(Statement):
    """``CREATE FUNCTION | AGGREGATE | WINDOW name AS 'module:object'``."""

    kind: UserKind
    name: str
    target: str
    replace: bool = False


class DeclaredKind(StrEnum):
    """What statements name by a kind."""

    STREAM = "stream"
    RELATION = "relation"
    QUERY = "query"


@dataclass(frozen=True)
class Drop(Statement):
    """``DROP STREAM | RELATION | CONTINUOUS QUERY name [PURGE]``."""

    kind: DeclaredKind
    name: str
    purge: bool = False


@dataclass(frozen=True)
class Pause(Statement):
    """``PAUSE CONTINUOUS QUERY name``, or with ``resume`` ``RESUME CONTINUOUS QUERY name``."""

    name: str
    resume: bool = False


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
    """``SHOW STREAMS | RELATIONS | CONTINUOUS QUERIES``."""

    kind: DeclaredKind


@dataclass(frozen=True)
class Describe(Statement):
    """``DESCRIBE name``."""

    name: str
