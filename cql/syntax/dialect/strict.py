"""Where sqlglot's parser takes more than Spark does, which would hide a mistake: a comma with nothing beside it, an
empty list of columns; and where what is refused by name must be read first: PIVOT, ``window(..)`` in GROUP BY.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from sweeparea.cql.syntax.dialect.spans import SpannedParser
from sweeparea.cql.text import errors
from sweeparea.cql.text.tokens import TokenType


class StrictParser(SpannedParser):
    """Spark's parser without what only sqlglot takes."""

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        """A list, which the parser would let end with a comma, or hold nothing between two."""

        def item() -> Any:
            behind = self._index > 0 and self._prev.token_type == sep
            found = parse_method()
            if found is None and (behind or self._curr.token_type == sep):
                self.raise_error("Expected one more entry beside the comma")
            return found

        return super()._parse_csv(item, sep)

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        first = self._index
        join = super()._parse_join(*args, **kwargs)
        if join is None and self._index > first and self._prev.token_type == TokenType.COMMA:
            self.raise_error("Expected one more entry of FROM behind the comma")
        return join

    def _parse_group(self, *args: Any, **kwargs: Any) -> exp.Group | None:
        """GROUP BY, which may begin with Spark's window(..): that is refused with its reason where it is bound."""
        modifiers = self.QUERY_MODIFIER_TOKENS
        call = self._tokens[self._index + 2] if self._index + 2 < len(self._tokens) else None
        if self._next.token_type == TokenType.WINDOW and call is not None and call.token_type == TokenType.L_PAREN:
            self.QUERY_MODIFIER_TOKENS = modifiers - {TokenType.WINDOW}  # type: ignore[misc]
        try:
            return super()._parse_group(*args, **kwargs)
        finally:
            self.QUERY_MODIFIER_TOKENS = modifiers  # type: ignore[misc]

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        if self._at_pivot():
            return None
        alias = super()._parse_table_alias(alias_tokens)
        if alias is None:
            return None
        if self._curr.token_type == TokenType.L_PAREN and self._next.token_type == TokenType.R_PAREN:
            place = self.source.place(self._curr.start)
            raise errors.ParseError("the list of columns is empty", place, "Leave it out, or write AS v(a, b)")
        return alias

    def _at_pivot(self) -> bool:
        following = self._next.text.upper() if self._next else ""
        return self._curr.token_type in (TokenType.PIVOT, TokenType.UNPIVOT) and following in (
            "(",
            "INCLUDE",
            "EXCLUDE",
        )

    def _parse_pivot(self) -> exp.Pivot | None:
        """PIVOT or UNPIVOT, which is refused whatever stands in its parentheses."""
        first = self._index
        if not self._match_set((TokenType.PIVOT, TokenType.UNPIVOT)):
            return None
        if self._match_text_seq("INCLUDE") or self._match_text_seq("EXCLUDE"):
            self._match_text_seq("NULLS")
        if self._curr.token_type != TokenType.L_PAREN:
            self._retreat(first)
            return None
        depth = 0
        while self._curr:
            depth += (self._curr.token_type == TokenType.L_PAREN) - (self._curr.token_type == TokenType.R_PAREN)
            self._advance()
            if not depth:
                break
        if depth:
            self.raise_error("Expecting )")
        pivot = exp.Pivot(expressions=[])
        pivot.meta["span"] = self.span_since(first)
        pivot.set("alias", self._parse_table_alias())
        return pivot
