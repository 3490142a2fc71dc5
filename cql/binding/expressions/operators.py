"""Operators: comparisons, CASE, BETWEEN, IN, NOT, signs, subscripts and casts."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.expressions import char_comparisons, concatenation, subquery_values
from sweeparea.cql.binding.expressions.quantified import membership_of
from sweeparea.cql.binding.expressions.walk import Walk
from sweeparea.cql.functions import char_padding
from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.source_text import Replacement

_CUT = ("HAVING", "QUALIFY")
"""Where a condition is bound as a whole and cut at AND later: a STRING that Spark reads as a BOOLEAN beside one must
be one alone, too. WHERE and ON are cut before (``Binder.condition``)."""


def operation(walk: Walk, node: exp.Expr) -> None:
    if membership_of(node) is not None:
        subquery_values.subquery(walk, node)
        return
    walk.children(node)
    if isinstance(node, char_padding.COMPARISONS):
        char_comparisons.pad_comparison(walk, node.this, node.expression)
    walk.checks.operation(node)
    if isinstance(node, exp.DPipe):
        concatenation.flattened(walk, node)
    if isinstance(node, exp.And) and walk.binder.where in _CUT:
        for side in (node.this, node.expression):
            if id(side) in walk.conditions and walk.types[id(side)] == "string":
                walk.as_boolean(side)


def beside(walk: Walk, node: exp.Expr) -> None:
    if isinstance(node, exp.Case) and node.args.get("this") is None:
        walk.conditions |= {id(branch.this) for branch in node.args.get("ifs") or []}
    walk.children(node)
    if isinstance(node, exp.In):
        char_comparisons.pad_members(walk, node.this, node.expressions)
    elif isinstance(node, exp.Case) and node.this is not None:
        char_comparisons.pad_cases(walk, node)
    walk.checks.beside(node)


def not_(walk: Walk, node: exp.Expr) -> None:
    inner = node.this
    if not isinstance(inner, exp.In) or inner.args.get("query") is None:
        walk.children(node)
        walk.checks.condition(inner, "NOT")
        return
    # of a NOT IN (..) the characters of IN hold the NOT as well
    subquery_values.subquery(walk, inner)
    found = walk.replacements.pop()
    walk.replacements.append(Replacement(walk.binder.span(node), f"(NOT {found.text})"))


def unary(walk: Walk, node: exp.Expr) -> None:
    walk.children(node)
    walk.checks.unary(node)


def bracket(walk: Walk, node: exp.Expr) -> None:
    walk.children(node)
    walk.checks.subscript(node)


def cast(walk: Walk, node: exp.Expr) -> None:
    walk.visit(node.this)
    walk.checks.cast(node)


def in_list(walk: Walk, node: exp.Expr) -> None:
    if membership_of(node) is not None:
        subquery_values.subquery(walk, node)
    elif not node.args.get("expressions"):
        raise ParseError("IN holds no value", walk.binder.place(node), "Write a IN (1, 2), or a IN (SELECT ..)")
    else:
        beside(walk, node)
