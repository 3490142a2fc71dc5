"""USING and NATURAL: joins by equality of columns, which show each of them once, before the others.

That is the preserved side's column, of a full join the one that is not NULL, as in Spark.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sweeparea.cql.binding.scope.bound import column_expr
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.scopes import Entry, Item, Scope, only
from sweeparea.cql.binding.subqueries.correlation import identity
from sweeparea.cql.binding.subqueries.keyed import equal
from sweeparea.cql.binding.subqueries.subqueries import comparable
from sweeparea.cql.functions import char_padding
from sweeparea.cql.rewrites.conditions import all_of, column
from sweeparea.cql.text.errors import BindError, TypeError_
from sweeparea.operators.nodes import Project
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr


def pairs_of(context: Context, left: Scope, right: Scope, join: exp.Expr) -> tuple[list[tuple[Column, Column]], str]:
    """The columns that USING or NATURAL compares, and how the condition is shown."""
    using = join.args.get("using")
    if using:
        names = [u.name for u in using]
    else:
        theirs = {c.label.lower() for c in right.star}
        names = list(dict.fromkeys(c.label for c in left.star if c.label.lower() in theirs))
    place = context.place(join)
    pairs: list[tuple[Column, Column]] = []
    for name in names:
        sides: list[Column] = []
        for side, scope in (("left", left), ("right", right)):
            found = [(i, c) for i, c in scope.unqualified(name) if c is not i.instant]
            if not found:
                known = ", ".join(dict.fromkeys(c.label for c in scope.star))
                raise BindError(
                    f"USING names {name}, which the {side} side of the join lacks", place, f"It has {known}"
                )
            sides.append(only(found, name, place))
        if not comparable(sides[0].type, sides[1].type):
            raise TypeError_(
                f"{name} is {(sides[0].type or '').upper()} on the left and {(sides[1].type or '').upper()} on the "
                "right side of the join",
                place,
                "Write ON with a CAST",
            )
        pairs.append((sides[0], sides[1]))
    return pairs, f"USING ({', '.join(names)})"


def equalities(pairs: list[tuple[Column, Column]], text: str) -> Expr | None:
    """The condition that the columns of each pair are equal."""
    condition = all_of(equal(_padded(a, b), _padded(b, a)) for a, b in pairs)
    return None if condition is None else replace(condition, text=text)


def _padded(one: Column, other: Column) -> Expr:
    """A column of CHAR(n), filled up to the length of a longer one that it is compared with, as in ``ON``."""
    expr, pattern = column(one), char_padding.widened(one.char, other.char)
    return expr if pattern is None else replace(expr, sql=pattern.replace(char_padding.SIDE, expr.sql))


def shown(
    context: Context, node: Node, left: Scope, right: Scope, pairs: list[tuple[Column, Column]], kind: str
) -> Entry:
    """The join and its scope: one column for each pair, before the others."""
    shared = {c.id for pair in pairs for c in pair}
    if kind in ("semi", "anti"):
        scope = Scope(list(left.items), [], set(left.hidden), set(left.enriched))
        shown = [a for a, _ in pairs]
    else:
        scope = left.beside(right)
        shown = [b if kind == "right" else a for a, b in pairs]
        scope.hidden |= {a.id if kind == "right" else b.id for a, b in pairs}
    others = [c for c in (left.star if kind in ("semi", "anti") else [*left.star, *right.star]) if c.id not in shared]
    if kind == "full" and pairs:
        merged = [(context.new_column(a.label, _merged_type(a, b)), _either(a, b)) for a, b in pairs]
        node = Project(node, (*identity(node.columns), *merged))
        shown = [c for c, _ in merged]
        scope.items.append(Item(None, tuple(shown)))
        scope.hidden |= {a.id for a, _ in pairs}
    scope.star = [*shown, *others]
    return node, scope


def _merged_type(a: Column, b: Column) -> str | None:
    return a.type if a.type == b.type else None


def _either(a: Column, b: Column) -> Expr:
    return Expr(f"coalesce({column_expr(a).sql}, {column_expr(b).sql})", a.label, frozenset({a.id, b.id}))
