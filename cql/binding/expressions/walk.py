"""One pass over an expression's tree. What is done at a node says the handler of its class (``registry.py``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp

from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import Bound, quoted
from sweeparea.cql.functions import literal_checks, types
from sweeparea.cql.functions.argument_checks import ArgumentChecks
from sweeparea.cql.functions.untyped_nulls import VOID, typed
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.text.errors import RefusedError, not_offered, raise_all
from sweeparea.cql.text.source_text import Replacement, Span
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.sql.expressions import Column, Expr

_TOKENS_OF_A_COLUMN = 16
"""More than what one name or window bound, which is one piece of a canonical text, is written with."""

Handler = Callable[["Walk", Any], None]
"""What is done at a node."""
HandlerOf = Callable[[type[exp.Expr]], Handler | None]
"""The handler of a class of nodes; None: its parts are visited, and the rest is left to Spark."""


class Walk:
    """Collects replacements, used ids and known types. ``conditions`` are the parts of the tree that stand where a
    BOOLEAN is needed and Spark makes none of a NULL.
    """

    def __init__(self, binder: Binder, handler_of: HandlerOf, conditions: Iterable[exp.Expr] = ()) -> None:
        self.binder = binder
        self.handler_of = handler_of
        self.conditions = {id(node) for node in conditions}
        self.replacements: list[Replacement] = []
        self.used: set[str] = set()
        self.types: dict[int, str | None] = {}
        self.chars: dict[int, str] = {}
        self.outer: set[int] = set()
        """Columns of the queries around: padded in a comparison, but Spark does not know them for CHAR beyond it."""
        self.checks = ArgumentChecks(binder, self.types)

    def visit(self, node: exp.Expr) -> None:
        if not self._grouping_key(node):
            self._check_literal(node)
            handler = self.handler_of(type(node))
            if handler is not None:
                handler(self, node)
            else:
                self.children(node)
        if id(node) not in self.types:
            self.types[id(node)] = types.of(node, self.types)
        if id(node) in self.conditions and self.types[id(node)] == VOID:
            self.as_boolean(node)

    def as_boolean(self, node: exp.Expr) -> None:
        """Makes a BOOLEAN of a visited part: of a NULL the unknown truth value, of a STRING what it says."""
        span, source = self.binder.span(node), self.binder.source
        inside = [r for r in self.replacements if span[0] <= r.span[0] and r.span[1] <= span[1]]
        self.replacements = [r for r in self.replacements if r not in inside]
        text = typed(Expr(source.splice(span, inside)), "boolean").sql
        self.replacements.append(Replacement(span, text))
        self.types[id(node)] = "boolean"

    def _check_literal(self, node: exp.Expr) -> None:
        span = span_of(node) if isinstance(node, exp.Literal | exp.Cast | exp.Interval) else None
        if span is not None:
            source = self.binder.source
            fault = literal_checks.fault(node, source.text[span[0] : span[1]], source.place(span[0]))
            if fault is not None:
                raise fault

    def children(self, node: exp.Expr) -> None:
        """Visits all parts of a node."""
        self.each(node.iter_expressions(), self.visit)

    def each(self, nodes: Iterable[exp.Expr], visit: Callable[[exp.Expr], None]) -> None:
        """Visits parts that stand side by side, and raises the faults of all of them."""
        faults: list[SweepAreaError] = []
        for node in nodes:
            try:
                visit(node)
            except SweepAreaError as error:
                faults.append(error)
        raise_all(faults)

    def replace(self, node: exp.Expr, span: Span, column: Column) -> None:
        """A column in place of the characters of a node, or of its first parts."""
        self.replacements.append(Replacement(span, quoted(column)))
        self.used.add(column.id)
        self.types[id(node)] = column.type
        if column.char is not None:
            self.chars[id(node)] = column.char

    def put(self, node: exp.Expr, bound: Bound) -> None:
        """An expression in place of a whole part of the tree."""
        self.replacements.append(Replacement(self.binder.span(node), bound.expr.sql))
        self.used |= bound.expr.columns
        self.types[id(node)] = bound.type

    def refused(self, what: str, node: exp.Expr, hint: str = "") -> RefusedError:
        return not_offered(what, self.binder.place(node), hint)

    def _grouping_key(self, node: exp.Expr) -> bool:
        grouping = self.binder.grouping
        if grouping is None or isinstance(node, exp.Column | exp.Identifier | exp.Var | exp.DataType):
            return False
        if not any(canonical[1:] or not canonical[:1][0].startswith("`") for _, _, canonical in grouping.keys):
            return False
        span = span_of(node)
        if span is None or self._longer(span, max(len(canonical) for _, _, canonical in grouping.keys)):
            return False
        canonical = self.binder.canonical(node)
        key = grouping.key_of(canonical) if canonical else None
        if key is None or isinstance(node, exp.Literal):
            return False
        self.replace(node, span, key)
        return True

    def _longer(self, span: Span, pieces: int) -> bool:
        """Whether a text is certain to have more pieces in its canonical form than these: whoever compares each part of
        a long chain with a key would read the chain as often as it has parts."""
        source = self.binder.source
        count = source.count(span)
        if count <= pieces:
            return False
        return count - 2 * source.opened(span) > pieces * _TOKENS_OF_A_COLUMN
