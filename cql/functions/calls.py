"""A function call taken apart: ``F(DISTINCT a, b ORDER BY c) WITHIN GROUP (ORDER BY d) IGNORE NULLS FILTER (WHERE e)``.

The parser nests these parts around the call in the order in which they were written; aggregates and window functions
want them side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp


@dataclass
class WrittenCall:
    """One call of an aggregate or window function. ``node`` is all of it, ``function`` the name with its arguments.

    ``ignore_nulls`` is None where neither IGNORE NULLS nor RESPECT NULLS is written. ``order`` is that of WITHIN GROUP
    or of an ORDER BY among the arguments, ``within`` tells which.
    """

    node: exp.Expr
    function: exp.Anonymous
    arguments: list[exp.Expr]
    distinct: bool = False
    filter: exp.Expr | None = None
    order: list[exp.Expr] = field(default_factory=list)
    within: bool = False
    ignore_nulls: bool | None = None
    limit: exp.Expr | None = None

    @property
    def name(self) -> str:
        return self.function.name.upper()


_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def function_of(node: exp.Expr) -> exp.Anonymous | None:
    """The call inside its FILTER, WITHIN GROUP and IGNORE NULLS."""
    while isinstance(node, _AROUND):
        node = node.this
    return node if isinstance(node, exp.Anonymous) else None


def written_call(node: exp.Expr) -> WrittenCall | None:
    """The parts of a call, or None if the tree is no call of a function by name."""
    function = function_of(node)
    if function is None:
        return None
    call = WrittenCall(node, function, list(function.expressions))
    around = node
    while isinstance(around, _AROUND):
        if isinstance(around, exp.Filter):
            call.filter = around.expression.this if isinstance(around.expression, exp.Where) else around.expression
        elif isinstance(around, exp.WithinGroup):
            call.order, call.within = list(around.expression.expressions), True
        else:
            call.ignore_nulls = isinstance(around, exp.IgnoreNulls)
        around = around.this
    _inside(call)
    return call


def _inside(call: WrittenCall) -> None:
    # the parser hangs what follows the last argument onto that argument: first(a IGNORE NULLS), listagg(a ORDER BY b)
    while call.arguments:
        last = call.arguments[-1]
        if isinstance(last, exp.IgnoreNulls | exp.RespectNulls):
            call.ignore_nulls = isinstance(last, exp.IgnoreNulls)
        elif isinstance(last, exp.Order) and last.this is not None:
            call.order = list(last.expressions)
        elif isinstance(last, exp.Limit) and last.this is not None:
            call.limit = last
        else:
            break
        call.arguments[-1] = last.this
    if len(call.arguments) == 1 and isinstance(call.arguments[0], exp.Distinct):
        call.distinct, call.arguments = True, list(call.arguments[0].expressions)
        _inside(call)
