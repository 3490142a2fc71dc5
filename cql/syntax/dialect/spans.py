"""Each node remembers the characters it was parsed from (``meta["span"]``), for places in errors and for
``SourceText.splice``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser

from sweeparea.cql.text.source_text import SourceText, Span

_SPANNED = (
    "_parse_expression", "_parse_assignment", "_parse_disjunction", "_parse_conjunction", "_parse_equality",
    "_parse_range", "_parse_bitwise", "_parse_term", "_parse_factor", "_parse_unary", "_parse_type",
    "_parse_atom", "_parse_column", "_parse_primary", "_parse_paren", "_parse_window",
    "_parse_bracket_key_value", "_parse_table_parts", "_parse_cte", "_parse_order", "_parse_function_call",
    "_parse_limit", "_parse_group", "_parse_where", "_parse_having", "_parse_join",
)  # fmt: skip
"""Parser methods whose nodes remember their characters; each level of precedence, so that operands do too."""


def span_of(node: exp.Expr | None) -> Span | None:
    """The characters a node was parsed from; where the parser did not say, those of its parts."""
    if node is None:
        return None
    span = node.meta.get("span")
    if span is not None:
        return span
    if isinstance(node, exp.Identifier) and node.meta.get("start") is not None:
        return node.meta["start"], node.meta["end"] + 1
    if "parts" in node.meta:  # of a chain each link would ask all links before it
        return node.meta["parts"]
    parts = [s for s in (span_of(child) for child in node.iter_expressions()) if s is not None]
    if parts:
        span = min(s[0] for s in parts), max(s[1] for s in parts)
        node.meta["parts"] = span
        return span
    if node.meta.get("start") is not None:
        return node.meta["start"], node.meta["end"] + 1
    return None


def _spanned(name: str) -> Callable[..., Any]:
    parse = getattr(SparkParser, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        first = self._index
        node = parse(self, *args, **kwargs)
        if isinstance(node, exp.Expr) and self._index > first:
            node.meta["span"] = (self._tokens[first].start, self._tokens[self._index - 1].end + 1)
        return node

    method.__name__ = name
    return method


class SpannedParser(SparkParser):
    """Spark's parser, whose nodes remember their characters."""

    source: SourceText

    for _name in _SPANNED:
        locals()[_name] = _spanned(_name)
    del _name  # pyright: ignore[reportPossiblyUnboundVariable]

    def span_since(self, first: int) -> Span:
        """The characters from a token to the one before the parser."""
        return self._tokens[first].start, self._tokens[self._index - 1].end + 1

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        first = self._index
        aliased = super()._parse_alias(this, explicit)
        if aliased is not None and aliased is not this and this is not None and self._index > first:
            start = span_of(this)
            if start is not None:
                aliased.meta["span"] = (start[0], self._tokens[self._index - 1].end + 1)
        return aliased
