"""The sqlglot dialect: Spark SQL plus windows behind a table and the relation-to-stream operators.

What differs from sqlglot's Spark dialect, and why:

* ``S [Range 5]``: after a table (``_parse_bracket``), after a subquery (``_parse_subquery``) and after an alias
  (``_parse_table_alias``) a bracket is a window, kept as ``WindowText`` in the node's ``meta["window"]``. A table is
  never indexed.
* ``ISTREAM(SELECT ..)`` where a query may stand becomes a ``Subquery`` with ``meta["to_stream"]``; ``ISTREAM(a, b)``
  in a select list stays a function call of that name, which the binder takes apart.
* A bare name where a query must stand is ``SELECT * FROM`` it: ``A UNION ALL B [Range 5]``, ``ISTREAM(R)``.
* ``VALUES ..`` where a query may stand is ``SELECT * FROM VALUES ..``; ``EXISTS``, ``ANY``, ``SOME`` and ``ALL`` of any
  kind of query, in however many parentheses, are ``exp.Exists``, ``exp.Any`` and ``exp.All``.
* Functions are not turned into sqlglot's own classes: the tree is read for names only, never printed, so ``f(x)`` stays
  ``Anonymous("f", [x])`` and nothing about a Spark function can get lost.
* Each node remembers the characters it was parsed from (``meta["span"]``), for places in errors and for
  ``SourceText.splice``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

from sweeparea.cql.syntax.window_text import WindowText, parse_window
from sweeparea.cql.text import errors
from sweeparea.cql.text.durations import DurationText, parse_duration, parse_instant, starts_duration
from sweeparea.cql.text.source_text import SourceText, Span
from sweeparea.cql.text.tokens import Token, TokenType

TO_STREAM = ("ISTREAM", "DSTREAM", "RSTREAM")

_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM, TokenType.TABLE)
_SET_OPERATORS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_BEHIND_A_QUERY = (TokenType.R_PAREN, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)
_PREDICATES = {"EXISTS": exp.Exists, "ANY": exp.Any, "SOME": exp.Any, "ALL": exp.All}

_SPANNED = (
    "_parse_expression", "_parse_assignment", "_parse_disjunction", "_parse_conjunction", "_parse_equality",
    "_parse_range", "_parse_bitwise", "_parse_term", "_parse_factor", "_parse_unary", "_parse_type",
    "_parse_atom", "_parse_column", "_parse_primary", "_parse_paren", "_parse_window",
    "_parse_bracket_key_value", "_parse_table_parts", "_parse_cte", "_parse_order",
    "_parse_limit", "_parse_group", "_parse_where", "_parse_having",
)  # fmt: skip
"""Parser methods whose nodes remember their characters; each level of precedence, so that operands do too."""


@dataclass(frozen=True)
class ToStream:
    """A relation-to-stream operator as written. ``every`` and ``anchor`` belong to Rstream."""

    kind: str
    span: Span
    every: DurationText | None = None
    anchor: DurationText | None = None


class StreamQuery(exp.Subquery):
    """``ISTREAM(SELECT ..)``: a subquery that sqlglot must not take for mere parentheses."""

    @property
    def is_wrapper(self) -> bool:
        return False


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


_parse_call = _spanned("_parse_function_call")
_parse_one_join = _spanned("_parse_join")
_parse_grouping = _spanned("_parse_group")
_HEADS = ("RANGE", "ROWS", "TUMBLING", "HOPPING", "FIXED", "SESSION")
"""Words that begin a window with a length or a number behind them."""
_ENTRY_ENDS = (
    *(TokenType.COMMA, TokenType.R_PAREN, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING),
    *(TokenType.JOIN, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.ON, TokenType.USING, TokenType.UNION),
    *(TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.CROSS, TokenType.INNER, TokenType.EXCEPT),
)


class CqlParser(SparkParser):
    """Spark's parser with windows and relation-to-stream operators."""

    FUNCTIONS: ClassVar = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    FUNCTION_PARSERS: ClassVar = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM")
    } | {name: lambda self: self._parse_to_stream_call() for name in TO_STREAM}
    # Spark reads JSON by functions; -> belongs to lambdas alone
    COLUMN_OPERATORS: ClassVar = {
        kind: SparkParser.COLUMN_OPERATORS[kind] for kind in (TokenType.DOT, TokenType.DCOLON)
    }
    JSON_OPERATORS: ClassVar = {}
    ARRAY_CONSTRUCTORS: ClassVar = {}  # array(a)[0] is an element of it, not ARRAY[0]
    TYPE_TOKENS: ClassVar = SparkParser.TYPE_TOKENS - {TokenType.NULL}  # array(NULL, a) holds two values and no type
    NAME_TOKENS: ClassVar = frozenset((TokenType.IDENTIFIER, *SparkParser.ID_VAR_TOKENS)) - {TokenType.ALL}
    ADD_JOIN_ON_TRUE = False
    SUPPORTS_TABLE_QUERY = True  # TABLE name
    # each of these would consume text that Spark's grammar does not have
    PLACEHOLDER_PARSERS: ClassVar = {}

    for _name in _SPANNED:
        locals()[_name] = _spanned(_name)
    del _name  # pyright: ignore[reportPossiblyUnboundVariable]

    source: SourceText

    # -- windows -----------------------------------------------------------------------------------------------------

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if isinstance(this, exp.Table):
            return self._take_window(this)
        return super()._parse_bracket(this)

    def _parse_subquery(self, this: exp.Expr | None, parse_alias: bool = True) -> exp.Subquery | None:
        window = self._window() if parse_alias and this is not None else None
        subquery = super()._parse_subquery(this, parse_alias)
        if subquery is not None and window is not None:
            subquery.meta["window"] = window
        return subquery

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        if self._at_every() or self._at_pivot():
            return None
        self._refuse_bare_window()
        alias = super()._parse_table_alias(alias_tokens)
        if alias is None:
            return None
        if self._curr.token_type == TokenType.L_PAREN and self._next.token_type == TokenType.R_PAREN:
            place = self.source.place(self._curr.start)
            raise errors.ParseError("the list of columns is empty", place, "Leave it out, or write AS v(a, b)")
        if self._curr.token_type != TokenType.L_BRACKET:
            self._refuse_bare_window()
        return self._take_window(alias)

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

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        if self._at_every():
            return this
        first = self._index
        aliased = super()._parse_alias(this, explicit)
        if aliased is not None and aliased is not this and this is not None and self._index > first:
            start = span_of(this)
            if start is not None:
                aliased.meta["span"] = (start[0], self._tokens[self._index - 1].end + 1)
        return aliased

    def _take_window(self, node: Any) -> Any:
        window = self._window()
        if window is not None:
            node.meta["window"] = window
        return node

    def _window(self) -> WindowText | None:
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
        join = _parse_one_join(self, *args, **kwargs)
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
            return _parse_grouping(self, *args, **kwargs)
        finally:
            self.QUERY_MODIFIER_TOKENS = modifiers  # type: ignore[misc]

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
        pivot.meta["span"] = (self._tokens[first].start, self._tokens[self._index - 1].end + 1)
        pivot.set("alias", self._parse_table_alias())
        return pivot

    # -- relation to stream ------------------------------------------------------------------------------------------

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> exp.Expr | None:
        first = self._index
        if self._at_stream_query(nested or table):
            node = self._parse_stream_query(table and parse_subquery_alias)
            if parse_set_operation and not table:
                node = self._parse_set_operations(node)
        elif not table and self._at_named_query(self._index, nested):
            node = self._parse_named_query()
            if parse_set_operation:
                node = self._parse_set_operations(node)
        else:
            node = super()._parse_select(nested, table, parse_subquery_alias, parse_set_operation, consume_pipe=False)
            if isinstance(node, exp.Values) and not table:
                node = self._parse_query_modifiers(self._values_to_select(node))
            if node is None and not table and self._behind_set_operator():
                self._refuse_no_query()
        if isinstance(node, exp.Expr) and self._index > first:
            node.meta.setdefault("span", (self._tokens[first].start, self._tokens[self._index - 1].end + 1))
        return node

    def _parse_select_or_expression(self, alias: bool = False) -> exp.Expr | None:
        """What IN and functions hold: a query may be a stream there too."""
        if self._at_stream_query() or self._at_named_query(self._index, False):
            return self._parse_select()
        return super()._parse_select_or_expression(alias)

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        first = self._index
        node = _parse_call(self, *args, **kwargs)
        predicate = _PREDICATES.get(node.name.upper()) if isinstance(node, exp.Anonymous) else None
        if predicate is None or len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Query):
            return node
        made = self.expression(predicate(this=node.expressions[0]))
        made.meta["span"] = (self._tokens[first].start, self._tokens[self._index - 1].end + 1)
        return made

    def _parse_statement(self) -> exp.Expr | None:
        """What WITH names or precedes: a query, which may be a stream."""
        if self._at_stream_query(True) or self._at_named_query(self._index, True):
            return self._parse_select(nested=True)
        return super()._parse_statement()

    # -- names as queries --------------------------------------------------------------------------------------------

    def _at_named_query(self, index: int, needed: bool) -> bool:
        """Whether a name that stands for all its rows is there: before or behind UNION and the like, or alone where
        only a query can stand (``needed``)."""
        before = index
        index = self._behind_name(index)
        if index == before:
            return False
        following = self._tokens[index] if index < len(self._tokens) else None
        if following is not None and following.token_type in _SET_OPERATORS:
            return True
        ends = following is None or following.token_type in _BEHIND_A_QUERY or following.text.upper() == "EVERY"
        return ends and (needed or self._behind_set_operator())

    def _behind_name(self, index: int) -> int:
        """The index behind a name and its window; ``index`` itself where none stands."""
        first = index
        while index < len(self._tokens) and self._tokens[index].token_type in self.NAME_TOKENS:
            index += 1
            if index >= len(self._tokens) or self._tokens[index].token_type != TokenType.DOT:
                break
            index += 1
        else:
            return first
        if index < len(self._tokens) and self._tokens[index].token_type == TokenType.L_BRACKET:
            while index < len(self._tokens) and self._tokens[index].token_type != TokenType.R_BRACKET:
                index += 1
            index += 1
        return index

    def _behind_set_operator(self) -> bool:
        before = self._tokens[self._index - 1] if self._index else None
        if before is not None and before.token_type in (TokenType.ALL, TokenType.DISTINCT) and self._index > 1:
            before = self._tokens[self._index - 2]
        return before is not None and before.token_type in _SET_OPERATORS

    def _parse_named_query(self) -> exp.Expr:
        table = self._take_window(self._parse_table_parts())
        return self.expression(exp.Select(expressions=[exp.Star()], from_=exp.From(this=table)))

    def _refuse_no_query(self) -> None:
        """ParseError behind UNION and the like, where neither a query nor a name alone stands."""
        behind = self._behind_name(self._index)
        if behind == self._index:
            return
        name = self.source.splice((self._curr.start, self._tokens[behind - 1].end + 1))
        if errors.nearest(name, ("SELECT", "VALUES")):
            hint = errors.nearest(name, ("SELECT", "VALUES"))
        else:
            hint = f"Write SELECT .. FROM {name}, or {name} alone for all its rows"
        raise errors.ParseError(f"a query is expected, found {name!r}", self.source.place(self._curr.start), hint)

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
        return self._at_named_query(index, named)

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
            window = self._window()
            subquery.set("alias", self._parse_table_alias())
            if window is not None:
                subquery.meta["window"] = window
        subquery.meta["to_stream"] = ToStream(first.text.upper(), (first.start, first.end + 1), every, anchor)
        return subquery

    def _parse_to_stream_call(self) -> exp.Expr:
        """``ISTREAM(a, b AS c)`` in a select list; the parenthesis that closes it is the caller's."""
        name: Token = self._tokens[self._index - 2]
        distinct = self._match(TokenType.DISTINCT)
        if self._at_named_query(self._index, False) or self._curr.token_type in _QUERY_STARTS:
            raise errors.ParseError(
                f"{name.text.upper()}(..) behind SELECT holds columns, found a query",
                self.source.place(self._curr.start),
                f"Leave SELECT out: {name.text.upper()}(A UNION ALL B), {name.text.upper()}(SELECT a FROM s)",
            )
        arguments = self._parse_csv(self._parse_expression)
        every, anchor = self._parse_every()
        call = exp.Anonymous(this=name.text, expressions=arguments)
        call.meta["to_stream"] = ToStream(name.text.upper(), (name.start, name.end + 1), every, anchor)
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


class Cql(Spark):
    """Spark SQL with windows and relation-to-stream operators."""

    INTERSECT_BINDS_TIGHTER_THAN_UNION_AND_EXCEPT = True  # as Spark's grammar has it
    SUPPORTS_COLUMN_JOIN_MARKS = True  # read, to be refused with the way out

    class Tokenizer(Spark.Tokenizer):
        # EXPLAIN, SHOW and the like would swallow the rest of a statement as one string
        COMMANDS: ClassVar = set()
        KEYWORDS: ClassVar = {
            word: kind
            for word, kind in Spark.Tokenizer.KEYWORDS.items()
            if not word.startswith(("FOR ", "ADD ", "{", "MSCK ", "KILL"))
            and word not in ("ISNULL", "NOTNULL")  # a function and a name in Spark, no operators
        } | {"(+)": TokenType.JOIN_MARKER}

    Parser = CqlParser


def tokenize(text: str, file: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of a text, or of its characters from ``start`` to ``end``; a ParseError with the place where a string
    or comment is not closed."""
    from sqlglot.errors import SqlglotError

    part = text[start:end]
    try:
        tokens = Cql().tokenize(part)
    except (SqlglotError, ValueError, IndexError) as error:
        offset = _unclosed(part)
        binary = re.search(r"\b[xX]'(?![0-9a-fA-F]*')", part)
        if binary is not None and offset is None:
            raise errors.ParseError(
                "a binary literal holds hexadecimal digits",
                SourceText(text, file).place(start + binary.start()),
                "Write X'1F'",
            ) from None
        detail = "a quote or comment that is opened here is not closed" if offset is not None else str(error)
        raise errors.ParseError(
            detail,
            SourceText(text, file).place(start + (offset or 0)),
            "Close it, or double a backtick inside a quoted name",
        ) from None
    for token in tokens if start else ():
        token.start += start
        token.end += start
    return tokens


def _unclosed(text: str) -> int | None:
    """The offset of the quote or comment that runs to the end of the text."""
    i = 0
    while i < len(text):
        start, c = i, text[i]
        if text.startswith("--", i):
            i = text.find("\n", i)
            if i < 0:
                return None
        elif text.startswith("/*", i):
            i = text.find("*/", i + 2)
            if i < 0:
                return start
            i += 1
        elif c in "'\"`":
            i += 1
            while i < len(text) and text[i] != c:
                i += 2 if text[i] == "\\" and c != "`" else 1
            if i >= len(text):
                return start
        i += 1
    return None
