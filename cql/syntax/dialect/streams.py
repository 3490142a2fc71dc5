"""Relation-to-stream operators.

``ISTREAM(SELECT ..)`` where a query may stand becomes a ``Subquery`` with ``meta["to_stream"]``; ``ISTREAM(a, b)`` in a
select list stays a function call of that name, which the binder takes apart. EVERY and ANCHOR stand behind either.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlglot import exp

from sweeparea.cql.syntax.dialect.queries import QueryParser
from sweeparea.cql.text import errors
from sweeparea.cql.text.durations import DurationText, parse_duration, parse_instant, starts_duration
from sweeparea.cql.text.source_text import Span
from sweeparea.cql.text.tokens import Token, TokenType

_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM, TokenType.TABLE)


class StreamOperator(StrEnum):
    """The relation-to-stream operators, as they are written."""

    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"


TO_STREAM = tuple(StreamOperator)


@dataclass(frozen=True)
class ToStream:
    """A relation-to-stream operator as written. ``every`` and ``anchor`` belong to Rstream."""

    kind: StreamOperator
    span: Span
    every: DurationText | None = None
    anchor: DurationText | None = None


class StreamQuery(exp.Subquery):
    """``ISTREAM(SELECT ..)``: a subquery that sqlglot must not take for mere parentheses."""

    @property
    def is_wrapper(self) -> bool:
        return False


class StreamParser(QueryParser):
    """Reads ISTREAM, DSTREAM and RSTREAM."""

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> exp.Expr | None:
        first = self._index
        if not self._at_stream_query(nested or table):
            return super()._parse_select(nested, table, parse_subquery_alias, parse_set_operation, consume_pipe)
        node = self._parse_stream_query(table and parse_subquery_alias)
        if parse_set_operation and not table:
            node = self._parse_set_operations(node)
        if isinstance(node, exp.Expr) and self._index > first:
            node.meta.setdefault("span", self.span_since(first))
        return node

    def _parse_select_or_expression(self, alias: bool = False) -> exp.Expr | None:
        """What IN and functions hold: a query may be a stream there too."""
        return self._parse_select() if self._at_stream_query() else super()._parse_select_or_expression(alias)

    def _parse_statement(self) -> exp.Expr | None:
        """What WITH names or precedes: a query, which may be a stream."""
        return self._parse_select(nested=True) if self._at_stream_query(True) else super()._parse_statement()

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        return None if self._at_every() else super()._parse_table_alias(alias_tokens)

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        return this if self._at_every() else super()._parse_alias(this, explicit)

    def _at_stream_query(self, named: bool = False) -> bool:
        """At ``ISTREAM(`` with a query inside, possibly in more parentheses; ``named``: a name alone counts as one."""
        if self._curr.text.upper() not in TO_STREAM or self._next.token_type != TokenType.L_PAREN:
            return False
        index = self._index + 2
        while index < len(self._tokens) and self._tokens[index].token_type == TokenType.L_PAREN:
            index += 1
        if index >= len(self._tokens):
            return False
        token = self._tokens[index]
        nested = token.text.upper() in TO_STREAM and index + 1 < len(self._tokens)
        if token.token_type in _QUERY_STARTS or (nested and self._tokens[index + 1].token_type == TokenType.L_PAREN):
            return True
        return self.at_named_query(index, named)

    def _parse_stream_query(self, parse_alias: bool) -> exp.Expr:
        first = self._curr
        self._advance(2)
        query = self._parse_select(nested=True)
        if query is not None:  # (SELECT ..) UNION (SELECT ..) begins with parentheses
            query = self._parse_query_modifiers(self._parse_set_operations(query))
        every, anchor = self._parse_every()
        self._match_r_paren()
        subquery = self.expression(StreamQuery(this=query))
        if parse_alias:
            window = self.window_here()
            subquery.set("alias", self._parse_table_alias())
            if window is not None:
                subquery.meta["window"] = window
        subquery.meta["to_stream"] = ToStream(
            StreamOperator(first.text.upper()), (first.start, first.end + 1), every, anchor
        )
        return subquery

    def _parse_to_stream_call(self) -> exp.Expr:
        """``ISTREAM(a, b AS c)`` in a select list; the parenthesis that closes it is the caller's."""
        name: Token = self._tokens[self._index - 2]
        distinct = self._match(TokenType.DISTINCT)
        if self.at_named_query(self._index, False) or self._curr.token_type in _QUERY_STARTS:
            raise errors.ParseError(
                f"{name.text.upper()}(..) behind SELECT holds columns, found a query",
                self.source.place(self._curr.start),
                f"Leave SELECT out: {name.text.upper()}(A UNION ALL B), {name.text.upper()}(SELECT a FROM s)",
            )
        arguments = self._parse_csv(self._parse_expression)
        every, anchor = self._parse_every()
        call = exp.Anonymous(this=name.text, expressions=arguments)
        operator = StreamOperator(name.text.upper())
        call.meta["to_stream"] = ToStream(operator, (name.start, name.end + 1), every, anchor)
        call.meta["distinct"] = bool(distinct)
        return call

    def _at_every(self) -> bool:
        if self._curr.text.upper() != "EVERY":
            return False
        following = self._tokens[self._index + 2] if self._index + 2 < len(self._tokens) else None
        reference = following is not None and following.token_type == TokenType.DOT  # told of by the duration
        return starts_duration(self._next, following) or reference

    def _parse_every(self) -> tuple[DurationText | None, DurationText | None]:
        every = anchor = None
        if self._at_every():
            every, index = parse_duration(self.source, self._tokens, self._index + 1, "EVERY")
            self._retreat(index)
            if self._match_text_seq("ANCHOR"):
                anchor, index = parse_instant(self.source, self._tokens, self._index, "ANCHOR")
                self._retreat(index)
        return every, anchor
