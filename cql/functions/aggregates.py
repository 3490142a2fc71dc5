"""Aggregates by the names that Spark has for them, and which expressions call one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.functions.calls import function_of
from sweeparea.cql.functions.functions import SKETCHES
from sweeparea.operators.plan.plan import UserKind


@dataclass(frozen=True)
class KnownAggregate:
    """What the language knows of an aggregate: its one name, and what may stand around a call of it.

    ``ordered``: its value depends on the order of the rows. ``nulls``: it takes IGNORE NULLS. ``within``: WITHIN GROUP
    is not allowed (``no``), may be written (``may``) or must be (``must``). ``counts``: allowed numbers of arguments.
    ``idle_distinct``: DISTINCT changes nothing, so it is left out.
    """

    function: str
    counts: tuple[int, ...] = (1,)
    ordered: bool = False
    nulls: bool = False
    within: str = "no"
    idle_distinct: bool = False


def _same(names: str, **known: object) -> dict[str, KnownAggregate]:
    return {name: KnownAggregate(name, **known) for name in names.split()}  # type: ignore[arg-type]


_FIRST = KnownAggregate("FIRST", (1, 2), ordered=True, nulls=True, within="may")
_LAST = KnownAggregate("LAST", (1, 2), ordered=True, nulls=True, within="may")
_LIST = KnownAggregate("COLLECT_LIST", ordered=True, within="may")
_LISTAGG = KnownAggregate("LISTAGG", (1, 2), ordered=True, within="may")
_ALL = KnownAggregate("MIN", idle_distinct=True)
_ANY = KnownAggregate("MAX", idle_distinct=True)

AGGREGATES: dict[str, KnownAggregate] = {
    **_same("COUNT SUM AVG TRY_SUM TRY_AVG"),
    **_same("MIN MAX BIT_AND BIT_OR BITMAP_CONSTRUCT_AGG BITMAP_OR_AGG BITMAP_AND_AGG", idle_distinct=True),
    **_same("BIT_XOR STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP SKEWNESS KURTOSIS SCHEMA_OF_VARIANT_AGG"),
    **_same("CORR COVAR_POP COVAR_SAMP REGR_SLOPE REGR_INTERCEPT REGR_R2 REGR_SXX REGR_SXY REGR_SYY", counts=(2,)),
    **_same("REGR_COUNT REGR_AVGX REGR_AVGY", counts=(2,)),
    **_same("VECTOR_SUM VECTOR_AVG", ordered=True),
    **_same("MAX_BY MIN_BY", counts=(2, 3), ordered=True),
    **_same("PERCENTILE_CONT PERCENTILE_DISC", within="must"),
    "PERCENTILE": KnownAggregate("PERCENTILE", (2, 3)),
    "MEDIAN": KnownAggregate("PERCENTILE"),
    "MODE": KnownAggregate("MODE", (0, 1, 2), within="may"),
    "MEAN": KnownAggregate("AVG"),
    "STD": KnownAggregate("STDDEV_SAMP"),
    "STDDEV": KnownAggregate("STDDEV_SAMP"),
    "VARIANCE": KnownAggregate("VAR_SAMP"),
    "COUNT_IF": KnownAggregate("COUNT"),
    "BOOL_AND": _ALL,
    "EVERY": _ALL,
    "BOOL_OR": _ANY,
    "SOME": _ANY,
    "ANY": _ANY,
    "FIRST": _FIRST,
    "FIRST_VALUE": _FIRST,
    "ANY_VALUE": _FIRST,
    "LAST": _LAST,
    "LAST_VALUE": _LAST,
    "COLLECT_LIST": _LIST,
    "ARRAY_AGG": _LIST,
    "COLLECT_SET": KnownAggregate("COLLECT_LIST", idle_distinct=True),
    "LISTAGG": _LISTAGG,
    "STRING_AGG": _LISTAGG,
}
"""Every deterministic aggregate of Spark 4.2, by each name that it has there."""

GROUPING = ("GROUPING", "GROUPING_ID")


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate (GROUPING and sketches too), without what stands around it."""
    if not isinstance(node, exp.Anonymous):
        return False
    user = node.meta.get("user")
    if user is not None:
        return user.kind == UserKind.AGGREGATE
    name = node.name.upper()
    return name in AGGREGATES or name in GROUPING or name in SKETCHES or name == "MEASURE"


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression makes its SELECT an aggregation: an aggregate that is not a window function nor in a
    subquery."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        function = function_of(node.this) if isinstance(node.this, exp.Expr) else None
        if function is None:
            return any(has_aggregate(child) for child in node.iter_expressions())
        below = [child for child in node.iter_expressions() if child is not node.this]
        # of the call itself all but its name: what it aggregates over, its filter and its order
        around = node.this
        while around is not function:
            below += [child for child in around.iter_expressions() if child is not around.this]
            around = around.this
        return any(has_aggregate(child) for child in (*function.iter_expressions(), *below))
    return is_aggregate(node) or any(has_aggregate(child) for child in node.iter_expressions())
