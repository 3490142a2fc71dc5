"""Statements as text: canonical CQL that parses to a statement of the same contents (``contents.py``).

Clauses come in the order of the grammar, one a line; defaults are left out. Expressions and queries are their author's
tokens, since no printer of a syntax tree reproduces all of Spark SQL; their comments are gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.syntax.statements import DeclaredKind, HeartbeatKind, SourceKind
from sweeparea.cql.text.durations import DurationText
from sweeparea.cql.text.tokens import TokenType
from sweeparea.operators.time.domain import MICROS

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KINDS = {
    DeclaredKind.STREAM: "STREAM",
    DeclaredKind.RELATION: "RELATION",
    DeclaredKind.QUERY: "CONTINUOUS QUERY",
}
_SHOWN = {
    DeclaredKind.STREAM: "STREAMS",
    DeclaredKind.RELATION: "RELATIONS",
    DeclaredKind.QUERY: "CONTINUOUS QUERIES",
}
VIOLATIONS = {"quarantine": "QUARANTINE ROW", "fail": "FAIL UPDATE", "warn": "WARN"}
_NEW_LINE = {
    TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT,
    TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT,
}  # fmt: skip


def print_statement(statement: st.Statement) -> str:
    """The canonical text of a statement, without the semicolon."""
    match statement:
        case st.CreateStream():
            lines = [f"{_create(statement.replace)} STREAM {name(statement.name)}", *_stream(statement)]
        case st.CreateRelation():
            lines = [f"{_create(statement.replace)} RELATION {name(statement.name)}", *_relation(statement)]
        case st.CreateQuery():
            lines = [f"{_create(statement.replace)} CONTINUOUS QUERY {name(statement.name)}", *_query(statement)]
        case st.CreateFunction():
            kind = statement.kind.upper()
            return f"{_create(statement.replace)} {kind} {name(statement.name)} AS {string(statement.target)}"
        case st.Explain(query=st.CreateQuery() as query):
            return f"EXPLAIN\n{query_text(query)}"
        case _:
            return _small(statement)
    return "\n".join(lines)


def _small(statement: st.Statement) -> str:
    match statement:
        case st.Drop():
            return f"DROP {_KINDS[statement.kind]} {name(statement.name)}{' PURGE' if statement.purge else ''}"
        case st.Pause():
            return f"{'RESUME' if statement.resume else 'PAUSE'} CONTINUOUS QUERY {name(statement.name)}"
        case st.SetSetting():
            return f"SET {statement.name} = {setting(statement.value)}"
        case st.RefreshRelation():
            return f"REFRESH RELATION {name(statement.name)}"
        case st.Explain():
            return f"EXPLAIN CONTINUOUS QUERY {name(statement.name or '')}"
        case st.Show():
            return f"SHOW {_SHOWN[statement.kind]}"
        case st.Describe():
            return f"DESCRIBE {name(statement.name)}"
        case _:
            raise TypeError(f"no statement of the language: {type(statement).__name__}")


def _create(replace: bool) -> str:
    return "CREATE OR REPLACE" if replace else "CREATE"


# -- streams and relations ---------------------------------------------------------------------------------------------


def _stream(statement: st.CreateStream) -> Iterator[str]:
    yield _source(statement.source)
    yield f"  TIMESTAMP BY {name(statement.timestamp_by)}"
    if statement.chronon_us is not None:
        yield f"  CHRONON {micros(statement.chronon_us)}"
    if statement.sequence_by is not None:
        yield f"  SEQUENCE BY {name(statement.sequence_by)}"
    if statement.deduplicate is not None:
        within = duration(statement.deduplicate.within)
        yield f"  DEDUPLICATE BY {names(statement.deduplicate.columns)} WITHIN {within}"
    if statement.heartbeat is not None:
        yield f"  HEARTBEAT {_heartbeat(statement.heartbeat)}"
    if statement.max_ahead is not None:
        yield f"  MAX AHEAD {micros(statement.max_ahead)}"
    yield from _late(statement.late, statement.late_within)
    if statement.on_source_change != "fail":
        yield f"  ON SOURCE CHANGE {statement.on_source_change.upper()}"
    if statement.retain is not None:
        yield f"  RETAIN {micros(statement.retain)}"
    yield from _constraints(statement)


def _relation(statement: st.CreateRelation) -> Iterator[str]:
    yield _source(statement.source)
    if statement.history is not None:
        yield f"  HISTORY BY ({names(statement.history)})"
    if statement.changes is not None:
        yield f"  CHANGES BY ({names(statement.changes)})"
    if statement.key:
        yield f"  KEY ({names(statement.key)})"
    if statement.contents == "feed":
        yield "  CHANGE DATA FEED"
    if statement.sequence_by is not None:
        yield f"  SEQUENCE BY {name(statement.sequence_by)}"
    if statement.heartbeat is not None:
        yield f"  HEARTBEAT {_heartbeat(statement.heartbeat)}"
    if not statement.retroactive:
        yield "  NON RETROACTIVE"
    yield from _late(statement.late, statement.late_within)
    yield from _constraints(statement)


def _source(source: st.SourceSpec) -> str:
    if source.kind == SourceKind.DELTA:
        return f"  FROM DELTA {string(source.uri)}"
    parts = [f"  FROM FORMAT {string(source.format)}"]
    if source.uri:
        parts.append(f"PATH {string(source.uri)}")
    if source.options:
        parts.append(f"OPTIONS ({', '.join(f'{string(k)} = {setting(v)}' for k, v in source.options)})")
    if source.schema:
        parts.append(f"SCHEMA ({', '.join(f'{name(c)} {t}' for c, t in source.schema)})")
    return " ".join(parts)


def _heartbeat(spec: st.HeartbeatSpec) -> str:
    expression = spec.expression.text if spec.expression is not None else ""
    column = name(spec.column or "")
    match spec.kind:
        case HeartbeatKind.EACH_BATCH:
            return "EACH BATCH"
        case HeartbeatKind.COLUMN:
            return f"FROM COLUMN {column}"
        case HeartbeatKind.CLOCK:
            return f"FROM CLOCK LAG {micros(spec.lag)}" if spec.lag else "FROM CLOCK"
        case HeartbeatKind.POLICY:
            return f"POLICY {string(spec.policy or '')}"
        case HeartbeatKind.PER:
            idle = f" IDLE AFTER {micros(spec.idle)}" if spec.idle is not None else ""
            return f"PER {column} AS {expression}{idle}"
        case HeartbeatKind.FOR:
            return f"FOR {column} AS {expression}"
        case HeartbeatKind.MANUAL:
            return "MANUAL"


def _late(late: str, within: DurationText | None) -> Iterator[str]:
    if late == "repair":
        yield "  LATE REPAIR" + (f" WITHIN {duration(within)}" if within is not None else "")


def _constraints(statement: st.CreateStream | st.CreateRelation | st.CreateQuery) -> Iterator[str]:
    for c in statement.constraints:
        yield f"  CONSTRAINT {name(c.name)} EXPECT ({c.expression.text}) ON VIOLATION {VIOLATIONS[c.on_violation]}"
    for e in statement.expectations:
        if not e.suite:
            yield f"  {expectation_clause(e)}"
    for suite in statement.suites:
        per = "" if suite.per is None else f" PER {duration(suite.per)}"
        yield f"  SUITE {string(suite.path)}{per}"


def expectation_clause(spec: st.ExpectationSpec) -> str:
    """CONSTRAINT name EXPECT .., as it is written in a declaration."""
    per = "" if spec.per is None else f" PER {duration(spec.per)}"
    told = expected(spec.kind, spec.expectation, spec.arguments)
    return f"CONSTRAINT {name(spec.name)} EXPECT {told}{per} ON VIOLATION {VIOLATIONS[spec.on_violation]}"


def expected(kind: str, expectation: str, arguments: tuple[tuple[str, object], ...]) -> str:
    """What follows EXPECT, of an expectation over several rows."""
    told: dict[str, Any] = dict(arguments)
    match st.ExpectationKind(kind):
        case st.ExpectationKind.GX:
            values = ", ".join(f"{name(n)} => {literal(v)}" for n, v in arguments)
            return f"gx.{name(expectation)}({values})"
        case st.ExpectationKind.FRESH:
            return f"FRESH WITHIN {micros(told['within'])}"
        case st.ExpectationKind.VOLUME if "last" in told:
            return f"VOLUME WITHIN {literal(told['deviations'])} DEVIATIONS OF LAST {told['last']}"
        case st.ExpectationKind.VOLUME:
            return f"VOLUME BETWEEN {literal(told['min'])} AND {literal(told['max'])}"
        case st.ExpectationKind.REFERENCES:
            return f"({names(told['columns'])}) REFERENCES {name(told['other'])}({names(told['other_columns'])})"


# -- queries -----------------------------------------------------------------------------------------------------------


def _query(statement: st.CreateQuery) -> Iterator[str]:
    if statement.start_at is not None:
        yield f"  START AT {duration(statement.start_at)}"
    if statement.chronon_us is not None:
        yield f"  CHRONON {micros(statement.chronon_us)}"
    if statement.materialize:
        kinds = []
        for kind, every in statement.materialize:
            anchor = statement.materialize_anchor
            text = f" EVERY {duration(every)}" if every is not None else ""
            text += f" ANCHOR {duration(anchor)}" if every is not None and anchor is not None else ""
            kinds.append(kind.upper() + text)
        yield f"  MATERIALIZE {', '.join(kinds)}"
    yield from _constraints(statement)
    if statement.settings:
        yield f"  WITH ({', '.join(f'{k} = {setting(v)}' for k, v in statement.settings)})"
    yield "AS"
    yield query_text(statement)


def query_text(statement: st.CreateQuery) -> str:
    """The query's own tokens, with the clauses of its outermost level on lines of their own."""
    span = span_of(statement.select)
    if span is None:
        return ""
    source, pieces, depth, end = statement.source, [], 0, span[0]
    for token in source.tokens_in(span):
        depth += (token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)) - (
            token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET)
        )
        if token.start > end:
            pieces.append("\n" if depth == 0 and token.token_type in _NEW_LINE else " ")
        pieces.append(source.text[token.start : token.end + 1])
        end = token.end + 1
    return "".join(pieces)


# -- words -------------------------------------------------------------------------------------------------------------


def name(text: str) -> str:
    """An identifier, between backticks where it needs them."""
    return text if _PLAIN.fullmatch(text) else "`" + text.replace("`", "``") + "`"


def names(texts: tuple[str, ...]) -> str:
    return ", ".join(name(text) for text in texts)


def string(text: str) -> str:
    """A string literal as Spark reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def literal(value: object) -> str:
    """An argument of an expectation."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, tuple):
        return f"[{', '.join(literal(part) for part in value)}]"
    return string(value) if isinstance(value, str) else repr(value)


def setting(value: str) -> str:
    return value if re.fullmatch(r"-?[0-9]+|true|false", value) else string(value)


def micros(value: int) -> str:
    """A length of time in its largest unit that divides it."""
    unit = next(u for u in reversed(MICROS) if u != "WEEK" and value % MICROS[u] == 0)
    n = value // MICROS[unit]
    return f"INTERVAL {n} {unit}{'' if abs(n) == 1 else 'S'}"


def duration(value: DurationText) -> str:
    """A length of time or an instant; what is finer than a microsecond stays as it was written."""
    if value.micros is None:
        return str(value.ticks)
    if value.micros.denominator != 1:
        return value.text
    if value.instant:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.micros.numerator)
        fraction = f".{at.microsecond:06d}" if at.microsecond else ""
        clock = f"{at.hour:02d}:{at.minute:02d}:{at.second:02d}"
        return f"TIMESTAMP '{at.year:04d}-{at.month:02d}-{at.day:02d} {clock}{fraction}'"
    return micros(value.micros.numerator)
