"""Windows: ``S [Range 5]``.

After a table (``_parse_bracket``), after a subquery (``_parse_subquery``) and after an alias (``_parse_table_alias``) a
bracket is a window, kept as ``WindowText`` in the node's ``meta["window"]``. A table is never indexed.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sweeparea.cql.syntax.dialect.intervals import IntervalParser
from sweeparea.cql.syntax.windows.reader import parse_window
from sweeparea.cql.syntax.windows.window_text import WindowText
from sweeparea.cql.text import errors
from sweeparea.cql.text.tokens import TokenType

_HEADS = ("RANGE", "ROWS", "TUMBLING", "HOPPING", "FIXED", "SESSION")
"""Words that begin a window with a length or a number behind them."""
_ENTRY_ENDS = (
    *(TokenType.COMMA, TokenType.R_PAREN, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING),
    *(TokenType.JOIN, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.ON, TokenType.USING, TokenType.UNION),
    *(TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.CROSS, TokenType.INNER, TokenType.EXCEPT),
)


class WindowParser(IntervalParser):
    """Reads a window wherever an entry of FROM ends."""

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if isinstance(this, exp.Table):
            return self.with_window(this)
        return super()._parse_bracket(this)

    def _parse_subquery(self, this: exp.Expr | None, parse_alias: bool = True) -> exp.Subquery | None:
        window = self.window_here() if parse_alias and this is not None else None
        subquery = super()._parse_subquery(this, parse_alias)
        if subquery is not None and window is not None:
            subquery.meta["window"] = window
        return subquery

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        self._refuse_bare_window()
        alias = super()._parse_table_alias(alias_tokens)
        if alias is None:
            return None
        if self._curr.token_type != TokenType.L_BRACKET:
            self._refuse_bare_window()
        return self.with_window(alias)

    def _refuse_bare_window(self) -> None:
        """ParseError for a window without its brackets, whose first word would be taken for an alias."""
        word, following = self._curr.text.upper(), self._next
        if self._curr.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            return
        sized = following.token_type in (TokenType.NUMBER, TokenType.INTERVAL, TokenType.DASH)
        rest = following.text.upper()
        more = rest == "UNBOUNDED" if word == "RANGE" else rest in ("BY", "WHEN") and word == "TUMBLING"
        if word == "NOW" or (word in _HEADS and (sized or more)):
            last = first = self._index
            while last + 1 < len(self._tokens) and self._tokens[last + 1].token_type not in _ENTRY_ENDS:
                last += 1 if word != "NOW" else len(self._tokens)
            text = "NOW" if word == "NOW" else self.source.splice((self._curr.start, self._tokens[last].end + 1))
            place = self.source.place(self._tokens[first].start)
            raise errors.ParseError(f"a window stands in brackets, and {word} begins one", place, f"Write [{text}]")

    def with_window(self, node: Any) -> Any:
        """A node with the window that stands here, if one does."""
        window = self.window_here()
        if window is not None:
            node.meta["window"] = window
        return node

    def window_here(self) -> WindowText | None:
        """The window that stands here; None where none does."""
        if self._curr.token_type != TokenType.L_BRACKET:
            return None
        window, self_index = parse_window(self.source, self._tokens, self._index, self._parse_condition_at)
        self._retreat(self_index)
        if self._curr.token_type == TokenType.L_BRACKET:
            raise errors.ParseError(
                "a stream takes one window, found two",
                self.source.place(self._curr.start),
                "Keep one of them, or window a subquery: FROM (SELECT * FROM S [..]) t [..]",
            )
        return window

    def _parse_condition_at(self, index: int) -> tuple[exp.Expr | None, int]:
        """An expression that starts at a token, for windows over conditions and columns; and the index behind it."""
        self._retreat(index)
        return self._parse_disjunction(), self._index
