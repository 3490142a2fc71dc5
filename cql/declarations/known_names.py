"""The names that a query uses, against those that are declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.declarations.names import base_name
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.cql.syntax.trees import tables_of
from sweeparea.cql.syntax.windows.window_text import WindowKind, WindowText
from sweeparea.cql.text.unknown_names import unknown_input, unknown_window
from sweeparea.infra.errors import SweepAreaError


@dataclass(frozen=True)
class KnownNames:
    """What is declared: ``inputs`` with what each is, ``queries``, ``windows``; in lower case ``functions`` and
    ``unread``, what the statements which cannot be read were to declare.
    """

    inputs: Mapping[str, str]
    queries: tuple[str, ...]
    windows: list[str]
    functions: Set[str]
    unread: Set[str]

    def unknown_in(self, query: CreateQuery) -> list[SweepAreaError]:
        """BindErrors for streams, relations, queries and windows that a query names and no statement declares. What
        could not be read counts as declared."""
        queries = {name.lower() for name in self.queries}
        known = {name.lower() for name in self.inputs}
        errors: list[SweepAreaError] = []
        for name, node in tables_of(query.select):
            base = base_name(name).lower()
            if name.lower() not in known and base not in queries and base not in self.unread:
                span = span_of(node)
                place = query.place if span is None else query.source.place(span[0])
                errors.append(unknown_input(name, place, self.inputs))
        for window in windows_of(query.select):
            if window.kind == WindowKind.USER and window.parts["name"].lower() not in self.functions | self.unread:
                place = window.source.place(window.span[0])
                errors.append(unknown_window(window.parts["name"], place, self.windows))
        return errors


def names_in(query: CreateQuery) -> list[str]:
    """All that a query names: inputs, windows of the user's, functions."""
    named = [base_name(name) for name, _ in tables_of(query.select)]
    named += [window.parts["name"] for window in windows_of(query.select) if window.kind == WindowKind.USER]
    named += [call.name for call in query.select.find_all(exp.Anonymous)]
    return named


def windows_of(query: exp.Expr) -> Iterator[WindowText]:
    """The windows of a query and its subqueries, as they are written."""
    for node in query.walk():
        if isinstance(node.meta.get("window"), WindowText):
            yield node.meta["window"]
