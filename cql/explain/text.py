"""A rewritten plan as CQL: what a query became, to be read, changed and registered again."""

from __future__ import annotations

from collections.abc import Container

from sweeparea.cql.printing.plan_printer import NotPrintable, print_plan
from sweeparea.cql.syntax.dialect.tokenizing import tokenize
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import Token, TokenType
from sweeparea.operators.plan.plan import Plan

_BREAKS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "ORDER BY", "UNION", "EXCEPT", "INTERSECT"),
    *("LATERAL", "JOIN", "LEFT", "RIGHT", "FULL", "CROSS", "INNER"),
)
"""Words that begin a line of a query."""


def as_cql(plan: Plan, static: Container[str] = ()) -> str:
    """A statement that means the plan as it runs, its columns named by the engine; where a part of the plan is more
    than the language can say, a comment that names it."""
    del static  # the text says nothing of patterns
    head = f"-- {plan.name} as it runs, after its rewrites; c0, c1, .. are the plan's columns\n"
    try:
        return f"{head}{_laid_out(print_plan(plan))};\n"
    except NotPrintable as error:
        return f"{head}-- There is no such text. {error} `--form tree` shows the plan.\n"


def _laid_out(text: str) -> str:
    """The text with each clause on a line, indented by the queries around it."""
    head, _, query = text.partition("\nAS\n")
    tokens = SourceText(query, "the plan", tokenize(query, "the plan")).tokens
    lines: list[str] = []
    line, end = "", 0
    inside: list[bool] = []  # for each open parenthesis, whether a query is in it
    for i, token in enumerate(tokens):
        if _begins(tokens, i) and (not inside or inside[-1]) and line.strip():
            lines.append(line.rstrip())
            line = "  " * sum(inside)
        elif token.start > end:
            line += " "
        line += query[token.start : token.end + 1]
        end = token.end + 1
        if token.token_type == TokenType.L_PAREN:
            inside.append(_holds_query(tokens, i))
            if inside[-1]:
                lines.append(line)
                line = "  " * sum(inside)
                end = tokens[i + 1].start
        elif token.token_type == TokenType.R_PAREN and inside:
            inside.pop()
    return "\n".join([head, "AS", *lines, line])


def _holds_query(tokens: list[Token], i: int) -> bool:
    while i < len(tokens) and tokens[i].token_type == TokenType.L_PAREN:
        i += 1
    return i < len(tokens) and tokens[i].token_type == TokenType.SELECT


def _begins(tokens: list[Token], i: int) -> bool:
    word = " ".join(tokens[i].text.upper().split())
    before = tokens[i - 1].text.upper() if i else ""
    if tokens[i].token_type in (TokenType.STRING, TokenType.IDENTIFIER) or word not in _BREAKS:
        return False
    return not (word == "JOIN" and before in ("LEFT", "RIGHT", "FULL", "CROSS", "INNER", "SEMI", "ANTI", "OUTER"))
