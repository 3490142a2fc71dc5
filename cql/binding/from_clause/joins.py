"""Joins in FROM: inner, cross, left, right, full, semi, anti, with ON (``on.py``), USING or NATURAL (``using.py``), and
with non-retroactive relations (``enrichment.py``).

RIGHT JOIN is a left join with its sides exchanged.
"""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.expressions.registry import binder_at
from sweeparea.cql.binding.from_clause import enrichment
from sweeparea.cql.binding.from_clause.on import OnCondition, exchanged
from sweeparea.cql.binding.from_clause.using import equalities, pairs_of, shown
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.scopes import Entry
from sweeparea.cql.binding.subqueries.queries import Cte, Queries
from sweeparea.cql.rewrites.conditions import all_of
from sweeparea.cql.syntax.trees import conjuncts
from sweeparea.cql.text.errors import ParseError, not_offered
from sweeparea.operators.sweeps.join import JoinKind

_KINDS = {
    ("", ""): "inner", ("", "INNER"): "inner", ("", "CROSS"): "inner",
    ("LEFT", ""): "left", ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right", ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full", ("FULL", "OUTER"): "full",
    ("", "SEMI"): "semi", ("LEFT", "SEMI"): "semi",
    ("", "ANTI"): "anti", ("LEFT", "ANTI"): "anti",
}  # fmt: skip
_PARTS = ("this", "on", "using", "kind", "side", "method", "joins")


def kind_of(context: Context, join: exp.Expr) -> str:
    """inner, left, right, full, semi or anti. ParseError or RefusedError for what is no join."""
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    method = str(join.args.get("method") or "").upper()
    found = _KINDS.get((side, kind))
    name = " ".join(w for w in (method, side, kind) if w)
    place = context.place(join)
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


def joined(queries: Queries, env: dict[str, Cte], left: Entry, right: Entry, join: exp.Expr, kind: str) -> Entry:
    """``left`` joined with the next entry of FROM."""
    context = queries.context
    if enrichment.is_non_retroactive(context, right[0]):
        return _enriched(context, left, right, join, kind)
    natural = str(join.args.get("method") or "").upper() == "NATURAL"
    if join.args.get("using") or natural:
        pairs, text = pairs_of(context, left[1], right[1], join)
        node = exchanged(left[0], right[0], equalities(pairs, text), kind)
        return shown(context, node, left[1], right[1], pairs, kind)
    scope = left[1] if kind in ("semi", "anti") else left[1].beside(right[1])
    on = join.args.get("on")
    if on is None:
        return exchanged(left[0], right[0], None, kind), scope
    return OnCondition(queries, env, left, right, on, kind).bind(), scope


def _enriched(context: Context, left: Entry, right: Entry, join: exp.Expr, kind: str) -> Entry:
    window = enrichment.stream_of(context, left, join, kind)
    natural = str(join.args.get("method") or "").upper() == "NATURAL"
    if join.args.get("using") or natural:
        pairs, text = pairs_of(context, left[1], right[1], join)
        node = enrichment.enriched(window, right[0], equalities(pairs, text), JoinKind(kind))
        return shown(context, node, left[1], right[1], pairs, kind)
    scope = left[1].beside(right[1])
    condition = None
    if join.args.get("on") is not None:
        binder = binder_at(context, scope, "ON of a non-retroactive relation")
        condition = all_of(binder.conditions(conjuncts(join.args["on"])))
    return enrichment.enriched(window, right[0], condition, JoinKind(kind)), scope
