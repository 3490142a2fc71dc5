"""Parts of queries that are refused by name, so that nothing of a text is silently ignored."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.text.errors import not_offered

_REFUSED_PARTS = {
    "sort": ("SORT BY", "A relation has no order: leave it out, or write ORDER BY .. LIMIT"),
    "cluster": ("CLUSTER BY", "A relation has no order: leave it out"),
    "distribute": ("DISTRIBUTE BY", "Leave it out: how rows are spread is the engine's matter"),
    "into": ("INTO", "The result has the query's name: CREATE CONTINUOUS QUERY name AS SELECT .."),
    "hint": ("a hint", "Leave it out: plans are chosen by the rewrites"),
    "kind": ("SELECT AS STRUCT", "Write SELECT struct(a, b) AS s"),
    "pivots": ("PIVOT", "Write SUM(x) FILTER (WHERE b = 'v') AS v for each column"),
    "sample": ("TABLESAMPLE", "Chance gives another answer each time. Filter by a column, such as a % 10 = 0"),
    "exclude": ("SELECT * EXCLUDE", "Write * EXCEPT (a)"),
    "operation_modifiers": ("this modifier of SELECT", "Leave it out"),
    "match": ("MATCH_RECOGNIZE", "Write joins of windows, or LAG and LEAD"),
    "connect": ("CONNECT BY", "Join the relation with itself, as deep as it goes"),
    "prewhere": ("PREWHERE", "Write WHERE"),
    "locks": ("FOR UPDATE", "Leave it out: nothing is locked"),
    "settings": ("SETTINGS", "Write CREATE CONTINUOUS QUERY .. WITH (name = value)"),
    "format": ("FORMAT", "Leave it out"),
    "options": ("OPTION", "Leave it out"),
    "by_name": ("a set operation BY NAME", "List the columns in one order in both parts"),
    "side": ("an outer set operation", "Write UNION, INTERSECT or EXCEPT, or an outer join"),
    "limit": ("LIMIT here", "Write it behind ORDER BY"),
    "laterals": ("LATERAL VIEW here", "Write it behind FROM"),
}
"""What each part is called, and the way out."""


def refuse_parts(context: Context, node: exp.Expr, offered: set[str]) -> None:
    """RefusedError for a part of a query that is not among those ``offered``."""
    for name, value in node.args.items():
        if name in offered or not value:
            continue
        if name == "kind" and isinstance(node, exp.SetOperation):
            name = "side"  # OUTER UNION
        what, hint = _REFUSED_PARTS.get(name, (name.rstrip("_").replace("_", " ").upper(), "Leave it out"))
        first = value[0] if isinstance(value, list) else value
        at = first if isinstance(first, exp.Expr) and span_of(first) is not None else node
        raise not_offered(what, context.place(at.expression if isinstance(at, exp.SetOperation) else at), hint)
