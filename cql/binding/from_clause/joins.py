"""Joins in FROM: inner, cross, left, right, full, semi, anti, with ON, USING or NATURAL, and with LATERAL subqueries.

RIGHT JOIN is a left join with its sides exchanged. What ON says of one side alone goes into that side where the other
rows of the side cannot matter: into both of an inner join, into the optional side of an outer, semi or anti join.

USING and NATURAL join by equality of columns and show each once, before the others: the preserved side's column, of a
full join the one that is not NULL, as in Spark.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from sweeparea.cql.binding.expressions.binder import Binder, column_expr, conjuncts
from sweeparea.cql.binding.from_clause import enrichment
from sweeparea.cql.binding.scope.scopes import Item, Scope, only
from sweeparea.cql.binding.subqueries.correlation import identity, ids
from sweeparea.cql.binding.subqueries.decorrelate import Subquery
from sweeparea.cql.binding.subqueries.dependent_join import both, same
from sweeparea.cql.binding.subqueries.keyed import equal
from sweeparea.cql.binding.subqueries.subqueries import Subqueries, comparable
from sweeparea.cql.functions import char_padding
from sweeparea.cql.rewrites import push_selection
from sweeparea.cql.rewrites.conditions import all_of, column, substitute
from sweeparea.cql.text.errors import BindError, ParseError, TypeError_, not_offered
from sweeparea.operators.nodes import Join, Project, UnionAll
from sweeparea.operators.plan.expressions import Column, Expr
from sweeparea.operators.plan.node import Node

if TYPE_CHECKING:
    from sweeparea.cql.binding.from_clause.clause import Bound, FromClause

_KINDS = {
    ("", ""): "inner", ("", "INNER"): "inner", ("", "CROSS"): "inner",
    ("LEFT", ""): "left", ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right", ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full", ("FULL", "OUTER"): "full",
    ("", "SEMI"): "semi", ("LEFT", "SEMI"): "semi",
    ("", "ANTI"): "anti", ("LEFT", "ANTI"): "anti",
}  # fmt: skip
_PARTS = ("this", "on", "using", "kind", "side", "method", "joins")


def bind(clause: FromClause, left: Bound, join: exp.Expr) -> Bound:
    """``left`` joined with the next entry of FROM."""
    kind = _kind(clause, join)
    if isinstance(join.this, exp.Lateral):
        return _lateral(clause, left, join, kind)
    right = clause.entry(join.this, joined=True)
    if enrichment.is_non_retroactive(clause.context, right[0]):
        return _enriched(clause, left, right, join, kind)
    natural = str(join.args.get("method") or "").upper() == "NATURAL"
    if join.args.get("using") or natural:
        return _using(clause, left, right, join, kind)
    scope = left[1] if kind in ("semi", "anti") else left[1].beside(right[1])
    if join.args.get("on") is None:
        return _exchanged(left[0], right[0], None, kind), scope
    return _Condition(clause, left, right, join, kind).bind(), scope


def _kind(clause: FromClause, join: exp.Expr) -> str:
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    method = str(join.args.get("method") or "").upper()
    found = _KINDS.get((side, kind))
    name = " ".join(w for w in (method, side, kind) if w)
    place = clause.queries.place(join)
    if method not in ("", "NATURAL"):
        hint = "Joins are inner, left, right, full, semi, anti and cross"
        if method == "ASOF":
            hint = "Join with the last row of each key: FROM S [Now] JOIN T [Partition By a Rows 1] ON S.a = T.a"
        raise not_offered(f"{name} JOIN", place, hint)
    if found is None:
        raise ParseError(
            f"there is no {name} JOIN", place, "Joins are INNER, CROSS, LEFT, RIGHT, FULL, LEFT SEMI and LEFT ANTI"
        )
    for part, value in join.args.items():
        if value and part not in _PARTS:
            raise not_offered(f"JOIN with {part.upper()}", place, "Write JOIN .. ON, or USING (..)")
    if method and (join.args.get("on") is not None or join.args.get("using")):
        raise ParseError("NATURAL takes neither ON nor USING", place, "Leave one of them out")
    return found


def _exchanged(left: Node, right: Node, condition: Expr | None, kind: str) -> Join:
    if kind == "right":
        return Join(right, left, condition, "left")
    return Join(left, right, condition, kind)


# -- ON ----------------------------------------------------------------------------------------------------------------


class _Condition:
    """One join with ON."""

    def __init__(self, clause: FromClause, left: Bound, right: Bound, join: exp.Expr, kind: str) -> None:
        self.clause, self.kind, self.on = clause, kind, join.args["on"]
        self.left, self.right = left[0], right[0]
        self.subqueries = Subqueries(clause.queries, clause.env)
        self.binder = clause.queries._binder(left[1].beside(right[1]), "ON", self.subqueries)

    def bind(self) -> Node:
        if self.kind == "inner":
            return self.subqueries.filtered(Join(self.left, self.right), self.binder, self.on, lambda action: action())
        own = ids(self.left), ids(self.right)
        conditions = self.binder.conditions(conjuncts(self.on))
        answered = [each for each in self.subqueries.take() if not self._attached(each.attach, each.reads)]
        if answered:
            return self._with_answers(answered, conditions, own)
        return self._joined(conditions)

    def _attached(self, attach, reads: frozenset[str]) -> bool:
        """Whether a subquery's value could be put beside the rows of one side."""
        if not reads & ids(self.left):
            self.right = attach(self.right)
        elif not reads & ids(self.right):
            self.left = attach(self.left)
        else:
            return False
        return True

    def _joined(self, conditions: list[Expr]) -> Node:
        stay: list[Expr] = []
        on_left: list[Expr] = []
        on_right: list[Expr] = []
        for condition in conditions:
            # rows that a condition on the optional side drops have no partner in any case
            if self.kind in ("left", "semi", "anti") and condition.columns and condition.columns <= ids(self.right):
                on_right.append(condition)
            elif self.kind in ("right", "semi") and condition.columns and condition.columns <= ids(self.left):
                on_left.append(condition)
            else:
                stay.append(condition)
        self.left, self.right = push_selection(self.left, *on_left), push_selection(self.right, *on_right)
        return _exchanged(self.left, self.right, all_of(stay), self.kind)

    def _with_answers(self, pending: list, conditions: list[Expr], own: tuple[frozenset, frozenset]) -> Node:
        """A condition with subqueries that read both sides: their values for each combination of what they read are a
        relation of its own, with one row for each pair, which the optional side is joined with."""
        reads = frozenset().union(*(p.reads for p in pending))
        values = frozenset().union(*(p.values for p in pending))

        def attach(plan: Node) -> Node:
            for each in pending:
                plan = each.attach(plan)
            return plan

        decorrelation = self.clause.context.decorrelation
        answers, fresh = decorrelation.answers(Join(self.left, self.right), attach, reads, values)
        left_ids, right_ids = ids(self.left), ids(self.right)
        by = {i: column(fresh[i]) for i in values if i in fresh}
        of = {c.id: c for c in (*self.left.columns, *self.right.columns)}
        on_left = same([(column(of[i]), column(fresh[i])) for i in fresh if i in left_ids])
        on_right = same([(column(of[i]), column(fresh[i])) for i in fresh if i in right_ids])
        full = both(all_of(substitute(c, by) for c in conditions), None)
        if self.kind == "right":
            return Join(self.right, Join(self.left, answers, on_left), both(on_right, full), "left")
        optional = Join(self.right, answers, on_right)
        if self.kind != "full":
            return Join(self.left, optional, both(on_left, full), self.kind)
        # the right rows without a partner: against the left side joined with the answers
        columns = (*self.left.columns, *self.right.columns)
        matched = Join(self.left, optional, both(on_left, full), "left")
        alone = Join(self.right, Join(self.left, answers, on_left), both(on_right, full), "anti")
        new_column = self.clause.context.new_column
        first = Project(matched, tuple((new_column(c.label, c.type), column(c)) for c in columns))
        outputs = [(new_column(c.label, c.type), column(c) if c.id in right_ids else _null(c)) for c in columns]
        return UnionAll((first, Project(alone, tuple(outputs))), columns)


def _null(column: Column) -> Expr:
    return Expr("NULL" if column.type is None else f"CAST(NULL AS {column.type})", "NULL")


# -- USING, NATURAL ----------------------------------------------------------------------------------------------------


def _using(clause: FromClause, left: Bound, right: Bound, join: exp.Expr, kind: str) -> Bound:
    pairs, text = _pairs(clause, left[1], right[1], join)
    condition = _equalities(pairs, text)
    node = _exchanged(left[0], right[0], condition, kind)
    return _shown(clause, node, left[1], right[1], pairs, kind)


def _pairs(clause: FromClause, left: Scope, right: Scope, join: exp.Expr) -> tuple[list[tuple[Column, Column]], str]:
    using = join.args.get("using")
    if using:
        names = [u.name for u in using]
    else:
        theirs = {c.label.lower() for c in right.star}
        names = list(dict.fromkeys(c.label for c in left.star if c.label.lower() in theirs))
    place = clause.queries.place(join)
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


def _equalities(pairs: list[tuple[Column, Column]], text: str) -> Expr | None:
    condition = all_of(equal(_padded(a, b), _padded(b, a)) for a, b in pairs)
    return None if condition is None else replace(condition, text=text)


def _padded(one: Column, other: Column) -> Expr:
    """A column of CHAR(n), filled up to the length of a longer one that it is compared with, as in ``ON``."""
    expr, pattern = column(one), char_padding.widened(one.char, other.char)
    return expr if pattern is None else replace(expr, sql=pattern.replace(char_padding.SIDE, expr.sql))


def _shown(
    clause: FromClause, node: Node, left: Scope, right: Scope, pairs: list[tuple[Column, Column]], kind: str
) -> Bound:
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
        merged = [(clause.context.new_column(a.label, _merged_type(a, b)), _either(a, b)) for a, b in pairs]
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


# -- non-retroactive relations -----------------------------------------------------------------------------------------


def _enriched(clause: FromClause, left: Bound, right: Bound, join: exp.Expr, kind: str) -> Bound:
    window = enrichment.stream_of(clause, left, join, kind)
    natural = str(join.args.get("method") or "").upper() == "NATURAL"
    if join.args.get("using") or natural:
        pairs, text = _pairs(clause, left[1], right[1], join)
        node = enrichment.enriched(window, right[0], _equalities(pairs, text), kind)
        return _shown(clause, node, left[1], right[1], pairs, kind)
    scope = left[1].beside(right[1])
    condition = None
    if join.args.get("on") is not None:
        binder: Binder = clause.queries._binder(scope, "ON of a non-retroactive relation")
        condition = all_of(binder.conditions(conjuncts(join.args["on"])))
    return enrichment.enriched(window, right[0], condition, kind), scope


# -- LATERAL -----------------------------------------------------------------------------------------------------------


def _lateral(clause: FromClause, left: Bound, join: exp.Expr, kind: str) -> Bound:
    queries, place = clause.queries, clause.queries.place(join)
    if kind not in ("inner", "left"):
        raise TypeError_(
            "LATERAL joins are inner, cross or left ones: the subquery needs a row on its left side",
            place,
            "Write LEFT JOIN LATERAL (..), or EXISTS in WHERE",
        )
    if join.args.get("using") or join.args.get("method"):
        raise not_offered("LATERAL with USING or NATURAL", place, "Write ON")
    tree = join.this
    alias, names = clause.alias(tree)
    if clause.window(tree) is not None:
        raise TypeError_("a window needs a stream, not a LATERAL subquery", place, "Window each stream inside")
    bound, outer = queries.nested(tree.this, clause.env, queries._binder(left[1], "LATERAL"))
    columns = clause.renamed(bound.columns, names, tree)
    scope = left[1].beside(Scope.of(Item(alias, columns)))
    subquery = Subquery(bound.node, bound.columns, tuple(outer.used.values()), queries.place(tree))
    decorrelation, on = clause.context.decorrelation, join.args.get("on")
    if kind == "inner":
        node = decorrelation.lateral(left[0], subquery, None, kind)
        if on is None:
            return node, scope
        subqueries = Subqueries(queries, clause.env)
        binder = queries._binder(scope, "ON", subqueries)
        return subqueries.filtered(node, binder, on, lambda action: action()), scope
    binder = queries._binder(scope, "ON of LEFT JOIN LATERAL")
    condition = None if on is None else all_of(binder.conditions(conjuncts(on)))
    return decorrelation.lateral(left[0], subquery, condition, kind), scope
