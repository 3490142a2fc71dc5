"""What counts as a query where one may stand.

* A bare name is ``SELECT * FROM`` it: ``A UNION ALL B [Range 5]``, ``ISTREAM(R)``.
* ``VALUES ..`` is ``SELECT * FROM VALUES ..``.
* ``EXISTS``, ``ANY``, ``SOME`` and ``ALL`` of any kind of query, in however many parentheses, are ``exp.Exists``,
  ``exp.Any`` and ``exp.All``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp

from sweeparea.cql.syntax.dialect.windows import WindowParser
from sweeparea.cql.text import errors
from sweeparea.cql.text.tokens import TokenType

_SET_OPERATORS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_BEHIND_A_QUERY = (TokenType.R_PAREN, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)
_PREDICATES = {"EXISTS": exp.Exists, "ANY": exp.Any, "SOME": exp.Any, "ALL": exp.All}


class QueryParser(WindowParser):
    """Reads names, VALUES and quantified queries as queries."""

    NAME_TOKENS: ClassVar = frozenset((TokenType.IDENTIFIER, *WindowParser.ID_VAR_TOKENS)) - {TokenType.ALL}

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> exp.Expr | None:
        first = self._index
        if not table and self.at_named_query(self._index, nested):
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
            node.meta.setdefault("span", self.span_since(first))
        return node

    def _parse_select_or_expression(self, alias: bool = False) -> exp.Expr | None:
        """What IN and functions hold: a query may be a name there too."""
        if self.at_named_query(self._index, False):
            return self._parse_select()
        return super()._parse_select_or_expression(alias)

    def _parse_statement(self) -> exp.Expr | None:
        """What WITH names or precedes: a query."""
        if self.at_named_query(self._index, True):
            return self._parse_select(nested=True)
        return super()._parse_statement()

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        first = self._index
        node = super()._parse_function_call(*args, **kwargs)
        if not isinstance(node, exp.Anonymous):
            return node
        predicate = _PREDICATES.get(node.name.upper())
        if predicate is None or len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Query):
            return node
        made = self.expression(predicate(this=node.expressions[0]))
        made.meta["span"] = self.span_since(first)
        return made

    # -- names -------------------------------------------------------------------------------------------------------

    def at_named_query(self, index: int, needed: bool) -> bool:
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
        table = self.with_window(self._parse_table_parts())
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
