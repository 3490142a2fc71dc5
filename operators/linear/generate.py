"""Each row beside what a generator makes of it: LATERAL VIEW (explode, inline, stack, ..). Linear, without state.

A record's n copies become n copies of each generated record, for as long as the record is valid: a map on bags that
gives several records for one (Kraemer & Seeger 2005, section 3.2.2). ``outer`` keeps a row of which the generator makes
none, with NULLs. Bag in, bag of ``node.columns`` out. Spark evaluates the generator itself.

>>> outer_call("explode(`c1`)"), outer_call("stack(2, `c1`, `c2`)")
('explode_outer(`c1`)', 'stack(2, `c1`, `c2`)')
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sweeparea.operators.values.bag import BAG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sweeparea.operators.plan.logical import Generate

_MAY_BE_EMPTY = re.compile(r"\s*(explode|posexplode|inline)\s*\(", re.IGNORECASE)


def outer_call(sql: str) -> str:
    """The generator that gives a row of NULLs where ``sql`` gives none; most always give one."""
    found = _MAY_BE_EMPTY.match(sql)
    return sql if found is None else f"{found[1]}_outer({sql[found.end() :]}"


def apply(node: Generate, bag: DataFrame) -> DataFrame:
    """Bag in, bag of ``node.columns`` out."""
    call = outer_call(node.generator.sql) if node.outer else node.generator.sql
    names = ", ".join(c.id for c in node.outputs)
    return bag.selectExpr(*(f"`{c.id}`" for c in node.input.columns), f"{call} AS ({names})", *BAG)
