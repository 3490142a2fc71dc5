"""What the parser reads and Spark SQL does not have, or has with a meaning that would get lost: refused by name.

The parser knows many dialects, and some of what it takes leaves no trace but an argument of a node. Each is listed here
with the way out, so that nothing of a text is silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from sweeparea.cql.text.errors import Place, RefusedError, not_offered

_RANK = "Filter by RANK() OVER (ORDER BY ..) with QUALIFY"
_COLUMNS = "Name the columns, with their expressions"
_FORMAT = "Write to_date(a, 'yyyy-MM-dd'), to_timestamp or date_format"
_ARGUMENTS: dict[tuple[type[exp.Expr], str], tuple[str, str]] = {
    (exp.Limit, "limit_options"): ("LIMIT with PERCENT or WITH TIES", _RANK),
    (exp.Limit, "expressions"): ("LIMIT .. BY", "Filter by ROW_NUMBER() OVER (PARTITION BY ..) with QUALIFY"),
    (exp.Fetch, "limit_options"): ("FETCH with PERCENT or WITH TIES", _RANK),
    (exp.Offset, "expressions"): ("OFFSET .. BY", "Filter by ROW_NUMBER() OVER (PARTITION BY ..) with QUALIFY"),
    (exp.Order, "siblings"): ("ORDER SIBLINGS BY", "Write ORDER BY"),
    (exp.Ordered, "with_fill"): ("WITH FILL", "Join with the values that are to be filled in"),
    (exp.Group, "totals"): ("WITH TOTALS", "Write GROUP BY .. WITH ROLLUP"),
    (exp.WindowSpec, "exclude"): ("EXCLUDE in a frame", "Subtract the row's own value, or use two frames"),
    (exp.Window, "first"): ("FIRST or LAST before OVER", "Order the frame otherwise"),
    (exp.CTE, "key_expressions"): ("USING KEY", "Leave it out"),
    (exp.With, "search"): ("SEARCH in WITH", "Leave it out"),
    (exp.Cast, "format"): ("CAST with FORMAT", _FORMAT),
    (exp.Cast, "default"): ("CAST with DEFAULT", "Write COALESCE(TRY_CAST(a AS ..), b)"),
    (exp.Cast, "action"): ("this clause of CAST", "Write CAST(a AS type)"),
    (exp.In, "field"): ("IN without parentheses", "Write a IN (b, c), or array_contains(array, a)"),
    (exp.In, "unnest"): ("IN UNNEST", "Write array_contains(array, a)"),
    (exp.Between, "symmetric"): ("BETWEEN SYMMETRIC", "Write BETWEEN LEAST(b, c) AND GREATEST(b, c)"),
    (exp.Star, "replace"): ("* REPLACE", f"{_COLUMNS}, or write * EXCEPT (a), a + 1 AS a"),
    (exp.Star, "rename"): ("* RENAME", f"{_COLUMNS}, or write * EXCEPT (a), a AS b"),
    (exp.Star, "ilike"): ("* ILIKE", _COLUMNS),
    (exp.Column, "join_mark"): (
        "the join mark (+)",
        "Write FROM S LEFT JOIN R ON S.a = R.a, with the side marked by (+) on the right",
    ),
    (exp.Lateral, "ordinality"): ("WITH ORDINALITY", "Write posexplode(..)"),
    (exp.Trim, "collation"): ("TRIM with COLLATE", "Leave COLLATE out"),
}
_NODES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.SimilarTo: ("SIMILAR TO", "Write a RLIKE 'pattern'"),
    exp.RegexpILike: ("~*", "Write a RLIKE '(?i)pattern'"),
    exp.Glob: ("GLOB", "Write a LIKE 'x%', or a RLIKE 'pattern'"),
    exp.Overlaps: ("OVERLAPS", "Write a < d AND c < b for the periods from a to b and from c to d"),
    exp.Array: ("an array in brackets", "Write array(1, 2)"),
    exp.Struct: ("a structure in braces", "Write struct(a AS x, b AS y), or map('x', a)"),
    exp.StrToDate: ("CAST with FORMAT", _FORMAT),  # what the parser makes of it
    exp.StrToTime: ("CAST with FORMAT", _FORMAT),
    exp.Collate: ("a collation", "The engine compares strings by their bytes: compare LOWER(a), or a key of your own"),
    exp.AtTimeZone: ("AT TIME ZONE", "Write from_utc_timestamp(a, 'zone') or to_utc_timestamp"),
}


_FIELDS = {
    "EPOCH": "Write unix_seconds(a), or unix_micros(a)",
    **dict.fromkeys(("MILLISECOND", "MILLISECONDS"), "Write unix_millis(a) % 1000"),
    **dict.fromkeys(("MICROSECOND", "MICROSECONDS"), "Write unix_micros(a) % 1000000"),
    **dict.fromkeys(("DECADE", "CENTURY", "MILLENNIUM"), "Write year(a) DIV 10, or DIV 100"),
    "ISODOW": "Write EXTRACT(DAYOFWEEK_ISO FROM a)",
    "ISOYEAR": "Write EXTRACT(YEAROFWEEK FROM a)",
}
"""Fields of EXTRACT that Spark does not have."""


def faults(tree: exp.Expr, place: Callable[[exp.Expr], Place]) -> list[RefusedError]:
    """Everything in a tree that Spark SQL does not have."""
    told: set[Place] = set()
    found: list[RefusedError] = []
    for what, hint, node in _found(tree):
        at = place(node)
        if at not in told:
            told.add(at)
            found.append(not_offered(what, at, hint))
    return found


def _found(tree: exp.Expr) -> Iterator[tuple[str, str, exp.Expr]]:
    for node in tree.walk(prune=lambda n: type(n) in _NODES):
        if isinstance(node, exp.ColumnDef) and isinstance(node.parent, exp.TableAlias):
            yield "a type in a list of columns", "Name the columns alone, AS v(a, b), and CAST them in SELECT", node
        if type(node) in _NODES:
            yield *_NODES[type(node)], node
        field = node.name.upper() if isinstance(node, exp.Extract) else ""
        if field in _FIELDS:
            yield f"EXTRACT({field} FROM ..)", _FIELDS[field], node
        if isinstance(node, exp.Lateral) and node.args.get("cross_apply") is not None:
            word = "CROSS JOIN LATERAL (..)" if node.args["cross_apply"] else "LEFT JOIN LATERAL (..) ON TRUE"
            yield "APPLY", f"Write {word}", node
        for (kind, name), told in _ARGUMENTS.items():
            if isinstance(node, kind) and _given(node.args.get(name)):
                yield *told, node


def _given(value: object) -> bool:
    if isinstance(value, exp.LimitOptions):
        return bool(value.args.get("percent") or value.args.get("with_ties"))
    return value not in (None, False, [])
