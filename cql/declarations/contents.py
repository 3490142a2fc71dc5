"""What a statement says, free of where and how it was written: for comparing statements.

Lengths of time compare by value, expressions and queries by their tokens: white space, comments and the case of words
do not count, the case of names that become labels does.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from sqlglot import exp

from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.syntax.labels import label_of
from sweeparea.cql.syntax.statements import CreateQuery, SourceExpression, Statement
from sweeparea.cql.text.durations import DurationText
from sweeparea.cql.text.source_text import SourceText

_PLACES = frozenset({"place", "places", "settings_places", "argument_places", "text", "written", "source_text"})


def contents(statement: Statement) -> dict[str, Any]:
    """The fields of a statement as plain values, equal for statements that say the same."""
    found = {"statement": type(statement).__name__}
    for each in dataclasses.fields(statement):
        if each.name in _PLACES:
            continue
        value = getattr(statement, each.name)
        if isinstance(statement, CreateQuery) and each.name == "select":
            found["select"] = _query(statement)
        elif not isinstance(value, SourceText):
            found[each.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Statement):
        return contents(value)
    if isinstance(value, DurationText):
        return ("ticks", value.ticks) if value.micros is None else ("micros", value.micros)
    if isinstance(value, SourceExpression):
        return value.source.canonical(value.span)
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    if dataclasses.is_dataclass(value):
        fields = (f for f in dataclasses.fields(value) if f.name not in _PLACES)
        return tuple((f.name, _plain(getattr(value, f.name))) for f in fields)
    return value


def _query(query: CreateQuery) -> Any:
    span = span_of(query.select)
    tokens = query.source.canonical(span) if span is not None else ()
    items = query.select.selects if isinstance(query.select, exp.Query) else []
    return tokens, tuple(label_of(item, query.source) for item in items)
