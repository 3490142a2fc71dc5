"""What is done at each class of syntax nodes, and the two ways to a binder of expressions."""

from __future__ import annotations

from functools import cache
from types import UnionType

from sqlglot import exp

from sweeparea.cql.binding.expressions import (
    aggregate_calls,
    calls,
    char_comparisons,
    columns,
    operators,
    refusals,
    structs,
    subquery_values,
)
from sweeparea.cql.binding.expressions.walk import Handler, Walk
from sweeparea.cql.binding.scope.binder import Binder, NewColumn, TakesSubqueries
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.scopes import Scope
from sweeparea.cql.functions import types
from sweeparea.cql.syntax.trees import conjuncts
from sweeparea.cql.text.source_text import SourceText, Span
from sweeparea.operators.sql.expressions import Expr

_HANDLERS: tuple[tuple[type[exp.Expr] | UnionType, Handler], ...] = (
    (exp.Column, columns.column),
    (exp.Anonymous, calls.function),
    (exp.Window, aggregate_calls.over),
    (exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls, aggregate_calls.around_call),
    (exp.Query, subquery_values.subquery),
    (exp.Exists, subquery_values.exists),
    (exp.Not, operators.not_),
    (exp.Neg | exp.BitwiseNot, operators.unary),
    (exp.Bracket, operators.bracket),
    (exp.Any | exp.All, subquery_values.quantified),
    (exp.In, operators.in_list),
    (exp.Lambda, calls.lambda_),
    (exp.Cast, operators.cast),
    (exp.DataType, lambda walk, node: None),
    (exp.Star, refusals.star),
    (exp.Tuple, structs.tuple_),
    (exp.Placeholder | exp.Parameter | exp.SessionParameter, refusals.parameter),
    (exp.Distinct, refusals.distinct),
    (exp.Kwarg, calls.kwarg),
    (exp.Connector, operators.operation),
    (exp.Between | exp.Case, operators.beside),
    (exp.Func, calls.own_function),
    (exp.Binary, operators.operation),
)
"""By class; of several that fit, the first counts."""


@cache
def _handler_of(kind: type[exp.Expr]) -> Handler | None:
    return next((handler for classes, handler in _HANDLERS if issubclass(kind, classes)), None)


def _bound(binder: Binder, node: exp.Expr, span: Span, condition: bool) -> Bound:
    walk = Walk(binder, _handler_of, conjuncts(node) if condition else ())
    walk.visit(node)
    source = binder.source
    expr = Expr(source.splice(span, walk.replacements), source.splice(span), frozenset(walk.used))
    source.expressions.setdefault(expr.text, span[0])
    char, outer = char_comparisons.char_of(walk, node)
    return Bound(expr, types.normal(types.of(node, walk.types)), None if outer else char)


def binder_over(source: SourceText, scope: Scope, new_column: NewColumn, where: str) -> Binder:
    """The binder at a place that has no query around it, such as a window or a constraint."""
    return Binder(source, scope, new_column, where, _bound)


def binder_at(context: Context, scope: Scope, where: str, subqueries: TakesSubqueries | None = None) -> Binder:
    """The binder at a place of a query: it sees the names of the queries around behind those of ``scope``."""
    return Binder(context.source, scope, context.new_column, where, _bound, outer=context.outer, subqueries=subqueries)
